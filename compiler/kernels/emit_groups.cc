#include "compiler/kernels/emit_groups.h"

#include <tuple>

#include "compiler/kernels/reduction_marks.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::kernels {

using namespace mlir;

namespace {

// Splits a result that consists of tensors side by side into parts with loops
// of their own. Empty if rows are so short that a decision per element is
// faster.
SmallVector<Output> partsOf(const Output& whole, int64_t native_lanes) {
  Value value = whole.value;
  while (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    value = reshape.getInput();
  auto concat = value.getDefiningOp<nn::ConcatOp>();
  if (!concat) return {};
  ArrayRef<int64_t> shape = concat.getType().getShape();
  const int64_t axis = concat.getAxis(),
                inner = product(shape.drop_front(axis + 1)),
                stride = shape[axis] * inner;
  SmallVector<Output> parts;
  int64_t begin = 0;
  for (Value input : concat.getInputs()) {
    auto type = cast<RankedTensorType>(input.getType());
    const int64_t row = type.getDimSize(axis) * inner;
    if (row > 0)
      parts.push_back({input, whole.buffer,
                       row == type.getNumElements() ? 0 : row, stride, begin});
    begin += row;
  }
  const int64_t mean = stride / static_cast<int64_t>(parts.size());
  return mean < 4 * native_lanes ? SmallVector<Output>() : parts;
}

// True if the kernel has steps of several sums (merge_late_steps.cc), and no
// two results are computed from the same argument, except from single numbers.
bool areIndependentSums(func::FuncOp kernel) {
  const WalkResult steps = kernel.walk([](nn::ReduceOp op) {
    return op->hasAttr(kLateStepAttr) ? WalkResult::interrupt()
                                      : WalkResult::advance();
  });
  if (!steps.wasInterrupted()) return false;
  llvm::SmallPtrSet<Value, 16> of_others;
  for (Value result : kernel.getBody().front().getTerminator()->getOperands()) {
    llvm::SmallPtrSet<Value, 16> seen;
    SmallVector<Value> open = {result};
    while (!open.empty()) {
      Value value = open.pop_back_val();
      if (!seen.insert(value).second) continue;
      if (Operation* maker = value.getDefiningOp())
        llvm::append_range(open, maker->getOperands());
      else if (cast<RankedTensorType>(value.getType()).getNumElements() > 1 &&
               of_others.contains(value))
        return false;
    }
    of_others.insert(seen.begin(), seen.end());
  }
  return true;
}

// The part of begin .. end that a nest gets whose items are offset .. offset +
// size - 1, counted from its first item.
std::pair<Value, Value> shareOf(Emitter& emitter, Value begin, Value end,
                                int64_t offset, int64_t size) {
  ImplicitLocOpBuilder& builder = emitter.builder();
  const auto clamp = [&](Value bound) -> Value {
    bound =
        arith::SubIOp::create(builder, bound, emitter.indexConstant(offset));
    bound = arith::MaxSIOp::create(builder, bound, emitter.indexConstant(0));
    return arith::MinSIOp::create(builder, bound, emitter.indexConstant(size));
  };
  return {clamp(begin), clamp(end)};
}

// Emits all groups of outputs. Each takes its share of every item of the range,
// so that an item computes related elements of all groups; groups that are not
// related have items of their own, one group after the other. Returns the
// range.
FailureOr<int64_t> emitNests(Emitter& emitter, func::FuncOp body,
                             ArrayRef<SmallVector<Output>> groups,
                             int64_t flat_chunk, bool related) {
  SmallVector<NestPlan> plans;
  int64_t range = 0;
  for (const SmallVector<Output>& group : groups) {
    FailureOr<NestPlan> plan = planNest(emitter, group);
    if (failed(plan)) return failure();
    if (flat_chunk > 0) plan->chunk = flat_chunk;
    plans.push_back(*plan);
    range = related ? std::max(range, plan->range()) : range + plan->range();
  }
  ImplicitLocOpBuilder& builder = emitter.builder();
  unsigned count = body.getNumArguments();
  int64_t before = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const NestPlan& plan = plans[i];
    Value begin = body.getArgument(count - 3),
          end = body.getArgument(count - 2);
    auto scale = [&](Value& bound) {
      bound = arith::MulIOp::create(builder, bound,
                                    emitter.indexConstant(plan.range()));
      bound =
          arith::DivUIOp::create(builder, bound, emitter.indexConstant(range));
    };
    if (!related) {
      std::tie(begin, end) = shareOf(emitter, begin, end, before, plan.range());
      before += plan.range();
    } else if (plan.range() != range) {
      scale(begin);
      scale(end);
    }
    if (failed(emitNest(emitter, groups[i], plan, begin, end)))
      return failure();
  }
  return range;
}

}  // namespace

std::vector<SmallVector<Output>> groupOutputs(func::FuncOp kernel,
                                              func::FuncOp body) {
  std::vector<SmallVector<Output>> groups;
  auto results = cast<func::ReturnOp>(kernel.getBody().front().getTerminator())
                     .getOperands();
  for (auto [i, value] : llvm::enumerate(results)) {
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getNumElements() == 0) continue;
    Output output = {value,
                     {body.getArgument(kernel.getNumArguments() + i),
                      type.getElementType()}};
    auto same = llvm::find_if(groups, [&](ArrayRef<Output> group) {
      return cast<RankedTensorType>(group.front().value.getType()).getShape() ==
             type.getShape();
    });
    if (same == groups.end())
      groups.push_back({output});
    else
      same->push_back(output);
  }
  return groups;
}

FailureOr<int64_t> emitGroups(Emitter& emitter, func::FuncOp kernel,
                              func::FuncOp body, int64_t flat_chunk) {
  std::vector<SmallVector<Output>> groups = groupOutputs(kernel, body);
  // Only a single result is split: several results may share values, which are
  // then computed once.
  if (kernel.getNumResults() == 1 && !groups.empty()) {
    const SmallVector<Output> parts =
        partsOf(groups[0][0], emitter.nativeLanes());
    if (!parts.empty()) groups.clear();
    for (const Output& part : parts) groups.push_back({part});
  }
  const bool related =
      kernel.getNumResults() < 2 || !areIndependentSums(kernel);
  if (!related) {
    SmallVector<Output> outputs;
    for (const SmallVector<Output>& group : groups)
      llvm::append_range(outputs, group);
    groups.clear();
    for (const Output& output : outputs) groups.push_back({output});
  }
  return emitNests(emitter, body, groups, flat_chunk, related);
}

}  // namespace partita::kernels
