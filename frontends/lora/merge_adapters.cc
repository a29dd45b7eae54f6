// Adds B A to the weights of a folder, file by file.
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "frontends/lora/adapter_files.h"
#include "frontends/lora/lora.h"
#include "frontends/lora/peft_folder.h"
#include "llvm/ADT/StringRef.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/status_macros.h"

namespace partita::lora {
namespace {

namespace fs = std::filesystem;
using absl::InvalidArgumentError;
using absl::Status;
using absl::StatusOr;
using base::DType;
using base::SafetensorsFile;
using llvm::StringRef;
using Pairs = std::map<std::string, Pair>;

constexpr char kWeight[] = ".weight";

std::vector<float> floatsOf(const Tensor& tensor) {
  const std::string_view bytes = tensor.file->BytesOf(*tensor.entry);
  const int64_t count =
      static_cast<int64_t>(bytes.size()) / base::SizeOf(*tensor.entry->dtype);
  std::vector<float> values(count);
  base::Convert(*tensor.entry->dtype, bytes.data(), DType::kF32, values.data(),
                count);
  return values;
}

// An adapter and the weight that it is added to.
struct Target {
  Tensor weight;
  const Pair* pair = nullptr;
  bool in_by_out = false;
};

// By name of the weight.
using Targets = std::map<std::string, Target>;

// The names of the weights of all modules, with `prefix` added or removed;
// empty if the model lacks one.
std::map<std::string, const Pair*> weightsOf(
    const Pairs& pairs, const std::map<std::string, Tensor>& tensors,
    const std::string& prefix, bool adds) {
  std::map<std::string, const Pair*> weights;
  for (const auto& [module, pair] : pairs) {
    StringRef rest = module;
    if (!adds && !rest.consume_front(prefix)) return {};
    const std::string name = (adds ? prefix : "") + rest.str() + kWeight;
    if (tensors.count(name) == 0) return {};
    weights[name] = &pair;
  }
  return weights;
}

// The same model may be stored as "h.0" and as "transformer.h.0".
std::map<std::string, const Pair*> matchWeights(
    const Pairs& pairs, const std::map<std::string, Tensor>& tensors) {
  const std::string& first = pairs.begin()->first;
  std::set<std::string> added = {""};
  for (const auto& [name, tensor] : tensors)
    if (StringRef(name).ends_with("." + first + kWeight))
      added.insert(name.substr(
          0, name.size() - first.size() - StringRef(kWeight).size()));
  for (const std::string& prefix : added)
    if (auto weights = weightsOf(pairs, tensors, prefix, true);
        !weights.empty())
      return weights;
  for (size_t dot = first.find('.'); dot != std::string::npos;
       dot = first.find('.', dot + 1))
    if (auto weights =
            weightsOf(pairs, tensors, first.substr(0, dot + 1), false);
        !weights.empty())
      return weights;
  return {};
}

StatusOr<Targets> targetsOf(const Pairs& pairs,
                            const std::vector<SafetensorsFile>& files,
                            const Options& options, const std::string& model) {
  std::map<std::string, Tensor> tensors;
  for (const SafetensorsFile& file : files)
    for (const auto& [name, entry] : file.header().tensors)
      tensors[name] = {&file, &entry};
  const auto weights = matchWeights(pairs, tensors);
  if (weights.empty())
    return InvalidArgumentError(
        model + ": expected a weight for every adapter, as for " +
        pairs.begin()->first +
        ", found a model that lacks some: give the model that the adapters "
        "were trained with");
  Targets targets;
  for (const auto& [name, pair] : weights) {
    const Tensor& weight = tensors[name];
    const std::vector<int64_t> plain = {pair->out(), pair->in()},
                               turned = {pair->in(), pair->out()};
    const auto& shape = weight.entry->shape;
    if (!weight.entry->dtype || !base::IsFloat(*weight.entry->dtype) ||
        (shape != plain && shape != turned))
      return InvalidArgumentError(model + ": " + name +
                                  ": expected floats of " + ShapeText(plain) +
                                  ", as the adapter's, found " +
                                  weight.entry->stored + ShapeText(shape));
    targets[name] = {weight, pair,
                     plain == turned ? options.in_by_out : shape == turned};
  }
  return targets;
}

// The bytes of W + scale * B A.
std::string mergedBytes(const Target& target, const Options& options) {
  const int64_t out = target.pair->out(), in = target.pair->in(),
                rank = target.pair->rank();
  std::vector<float> values = floatsOf(target.weight),
                     a = floatsOf(target.pair->down),
                     b = floatsOf(target.pair->up);
  Options own = options;
  own.rank = rank;
  const auto scale = static_cast<float>(own.scale());
  for (int64_t i = 0; i < out; ++i)
    for (int64_t j = 0; j < in; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < rank; ++k) sum += b[i * rank + k] * a[k * in + j];
      values[target.in_by_out ? j * out + i : i * in + j] += scale * sum;
    }
  std::string bytes(target.weight.entry->bytes, '\0');
  base::Convert(DType::kF32, values.data(), *target.weight.entry->dtype,
                bytes.data(), static_cast<int64_t>(values.size()));
  return bytes;
}

Status copyOthers(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::directory_iterator entry(from, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code kind;
    if (!entry->is_regular_file(kind) ||
        entry->path().extension() == ".safetensors")
      continue;
    fs::copy_file(entry->path(), fs::path(to) / entry->path().filename(),
                  error);
    if (error) break;
  }
  if (!error) return absl::OkStatus();
  return InvalidArgumentError("-o: cannot copy the files of " + from + ": " +
                              error.message());
}

Status writeFile(const SafetensorsFile& file, const Targets& targets,
                 const Options& options, const std::string& path,
                 int64_t& bytes) {
  std::vector<Part> parts;
  for (const auto& [name, entry] : file.header().tensors)
    parts.push_back({name, &entry});
  PARTITA_ASSIGN_OR_RETURN(auto written, base::AtomicFile::Create(path));
  PARTITA_RETURN_IF_ERROR(written->Append(HeaderOf(parts)));
  for (const Part& part : parts) {
    const auto target = targets.find(part.name);
    PARTITA_RETURN_IF_ERROR(
        target == targets.end()
            ? written->Append(file.BytesOf(*part.entry))
            : written->Append(mergedBytes(target->second, options)));
  }
  bytes += written->size();
  return written->Commit();
}

}  // namespace

