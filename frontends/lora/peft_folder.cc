// Reads tensors by name from all safetensors files of a folder, and writes
// files of the same names.
#include "frontends/lora/peft_folder.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "frontends/lora/lora.h"
#include "llvm/ADT/StringRef.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/safetensors.h"
#include "runtime/base/status_macros.h"

namespace partita::lora {
namespace {

namespace fs = std::filesystem;
using absl::InvalidArgumentError;
using absl::Status;
using absl::StatusOr;
using base::DType;
using base::SafetensorsEntry;
using base::SafetensorsFile;
using llvm::StringRef;

constexpr char kDown[] = ".lora_A.weight", kUp[] = ".lora_B.weight";
constexpr char kPeft[] = "base_model.model.";

std::string shapeText(const std::vector<int64_t>& shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : ",") + std::to_string(size);
  return "[" + text + "]";
}

// The model's safetensors files of a folder. Of a checkpoint, those of the
// optimizer are left out.
StatusOr<std::vector<SafetensorsFile>> openFolder(const std::string& folder) {
  std::error_code error;
  std::set<std::string> paths;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".safetensors" &&
        !StringRef(entry.path().filename().string()).starts_with("optimizer"))
      paths.insert(entry.path().string());
  if (error || paths.empty())
    return InvalidArgumentError(folder +
                                ": expected a folder with .safetensors files, "
                                "found " +
                                (error ? error.message() : "none in it"));
  std::vector<SafetensorsFile> files;
  for (const std::string& path : paths) {
    PARTITA_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
    files.push_back(std::move(file));
  }
  return files;
}

Status createFolder(const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error))
    return InvalidArgumentError(
        "-o: expected the name of a new folder, found '" + path +
        "', which exists");
  fs::create_directories(path, error);
  if (!error) return absl::OkStatus();
  return InvalidArgumentError("-o: cannot make the folder '" + path +
                              "': " + error.message());
}

struct Tensor {
  const SafetensorsFile* file = nullptr;
  const SafetensorsEntry* entry = nullptr;
};

struct Pair {
  Tensor down, up;
};

// By module. A, B and the model's names have no prefix here.
using Pairs = std::map<std::string, Pair>;

StatusOr<Pairs> pairsOf(const std::vector<SafetensorsFile>& files,
                        const std::string& folder) {
  Pairs pairs;
  for (const SafetensorsFile& file : files)
    for (const auto& [name, entry] : file.header().tensors) {
      StringRef module = name;
      module.consume_front(kPeft);
      if (module.consume_back(kDown))
        pairs[module.str()].down = {&file, &entry};
      else if (module.consume_back(kUp))
        pairs[module.str()].up = {&file, &entry};
    }
  if (pairs.empty())
    return InvalidArgumentError(
        folder + ": expected adapters, found no tensor whose name ends with " +
        kDown + ": train with --lora, and name a checkpoint of that run");
  for (const auto& [module, pair] : pairs) {
    if (!pair.down.entry || !pair.up.entry)
      return InvalidArgumentError(folder + ": " + module + ": expected " +
                                  kDown + " and " + kUp +
                                  ", found one of them");
    const auto &down = pair.down.entry->shape, &up = pair.up.entry->shape;
    if (down.size() != 2 || up.size() != 2 || down[0] != up[1])
      return InvalidArgumentError(folder + ": " + module +
                                  ": expected A [rank, in] and B [out, rank], "
                                  "found " +
                                  shapeText(down) + " and " + shapeText(up));
    for (const SafetensorsEntry* entry : {pair.down.entry, pair.up.entry})
      if (!entry->dtype || !base::IsFloat(*entry->dtype))
        return InvalidArgumentError(folder + ": " + module +
                                    ": expected floats, found " +
                                    entry->stored);
  }
  return pairs;
}

// A safetensors file in memory order: names with their types, shapes and bytes.
struct Part {
  std::string name;
  const SafetensorsEntry* entry = nullptr;
};

