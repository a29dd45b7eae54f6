// Gradients of contractions, convolutions and reductions.
#include "compiler/autodiff/float8_marks.h"
#include "compiler/autodiff/gradient.h"
#include "compiler/autodiff/gradients.h"
#include "compiler/autodiff/term.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::autodiff {
namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;
using nn::MathBuilder;
using nn::ReduceKind;

//===----------------------------------------------------------------------===//
// nn.dot_general
//===----------------------------------------------------------------------===//

// One operand of a contraction, and the places of its dimensions in the result.
struct Side {
  Value value;
  ArrayRef<int64_t> batch;
  ArrayRef<int64_t> contract;
  SmallVector<int64_t> free;            // other dimensions, ascending
  SmallVector<int64_t> free_of_result;  // their places in the result
};

SmallVector<int64_t> freeDims(Value x, ArrayRef<int64_t> batch,
                              ArrayRef<int64_t> contract) {
  SmallVector<int64_t> free;
  for (int64_t dim = 0; dim < MathBuilder::typeOf(x).getRank(); ++dim) {
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      free.push_back(dim);
  }
  return free;
}

// Computes the gradient of `mine`: contracts the result's gradient with `other`
// over the free dimensions of `other`. Chooses an operand order whose result
// needs no transpose, if there is one.
Value contractBack(Gradient& gradient, const Side& mine, const Side& other,
                   bool has_float8) {
  // Batch dimensions in mine's order, and their places in the result.
  SmallVector<int64_t> batch_order =
      llvm::to_vector(llvm::seq<int64_t>(0, mine.batch.size()));
  llvm::sort(batch_order, [&](int64_t a, int64_t b) {
    return mine.batch[a] < mine.batch[b];
  });
  SmallVector<int64_t> mine_batch, other_batch;
  for (int64_t i : batch_order) {
    mine_batch.push_back(mine.batch[i]);
    other_batch.push_back(other.batch[i]);
  }
  // Contracted dimensions of mine, in the order of other.
  SmallVector<std::pair<int64_t, int64_t>> pairs;
  for (auto [theirs, ours] : llvm::zip_equal(other.contract, mine.contract))
    pairs.emplace_back(theirs, ours);
  llvm::sort(pairs);
  SmallVector<int64_t> contracted;
  for (auto [theirs, ours] : pairs) contracted.push_back(ours);

  // Returns the dimensions of mine in the order of the contraction's result.
  const auto layout = [&](bool gradient_first) {
    SmallVector<int64_t> dims = mine_batch;
    llvm::append_range(dims, gradient_first ? mine.free : contracted);
    llvm::append_range(dims, gradient_first ? contracted : mine.free);
    return dims;
  };
  const bool gradient_first =
      llvm::is_sorted(layout(true)) || !llvm::is_sorted(layout(false));
  const Value g = gradient.ofResult();
  const Value product =
      gradient_first
          ? gradient.math.dotGeneral(g, other.value, batch_order, other_batch,
                                     other.free_of_result, other.free)
          : gradient.math.dotGeneral(other.value, g, other_batch, batch_order,
                                     other.free, other.free_of_result);
  if (has_float8)
    product.getDefiningOp()->setAttr(
        kFloat8Attr,
        gradient.builder().getStringAttr(gradient_first ? kFloat8GradientLhs
                                                        : kFloat8GradientRhs));
  const SmallVector<int64_t> dims = layout(gradient_first);
  if (llvm::is_sorted(dims)) return product;
  SmallVector<int64_t> perm(dims.size());
  for (auto [i, dim] : llvm::enumerate(dims)) perm[dim] = i;
  return nn::TransposeOp::create(gradient.builder(), gradient.loc(), product,
                                 perm);
}

struct DotGeneral
    : GradientOpInterface::ExternalModel<DotGeneral, nn::DotGeneralOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    auto dot = mlir::cast<nn::DotGeneralOp>(op);
    Side lhs = {dot.getLhs(), dot.getLhsBatch(), dot.getLhsContract(), {}, {}};
    Side rhs = {dot.getRhs(), dot.getRhsBatch(), dot.getRhsContract(), {}, {}};
    int64_t at = dot.getLhsBatch().size();
    for (Side* side : {&lhs, &rhs}) {
      side->free = freeDims(side->value, side->batch, side->contract);
      for (size_t i = 0; i < side->free.size(); ++i)
        side->free_of_result.push_back(at++);
    }
    const bool has_float8 = op->hasAttr(kFloat8Attr);
    if (gradient.wants(0))
      gradient.add(0, contractBack(gradient, lhs, rhs, has_float8));
    if (gradient.wants(1))
      gradient.add(1, contractBack(gradient, rhs, lhs, has_float8));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// nn.reduce
