// Decides what a reduction stores for later, and where.
#include "compiler/kernels/emit_row_cache.h"

#include "compiler/kernels/emit_team.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::kernels {

using namespace mlir;

namespace {

constexpr int64_t kLargestRow = 64 * 1024;  // elements
constexpr int64_t kLargestTeamRow = 2 * 1024;
// A store and a load cost about as much as this many operations.
constexpr int kWorthStoring = 3;

bool isElementwise(Value value) {
  Operation* op = value.getDefiningOp();
  return op && !isa<arith::ConstantOp>(op) &&
         kernelRole(op) == KernelRole::elementwise;
}

}  // namespace

RowCache::RowCache(Emitter& emitter, nn::ReduceOp op, ArrayRef<Index> index,
                   const ReductionLoops& reduction)
    : emitter_(emitter),
      op_(op),
      index_(index.begin(), index.end()),
      reduction_(reduction) {
  width_ = reduction.lanes ? reduction.lanes->lanes : 1;
  if (emitter.isInvestigating() ||
      product(reduction.sizes) * width_ > kLargestRow)
    return;
  // A team has little scratch, which all its threads share.
  if (emitter.team() > 1 &&
      (!emitter.sharesLoops() || product(reduction.sizes) > kLargestTeamRow))
    return;
  if (reduction.lanes) {
    Symbol lane;
    lane.value = emitter.indexConstant(0);
    lane.extent = lane.lanes = width_;
    lane_ = emitter.newSymbol(lane);
  }
  chooseValues();
  // Other threads may still read the previous row from there.
  if (!buffers_.empty() && emitter.team() > 1)
    teamSync(emitter.builder(), emitter.team());
}

void RowCache::collectComputed(Value value,
                               llvm::SetVector<Value>& computed) const {
  if (!isElementwise(value) || isStored(value)) return;
  for (Value operand : value.getDefiningOp()->getOperands())
    collectComputed(operand, computed);
  computed.insert(value);
}

int RowCache::costOf(Value value) const {
  if (isStored(value)) return 1;
  if (!isElementwise(value))
    return value.getDefiningOp<arith::ConstantOp>() ? 0 : 1;
  Operation* op = value.getDefiningOp();
  int cost = isa<math::MathDialect>(op->getDialect()) ? 10 : 1;
  for (Value operand : op->getOperands()) {
    cost += costOf(operand);
    if (cost > 2 * kWorthStoring) break;
  }
  return cost;
}

void RowCache::chooseValues() {
  llvm::SetVector<Value> computed;
  collectComputed(op_.getInput(), computed);
  for (Value value : computed) {  // producers first
    bool needed_again = llvm::any_of(value.getUsers(), [&](Operation* user) {
      return user != op_ &&
             llvm::none_of(user->getResults(), [&](Value result) {
               return computed.contains(result);
             });
    });
    if (!needed_again || costOf(value) <= kWorthStoring) continue;
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    int64_t padding =
        emitter_.nativeLanes() * 4;  // a masked remainder is stored whole
    buffers_[value] =
        emitter_.scratch(element, product(reduction_.sizes) * width_ + padding);
  }
}

LogicalResult RowCache::storeForReuse(ArrayRef<Index> element,
                                      ArrayRef<Index> at) {
  Index position = linearize(at, rowMajorStrides(reduction_.sizes)) * width_;
  if (lane_) position = position + Index(lane_);
  for (auto& [value, buffer] : buffers_) {
    FailureOr<Lanes> lanes = emitter_.element(value, element);
    if (failed(lanes)) return failure();
    emitter_.store(buffer, position, *lanes);
  }
  return success();
}

void RowCache::publish() {
  if (!buffers_.empty() && emitter_.team() > 1)
    teamSync(emitter_.builder(), emitter_.team());
  SmallVector<int64_t> strides(index_.size(), -1);
  for (auto [dim, stride] :
       llvm::zip_equal(op_.getDims(), rowMajorStrides(reduction_.sizes)))
    strides[dim] = stride * width_;
  for (auto& [value, buffer] : buffers_)
    emitter_.cache(value,
                   {index_, strides, lane_ ? Index(lane_) : Index(), buffer});
}

}  // namespace partita::kernels
