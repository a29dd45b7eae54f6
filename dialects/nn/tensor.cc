// Conversion of reference tensors from and to constants and bytes; rounding to
// element types.
#include "dialects/nn/tensor.h"

#include <cstring>

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/MathExtras.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::DenseElementsAttr;
using mlir::FailureOr;
using mlir::FloatType;
using mlir::RankedTensorType;
using mlir::Type;

unsigned bitWidth(Type element) {
  return element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
}

unsigned storageBytes(Type element) {
  return llvm::divideCeil(bitWidth(element), 8);
}

template <typename T>
T load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

double loadFloat(const char* from, FloatType type) {
  if (type.isF32()) return load<float>(from);
  if (type.isF64()) return load<double>(from);
  uint64_t bits = 0;
  std::memcpy(&bits, from, storageBytes(type));
  llvm::APFloat value(type.getFloatSemantics(),
                      llvm::APInt(type.getWidth(), bits, false, true));
  bool loses_info;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &loses_info);
  return value.convertToDouble();
}

void storeFloat(char* to, double value, FloatType type) {
  if (type.isF64()) {
    std::memcpy(to, &value, sizeof(double));
  } else if (type.isF32()) {
    const float narrow = static_cast<float>(value);
    std::memcpy(to, &narrow, sizeof(float));
  } else {
    llvm::APFloat number(value);
    bool loses_info;
    number.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven,
                   &loses_info);
    const uint64_t bits = number.bitcastToAPInt().getZExtValue();
    std::memcpy(to, &bits, storageBytes(type));
  }
}

int64_t normalizeInt(int64_t value, unsigned width) {
  if (width == 1) return value & 1;
  return width >= 64 ? value
                     : llvm::SignExtend64(static_cast<uint64_t>(value), width);
}

}  // namespace

double roundToType(double value, FloatType type) {
  if (type.isF64()) return value;
  if (type.isF32()) return static_cast<float>(value);
  char bytes[8];
  storeFloat(bytes, value, type);
  return loadFloat(bytes, type);
}

Tensor::Tensor(RankedTensorType type)
    : type_(type),
      size_(type.getNumElements()),
      float_type_(mlir::dyn_cast<FloatType>(type.getElementType())) {
  if (float_type_) {
    floats_.resize(size_);
  } else {
    ints_.resize(size_);
  }
}

Tensor Tensor::fromAttr(DenseElementsAttr attr) {
  Tensor tensor(mlir::cast<RankedTensorType>(attr.getType()));
  const Type element = tensor.type_.getElementType();
  if (element.isInteger(1)) {
    int64_t position = 0;
    for (bool value : attr.getValues<bool>()) tensor.ints_[position++] = value;
    return tensor;
  }
  const char* raw = attr.getRawData().data();
  const int64_t step = attr.isSplat() ? 0 : storageBytes(element);
  for (int64_t i = 0; i < tensor.size_; ++i) {
    if (tensor.float_type_) {
      tensor.floats_[i] = loadFloat(raw + i * step, tensor.float_type_);
    } else {
      int64_t value = 0;
      std::memcpy(&value, raw + i * step, std::min(storageBytes(element), 8u));
      tensor.ints_[i] = normalizeInt(value, bitWidth(element));
    }
  }
  return tensor;
}

FailureOr<Tensor> Tensor::fromBytes(RankedTensorType type,
                                    ArrayRef<char> bytes) {
  Tensor tensor(type);
  const Type element = type.getElementType();
  const unsigned step = storageBytes(element);
  if (static_cast<int64_t>(bytes.size()) != tensor.size_ * step)
    return mlir::failure();
  for (int64_t i = 0; i < tensor.size_; ++i) {
    if (tensor.float_type_) {
      tensor.floats_[i] =
          loadFloat(bytes.data() + i * step, tensor.float_type_);
    } else {
      int64_t value = 0;
      std::memcpy(&value, bytes.data() + i * step, std::min(step, 8u));
      tensor.ints_[i] = element.isInteger(1)
                            ? value != 0
                            : normalizeInt(value, bitWidth(element));
    }
  }
  return tensor;
}

std::vector<char> Tensor::toBytes() const {
  const Type element = type_.getElementType();
  const unsigned step = storageBytes(element);
  std::vector<char> bytes(size_ * step);
  for (int64_t i = 0; i < size_; ++i) {
    if (float_type_) {
      storeFloat(bytes.data() + i * step, floats_[i], float_type_);
    } else {
      const uint64_t mask = bitWidth(element) >= 64
                                ? ~uint64_t{0}
                                : (uint64_t{1} << bitWidth(element)) - 1;
      const uint64_t value = static_cast<uint64_t>(ints_[i]) & mask;
      std::memcpy(bytes.data() + i * step, &value, std::min(step, 8u));
    }
  }
  return bytes;
}

DenseElementsAttr Tensor::toAttr() const {
  if (type_.getElementType().isInteger(1)) {
    llvm::SmallVector<bool> values(ints_.begin(), ints_.end());
    return DenseElementsAttr::get(type_, values);
  }
  const std::vector<char> bytes = toBytes();
  const size_t step = storageBytes(type_.getElementType());
  // Stores equal elements once. Comparing the buffer with itself, shifted by
  // one element, finds them.
  const bool splat = size_ > 0 && std::memcmp(bytes.data(), bytes.data() + step,
                                              bytes.size() - step) == 0;
  return DenseElementsAttr::getFromRawBuffer(
      type_, ArrayRef<char>(bytes).take_front(splat ? step : bytes.size()));
}

void Tensor::setFloat(int64_t position, double value) {
  floats_[position] = roundToType(value, float_type_);
}

void Tensor::setInt(int64_t position, int64_t value) {
  ints_[position] = normalizeInt(value, bitWidth(type_.getElementType()));
}

void Tensor::copyFrom(int64_t position, const Tensor& source,
                      int64_t source_position) {
  if (float_type_) {
    floats_[position] = source.floats_[source_position];
  } else {
    ints_[position] = source.ints_[source_position];
  }
}

int64_t Tensor::position(ArrayRef<int64_t> index) const {
  int64_t result = 0;
  for (auto [size, at] : llvm::zip_equal(shape(), index))
    result = result * size + at;
  return result;
}

llvm::SmallVector<int64_t> indexAt(ArrayRef<int64_t> shape, int64_t position) {
  llvm::SmallVector<int64_t> result(shape.size());
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    result[dim] = position % shape[dim];
    position /= shape[dim];
  }
  return result;
}

}  // namespace partita::nn