std::string headerOf(const std::vector<Part>& parts) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  uint64_t offset = 0;
  for (const Part& part : parts) {
    header[part.name] = {
        {"dtype", part.entry->stored},
        {"shape", part.entry->shape},
        {"data_offsets", {offset, offset + part.entry->bytes}}};
    offset += part.entry->bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8)
    bytes.push_back(static_cast<char>(uint64_t{text.size()} >> shift & 255));
  return bytes + text;
}

std::vector<float> floatsOf(const Tensor& tensor) {
  const std::string_view bytes = tensor.file->BytesOf(*tensor.entry);
  const int64_t count =
      static_cast<int64_t>(bytes.size()) / base::SizeOf(*tensor.entry->dtype);
  std::vector<float> values(count);
  base::Convert(*tensor.entry->dtype, bytes.data(), DType::kF32, values.data(),
                count);
  return values;
}

// The bytes of W + scale * B A.
StatusOr<std::string> mergedBytes(const std::string& module,
                                  const Tensor& weight, const Pair& pair,
                                  const Options& options) {
  const auto &shape = weight.entry->shape, &down = pair.down.entry->shape,
             &up = pair.up.entry->shape;
  const int64_t out = up[0], in = down[1], rank = down[0];
  const bool plain = shape == std::vector<int64_t>{out, in},
             turned = shape == std::vector<int64_t>{in, out};
  if (!weight.entry->dtype || !base::IsFloat(*weight.entry->dtype) ||
      (!plain && !turned))
    return InvalidArgumentError(
        module + ".weight: expected floats of " + shapeText({out, in}) +
        ", as the adapter's, found " + weight.entry->stored + shapeText(shape));
  const bool in_by_out = plain && turned ? options.in_by_out : turned;
  std::vector<float> values = floatsOf(weight), a = floatsOf(pair.down),
                     b = floatsOf(pair.up);
  const auto scale = static_cast<float>(
      options.alpha /
      (options.by_root ? std::sqrt(double(rank)) : double(rank)));
  for (int64_t i = 0; i < out; ++i)
    for (int64_t j = 0; j < in; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < rank; ++k) sum += b[i * rank + k] * a[k * in + j];
      values[in_by_out ? j * out + i : i * in + j] += scale * sum;
    }
  std::string bytes(weight.entry->bytes, '\0');
  base::Convert(DType::kF32, values.data(), *weight.entry->dtype, bytes.data(),
                static_cast<int64_t>(values.size()));
  return bytes;
}

// The adapter's module of a weight of the model, whose prefix may differ.
const std::pair<const std::string, Pair>* pairOf(const Pairs& pairs,
                                                 StringRef weight) {
  if (!weight.consume_back(".weight")) return nullptr;
  for (const auto& each : pairs)
    if (weight == each.first || weight.ends_with("." + each.first) ||
        StringRef(each.first).ends_with(("." + weight).str()))
      return &each;
  return nullptr;
}

