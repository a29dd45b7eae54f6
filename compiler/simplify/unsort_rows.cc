// Removes the sorting of rows by their expert.
//
// Programs that multiply groups of rows first sort all rows by their group, and
// later put the results back in order. Every operation between works on rows
// separately, so it may as well work on the rows in their own order, with a
// group number per row.
#include "compiler/simplify/raise_patterns.h"
#include "compiler/simplify/row_function.h"
#include "compiler/simplify/view.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

namespace partita::simplify {
namespace {

using mlir::LogicalResult;
using mlir::Operation;
using mlir::PatternRewriter;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::Value;
namespace arith = mlir::arith;

// The first result of an Op that `value` is computed from by elementwise
// operations; null if there is none. Values in `seen` have none.
template <typename Op>
Value sourceOf(Value value, mlir::DenseSet<Value>& seen) {
  Operation* op = value.getDefiningOp();
  if (!op || !seen.insert(value).second) return {};
  if (mlir::isa<Op>(op)) return value;
  if (!op->hasTrait<mlir::OpTrait::Elementwise>() &&
      !mlir::isa<nn::ReshapeOp, nn::BroadcastOp>(op))
    return {};
  for (Value operand : op->getOperands())
    if (Value source = sourceOf<Op>(operand, seen)) return source;
  return {};
}

template <typename Op>
Value sourceOf(Value value) {
  mlir::DenseSet<Value> seen;
  return sourceOf<Op>(value, seen);
}

// True if element i is i.
bool countsUp(Value value) {
  if (auto iota = value.getDefiningOp<nn::IotaOp>())
    return iota.getType().getRank() == 1;
  mlir::DenseElementsAttr constant;
  if (!mlir::matchPattern(value, mlir::m_Constant(&constant)) ||
      !constant.getElementType().isInteger())
    return false;
  const nn::Tensor tensor = nn::Tensor::fromAttr(constant);
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (tensor.getInt(i) != i) return false;
  return tensor.rank() == 1;
}

// True if element [r, ...] is r.
bool countsRows(Value value) {
  value = peel(viewOf(value)).value;
  if (countsUp(value)) return true;
  if (auto iota = value.getDefiningOp<nn::IotaOp>()) return iota.getDim() == 0;
  mlir::DenseElementsAttr constant;
  if (!mlir::matchPattern(value, mlir::m_Constant(&constant)) ||
      !constant.getElementType().isInteger())
    return false;
  const nn::Tensor tensor = nn::Tensor::fromAttr(constant);
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (tensor.getInt(i) != tensor.index(i)[0]) return false;
  return tensor.rank() > 0;
}

// True for conversions that keep counts of rows below 2^24. A signed i1 is 0 or
// -1, and narrow types hold smaller counts.
bool keepsCounts(Operation* op) {
  const auto width = [](Value value) {
    return mlir::getElementTypeOrSelf(value).getIntOrFloatBitWidth();
  };
  if (mlir::isa<arith::ExtUIOp, arith::ExtFOp>(op)) return true;
  if (mlir::isa<arith::ExtSIOp>(op)) return width(op->getOperand(0)) > 1;
  if (mlir::isa<arith::SIToFPOp>(op))
    return width(op->getOperand(0)) > 1 && width(op->getResult(0)) >= 32;
  return mlir::isa<arith::TruncIOp, arith::FPToSIOp, arith::UIToFPOp>(op) &&
         width(op->getResult(0)) >= 32;
}

Value withoutConversions(Value value) {
  while (Operation* op = value.getDefiningOp()) {
    if (!keepsCounts(op)) break;
    value = op->getOperand(0);
  }
  return value;
}

// `indices` [n, 1] hold row f(j) where `leaf` holds j. Returns k if f(j) = j /
// k for all j below n, else 0.
int64_t divisorOf(Value indices, Value leaf) {
  const int64_t count = tensorType(leaf).getDimSize(0);
  const std::optional<nn::Tensor> rows = evaluateRows(indices, leaf, count);
  if (!rows || rows->size() != count || rows->isFloat()) return 0;
  int64_t divisor = 1;
  while (divisor < count && rows->getInt(divisor) == 0) ++divisor;
  for (int64_t j = 0; j < count; ++j)
    if (rows->getInt(j) != j / divisor) return 0;
  return divisor;
}

bool takesRows(nn::GatherOp gather) {
  return gather.getBatchDims() == 0 &&
         gather.getAxes() == mlir::ArrayRef<int64_t>{0} &&
         gather.getIndices().getType().getRank() == 2;
}

// Values of sorted rows, in the order before sorting.
class Unsorted {
 public:
  // `sort` has rank 1 and takes all elements.
  Unsorted(PatternRewriter& rewriter, nn::TopKOp sort)
      : rewriter_(rewriter),
        sort_(sort),
        rows_(sort.getInput().getType().getDimSize(0)) {}

