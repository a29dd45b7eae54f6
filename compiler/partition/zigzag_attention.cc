#include "compiler/partition/zigzag_attention.h"

#include <limits>

#include "compiler/partition/half_exchange.h"

namespace partita::partition {
namespace {

using llvm::SmallVector;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::ValueRange;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A half of a pair. `kVisible` is chosen when the program runs: the lower half
// if the pair of the keys lies below this device's, and the upper half
// otherwise. The chosen queries see all of the chosen keys.
enum Half { kLower, kUpper, kVisible };

// The products of a step: a half of the queries with a half of the keys.
struct Product {
  Half query, key;
};
llvm::ArrayRef<Product> productsOf(int64_t step) {
  static constexpr Product kFirst[] = {
      {kLower, kLower}, {kUpper, kLower}, {kUpper, kUpper}};
  static constexpr Product kLater[] = {{kUpper, kLower}, {kVisible, kVisible}};
  if (step == 0) return kFirst;
  return kLater;
}

// The limits of the keys of one product.
struct Mask {
  mlir::IntegerAttr causal_offset, window;
  Value shift;
};

// Shared by both operations: operands in halves, and passing keys on.
template <typename Op>
class Zigzag {
 public:
  Zigzag(Op op, const LocalForm& form, ValueRange operands)
      : op_(op),
        math_(form.builder, form.loc()),
        steps_(form),
        exchange_(form, steps_) {
    for (auto [i, operand] : llvm::enumerate(operands)) {
      const int64_t dim = steps_.dimOf(static_cast<int>(i));
      operands_.push_back(dim < 0 ? Halves{operand, operand}
                                  : exchange_.split(operand, dim));
    }
    travelling_ = {at(op.getKMutable()), at(op.getVMutable())};
    for (mlir::MutableOperandRange operand :
         {op.getKSegmentsMutable(), op.getBiasMutable()})
      if (!operand.empty() && steps_.dimOf(at(operand[0])) >= 0)
        travelling_.push_back(at(operand[0]));
  }

  int64_t devices() const { return steps_.devices(); }
  nn::MathBuilder& math() { return math_; }
  const HalfExchange& exchange() const { return exchange_; }
  const RingSteps& steps() const { return steps_; }

  Halves passed(const Halves& halves) const {
    return {steps_.passed(halves[0]), steps_.passed(halves[1])};
  }
  // Passes on everything that belongs to the keys, for step `step`.
  void pass(int64_t step) {
    for (int i : travelling_) operands_[i] = passed(operands_[i]);
    lower_is_visible_ =
        math_.compare(mlir::arith::CmpIPredicate::slt,
                      exchange_.number(steps_.owner(step), kLower),
                      exchange_.number(steps_.index(), kLower));
  }
  bool biasTravels() {
    auto bias = op_.getBiasMutable();
    return !bias.empty() && llvm::is_contained(travelling_, at(bias[0]));
  }

  // `lower` if the lower half is kVisible, else `upper`.
  Value select(Value lower, Value upper) {
    if (lower == upper) return lower;
    const auto shape = math_.typeOf(lower).getShape();
    return math_.select(
        math_.broadcast(lower_is_visible_,
                        RankedTensorType::get(shape, math_.i1()), {}),
        lower, upper);
  }
  Value get(mlir::OpOperand& operand, Half half) {
    const Halves& halves = operands_[at(operand)];
    return half == kVisible ? select(halves[0], halves[1]) : halves[half];
  }
  // Null if the operation lacks the operand.
  Value get(mlir::MutableOperandRange operand, Half half) {
    return operand.empty() ? Value() : get(operand[0], half);
  }

