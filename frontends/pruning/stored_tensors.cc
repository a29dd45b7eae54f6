// Maps files, and copies only tensors that change.
#include "frontends/pruning/stored_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "dialects/nn/dialect.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/tensor_parts.h"

namespace partita::pruning {
namespace {

using absl::InvalidArgumentError;
using absl::Status;
using absl::StatusOr;
using base::DType;

// The types that safetensors has, in its notation.
struct Stored {
  DType dtype;
  const char* name;
};
constexpr Stored kStored[] = {
    {DType::kF32, "F32"},       {DType::kF64, "F64"},
    {DType::kF16, "F16"},       {DType::kBF16, "BF16"},
    {DType::kI1, "BOOL"},       {DType::kI8, "I8"},
    {DType::kI16, "I16"},       {DType::kI32, "I32"},
    {DType::kI64, "I64"},       {DType::kU8, "U8"},
    {DType::kU16, "U16"},       {DType::kU32, "U32"},
    {DType::kU64, "U64"},       {DType::kF8E4M3, "F8_E4M3"},
    {DType::kF8E5M2, "F8_E5M2"}};

std::optional<DType> dtypeOf(mlir::Type type) {
  if (type.isF32()) return DType::kF32;
  if (type.isF64()) return DType::kF64;
  if (type.isF16()) return DType::kF16;
  if (type.isBF16()) return DType::kBF16;
  if (llvm::isa<mlir::Float8E4M3FNType>(type)) return DType::kF8E4M3;
  if (llvm::isa<mlir::Float8E5M2Type>(type)) return DType::kF8E5M2;
  if (type.isInteger(1)) return DType::kI1;
  if (type.isInteger(8)) return DType::kI8;
  if (type.isInteger(16)) return DType::kI16;
  if (type.isInteger(32)) return DType::kI32;
  if (type.isInteger(64)) return DType::kI64;
  return std::nullopt;
}

const char* nameOf(DType dtype) {
  for (const Stored& stored : kStored)
    if (stored.dtype == dtype) return stored.name;
  return "";
}

// Neither a small number becomes zero nor a large one infinite.
float narrow(double value) {
  using Limits = std::numeric_limits<float>;
  const double magnitude = std::abs(value);
  if (magnitude == 0 || !std::isfinite(value)) return static_cast<float>(value);
  return static_cast<float>(std::copysign(
      std::clamp<double>(magnitude, Limits::denorm_min(), Limits::max()),
      value));
}

}  // namespace

Status StoredTensors::add(unsigned argument, const std::string& name,
                          mlir::Attribute source, std::vector<int64_t> shape,
                          const std::string& source_folder) {
  auto file = llvm::dyn_cast_if_present<nn::FileAttr>(source);
  if (!file)
    return InvalidArgumentError(
        "expected weights in files, found '" + name +
        "', whose values are made from a seed; --weights takes a checkpoint");
  const std::string path =
      (std::filesystem::path(source_folder) / file.getPath().str()).string();
  auto known = files_.find(path);
  if (known == files_.end()) {
    PARTITA_ASSIGN_OR_RETURN(base::MappedFile opened,
                             base::MappedFile::Open(path));
    known = files_.emplace(path, std::move(opened)).first;
  }
  const std::optional<DType> dtype = dtypeOf(file.getStored());
  const std::string_view bytes = known->second.bytes();
  if (!dtype || file.getOffset() > bytes.size() ||
      file.getBytes() > bytes.size() - file.getOffset() ||
      base::ByteCount(*dtype, shape) != static_cast<int64_t>(file.getBytes()))
    return InvalidArgumentError(path + ": expected the tensor '" + name +
                                "' as when the model was read, found another "
                                "file or a type that safetensors lack");
  tensors_.emplace(
      argument,
      StoredTensor{name, *dtype, std::move(shape),
                   bytes.substr(file.getOffset(), file.getBytes()), ""});
  return absl::OkStatus();
}

StatusOr<StoredTensors> StoredTensors::open(mlir::func::FuncOp main,
                                            const std::string& source_folder) {
  StoredTensors tensors;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    const mlir::Attribute source = main.getArgAttr(i, nn::kSourceAttr);
    if (!source) continue;
    auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
    const std::string text = name ? name.getValue().str() : std::string();
    std::vector<int64_t> shape =
        llvm::cast<mlir::RankedTensorType>(main.getArgumentTypes()[i])
            .getShape()
            .vec();
    auto parts = llvm::dyn_cast<mlir::ArrayAttr>(source);
    if (!parts) {
      PARTITA_RETURN_IF_ERROR(
          tensors.add(i, text, source, shape, source_folder));
      continue;
    }
    shape.erase(shape.begin());
    for (size_t k = 0; k < parts.size(); ++k)
      PARTITA_RETURN_IF_ERROR(
          tensors.add(i, base::PartName(text, static_cast<int64_t>(k)),
                      parts[k], shape, source_folder));
  }
  return tensors;
}

