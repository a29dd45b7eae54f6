#include "compiler/partition/ring_attention.h"

#include <limits>

#include "compiler/partition/ring_steps.h"
#include "compiler/partition/zigzag_attention.h"

namespace partita::partition {
namespace {

using llvm::SmallVector;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::ValueRange;
using mlir::arith::CmpIPredicate;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Shared by both operations: the positions of keys, and passing them on.
template <typename Op>
class Ring {
 public:
  Ring(Op op, const LocalForm& form, ValueRange operands)
      : op_(op),
        form_(form),
        math_(form.builder, form.loc()),
        steps_(form),
        size_(steps_.size()),
        block_(steps_.block()),
        devices_(steps_.devices()) {
    operands_.assign(operands.begin(), operands.end());
    key_ = at(op.getKMutable());
    value_ = at(op.getVMutable());
    bias_ = at(op.getBiasMutable());
    segments_ = at(op.getKSegmentsMutable());
  }

  int64_t devices() const { return devices_; }
  nn::MathBuilder& math() { return math_; }
  Value q() { return operands_[at(op_.getQMutable())]; }
  Value k() const { return operands_[key_]; }
  Value v() const { return operands_[value_]; }
  Value operand(mlir::OpOperand& operand) const {
    return operands_[operand.getOperandNumber()];
  }
  Value kSegments() const {
    return segments_ < 0 ? Value() : operands_[segments_];
  }
  Value qSegments() {
    const int i = at(op_.getQSegmentsMutable());
    return i < 0 ? Value() : operands_[i];
  }

  Value passed(Value x) const { return steps_.passed(x); }

  // Passes on everything that belongs to the keys.
  void pass() {
    operands_[key_] = passed(operands_[key_]);
    operands_[value_] = passed(operands_[value_]);
    if (segments_ >= 0) operands_[segments_] = passed(operands_[segments_]);
    if (biasTravels()) operands_[bias_] = passed(operands_[bias_]);
  }

  // The first query's position minus the first key's in step `step`; null if
  // the attention does not depend on positions.
  Value shift(int64_t step) {
    if (!op_.getCausalOffset()) return {};
    const Value distance = math_.multiplyInt(
        math_.addInt(steps_.index(), math_.multiplyInt(steps_.owner(step), -1)),
        block_);
    const int given = at(op_.getShiftMutable());
    return given < 0 ? distance : math_.addInt(distance, operands_[given]);
  }

  // The bias on the keys of step `step`, with -inf beyond the end of the
  // sequence; null if there is none.
  Value bias(int64_t step) {
    const Value given = bias_ < 0 ? Value() : operands_[bias_];
    if (block_ * devices_ == size_) return given;
    const auto row = RankedTensorType::get({block_}, math_.i64());
    const Value first = math_.multiplyInt(steps_.owner(step), block_);
    const Value is_inside = math_.compare(
        CmpIPredicate::slt,
        math_.addInt(math_.iota(row, 0), math_.broadcast(first, row, {})),
        math_.constantInt(row, size_));
    const mlir::Type element = math_.typeOf(k()).getElementType();
    const auto type = RankedTensorType::get({block_}, element);
    const Value hidden =
        math_.reshape(math_.select(is_inside, math_.constant(type, 0),
                                   math_.constant(type, -kInfinity)),
                      {1, 1, 1, block_});
    if (!given) return hidden;
    SmallVector<int64_t> shape(math_.typeOf(given).getShape());
    shape[3] = block_;
    const auto full = RankedTensorType::get(shape, element);
    return math_.add(math_.broadcast(given, full, {0, 1, 2, 3}),
                     math_.broadcast(hidden, full, {0, 1, 2, 3}));
  }

  // True if the bias differs between keys.
  bool biasTravels() const {
    return bias_ >= 0 && !form_.sharding.operands[bias_].dims[3].axes.empty();
  }

 private:
  static int at(mlir::OpOperand& operand) {
    return static_cast<int>(operand.getOperandNumber());
  }
  static int at(mlir::MutableOperandRange operand) {
    return operand.empty() ? -1 : at(operand[0]);
  }