Status copyOthers(const std::string& from, const std::string& to) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(from, error)) {
    if (error || !entry.is_regular_file() ||
        entry.path().extension() == ".safetensors")
      continue;
    fs::copy_file(entry.path(), fs::path(to) / entry.path().filename(), error);
    if (error)
      return InvalidArgumentError("-o: cannot copy " + entry.path().string() +
                                  ": " + error.message());
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<Saved> SaveAdapters(const std::string& checkpoint, double alpha,
                             bool by_root, const std::string& output) {
  PARTITA_ASSIGN_OR_RETURN(const auto files, openFolder(checkpoint));
  PARTITA_ASSIGN_OR_RETURN(const Pairs pairs, pairsOf(files, checkpoint));
  PARTITA_RETURN_IF_ERROR(createFolder(output));
  const int64_t rank = pairs.begin()->second.down.entry->shape[0];
  std::vector<Part> parts;
  std::vector<std::string> modules;
  bool in_by_out = false;
  for (const auto& [module, pair] : pairs) {
    if (pair.down.entry->shape[0] != rank)
      return InvalidArgumentError(
          checkpoint + ": " + module + ": expected the rank of " +
          pairs.begin()->first + ", " + std::to_string(rank) + ", found " +
          std::to_string(pair.down.entry->shape[0]));
    modules.push_back(module);
    parts.push_back({kPeft + module + kDown, pair.down.entry});
    parts.push_back({kPeft + module + kUp, pair.up.entry});
    for (const SafetensorsFile& file : files)
      if (auto weight = file.header().tensors.find(module + ".weight");
          weight != file.header().tensors.end())
        in_by_out |= weight->second.shape[0] != pair.up.entry->shape[0];
  }
  const nlohmann::json config = {{"peft_type", "LORA"},
                                 {"r", rank},
                                 {"lora_alpha", alpha},
                                 {"lora_dropout", 0.0},
                                 {"use_rslora", by_root},
                                 {"fan_in_fan_out", in_by_out},
                                 {"bias", "none"},
                                 {"target_modules", modules},
                                 {"base_model_name_or_path", nullptr},
                                 {"task_type", nullptr},
                                 {"inference_mode", true}};
  const fs::path folder(output);
  PARTITA_ASSIGN_OR_RETURN(
      auto file, base::AtomicFile::Create(
                     (folder / "adapter_model.safetensors").string()));
  PARTITA_RETURN_IF_ERROR(file->Append(headerOf(parts)));
  for (const auto& [module, pair] : pairs)
    for (const Tensor& tensor : {pair.down, pair.up})
      PARTITA_RETURN_IF_ERROR(
          file->Append(tensor.file->BytesOf(*tensor.entry)));
  Saved saved{static_cast<int64_t>(pairs.size()), file->size()};
  PARTITA_RETURN_IF_ERROR(file->Commit());
  PARTITA_RETURN_IF_ERROR(base::WriteFileAtomically(
      (folder / "adapter_config.json").string(), config.dump(2) + "\n"));
  return saved;
}

StatusOr<Saved> MergeAdapters(const std::string& model,
                              const std::string& adapter,
                              const std::string& output) {
  PARTITA_ASSIGN_OR_RETURN(const Options options, ParseOptions(adapter));
  if (options.folder.empty())
    return InvalidArgumentError("--adapter: expected a PEFT folder, found '" +
                                adapter + "'");
  PARTITA_ASSIGN_OR_RETURN(const auto adapter_files, openFolder(adapter));
  PARTITA_ASSIGN_OR_RETURN(const Pairs pairs, pairsOf(adapter_files, adapter));
  PARTITA_ASSIGN_OR_RETURN(const auto files, openFolder(model));
  std::set<std::string> found;
  for (const SafetensorsFile& file : files)
    for (const auto& [name, entry] : file.header().tensors)
      if (const auto* pair = pairOf(pairs, name)) found.insert(pair->first);
  for (const auto& [module, pair] : pairs)
    if (found.count(module) == 0)
      return InvalidArgumentError(
          model + ": expected " + module +
          ".weight, for which there is an adapter, found none: give the model "
          "that the adapter was trained with");
  PARTITA_RETURN_IF_ERROR(createFolder(output));
  Saved saved;
  saved.modules = static_cast<int64_t>(pairs.size());
  for (const SafetensorsFile& file : files) {
    std::vector<Part> parts;
    for (const auto& [name, entry] : file.header().tensors)
      parts.push_back({name, &entry});
    PARTITA_ASSIGN_OR_RETURN(
        auto written,
        base::AtomicFile::Create(
            (fs::path(output) / fs::path(file.path()).filename()).string()));
    PARTITA_RETURN_IF_ERROR(written->Append(headerOf(parts)));
    for (const Part& part : parts) {
      const auto* pair = pairOf(pairs, part.name);
      if (!pair) {
        PARTITA_RETURN_IF_ERROR(written->Append(file.BytesOf(*part.entry)));
        continue;
      }
      PARTITA_ASSIGN_OR_RETURN(
          const std::string bytes,
          mergedBytes(pair->first, {&file, part.entry}, pair->second, options));
      PARTITA_RETURN_IF_ERROR(written->Append(bytes));
    }
    saved.bytes += written->size();
    PARTITA_RETURN_IF_ERROR(written->Commit());
  }
  PARTITA_RETURN_IF_ERROR(copyOthers(model, output));
  return saved;
}

}  // namespace partita::lora
