// Moves the scales of quantized operands behind products, so that products
// read integers; see passes.td.
#include <optional>

#include "compiler/simplify/dequantized.h"
#include "compiler/simplify/passes.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::simplify {

#define GEN_PASS_DEF_RAISEQUANTIZEDPRODUCTSPASS
#include "compiler/simplify/passes.h.inc"

namespace {

using mlir::ArrayRef;
using mlir::OpBuilder;
using mlir::SmallVector;
using mlir::Value;
namespace arith = mlir::arith;

// One operand of a product and the places of its free dimensions in the result.
struct Side {
  Value value;
  ArrayRef<int64_t> contract;
  SmallVector<int64_t> free, in_result;

  SmallVector<int64_t> freeShape() const {
    SmallVector<int64_t> shape;
    for (const int64_t dim : free)
      shape.push_back(tensorType(value).getDimSize(dim));
    return shape;
  }
};

Side sideOf(nn::DotGeneralOp op, bool is_rhs) {
  Side side{is_rhs ? op.getRhs() : op.getLhs(),
            is_rhs ? op.getRhsContract() : op.getLhsContract(),
            {},
            {}};
  const ArrayRef<int64_t> batch = is_rhs ? op.getRhsBatch() : op.getLhsBatch();
  for (int64_t dim = 0; dim < tensorType(side.value).getRank(); ++dim)
    if (!llvm::is_contained(side.contract, dim) &&
        !llvm::is_contained(batch, dim))
      side.free.push_back(dim);
  const int64_t rank = tensorType(op.getResult()).getRank();
  const int64_t begin = is_rhs ? rank - static_cast<int64_t>(side.free.size())
                               : static_cast<int64_t>(op.getLhsBatch().size());
  for (size_t i = 0; i < side.free.size(); ++i)
    side.in_result.push_back(begin + static_cast<int64_t>(i));
  return side;
}

// The scale in terms of the side's free dimensions alone; none if it differs
// along another dimension.
std::optional<View> scaleOfFree(const Side& side, View scale) {
  for (auto [i, dim] : llvm::enumerate(scale.dims)) {
    const auto* place = llvm::find(side.free, dim);
    if (place != side.free.end())
      dim = place - side.free.begin();
    else if (tensorType(scale.value).getDimSize(i) != 1)
      return std::nullopt;
  }
  return scale;
}

class Rewriter {
 public:
  explicit Rewriter(nn::DotGeneralOp op)
      : op_(op), last_(op), builder_(op), loc_(op.getLoc()) {}

  // The operation whose result the raised product replaces: the product, or the
  // addition of a bias that joins its shift.
  mlir::Operation* last() const { return last_; }

  // The product of floats and a weight, or null.
  Value withWeight(const Dequantized& weight, bool is_rhs) {
    // Others are computed in every run, so that f32 is as good.
    mlir::Operation* source = weight.integer.getDefiningOp();
    while (source && mlir::isa<nn::ReshapeOp>(source))
      source = source->getOperand(0).getDefiningOp();
    if ((source && !source->hasTrait<mlir::OpTrait::ConstantLike>()) ||
        weight.zero || weight.is_unsigned)
      return {};
    const Side side = sideOf(op_, is_rhs);
    const auto scale = scaleOfFree(side, shrunk(weight.scale));
    if (!scale) return {};
    const Value wide = arith::SIToFPOp::create(
        builder_, loc_, tensorType(side.value), weight.integer);
    const Value sum =
        dot(is_rhs ? op_.getLhs() : wide, is_rhs ? wide : op_.getRhs());
    return scaled(sum, vectorOf(side, *scale), side);
  }

  // The product of two integers, or null.
  Value ofIntegers(const Dequantized& lhs, const Dequantized& rhs) {
    const Side side = sideOf(op_, /*is_rhs=*/true);
    const auto scale = scaleOfFree(side, shrunk(rhs.scale));
    const View lhs_scale = shrunk(lhs.scale);
    if (rhs.zero || rhs.is_unsigned || !scale ||
        !lhs_scale.largeDims().empty() ||
        (lhs.zero && !op_.getRhsBatch().empty()))
      return {};
    const std::optional<View> bias =
        lhs.zero ? takeBias(side) : std::optional<View>();
    const Value left = extended(lhs), right = extended(rhs);
    const Value sum = dot(left, right);
    // Both scales as one number per column.
    const SmallVector<int64_t> shape = side.freeShape();
    const Value vector =
        arith::MulFOp::create(builder_, loc_, repeated(lhs_scale.value, shape),
                              vectorOf(side, *scale));
    const Value result = scaled(toFloat(sum), vector, side);
    if (!lhs.zero) return result;
    // scale * (sum of (l - zero) r) = scale * sum of l r - scale * zero * sum
    // of r
    SmallVector<int64_t> dims(side.contract);
    llvm::sort(dims);
    const Value columns =
        nn::ReduceOp::create(builder_, loc_, nn::ReduceKind::sum, right, dims);
    const Value factor = arith::MulFOp::create(
        builder_, loc_, vector, toFloat(repeated(shrunk(lhs.zero), shape)));
    Value shift =
        arith::MulFOp::create(builder_, loc_, toFloat(columns), factor);
    shift = bias ? arith::SubFOp::create(builder_, loc_, vectorOf(side, *bias),
                                         shift)
                       .getResult()
                 : arith::NegFOp::create(builder_, loc_, shift).getResult();
    return arith::AddFOp::create(builder_, loc_, result,
                                 alongResult(shift, side));
  }