StatusOr<Saved> MergeAdapters(const std::string& model,
                              const std::string& adapter,
                              const std::string& output) {
  std::error_code error;
  if (!fs::is_directory(adapter, error))
    return InvalidArgumentError("--adapter: expected a PEFT folder, found '" +
                                adapter + "'");
  PARTITA_ASSIGN_OR_RETURN(const Options options, ParseOptions(adapter));
  PARTITA_ASSIGN_OR_RETURN(const auto adapter_files, OpenFolder(adapter));
  PARTITA_ASSIGN_OR_RETURN(const Pairs pairs,
                           PairsOf(adapter_files, adapter, /*only=*/true));
  PARTITA_ASSIGN_OR_RETURN(const auto files, OpenFolder(model));
  PARTITA_ASSIGN_OR_RETURN(const Targets targets,
                           targetsOf(pairs, files, options, model));
  Saved saved;
  saved.modules = static_cast<int64_t>(pairs.size());
  PARTITA_RETURN_IF_ERROR(FillNewFolder(output, [&]() -> Status {
    for (const SafetensorsFile& file : files)
      PARTITA_RETURN_IF_ERROR(writeFile(
          file, targets, options,
          (fs::path(output) / fs::path(file.path()).filename()).string(),
          saved.bytes));
    return copyOthers(model, output);
  }));
  return saved;
}

}  // namespace partita::lora