  Op op_;
  const LocalForm& form_;
  nn::MathBuilder math_;
  RingSteps steps_;
  const int64_t size_, block_, devices_;
  SmallVector<Value> operands_;
  int key_ = 0, value_ = 0, bias_ = -1, segments_ = -1;
};

// Sums over the dimensions that `shape` has not: the bias may have been
// repeated.
Value sumTo(nn::MathBuilder& math, Value x, llvm::ArrayRef<int64_t> shape) {
  SmallVector<int64_t> dims;
  for (auto [i, size] : llvm::enumerate(math.typeOf(x).getShape()))
    if (size != shape[i]) dims.push_back(static_cast<int64_t>(i));
  if (dims.empty()) return x;
  return math.reshape(math.reduce(nn::ReduceKind::sum, x, dims), shape);
}

}  // namespace

SmallVector<Value> buildRing(nn::AttentionOp op, const LocalForm& form,
                             ValueRange operands) {
  if (canZigzag(op, form)) return buildZigzag(op, form, operands);
  Ring<nn::AttentionOp> ring(op, form, operands);
  nn::MathBuilder& math = ring.math();
  const RankedTensorType type = form.resultType(0);
  const auto lse_type = RankedTensorType::get(type.getShape().drop_back(),
                                              form.builder.getF32Type());
  Partial all;
  for (int64_t step = 0; step < ring.devices(); ++step) {
    if (step > 0) ring.pass();
    auto part = nn::AttentionOp::create(
        form.builder, form.loc(), type, lse_type, ring.q(), ring.k(), ring.v(),
        ring.bias(step), ring.shift(step), ring.qSegments(), ring.kSegments(),
        /*first_head=*/Value(), op.getScaleAttr(), op.getCausalOffsetAttr(),
        op.getWindowAttr(), /*sinks=*/mlir::IntegerAttr(),
        /*blocks=*/mlir::DenseIntElementsAttr(),
        /*block_size=*/mlir::IntegerAttr(), op.getSoftcapAttr());
    const Partial partial{math.widen(part.getResult()), part.getLse()};
    all = step == 0 ? partial : merge(math, all, partial);
  }
  SmallVector<Value> results = {math.narrow(all.result, type)};
  if (op.getLse()) results.push_back(all.lse);
  return results;
}

SmallVector<Value> buildRing(nn::AttentionGradOp op, const LocalForm& form,
                             ValueRange operands) {
  if (canZigzag(op, form)) return buildZigzag(op, form, operands);
  Ring<nn::AttentionGradOp> ring(op, form, operands);
  nn::MathBuilder& math = ring.math();
  const Value result = ring.operand(op.getResultMutable()),
              result_grad = ring.operand(op.getResultGradMutable()),
              lse = ring.operand(op.getLseMutable()[0]);
  SmallVector<Value> grads(op->getNumResults());  // of q, k, v and the bias
  SmallVector<Value*> travelling = {&grads[1], &grads[2]};
  if (op.getBiasGrad() && ring.biasTravels()) travelling.push_back(&grads[3]);
  for (int64_t step = 0; step < ring.devices(); ++step) {
    if (step > 0) {
      ring.pass();
      for (Value* each : travelling) *each = ring.passed(*each);
    }
    const Value bias = ring.bias(step);
    auto part = nn::AttentionGradOp::create(
        form.builder, form.loc(), form.resultType(0), form.resultType(1),
        form.resultType(2), op.getBiasGrad() ? bias.getType() : mlir::Type(),
        ring.q(), ring.k(), ring.v(), result, result_grad, bias,
        ring.shift(step), ring.qSegments(), ring.kSegments(), lse,
        /*first_head=*/Value(), op.getScaleAttr(), op.getCausalOffsetAttr(),
        op.getWindowAttr(), /*sinks=*/mlir::IntegerAttr(),
        /*blocks=*/mlir::DenseIntElementsAttr(),
        /*block_size=*/mlir::IntegerAttr(), op.getSoftcapAttr());
    for (auto [i, sum] : llvm::enumerate(grads)) {
      const Value summand =
          sumTo(math, math.widen(part->getResult(i)),
                form.resultType(static_cast<int>(i)).getShape());
      sum = step == 0 ? summand : math.add(sum, summand);
    }
  }
  for (Value* each : travelling) *each = ring.passed(*each);
  for (auto [i, sum] : llvm::enumerate(grads))
    sum = math.narrow(sum, form.resultType(static_cast<int>(i)));
  return grads;
}

}  // namespace partita::partition
