// Raises mixtures of experts from products of each row with the matrix of its
// index, as they are after rows are unsorted.
#include "compiler/simplify/activation_match.h"
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
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::Value;
namespace arith = mlir::arith;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value withoutReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    value = reshape.getInput();
  return value;
}

// The value before reshapes that end in its own shape.
Value direct(Value value) {
  const Value inner = withoutReshapes(value);
  return inner.getType() == value.getType() ? inner : value;
}

// Rows [R, K], each times the matrix [N, K] of its index; of the N results,
// `count` from `first`.
struct Product {
  nn::GroupedDotOp op;
  int64_t first = 0, count = 0;
};

std::optional<Product> matchProduct(Value value) {
  int64_t first = 0;
  const int64_t count = tensorType(value).getShape().back();
  value = direct(value);
  if (auto slice = value.getDefiningOp<nn::SliceOp>()) {
    const ArrayRef<int64_t> starts = slice.getStarts();
    if (starts.size() != 2 || starts[0] != 0 ||
        llvm::any_of(slice.getStrides(), [](int64_t s) { return s != 1; }) ||
        slice.getType().getDimSize(0) !=
            slice.getInput().getType().getDimSize(0))
      return std::nullopt;
    first = starts[1];
    value = slice.getInput();
  }
  auto op = direct(value).getDefiningOp<nn::GroupedDotOp>();
  if (!op) return std::nullopt;
  return Product{op, first, count};
}

// The matrices of a product, [X, N, K].
Value matricesOf(PatternRewriter& rewriter, const Product& product) {
  nn::GroupedDotOp op = product.op;
  const mlir::Location loc = op.getLoc();
  Value w = op.getW();
  if (op.getTransposed()) w = buildTranspose(rewriter, loc, w, {0, 2, 1});
  const RankedTensorType type = tensorType(w);
  if (type.getDimSize(1) == product.count) return w;
  const RankedTensorType part =
      type.clone({type.getDimSize(0), product.count, type.getDimSize(2)});
  return nn::SliceOp::create(rewriter, loc, part, w,
                             ArrayRef<int64_t>{0, product.first, 0},
                             ArrayRef<int64_t>{1, 1, 1});
}

// x [..., K] and ids [..., k] of rows [R, K] that repeat each row of x k times.
struct Rows {
  Value x;                     // [positions, K]
  SmallVector<int64_t> shape;  // of the positions
};

// The tensor that rows [positions * choices, width] repeat, each of its rows
// `choices` times; null if there is none.
Value repeatedRows(Value rows, int64_t choices) {
  if (choices == 1) return rows;
  enum : int { kPosition, kChoice, kColumn };
  const int64_t width = tensorType(rows).getDimSize(1),
                positions = tensorType(rows).getDimSize(0) / choices;
  Access access = {
      rows, {wholeRange(kPosition, positions), wholeRange(kColumn, width)}};
  llvm::append_range(access.dims[0], wholeRange(kChoice, choices));
  Access whole;
  whole.dims = {wholeRange(kPosition, positions), wholeRange(kColumn, width)};
  access = peel(access);
  return access.digits() == whole.digits() &&
                 tensorType(access.value).getRank() > 0 &&
                 tensorType(access.value).getShape().back() == width
             ? access.value
             : Value();
}

// Matches rows that repeat each row of x k times.
std::optional<Rows> matchRows(Value rows, int64_t choices) {
  const int64_t width = tensorType(rows).getDimSize(1);
  if (choices == 0 || tensorType(rows).getDimSize(0) % choices != 0)
    return std::nullopt;
  Value x = repeatedRows(rows, choices);
  if (!x) return std::nullopt;
  // The sizes before positions were merged, if a reshape did so.
  while (auto reshape = x.getDefiningOp<nn::ReshapeOp>()) {
    if (reshape.getInput().getType().getShape().back() != width) break;
    x = reshape.getInput();
  }
  const ArrayRef<int64_t> shape = tensorType(x).getShape();
  if (shape.empty() || shape.back() != width ||
      tensorType(x).getNumElements() * choices !=
          tensorType(rows).getNumElements())
    return std::nullopt;
  return Rows{x, SmallVector<int64_t>(shape.drop_back())};
}

// sum over k of weights * down(act(gate x) * up x).
class RaiseExperts : public mlir::OpRewritePattern<nn::ReduceOp> {
 public:
  RaiseExperts(mlir::MLIRContext* context, mlir::Pass::Statistic& raised)
      : OpRewritePattern(context), raised_(raised) {}