bool StoredTensors::isWhole(unsigned argument) const {
  return tensors_.count(argument) == 1;
}

StatusOr<std::vector<float>> StoredTensors::floats(unsigned argument) const {
  const StoredTensor& tensor = tensors_.find(argument)->second;
  const int64_t count = *base::ElementCount(tensor.shape);
  std::vector<float> values(static_cast<size_t>(count));
  if (tensor.dtype == DType::kF64) {
    for (size_t i = 0; i < values.size(); ++i) {
      double value = 0;
      std::memcpy(&value, tensor.bytes.data() + i * sizeof value, sizeof value);
      values[i] = narrow(value);
    }
  } else {
    base::Convert(tensor.dtype, tensor.bytes.data(), DType::kF32, values.data(),
                  count);
  }
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return InvalidArgumentError(
          "expected finite numbers in weights to prune, found " +
          std::string(std::isnan(values[i]) ? "nan" : "inf") + " in '" +
          tensor.name + "' (element " + std::to_string(i) +
          "); --keep leaves a weight alone");
  return values;
}

void StoredTensors::setZeros(unsigned argument,
                             const std::vector<float>& values) {
  StoredTensor& tensor = tensors_.find(argument)->second;
  const auto size = static_cast<size_t>(base::SizeOf(tensor.dtype));
  std::string bytes(tensor.bytes);
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] == 0) bytes.replace(i * size, size, size, '\0');
  tensor.own = std::move(bytes);
  tensor.bytes = tensor.own;
}

void StoredTensors::reorder(unsigned argument, int64_t dim,
                            const std::vector<int64_t>& order) {
  StoredTensor& tensor = tensors_.find(argument)->second;
  int64_t outer = 1, inner = base::SizeOf(tensor.dtype);
  for (int64_t i = 0; i < dim; ++i) outer *= tensor.shape[i];
  for (size_t i = dim + 1; i < tensor.shape.size(); ++i)
    inner *= tensor.shape[i];
  std::string bytes;
  bytes.reserve(tensor.bytes.size());
  const auto length = static_cast<int64_t>(order.size());
  for (int64_t i = 0; i < outer; ++i)
    for (const int64_t from : order)
      bytes += tensor.bytes.substr((i * length + from) * inner, inner);
  tensor.own = std::move(bytes);
  tensor.bytes = tensor.own;
}

StatusOr<int64_t> StoredTensors::write(const std::string& path) const {
  nlohmann::json header;
  std::map<std::string, const StoredTensor*> by_name;
  for (const auto& [argument, tensor] : tensors_)
    by_name[tensor.name] = &tensor;
  size_t offset = 0;
  for (const auto& [name, tensor] : by_name) {
    header[name] = {{"dtype", nameOf(tensor->dtype)},
                    {"shape", tensor->shape},
                    {"data_offsets", {offset, offset + tensor->bytes.size()}}};
    offset += tensor->bytes.size();
  }
  header["__metadata__"] = {{"format", "pt"}};
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  PARTITA_ASSIGN_OR_RETURN(auto file, base::AtomicFile::Create(path));
  const uint64_t size = text.size();
  PARTITA_RETURN_IF_ERROR(file->Append(
      std::string_view(reinterpret_cast<const char*>(&size), sizeof size)));
  PARTITA_RETURN_IF_ERROR(file->Append(text));
  for (const auto& [name, tensor] : by_name)
    PARTITA_RETURN_IF_ERROR(file->Append(tensor->bytes));
  const int64_t written = file->size();
  PARTITA_RETURN_IF_ERROR(file->Commit());
  return written;
}

}  // namespace partita::pruning