 private:
  // If the only reader of the product adds one number per column: these numbers
  // in terms of the side's free dimensions.
  std::optional<View> takeBias(const Side& side) {
    if (!op_->hasOneUse()) return std::nullopt;
    auto add = mlir::dyn_cast<arith::AddFOp>(*op_->user_begin());
    if (!add || add.getLhs() == add.getRhs()) return std::nullopt;
    const unsigned other = add.getLhs() == op_.getResult() ? 1 : 0;
    View bias = peel(operandOf(viewOf(add.getResult()), other));
    for (auto [i, dim] : llvm::enumerate(bias.dims)) {
      const auto* place = llvm::find(side.in_result, dim);
      if (place != side.in_result.end())
        dim = place - side.in_result.begin();
      else if (tensorType(bias.value).getDimSize(i) != 1)
        return std::nullopt;
    }
    last_ = add;
    builder_.setInsertionPoint(add);
    return bias;
  }

  Value extended(const Dequantized& value) {
    const mlir::Type type =
        tensorType(value.integer).clone(builder_.getI32Type());
    return value.is_unsigned
               ? arith::ExtUIOp::create(builder_, loc_, type, value.integer)
                     .getResult()
               : arith::ExtSIOp::create(builder_, loc_, type, value.integer)
                     .getResult();
  }
  Value toFloat(Value value) {
    return arith::SIToFPOp::create(
        builder_, loc_, tensorType(value).clone(builder_.getF32Type()), value);
  }
  Value dot(Value lhs, Value rhs) {
    return nn::DotGeneralOp::create(builder_, loc_, lhs, rhs, op_.getLhsBatch(),
                                    op_.getRhsBatch(), op_.getLhsContract(),
                                    op_.getRhsContract());
  }
  Value shrunk(Value value) { return simplify::shrunk(builder_, loc_, value); }
  View shrunk(const View& view) {
    const Value value = shrunk(view.value);
    return value == view.value ? view : View{value, {}};
  }
  // The only element of `one`, in each place of `shape`.
  Value repeated(Value one, ArrayRef<int64_t> shape) {
    return buildBroadcast(builder_, loc_,
                          {buildReshape(builder_, loc_, one, {}), {}}, shape);
  }
  Value vectorOf(const Side& side, const View& scale) {
    return buildBroadcast(builder_, loc_, scale, side.freeShape());
  }
  Value alongResult(Value vector, const Side& side) {
    return buildBroadcast(builder_, loc_, {vector, side.in_result},
                          op_.getType().getShape());
  }
  Value scaled(Value sum, Value vector, const Side& side) {
    return arith::MulFOp::create(builder_, loc_, sum,
                                 alongResult(vector, side));
  }

  nn::DotGeneralOp op_;
  mlir::Operation* last_;
  OpBuilder builder_;
  mlir::Location loc_;
};

class RaiseQuantizedProductsPass
    : public impl::RaiseQuantizedProductsPassBase<RaiseQuantizedProductsPass> {
  void runOnOperation() override {
    SmallVector<nn::DotGeneralOp> dots;
    getOperation().walk([&](nn::DotGeneralOp op) { dots.push_back(op); });
    for (nn::DotGeneralOp op : dots) {
      if (!op.getType().getElementType().isF32()) continue;
      const auto lhs = matchDequantized(op.getLhs()),
                 rhs = matchDequantized(op.getRhs());
      Rewriter rewriter(op);
      Value raised;
      if (lhs && rhs) {
        raised = rewriter.ofIntegers(*lhs, *rhs);
        integers += raised != nullptr;
      }
      if (!raised && (lhs || rhs)) {
        if (rhs) raised = rewriter.withWeight(*rhs, /*is_rhs=*/true);
        if (!raised && lhs)
          raised = rewriter.withWeight(*lhs, /*is_rhs=*/false);
        weights += raised != nullptr;
      }
      if (!raised) continue;
      rewriter.last()->getResult(0).replaceAllUsesWith(raised);
      if (rewriter.last() != op) rewriter.last()->erase();
      op.erase();
    }
  }
};

}  // namespace
}  // namespace partita::simplify