//===----------------------------------------------------------------------===//

struct Reduce : GradientOpInterface::ExternalModel<Reduce, nn::ReduceOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    auto reduce = mlir::cast<nn::ReduceOp>(op);
    MathBuilder& b = gradient.math;
    if (reduce.getKind() == ReduceKind::sum) {
      gradient.add(0, b.spread(gradient.ofResult(), reduce.getInput(),
                               reduce.getDims()));
      return success();
    }
    const auto term = [&](Value x) {
      return Term(gradient.builder(), gradient.loc(), b.widen(x));
    };
    const Term x = term(reduce.getInput()), g = term(gradient.ofResult());
    const Term result =
        reduce.getKind() == ReduceKind::prod
            ? ofProduct(x, g, reduce.getDims())
            : ofExtreme(x, term(reduce.getResult()), g, reduce.getDims());
    gradient.add(0, b.narrow(result.value(), reduce.getInput().getType()));
    return success();
  }

 private:
  static Term sum(Term x, ArrayRef<int64_t> dims) {
    return x.with(x.math().reduce(ReduceKind::sum, x.value(), dims));
  }
  static Term spread(Term x, Term like, ArrayRef<int64_t> dims) {
    return x.with(x.math().spread(x.value(), like.value(), dims));
  }

  // Equal extremes share the gradient evenly.
  static Term ofExtreme(Term x, Term y, Term g, ArrayRef<int64_t> dims) {
    const Term hits = (x == spread(y, x, dims)).choose(1, x.constant(0));
    return hits * spread(g / sum(hits, dims), x, dims);
  }

  // Product of the other elements: the total / x if no element is zero. If
  // exactly one is zero, only it gets a gradient; if two are, none does.
  static Term ofProduct(Term x, Term g, ArrayRef<int64_t> dims) {
    const Condition is_zero = x == 0.0;
    const Term others = is_zero.choose(1, x);
    const Term zeros = sum(is_zero.choose(1, x.constant(0)), dims);
    const Term product =
        g * x.with(x.math().reduce(ReduceKind::prod, others.value(), dims));
    const Term if_none = (zeros == 0.0).choose(product, 0),
               if_one = (zeros == 1.0).choose(product, 0);
    return is_zero.choose(spread(if_one, x, dims),
                          spread(if_none, x, dims) / others);
  }
};

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

struct Conv : GradientOpInterface::ExternalModel<Conv, nn::ConvOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    auto conv = mlir::cast<nn::ConvOp>(op);
    mlir::OpBuilder& builder = gradient.builder();
    const Value input = conv.getInput(), weight = conv.getWeight(),
                g = gradient.ofResult();
    if (gradient.wants(0)) {
      gradient.add(
          0, nn::ConvInputGradOp::create(
                 builder, gradient.loc(), input.getType(), g, weight,
                 conv.getStrides(), conv.getDilations(), conv.getLow(),
                 conv.getHigh(), conv.getGroups(), conv.getChannelsLast()));
    }
    if (gradient.wants(1)) {
      gradient.add(
          1, nn::ConvWeightGradOp::create(
                 builder, gradient.loc(), weight.getType(), input, g,
                 conv.getStrides(), conv.getDilations(), conv.getLow(),
                 conv.getHigh(), conv.getGroups(), conv.getChannelsLast()));
    }
    return success();
  }
};

struct ReduceWindow
    : GradientOpInterface::ExternalModel<ReduceWindow, nn::ReduceWindowOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    auto window = mlir::cast<nn::ReduceWindowOp>(op);
    if (window.getKind() == ReduceKind::prod) {
      return op->emitOpError()
             << "expected kind 'sum', 'max' or 'min' for a gradient, found "
                "'prod'; write it as exp of a sum of logarithms";
    }
    const bool sums = window.getKind() == ReduceKind::sum;
    gradient.add(
        0, nn::ReduceWindowGradOp::create(
               gradient.builder(), gradient.loc(), window.getInput().getType(),
               window.getKind(), gradient.ofResult(),
               sums ? Value() : window.getInput(), window.getWindow(),
               window.getStrides(), window.getDilations(), window.getLow(),
               window.getHigh()));
    return success();
  }
};

}  // namespace

void registerContractionGradients(mlir::MLIRContext* context) {
  nn::DotGeneralOp::attachInterface<DotGeneral>(*context);
  nn::ReduceOp::attachInterface<Reduce>(*context);
  nn::ConvOp::attachInterface<Conv>(*context);
  nn::ReduceWindowOp::attachInterface<ReduceWindow>(*context);
}

}  // namespace partita::autodiff