  // True if `of` can build the value.
  bool exists(Value value) {
    auto [known, inserted] = exists_.try_emplace(value, false);
    if (!inserted) return known->second;
    const bool found = find(value);
    exists_[value] = found;
    return found;
  }

  Value of(Value value) {
    if (value == sort_.getValues()) return sort_.getInput();
    if (Value known = built_.lookupOrNull(value)) return known;
    const Value made = build(value);
    built_.map(value, made);
    return made;
  }

 private:
  bool hasRows(Value value) const {
    auto type = tensorType(value);
    return type && type.getRank() > 0 && type.getDimSize(0) == rows_;
  }

  bool find(Value value) {
    if (!hasRows(value)) return false;
    if (value == sort_.getValues()) return true;
    mlir::DenseElementsAttr constant;
    if (mlir::matchPattern(value, mlir::m_Constant(&constant)))
      return hasEqualRows(constant);
    Operation* op = value.getDefiningOp();
    if (!op || op->getNumResults() != 1) return false;
    if (auto iota = mlir::dyn_cast<nn::IotaOp>(op)) return iota.getDim() > 0;
    if (auto gather = mlir::dyn_cast<nn::GatherOp>(op))
      return divisorIn(gather) > 0;
    if (auto dot = mlir::dyn_cast<nn::GroupedDotOp>(op))
      return exists(dot.getX()) &&
             (areSortedIds(dot.getIds()) || exists(dot.getIds()));
    if (auto broadcast = mlir::dyn_cast<nn::BroadcastOp>(op)) {
      if (!llvm::is_contained(broadcast.getDims(), 0)) return true;
      return exists(broadcast.getInput());
    }
    if (auto slice = mlir::dyn_cast<nn::SliceOp>(op))
      return slice.getStarts()[0] == 0 && slice.getStrides()[0] == 1 &&
             exists(slice.getInput());
    if (!op->hasTrait<mlir::OpTrait::Elementwise>() &&
        !mlir::isa<nn::ReshapeOp>(op))
      return false;
    return llvm::all_of(op->getOperands(),
                        [&](Value operand) { return exists(operand); });
  }

  // The number of times that the gather repeats each row of its input, if it
  // takes them in sorted order; else 0.
  int64_t divisorIn(nn::GatherOp gather) {
    if (!takesRows(gather) ||
        sourceOf<nn::TopKOp>(gather.getIndices()) != sort_.getIndices())
      return 0;
    const int64_t divisor = divisorOf(gather.getIndices(), sort_.getIndices());
    const int64_t inputs = gather.getInput().getType().getDimSize(0);
    return inputs * divisor == rows_ ? divisor : 0;
  }

  // True if `ids` are computed from ends of groups and equal the sorted values:
  // the number of groups that end at a row or before it, where an end is the
  // number of values up to its group.
  bool areSortedIds(Value ids) {
    auto count = ids.getDefiningOp<nn::ReduceOp>();
    if (!count || count.getKind() != nn::ReduceKind::sum ||
        count.getDims() != mlir::ArrayRef<int64_t>{1} || sort_.getLargest())
      return false;
    auto compare =
        withoutConversions(count.getInput()).getDefiningOp<arith::CmpIOp>();
    if (!compare) return false;
    Value row = compare.getLhs(), end = compare.getRhs();
    if (compare.getPredicate() == arith::CmpIPredicate::sle)
      std::swap(row, end);
    else if (compare.getPredicate() != arith::CmpIPredicate::sge)
      return false;
    const View ends = peel(viewOf(end));
    if (!countsRows(row) || ends.largeDims() != SmallVector<int64_t>{1})
      return false;
    return endGroups(withoutConversions(ends.value));
  }

  bool endGroups(Value ends) {
    auto sum = ends.getDefiningOp<nn::ReduceWindowOp>();
    if (!sum || sum.getKind() != nn::ReduceKind::sum ||
        sum.getType().getRank() != 1)
      return false;
    const int64_t groups = sum.getType().getDimSize(0);
    using Sizes = mlir::ArrayRef<int64_t>;
    if (sum.getWindow() != Sizes{groups} || sum.getStrides() != Sizes{1} ||
        sum.getDilations() != Sizes{1} || sum.getLow() != Sizes{groups - 1} ||
        sum.getHigh() != Sizes{0})
      return false;
    auto count =
        withoutConversions(sum.getInput()).getDefiningOp<nn::ReduceOp>();
    // Evaluating by rows needs to tell rows from groups.
    constexpr int64_t kExact = 1 << 24;
    if (!count || count.getKind() != nn::ReduceKind::sum ||
        count.getDims() != Sizes{0} || rows_ == groups || rows_ >= kExact ||
        !hasRows(count.getInput()) || !areBelow(groups))
      return false;
    const std::optional<nn::Tensor> member =
        evaluateRows(count.getInput(), sort_.getValues(), groups);
    if (!member || member->size() != groups * groups) return false;
    for (int64_t i = 0; i < member->size(); ++i) {
      const double found = member->isFloat()
                               ? member->getFloat(i)
                               : static_cast<double>(member->getInt(i));
      if (found != (i / groups == i % groups ? 1 : 0)) return false;
    }
    return true;
  }