  LogicalResult matchAndRewrite(nn::ReduceOp sum,
                                PatternRewriter& rewriter) const override {
    // [..., k, E']
    const ArrayRef<int64_t> shape = sum.getInput().getType().getShape();
    const int64_t rank = shape.size();
    if (sum.getKind() != nn::ReduceKind::sum || rank < 2 ||
        sum.getDims() != ArrayRef<int64_t>{rank - 2})
      return mlir::failure();
    const int64_t choices = shape[rank - 2], width = shape[rank - 1];
    Value summands = sum.getInput();
    while (auto reshape = summands.getDefiningOp<nn::ReshapeOp>())
      summands = reshape.getInput();
    auto weighted = summands.getDefiningOp<arith::MulFOp>();
    if (!weighted || tensorType(summands).getShape().back() != width)
      return mlir::failure();
    for (unsigned i : {0u, 1u})
      if (mlir::succeeded(raise(sum, rewriter, choices, weighted->getOperand(i),
                                weighted->getOperand(1 - i))))
        return mlir::success();
    return mlir::failure();
  }

 private:
  LogicalResult raise(nn::ReduceOp sum, PatternRewriter& rewriter,
                      int64_t choices, Value result, Value factor) const {
    while (auto reshape = result.getDefiningOp<nn::ReshapeOp>())
      result = reshape.getInput();
    std::optional<Product> down =
        tensorType(result).getRank() == 2 ? matchProduct(result) : std::nullopt;
    if (!down || down->count != tensorType(down->op.getResult()).getDimSize(1))
      return mlir::failure();
    const int64_t rows = tensorType(result).getDimSize(0);

    // One weight per row.
    const View weight = peel(viewOf(factor));
    const int64_t last = tensorType(factor).getRank() - 1;
    if (tensorType(weight.value).getNumElements() != rows ||
        llvm::is_contained(weight.largeDims(), last) ||
        !llvm::is_sorted(weight.dims))
      return mlir::failure();

    const Value h = direct(down->op.getX());
    std::optional<Product> gate, up;
    std::optional<Activated> activated;
    if (auto product = h.getDefiningOp<arith::MulFOp>()) {
      for (unsigned i : {0u, 1u}) {
        activated = matchActivation(product->getOperand(i));
        if (!activated) continue;
        gate = matchProduct(activated->input);
        up = matchProduct(product->getOperand(1 - i));
        if (gate && up) break;
      }
    }
    if (!gate || !up) {
      gate.reset();
      activated = matchActivation(h);
      up = activated ? matchProduct(activated->input) : std::nullopt;
    }
    if (!up) return mlir::failure();
    const Value ids = down->op.getIds();
    for (std::optional<Product> inner : {gate, up})
      if (inner &&
          (withoutReshapes(inner->op.getIds()) != withoutReshapes(ids) ||
           direct(inner->op.getX()) != direct(up->op.getX())))
        return mlir::failure();
    const std::optional<Rows> x = matchRows(up->op.getX(), choices);
    if (!x) return mlir::failure();

    const mlir::Location loc = sum.getLoc();
    SmallVector<int64_t> chosen = x->shape;
    chosen.push_back(choices);
    SmallVector<int64_t> shape = x->shape;
    shape.push_back(down->count);
    const Value experts = nn::ExpertsOp::create(
        rewriter, loc, sum.getType().clone(shape), x->x,
        buildReshape(rewriter, loc, ids, chosen),
        buildReshape(rewriter, loc, weight.value, chosen),
        gate ? matricesOf(rewriter, *gate) : Value(), matricesOf(rewriter, *up),
        matricesOf(rewriter, *down),
        /*gate_bias=*/Value(), /*up_bias=*/Value(), /*down_bias=*/Value(),
        activated->activation);
    rewriter.replaceOp(
        sum, buildReshape(rewriter, loc, experts, sum.getType().getShape()));
    ++raised_;
    return mlir::success();
  }

  mlir::Pass::Statistic& raised_;
};

}  // namespace

void populateRaiseExperts(mlir::RewritePatternSet& patterns,
                          mlir::Pass::Statistic& experts) {
  patterns.add<RaiseExperts>(patterns.getContext(), experts);
}

}  // namespace partita::simplify
