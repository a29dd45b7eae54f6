// Finds the safetensors files of a folder, reads their headers and matches
// tensors with the model's requests.
#include "frontends/huggingface/weights.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "dialects/nn/dialect.h"
#include "frontends/huggingface/config.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "runtime/base/tensor_parts.h"

namespace partita::huggingface {
namespace {

namespace fs = std::filesystem;
using llvm::StringRef;
using mlir::FailureOr;
using mlir::LogicalResult;

constexpr const char* kSingleFiles[] = {"model.safetensors",
                                        "weights.safetensors"};
constexpr char kIndexFile[] = "model.safetensors.index.json";
constexpr size_t kMaxListed = 40;

std::string join(const std::string& folder, const std::string& file) {
  return (fs::path(folder) / file).string();
}

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

mlir::Location at(const std::string& path, mlir::MLIRContext* context) {
  return mlir::FileLineColLoc::get(context, path, 0, 0);
}

std::string shapeText(llvm::ArrayRef<int64_t> shape) {
  return "[" +
         llvm::join(
             llvm::map_range(shape,
                             [](int64_t size) { return std::to_string(size); }),
             ",") +
         "]";
}

// FNV-1a: the same on every machine and in every release.
uint64_t hash(StringRef text) {
  uint64_t value = 0xcbf29ce484222325;
  for (const char c : text)
    value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return value;
}

mlir::Type floatType(base::DType dtype, mlir::MLIRContext* context) {
  switch (dtype) {
    case base::DType::kF32:
      return mlir::Float32Type::get(context);
    case base::DType::kF64:
      return mlir::Float64Type::get(context);
    case base::DType::kF16:
      return mlir::Float16Type::get(context);
    case base::DType::kBF16:
      return mlir::BFloat16Type::get(context);
    default:
      return {};
  }
}

std::optional<base::DType> integerDType(mlir::Type type, bool is_unsigned) {
  using base::DType;
  switch (type.getIntOrFloatBitWidth()) {
    case 1:
      return DType::kI1;
    case 8:
      return is_unsigned ? DType::kU8 : DType::kI8;
    case 16:
      return is_unsigned ? DType::kU16 : DType::kI16;
    case 32:
      return is_unsigned ? DType::kU32 : DType::kI32;
    case 64:
      return is_unsigned ? DType::kU64 : DType::kI64;
    default:
      return std::nullopt;
  }
}

// A shard must be a regular file of the folder itself.
LogicalResult checkShard(const std::string& folder, const std::string& shard,
                         const std::string& index, mlir::MLIRContext* context) {
  const fs::path path(shard);
  const bool inside =
      !shard.empty() && path.is_relative() &&
      shard.find('\0') == std::string::npos &&
      llvm::none_of(path, [](const fs::path& part) { return part == ".."; });
  if (!inside)
    return mlir::emitError(at(index, context))
           << "expected shards named by a relative path without '..', found '"
           << shard << "'";
  std::error_code error;
  const fs::file_status status =
      fs::symlink_status(fs::path(folder) / path, error);
  if (fs::is_regular_file(status)) return mlir::success();
  // Download caches link to content-addressed files outside the folder. A
  // symlink to a file is accepted if the index did not choose it.
  if (fs::is_symlink(status) &&
      fs::is_regular_file(fs::status(fs::path(folder) / path, error)))
    return mlir::success();
  return mlir::emitError(at(index, context))
         << "expected the shard '" << shard << "' to be a file in " << folder
         << ", found " << (fs::exists(status) ? "something else" : "none");
}

void list(mlir::Diagnostic& diagnostic, const char* what,
          const std::vector<std::string>& names) {
  if (names.empty()) return;
  diagnostic << "\n  " << what << ":";
  for (size_t i = 0; i < std::min(names.size(), kMaxListed); ++i)
    diagnostic << "\n    " << names[i];
  if (names.size() > kMaxListed)
    diagnostic << "\n    and " << names.size() - kMaxListed << " more";
}

}  // namespace

Weights Weights::seeded(uint64_t seed) {
  Weights weights;
  weights.seeded_ = true;
  weights.seed_ = seed;
  return weights;
}

bool Weights::exist(const std::string& folder) {
  for (const char* file : kSingleFiles)
    if (exists(join(folder, file))) return true;
  return exists(join(folder, kIndexFile));
}

std::vector<std::string> Weights::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

FailureOr<Weights> Weights::openFile(const std::string& path,
                                     mlir::MLIRContext* context) {
  Weights weights;
  std::error_code error;
  if (failed(weights.addFile(
          fs::absolute(path, error).lexically_normal().string(), context)))
    return mlir::failure();
  weights.renameToday();
  return weights;
}

FailureOr<Weights> Weights::open(const std::string& folder,
                                 mlir::MLIRContext* context) {
  Weights weights;
  std::error_code error;
  const std::string absolute =
      fs::absolute(folder, error).lexically_normal().string();
  bool done = false;
  for (const char* file : kSingleFiles) {
    if (done || !exists(join(absolute, file))) continue;
    if (failed(weights.addFile(join(absolute, file), context)))
      return mlir::failure();
    done = true;
  }
  if (!done &&
      failed(weights.addShards(absolute, join(absolute, kIndexFile), context)))
    return mlir::failure();
  weights.renameToday();
  return weights;
}

LogicalResult Weights::addFile(const std::string& path,
                               mlir::MLIRContext* context) {
  auto file = base::SafetensorsFile::Open(path);
  if (!file.ok())
    return mlir::emitError(at(path, context))
           << std::string(file.status().message());
  for (const auto& [name, entry] : file->header().tensors) {
    const auto [place, inserted] =
        tensors_.try_emplace(name, Tensor{path, entry});
    if (!inserted)
      return mlir::emitError(at(path, context))
             << "tensor '" << name << "' is also in " << place->second.path
             << "; expected each in one shard";
  }
  return mlir::success();
}

LogicalResult Weights::addShards(const std::string& folder,
                                 const std::string& index,
                                 mlir::MLIRContext* context) {
  FailureOr<nlohmann::json> json = readJsonFile(index, context);
  if (failed(json)) return mlir::failure();
  const auto map = json->find("weight_map");
  if (map == json->end() || !map->is_object())
    return mlir::emitError(at(index, context))
           << "expected an object 'weight_map' of tensors and files, found "
              "none";
  std::set<std::string> shards;
  for (const auto& [name, shard] : map->items()) {
    if (!shard.is_string())
      return mlir::emitError(at(index, context))
             << "expected the name of a file for tensor '" << name << "'";
    shards.insert(shard.get<std::string>());
  }
  for (const std::string& shard : shards)
    if (failed(checkShard(folder, shard, index, context)) ||
        failed(addFile(join(folder, shard), context)))
      return mlir::failure();
  for (const auto& [name, shard] : map->items()) {
    const auto place = tensors_.find(name);
    const std::string path = join(folder, shard.get<std::string>());
    if (place == tensors_.end() || place->second.path != path)
      return mlir::emitError(at(index, context))
             << "expected tensor '" << name << "' in " << path << ", found it "
             << (place == tensors_.end() ? "nowhere"
                                         : "in " + place->second.path);
  }
  return mlir::success();
}

void Weights::rename(llvm::function_ref<std::string(StringRef)> shorten) {
  Tensors renamed;
  std::map<std::string, std::string> stored;
  for (auto& [name, tensor] : tensors_) {
    const std::string short_name = shorten(name);
    const auto before = stored_names_.find(name);
    if (before != stored_names_.end())
      stored[short_name] = before->second;
    else if (short_name != name)
      stored[short_name] = name;
    renamed.emplace(short_name, std::move(tensor));
  }
  tensors_ = std::move(renamed);
  stored_names_ = std::move(stored);
}

void Weights::renameToday() {
  // torch.compile, DistributedDataParallel and PEFT add these prefixes to every
  // name.
  for (const StringRef prefix :
       {"_orig_mod.", "module.", "_orig_mod.", "base_model.model."})
    if (!tensors_.empty() && llvm::all_of(tensors_, [&](auto& t) {
          return StringRef(t.first).starts_with(prefix);
        }))
      rename(
          [&](StringRef name) { return name.drop_front(prefix.size()).str(); });
  // Checkpoints converted from TensorFlow use its names for normalisation
  // weights.
  rename([&](StringRef name) {
    StringRef stem = name;
    std::string today = name.str();
    if (stem.consume_back("LayerNorm.gamma"))
      today = (stem + "LayerNorm.weight").str();
    if (stem.consume_back("LayerNorm.beta"))
      today = (stem + "LayerNorm.bias").str();
    return tensors_.count(today) > 0 ? name.str() : today;
  });
}

void Weights::ignore(llvm::ArrayRef<StringRef> patterns) {
  for (const StringRef pattern : patterns) ignored_.push_back(pattern.str());
}

Weights::Tensors::const_iterator Weights::find(StringRef name) const {
  const auto exact = tensors_.find(name.str());
  if (exact != tensors_.end() || base_prefix_.empty()) return exact;
  if (name.starts_with(base_prefix_))
    return tensors_.find(name.drop_front(base_prefix_.size()).str());
  return tensors_.find(base_prefix_ + name.str());
}

Weights::Source Weights::source(StringRef name, llvm::ArrayRef<int64_t> shape,
                                Init init, mlir::MLIRContext* context) {
  if (seeded_) {
    // Below 2^62, so that every integer reader can represent it.
    const uint64_t seed = (hash(name) ^ (seed_ * 0x9e3779b97f4a7c15)) >> 2;
    const auto scale =
        mlir::FloatAttr::get(mlir::Float64Type::get(context), init.scale);
    return {name.str(), nn::InitAttr::get(context, init.kind, scale, seed)};
  }
  return stored(
      name, shape, [&](base::DType dtype) { return floatType(dtype, context); },
      "F32, F16, BF16 or F64", context);
}

Weights::Source Weights::source(StringRef name, mlir::RankedTensorType type,
                                bool is_unsigned, mlir::MLIRContext* context) {
  const mlir::Type element = type.getElementType();
  if (llvm::isa<mlir::FloatType>(element))
    return source(name, type.getShape(), Init::zeros(), context);
  const std::optional<base::DType> own = integerDType(element, is_unsigned);
  return stored(
      name, type.getShape(),
      [&](base::DType dtype) { return dtype == own ? element : mlir::Type(); },
      !own                       ? "another element type"
      : *own == base::DType::kI1 ? "BOOL"
                                 : llvm::StringRef(base::NameOf(*own)).upper(),
      context);
}

Weights::Source Weights::stored(
    StringRef name, llvm::ArrayRef<int64_t> shape,
    llvm::function_ref<mlir::Type(base::DType)> typeOf,
    const std::string& accepted, mlir::MLIRContext* context) {
  const auto place = find(name);
  if (place == tensors_.end()) {
    missing_.push_back(name.str() + ": expected " + shapeText(shape));
    return {name.str(), {}};
  }
  used_.insert(place->first);
  const auto stored = stored_names_.find(place->first);
  const std::string stored_name =
      stored == stored_names_.end() ? place->first : stored->second;
  const Tensor& tensor = place->second;
  const mlir::Type type =
      tensor.entry.dtype ? typeOf(*tensor.entry.dtype) : mlir::Type();
  if (llvm::ArrayRef<int64_t>(tensor.entry.shape) != shape)
    misshaped_.push_back(stored_name + ": expected " + shapeText(shape) +
                         ", found " + shapeText(tensor.entry.shape));
  else if (!type)
    misshaped_.push_back(stored_name + ": expected " + accepted + ", found " +
                         tensor.entry.stored);
  else
    return {stored_name,
            nn::FileAttr::get(context, tensor.path, tensor.entry.offset,
                              tensor.entry.bytes, type)};
  return {stored_name, {}};
}

Weights::Source Weights::parts(StringRef name, llvm::ArrayRef<int64_t> shape,
                               Init init, mlir::MLIRContext* context) {
  if (seeded_) return source(name, shape, init, context);
  llvm::SmallVector<mlir::Attribute> files;
  std::string stored_name = name.str();
  for (int64_t i = 0; i < shape[0]; ++i) {
    const Source part = source(base::PartName(name.str(), i),
                               shape.drop_front(), init, context);
    if (i == 0) {
      // The stored name of part 0 may have another prefix.
      const size_t behind = name.size() - name.find('*') - 1;
      stored_name = part.name;
      stored_name.replace(stored_name.size() - behind - 1, 1, "*");
    }
    if (part.data) files.push_back(part.data);
  }
  if (static_cast<int64_t>(files.size()) != shape[0]) return {stored_name, {}};
  return {stored_name, mlir::ArrayAttr::get(context, files)};
}

LogicalResult Weights::finish(mlir::Location loc) {
  std::vector<std::string> unexpected;
  std::vector<llvm::GlobPattern> patterns;
  for (const std::string& text : ignored_)
    if (llvm::Expected<llvm::GlobPattern> pattern =
            llvm::GlobPattern::create(text))
      patterns.push_back(std::move(*pattern));
    else
      llvm::consumeError(pattern.takeError());
  for (const auto& [name, tensor] : tensors_) {
    const bool known =
        used_.count(name) > 0 ||
        llvm::any_of(patterns, [&, &n = name](const llvm::GlobPattern& p) {
          return p.match(n) ||
                 (!base_prefix_.empty() && p.match(base_prefix_ + n));
        });
    if (!known)
      unexpected.push_back(name + ": " + tensor.entry.stored +
                           shapeText(tensor.entry.shape) + " in " +
                           tensor.path);
  }
  if (missing_.empty() && misshaped_.empty() && unexpected.empty())
    return mlir::success();
  mlir::InFlightDiagnostic error = mlir::emitError(loc);
  error << "the weights do not fit the config: " << missing_.size()
        << " missing, " << misshaped_.size() << " of another shape or type, "
        << unexpected.size() << " unexpected";
  mlir::Diagnostic& diagnostic = *error.getUnderlyingDiagnostic();
  list(diagnostic, "missing", missing_);
  list(diagnostic, "of another shape or type", misshaped_);
  list(diagnostic, "unexpected", unexpected);
  return error;
}

}  // namespace partita::huggingface