  // True if the sorted values are choices among `count`.
  bool areBelow(int64_t count) {
    Value ids = sort_.getInput();
    while (auto reshape = ids.getDefiningOp<nn::ReshapeOp>())
      ids = reshape.getInput();
    auto choice = ids.getDefiningOp<nn::TopKOp>();
    return choice && ids == choice.getIndices() &&
           choice.getInput().getType().getShape().back() <= count;
  }

  Value build(Value value) {
    Operation* op = value.getDefiningOp();
    mlir::DenseElementsAttr constant;
    if (mlir::matchPattern(value, mlir::m_Constant(&constant)) ||
        mlir::isa<nn::IotaOp>(op))
      return value;
    if (auto gather = mlir::dyn_cast<nn::GatherOp>(op))
      return repeated(gather.getInput(), divisorIn(gather), op->getLoc());
    if (auto dot = mlir::dyn_cast<nn::GroupedDotOp>(op))
      return nn::GroupedDotOp::create(
          rewriter_, op->getLoc(), dot.getType(), of(dot.getX()),
          areSortedIds(dot.getIds()) ? sort_.getInput() : of(dot.getIds()),
          dot.getW(), dot.getTransposed());
    auto broadcast = mlir::dyn_cast<nn::BroadcastOp>(op);
    if (broadcast && !llvm::is_contained(broadcast.getDims(), 0)) return value;
    mlir::IRMapping operands;
    for (Value operand : op->getOperands()) operands.map(operand, of(operand));
    return rewriter_.clone(*op, operands)->getResult(0);
  }

  // Each row of `value` `count` times, as [rows, ...].
  Value repeated(Value value, int64_t count, mlir::Location loc) {
    if (count == 1) return value;
    RankedTensorType type = tensorType(value);
    SmallVector<int64_t> shape(type.getShape()), dims;
    shape.insert(shape.begin() + 1, count);
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      dims.push_back(dim == 0 ? 0 : dim + 1);
    Value repeats =
        nn::BroadcastOp::create(rewriter_, loc, type.clone(shape), value, dims);
    shape.erase(shape.begin() + 1);
    shape[0] = rows_;
    return nn::ReshapeOp::create(rewriter_, loc, type.clone(shape), repeats);
  }

  PatternRewriter& rewriter_;
  nn::TopKOp sort_;
  int64_t rows_;
  llvm::DenseMap<Value, bool> exists_;
  mlir::IRMapping built_;
};

// A gather that puts sorted rows back in order.
class UnsortRows : public mlir::OpRewritePattern<nn::GatherOp> {
 public:
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::GatherOp gather,
                                PatternRewriter& rewriter) const override {
    if (!takesRows(gather)) return mlir::failure();
    const Value inverse = sourceOf<nn::ScatterOp>(gather.getIndices());
    if (!inverse || tensorType(inverse).getRank() != 1) return mlir::failure();
    auto scatter = inverse.getDefiningOp<nn::ScatterOp>();
    const Value order = sourceOf<nn::TopKOp>(scatter.getIndices());
    auto sort = order ? order.getDefiningOp<nn::TopKOp>() : nn::TopKOp();
    // A sort of all elements, and the inverse of its permutation.
    if (!sort || order != sort.getIndices() ||
        sort.getInput().getType().getRank() != 1 ||
        sort.getInput().getType().getShape() !=
            sort.getValues().getType().getShape() ||
        scatter.getKind() != nn::ScatterKind::set ||
        scatter.getType().getShape() != tensorType(order).getShape() ||
        !countsUp(scatter.getUpdates()) ||
        divisorOf(scatter.getIndices(), order) != 1 ||
        divisorOf(gather.getIndices(), inverse) != 1 ||
        gather.getInput().getType().getDimSize(0) !=
            tensorType(order).getDimSize(0))
      return mlir::failure();
    Unsorted unsorted(rewriter, sort);
    if (!unsorted.exists(gather.getInput())) return mlir::failure();
    rewriter.replaceOp(gather, unsorted.of(gather.getInput()));
    return mlir::success();
  }
};

}  // namespace

void populateUnsortRows(mlir::RewritePatternSet& patterns) {
  patterns.add<UnsortRows>(patterns.getContext());
}

}  // namespace partita::simplify
