#include "frontends/torch/weights.h"

#include <algorithm>

#include "dialects/nn/tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/Builders.h"

namespace partita::torch {
namespace {

using mlir::failure;
using mlir::FailureOr;

uint64_t byteWidth(mlir::Type type) {
  return type.isInteger(1) ? 1 : type.getIntOrFloatBitWidth() / 8;
}

// Tables of weights hold numbers only.
bool readNumbers(const std::vector<SymInt>& sizes,
                 llvm::SmallVector<int64_t>& numbers) {
  for (const SymInt& size : sizes) {
    if (!size.expression.empty() || size.value < 0) return false;
    numbers.push_back(size.value);
  }
  return true;
}

}  // namespace

ElementType elementTypeOf(ScalarType type, mlir::MLIRContext* context) {
  mlir::Builder builder(context);
  switch (type) {
    case ScalarType::kByte:
      return {builder.getIntegerType(8), true};
    case ScalarType::kChar:
      return {builder.getIntegerType(8)};
    case ScalarType::kShort:
      return {builder.getIntegerType(16)};
    case ScalarType::kInt:
      return {builder.getI32Type()};
    case ScalarType::kLong:
      return {builder.getI64Type()};
    case ScalarType::kHalf:
      return {builder.getF16Type()};
    case ScalarType::kFloat:
      return {builder.getF32Type()};
    case ScalarType::kDouble:
      return {builder.getF64Type()};
    case ScalarType::kBool:
      return {builder.getI1Type()};
    case ScalarType::kBfloat16:
      return {builder.getBF16Type()};
    case ScalarType::kUint16:
      return {builder.getIntegerType(16), true};
    case ScalarType::kUint32:
      return {builder.getI32Type(), true};
    case ScalarType::kUint64:
      return {builder.getI64Type(), true};
    default:
      return {};
  }
}

int64_t Stored::elements() const {
  return static_cast<int64_t>(*builder::elementCount(shape));
}

uint64_t Stored::byteSize() const {
  return static_cast<uint64_t>(elements()) * byteWidth(type.type);
}

std::optional<llvm::SmallVector<int64_t>> Stored::memoryOrder() const {
  llvm::SmallVector<int64_t> order;
  for (size_t i = 0; i < shape.size(); ++i)
    order.push_back(static_cast<int64_t>(i));
  if (elements() <= 1) return order;
  // The stride of a dimension of size 1 says nothing.
  int64_t expected = 1;
  for (int64_t i = static_cast<int64_t>(shape.size()) - 1; i >= 0; --i) {
    if (shape[i] != 1 && strides[i] != expected) expected = -1;
    if (expected < 0) break;
    expected *= shape[i];
  }
  if (expected > 0) return order;
  auto middle = std::stable_partition(order.begin(), order.end(),
                                      [&](int64_t i) { return shape[i] == 1; });
  std::stable_sort(middle, order.end(), [&](int64_t a, int64_t b) {
    return strides[a] > strides[b];
  });
  expected = 1;
  for (int64_t dim : llvm::reverse(order)) {
    if (shape[dim] != 1 && strides[dim] != expected) return std::nullopt;
    expected *= shape[dim];
  }
  return order;
}

FailureOr<Stored> Weights::find(const std::string& name,
                                mlir::MLIRContext* context,
                                std::string& error) const {
  const Payload* payload = nullptr;
  for (const auto* table : {&program_.weights, &program_.constants}) {
    const auto found = table->find(name);
    if (!payload && found != table->end()) payload = &found->second;
  }
  if (!payload) {
    error = "expected data of '" + name +
            "' in the archive's tables of weights, found none";
    return failure();
  }
  if (payload->is_pickled) {
    error = "'" + name +
            "' is a pickled tensor subclass or object, which is not supported";
    return failure();
  }
  const Entry* entry = archive_.find(payload->path);
  if (!entry) {
    error = "expected the data of '" + name + "' in entry " + payload->path +
            ", which the archive lacks";
    return failure();
  }
  Stored stored;
  stored.type = elementTypeOf(payload->meta.dtype, context);
  if (!stored.type.type) {
    error = "'" + name + "' is of type " + toString(payload->meta.dtype) +
            ": not supported";
    return failure();
  }
  llvm::SmallVector<int64_t> offset;
  if (!readNumbers(payload->meta.sizes, stored.shape) ||
      !readNumbers(payload->meta.strides, stored.strides) ||
      !readNumbers({payload->meta.storage_offset}, offset) ||
      stored.shape.size() != stored.strides.size() ||
      !builder::elementCount(stored.shape)) {
    error = "'" + name +
            "': expected sizes and strides that are numbers, not negative, and "
            "of one count";
    return failure();
  }
  // 128 bits cannot overflow: there are few dimensions.
  __int128 last = offset.front();
  for (auto [size, stride] : llvm::zip(stored.shape, stored.strides))
    last += static_cast<__int128>(std::max<int64_t>(size - 1, 0)) * stride;
  const uint64_t width = byteWidth(stored.type.type);
  if (stored.elements() > 0 && (last + 1) * static_cast<__int128>(width) >
                                   static_cast<__int128>(entry->size)) {
    error = "'" + name + "': expected its data in entry " + payload->path +
            " of " + std::to_string(entry->size) +
            " bytes, but it needs more; the weights may have been left out";
    return failure();
  }
  const uint64_t start =
      stored.elements() > 0 ? static_cast<uint64_t>(offset.front()) * width : 0;
  stored.is_trained = payload->meta.requires_grad;
  stored.offset = entry->offset + start;
  stored.bytes = archive_.contents(*entry).substr(start);
  stored.identity = payload->path + "@" + std::to_string(start) + ":" +
                    toString(payload->meta.dtype);
  for (auto [size, stride] : llvm::zip(stored.shape, stored.strides))
    stored.identity +=
        " " + std::to_string(size) + "/" + std::to_string(stride);
  return stored;
}

mlir::DenseElementsAttr Weights::decode(const Stored& stored) {
  const auto type = mlir::RankedTensorType::get(stored.shape, stored.type.type);
  const uint64_t width = byteWidth(stored.type.type);
  std::vector<char> dense(stored.byteSize());
  for (int64_t i = 0; i < stored.elements(); ++i) {
    const llvm::SmallVector<int64_t> index = nn::indexAt(stored.shape, i);
    uint64_t at = 0;
    for (auto [position, stride] : llvm::zip(index, stored.strides))
      at += static_cast<uint64_t>(position) * stride;
    std::copy_n(stored.bytes.data() + at * width, width,
                dense.data() + i * width);
  }
  if (!stored.type.type.isInteger(1))
    return mlir::DenseElementsAttr::getFromRawBuffer(type, dense);
  llvm::SmallVector<bool> bits;
  for (char byte : dense) bits.push_back(byte != 0);
  return mlir::DenseElementsAttr::get(type, llvm::ArrayRef<bool>(bits));
}

}  // namespace partita::torch