  // Merges a partial result of `half` into the results of the pair. With
  // kVisible, it has no weight in the other half.
  void mergeInto(std::array<Partial, 2>& all, Half half, const Partial& part) {
    if (half != kVisible) {
      all[half] = all[half].result ? merge(math_, all[half], part) : part;
      return;
    }
    // The result is selected as well: an infinity times no weight is NaN.
    const Value none = math_.constant(math_.typeOf(part.lse), -kInfinity),
                zero = math_.constant(math_.typeOf(part.result), 0);
    all[0] = merge(math_, all[0],
                   {select(part.result, zero), select(part.lse, none)});
    all[1] = merge(math_, all[1],
                   {select(zero, part.result), select(none, part.lse)});
  }
  // Adds a gradient of `half` to the sums of the pair.
  void addTo(Halves& sums, Half half, Value gradient) {
    if (half != kVisible) {
      sums[half] = sums[half] ? math_.add(sums[half], gradient) : gradient;
      return;
    }
    const Value zero = math_.constant(math_.typeOf(gradient), 0);
    sums[0] = math_.add(sums[0], select(gradient, zero));
    sums[1] = math_.add(sums[1], select(zero, gradient));
  }

  // Without a window, only the triangles of the first step hide keys.
  Mask mask(int64_t step, const Product& product) {
    const mlir::IntegerAttr causal = op_.getCausalOffsetAttr(),
                            window = op_.getWindowAttr();
    if (step == 0 && product.query == product.key)
      return {causal, window, Value()};
    if (!window) return {};
    const Value keys =
        math_.multiplyInt(number(steps_.owner(step), product.key), -1);
    const Value distance =
        math_.addInt(number(steps_.index(), product.query), keys);
    return {causal, window,
            math_.multiplyInt(distance, exchange_.rowsOfHalf())};
  }

 private:
  static int at(mlir::OpOperand& operand) {
    return static_cast<int>(operand.getOperandNumber());
  }

  Value number(Value device, Half half) {
    return half == kVisible ? select(exchange_.number(device, kLower),
                                     exchange_.number(device, kUpper))
                            : exchange_.number(device, half);
  }

