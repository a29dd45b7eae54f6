// Raises products of groups of consecutive rows with a matrix per group, as JAX
// writes ragged_dot on CPUs: rows are repeated for every group, and zero
// outside the group.
#include "compiler/simplify/index_map.h"
#include "compiler/simplify/raise_patterns.h"
#include "compiler/simplify/view.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::simplify {
namespace {

using mlir::ArrayRef;
using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::SmallVector;
using mlir::Value;
namespace arith = mlir::arith;

enum : int { kGroup, kRow, kWidth };

// Rows [R, K] of which each is in one of X groups.
struct Grouped {
  Value rows;
  Value ends;  // holds [X]: the row behind each group
  int64_t groups = 0, count = 0, width = 0;
};

bool isWhole(const Access& access, int symbol, int64_t size) {
  Access whole;
  whole.dims.push_back(wholeRange(symbol, size));
  return access.digits() == whole.digits();
}

// The running sum of sizes, [groups].
bool isRunningSum(Value value, int64_t groups) {
  auto sum = value.getDefiningOp<nn::ReduceWindowOp>();
  using Sizes = ArrayRef<int64_t>;
  return sum && sum.getKind() == nn::ReduceKind::sum &&
         sum.getType().getRank() == 1 &&
         sum.getType().getDimSize(0) == groups &&
         sum.getWindow() == Sizes{groups} && sum.getStrides() == Sizes{1} &&
         sum.getDilations() == Sizes{1} && sum.getLow() == Sizes{groups - 1} &&
         sum.getHigh() == Sizes{0};
}

// True if `starts` are 0, then all `ends` but the last.
bool areStarts(Value starts, Value ends, int64_t groups) {
  auto concat = starts.getDefiningOp<nn::ConcatOp>();
  if (!concat || concat.getInputs().size() != 2) return false;
  const Value first = concat.getInputs()[0];
  auto rest = concat.getInputs()[1].getDefiningOp<nn::SliceOp>();
  return tensorType(first).getNumElements() == 1 &&
         integerAt({first, {Index()}}) == 0 && rest &&
         rest.getInput() == ends && rest.getStarts()[0] == 0 &&
         rest.getStrides()[0] == 1 &&
         rest.getType().getDimSize(0) == groups - 1;
}

class Matcher {
 public:
  // `value` holds a group, a row and an element of the row in these dimensions.
  std::optional<Grouped> match(Value value, int64_t group, int64_t row,
                               int64_t width) {
    const auto type = tensorType(value);
    if (type.getRank() != 3) return std::nullopt;
    result_.groups = type.getDimSize(group);
    result_.count = type.getDimSize(row);
    result_.width = type.getDimSize(width);
    Access access = {value, SmallVector<Index>(3)};
    access.dims[group] = wholeRange(kGroup, result_.groups);
    access.dims[row] = wholeRange(kRow, result_.count);
    access.dims[width] = wholeRange(kWidth, result_.width);
    access = peel(access);
    if (result_.groups < 2 || !access.value.getDefiningOp<arith::SelectOp>() ||
        floatAt(access.operand(2)) != 0.0 || !matchMask(access.operand(0)))
      return std::nullopt;
    const Access rows = peel(access.operand(1));
    Access expected;
    expected.dims = {wholeRange(kRow, result_.count),
                     wholeRange(kWidth, result_.width)};
    if (rows.digits() != expected.digits()) return std::nullopt;
    result_.rows = rows.value;
    return result_;
  }

 private:
  bool matchMask(Access mask) {
    mask = peel(mask);
    if (!mask.value.getDefiningOp<arith::AndIOp>()) return false;
    Value starts;
    for (unsigned i : {0u, 1u}) {
      const Access side = peel(mask.operand(i));
      auto compare = side.value.getDefiningOp<arith::CmpIOp>();
      if (!compare) return false;
      const Access lhs = peel(side.operand(0)), rhs = peel(side.operand(1));
      using Predicate = arith::CmpIPredicate;
      const Predicate predicate = compare.getPredicate();
      if ((predicate == Predicate::sle && isRow(rhs) && isGroup(lhs)) ||
          (predicate == Predicate::sge && isRow(lhs) && isGroup(rhs)))
        starts = predicate == Predicate::sle ? lhs.value : rhs.value;
      else if ((predicate == Predicate::slt && isRow(lhs) && isGroup(rhs)) ||
               (predicate == Predicate::sgt && isRow(rhs) && isGroup(lhs)))
        result_.ends = predicate == Predicate::slt ? rhs.value : lhs.value;
    }
    return starts && result_.ends &&
           isRunningSum(result_.ends, result_.groups) &&
           areStarts(starts, result_.ends, result_.groups);
  }

  bool isGroup(const Access& access) const {
    return isWhole(access, kGroup, result_.groups);
  }

