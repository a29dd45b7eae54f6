// Builds masks of single bits, and sums of them.
#include "compiler/sharding/one_bit.h"

#include <algorithm>

namespace partita::sharding {

using llvm::SmallVector;
using mlir::RankedTensorType;
using mlir::Value;

namespace {

constexpr int64_t kWordBits = 32;

SmallVector<int64_t> counting(RankedTensorType type) {
  return llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
}

}  // namespace

int64_t OneBit::chunkOf(int64_t elements, int64_t count) {
  return llvm::divideCeil(elements, count * kWordBits) * kWordBits;
}

OneBit::Packed OneBit::pack(Value x, Value& error) {
  const auto type = nn::MathBuilder::typeOf(x);
  const int64_t last = type.getRank() - 1;
  Value zero = math_.constant(type, 0);
  Value positive = math_.compare(mlir::arith::CmpFPredicate::OGE, x, zero);
  Value size = math_.select(positive, x, math_.subtract(zero, x));
  Value sum = math_.reduce(nn::ReduceKind::sum, size, {last});
  const auto scales = nn::MathBuilder::typeOf(sum);
  Packed packed;
  packed.scale =
      math_.divide(sum, math_.broadcast(sizes(), scales, {last - 1}));
  error = inside(math_.subtract(x, signedScale(positive, packed.scale)));
  const auto bits = bitsOf(type);
  Value set = math_.select(math_.reshape(positive, bits.getShape()),
                           powers(bits), math_.constantInt(bits, 0));
  packed.words = math_.reduce(nn::ReduceKind::sum, set, {bits.getRank() - 1});
  return packed;
}

Value OneBit::unpack(const Packed& packed) {
  const auto words = nn::MathBuilder::typeOf(packed.words);
  SmallVector<int64_t> shape(words.getShape());
  shape.back() = chunk_;
  const auto bits = bitsOf(words.clone(shape));
  Value spread = math_.broadcast(packed.words, bits, counting(words));
  Value positive = math_.compare(mlir::arith::CmpIPredicate::ne,
                                 math_.andInt(spread, powers(bits)),
                                 math_.constantInt(bits, 0));
  return signedScale(math_.reshape(positive, shape), packed.scale);
}

Value OneBit::inside(Value x) {
  if (elements_ == count_ * chunk_) return x;
  const auto type = nn::MathBuilder::typeOf(x);
  const int64_t last = type.getRank() - 1;
  const auto indices = RankedTensorType::get({count_, chunk_}, math_.i64());
  Value index = math_.addInt(math_.multiplyInt(math_.iota(indices, 0), chunk_),
                             math_.iota(indices, 1));
  Value inside = math_.compare(mlir::arith::CmpIPredicate::slt, index,
                               math_.constantInt(indices, elements_));
  return math_.select(
      math_.broadcast(inside,
                      RankedTensorType::get(type.getShape(), math_.i1()),
                      {last - 1, last}),
      x, math_.constant(type, 0));
}

RankedTensorType OneBit::bitsOf(RankedTensorType type) {
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = chunk_ / kWordBits;
  shape.push_back(kWordBits);
  return RankedTensorType::get(shape, builder_.getI32Type());
}

Value OneBit::powers(RankedTensorType bits) {
  SmallVector<int32_t> values;
  for (int64_t i = 0; i < kWordBits; ++i)
    values.push_back(static_cast<int32_t>(uint32_t{1} << i));
  Value each = mlir::arith::ConstantOp::create(
      builder_, loc_,
      mlir::DenseElementsAttr::get(
          RankedTensorType::get({kWordBits}, builder_.getI32Type()),
          llvm::ArrayRef<int32_t>(values)));
  return math_.broadcast(each, bits, {bits.getRank() - 1});
}

Value OneBit::sizes() {
  SmallVector<float> values;
  for (int64_t i = 0; i < count_; ++i)
    values.push_back(static_cast<float>(
        std::clamp<int64_t>(elements_ - i * chunk_, 1, chunk_)));
  return mlir::arith::ConstantOp::create(
      builder_, loc_,
      mlir::DenseElementsAttr::get(
          RankedTensorType::get({count_}, builder_.getF32Type()),
          llvm::ArrayRef<float>(values)));
}

Value OneBit::signedScale(Value positive, Value scale) {
  const auto type = nn::MathBuilder::typeOf(positive).clone(
      mlir::Type(builder_.getF32Type()));
  Value spread =
      math_.broadcast(scale, type, counting(nn::MathBuilder::typeOf(scale)));
  return math_.select(positive, spread,
                      math_.subtract(math_.constant(type, 0), spread));
}

}  // namespace partita::sharding