  Op op_;
  nn::MathBuilder math_;
  RingSteps steps_;
  HalfExchange exchange_;
  SmallVector<Halves> operands_;
  SmallVector<int> travelling_;
  Value lower_is_visible_;
};

template <typename Op>
bool canZigzagOp(Op op, const LocalForm& form) {
  const RingSteps steps(form);
  const int64_t block = steps.block();
  if (op.getCausalOffset() != int64_t{0} || op.getShift() ||
      (op.getWindow() && static_cast<int64_t>(*op.getWindow()) <= block))
    return false;
  if (steps.devices() < 2 || block % 2 != 0 ||
      block * steps.devices() != steps.size())
    return false;
  auto bias = op.getBiasMutable();
  return bias.empty() || form.sharding.operands[bias[0].getOperandNumber()]
                             .dims[kRows]
                             .axes.empty();
}

}  // namespace

bool canZigzag(nn::AttentionOp op, const LocalForm& form) {
  return canZigzagOp(op, form);
}

bool canZigzag(nn::AttentionGradOp op, const LocalForm& form) {
  return canZigzagOp(op, form);
}

SmallVector<Value> buildZigzag(nn::AttentionOp op, const LocalForm& form,
                               ValueRange operands) {
  Zigzag<nn::AttentionOp> ring(op, form, operands);
  nn::MathBuilder& math = ring.math();
  const RankedTensorType type =
      ring.exchange().typeOfHalf(form.resultType(0), kRows);
  const auto lse_type = RankedTensorType::get(type.getShape().drop_back(),
                                              form.builder.getF32Type());
  std::array<Partial, 2> all;
  for (int64_t step = 0; step < ring.devices(); ++step) {
    if (step > 0) ring.pass(step);
    for (const Product& product : productsOf(step)) {
      const auto [query, key] = product;
      const Mask mask = ring.mask(step, product);
      auto part = nn::AttentionOp::create(
          form.builder, form.loc(), type, lse_type,
          ring.get(op.getQMutable(), query), ring.get(op.getKMutable(), key),
          ring.get(op.getVMutable(), key), ring.get(op.getBiasMutable(), key),
          mask.shift, ring.get(op.getQSegmentsMutable(), query),
          ring.get(op.getKSegmentsMutable(), key),
          /*first_head=*/Value(), op.getScaleAttr(), mask.causal_offset,
          mask.window, /*sinks=*/mlir::IntegerAttr(),
          /*blocks=*/mlir::DenseIntElementsAttr(),
          /*block_size=*/mlir::IntegerAttr(), op.getSoftcapAttr());
      const Partial partial{math.widen(part.getResult()), part.getLse()};
      ring.mergeInto(all, query, partial);
    }
  }
  SmallVector<Value> results = {ring.exchange().join(
      {math.narrow(all[0].result, type), math.narrow(all[1].result, type)},
      kRows)};
  if (op.getLse())
    results.push_back(ring.exchange().join({all[0].lse, all[1].lse}, kRows));
  return results;
}

SmallVector<Value> buildZigzag(nn::AttentionGradOp op, const LocalForm& form,
                               ValueRange operands) {
  Zigzag<nn::AttentionGradOp> ring(op, form, operands);
  nn::MathBuilder& math = ring.math();
  const auto typeOf = [&](int i, int64_t dim) {
    return ring.exchange().typeOfHalf(form.resultType(i), dim);
  };
  SmallVector<Halves> grads(op->getNumResults());  // of q, k, v and the bias
  SmallVector<Halves*> travelling = {&grads[1], &grads[2]};
  if (op.getBiasGrad() && ring.biasTravels()) travelling.push_back(&grads[3]);
  for (int64_t step = 0; step < ring.devices(); ++step) {
    if (step > 0) {
      ring.pass(step);
      for (Halves* each : travelling) *each = ring.passed(*each);
    }
    for (const Product& product : productsOf(step)) {
      const auto [query, key] = product;
      const Mask mask = ring.mask(step, product);
      const Value bias = ring.get(op.getBiasMutable(), key);
      auto part = nn::AttentionGradOp::create(
          form.builder, form.loc(), typeOf(0, kRows), typeOf(1, kRows),
          typeOf(2, kRows), op.getBiasGrad() ? bias.getType() : mlir::Type(),
          ring.get(op.getQMutable(), query), ring.get(op.getKMutable(), key),
          ring.get(op.getVMutable(), key),
          ring.get(op.getResultMutable(), query),
          ring.get(op.getResultGradMutable(), query), bias, mask.shift,
          ring.get(op.getQSegmentsMutable(), query),
          ring.get(op.getKSegmentsMutable(), key),
          ring.get(op.getLseMutable(), query), /*first_head=*/Value(),
          op.getScaleAttr(), mask.causal_offset, mask.window,
          /*sinks=*/mlir::IntegerAttr(),
          /*blocks=*/mlir::DenseIntElementsAttr(),
          /*block_size=*/mlir::IntegerAttr(), op.getSoftcapAttr());
      for (auto [i, sums] : llvm::enumerate(grads)) {
        const bool is_whole = ring.steps().dimOfResult(static_cast<int>(i)) < 0;
        const Half half = is_whole ? kLower : i == 0 ? query : key;
        ring.addTo(sums, half, math.widen(part->getResult(i)));
      }
    }
  }
  for (Halves* each : travelling) *each = ring.passed(*each);
  SmallVector<Value> results;
  for (auto [i, sums] : llvm::enumerate(grads)) {
    const int number = static_cast<int>(i);
    const int64_t dim = ring.steps().dimOfResult(number);
    if (dim < 0) {
      results.push_back(math.narrow(sums[0], form.resultType(number)));
      continue;
    }
    const RankedTensorType type = typeOf(number, dim);
    results.push_back(ring.exchange().join(
        {math.narrow(sums[0], type), math.narrow(sums[1], type)}, dim));
  }
  return results;
}

}  // namespace partita::partition