  // True if the element is the row's number.
  bool isRow(const Access& access) const {
    if (auto iota = access.value.getDefiningOp<nn::IotaOp>()) {
      Access at = {access.value, {access.dims[iota.getDim()]}};
      return isWhole(at, kRow, result_.count);
    }
    if (!isWhole(access, kRow, result_.count)) return false;
    // Every digit below becomes the row's number: there may be only one.
    size_t digits = 0;
    for (const Index& index : access.dims) digits += index.size();
    if (digits > 1) return false;
    for (int64_t row = 0; row < result_.count; ++row) {
      Access at = access;
      for (Index& index : at.dims)
        for (Digit& digit : index) {
          digit.symbol = -1;
          digit.number = row;
        }
      if (integerAt(at) != row) return false;
    }
    return true;
  }

  Grouped result_;
};

// The group of each row: the number of groups that end at it or before it.
Value buildIds(PatternRewriter& rewriter, mlir::Location loc,
               const Grouped& grouped) {
  const auto ends = tensorType(grouped.ends);
  const SmallVector<int64_t> shape = {grouped.count, grouped.groups};
  const auto numbers = ends.clone(shape);
  const Value row = nn::IotaOp::create(rewriter, loc, numbers, 0);
  const Value end = nn::BroadcastOp::create(
      rewriter, loc, numbers,
      buildReshape(rewriter, loc, grouped.ends, {grouped.groups}),
      ArrayRef<int64_t>{1});
  const Value ended =
      arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::sge, row, end);
  const Value counted = arith::ExtUIOp::create(
      rewriter, loc, numbers.clone(shape, rewriter.getI64Type()), ended);
  return nn::ReduceOp::create(rewriter, loc, nn::ReduceKind::sum, counted,
                              ArrayRef<int64_t>{1});
}

Value buildRows(PatternRewriter& rewriter, mlir::Location loc,
                const Grouped& grouped) {
  return buildReshape(rewriter, loc, grouped.rows,
                      {grouped.count, grouped.width});
}

class RaiseRaggedDot : public mlir::OpRewritePattern<nn::DotGeneralOp> {
 public:
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::DotGeneralOp dot,
                                PatternRewriter& rewriter) const override {
    if (tensorType(dot.getLhs()).getRank() != 3 ||
        tensorType(dot.getRhs()).getRank() != 3)
      return mlir::failure();
    return dot.getLhsBatch().empty() ? raiseProduct(dot, rewriter)
                                     : raiseGradient(dot, rewriter);
  }

 private:
  // The sum over groups and widths of rows and matrices.
  static LogicalResult raiseProduct(nn::DotGeneralOp dot,
                                    PatternRewriter& rewriter) {
    if (dot.getLhsContract().size() != 2) return mlir::failure();
    for (unsigned i : {0u, 1u}) {
      const int64_t group = dot.getLhsContract()[i],
                    width = dot.getLhsContract()[1 - i];
      const auto grouped =
          Matcher().match(dot.getLhs(), group, 3 - group - width, width);
      if (!grouped) continue;
      const int64_t matrix = dot.getRhsContract()[i],
                    in = dot.getRhsContract()[1 - i];
      const mlir::Location loc = dot.getLoc();
      // [groups, out, in], or [groups, in, out] if that is its order.
      const bool is_transposed = matrix == 0 && in == 1;
      const Value w = is_transposed
                          ? dot.getRhs()
                          : buildTranspose(rewriter, loc, dot.getRhs(),
                                           {matrix, 3 - matrix - in, in});
      rewriter.replaceOp(
          dot, nn::GroupedDotOp::create(rewriter, loc, dot.getType(),
                                        buildRows(rewriter, loc, *grouped),
                                        buildIds(rewriter, loc, *grouped), w,
                                        is_transposed));
      return mlir::success();
    }
    return mlir::failure();
  }

  // The sum over rows, for each group, of products of two rows.
  static LogicalResult raiseGradient(nn::DotGeneralOp dot,
                                     PatternRewriter& rewriter) {
    if (dot.getLhsBatch().size() != 1 || dot.getLhsContract().size() != 1)
      return mlir::failure();
    const int64_t lhs_group = dot.getLhsBatch()[0],
                  lhs_row = dot.getLhsContract()[0],
                  rhs_group = dot.getRhsBatch()[0],
                  rhs_row = dot.getRhsContract()[0];
    const auto lhs = Matcher().match(dot.getLhs(), lhs_group, lhs_row,
                                     3 - lhs_group - lhs_row);
    const auto rhs = Matcher().match(dot.getRhs(), rhs_group, rhs_row,
                                     3 - rhs_group - rhs_row);
    if (!lhs || !rhs || lhs->ends != rhs->ends) return mlir::failure();
    const mlir::Location loc = dot.getLoc();
    rewriter.replaceOp(
        dot,
        nn::GroupedDotWeightGradOp::create(
            rewriter, loc, dot.getType(), buildRows(rewriter, loc, *rhs),
            buildIds(rewriter, loc, *rhs), buildRows(rewriter, loc, *lhs)));
    return mlir::success();
  }
};

}  // namespace

void populateRaiseRaggedDots(mlir::RewritePatternSet& patterns) {
  patterns.add<RaiseRaggedDot>(patterns.getContext());
}

}  // namespace partita::simplify
