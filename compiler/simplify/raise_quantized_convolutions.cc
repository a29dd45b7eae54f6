// Moves the scales of quantized operands behind convolutions, so that these
// read integers; see passes.td.
#include <optional>

#include "compiler/simplify/dequantized.h"
#include "compiler/simplify/passes.h"
#include "compiler/simplify/scaled_conv.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

namespace partita::simplify {

#define GEN_PASS_DEF_RAISEQUANTIZEDCONVOLUTIONSPASS
#include "compiler/simplify/passes.h.inc"

namespace {

using mlir::OpBuilder;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::Value;
namespace arith = mlir::arith;

constexpr double kOffset = 128;  // from signed to unsigned integers

// Integers times factors of one number per output channel: its own scale, and
// that of a batch norm.
struct ScaledWeight {
  Value steps;
  SmallVector<View> factors;
};

// True if all elements of the view are the same one.
bool isOneNumber(const View& view) {
  return view.largeDims().empty() || splatConstant(view.value);
}

// True if the view has one number, or differs along dimension 0 alone.
bool isAlongChannels(const View& view) {
  if (isOneNumber(view)) return true;
  const SmallVector<int64_t> dims = view.largeDims();
  return dims == SmallVector<int64_t>{0};
}

std::optional<ScaledWeight> matchWeight(Value weight) {
  ScaledWeight found;
  Value value = weight;
  while (true) {
    Dequantized integers;
    if (matchSteps(value, integers)) {
      if (integers.is_unsigned || integers.zero || found.factors.empty())
        return std::nullopt;
      found.steps = value;
      return found;
    }
    auto product = value.getDefiningOp<arith::MulFOp>();
    if (!product) return std::nullopt;
    bool descends = false;
    for (const unsigned operand : {0u, 1u}) {
      const View factor = peel(operandOf(viewOf(value), 1 - operand));
      if (!isAlongChannels(factor)) continue;
      // The integers have no factor of their own to look through.
      if (!product->getOperand(operand).getDefiningOp<arith::MulFOp>() &&
          !matchSteps(product->getOperand(operand), integers))
        continue;
      found.factors.push_back(factor);
      value = product->getOperand(operand);
      descends = true;
      break;
    }
    if (!descends) return std::nullopt;
  }
}

bool isPadded(nn::ConvOp conv) {
  const auto is_positive = [](int64_t size) { return size > 0; };
  return llvm::any_of(conv.getLow(), is_positive) ||
         llvm::any_of(conv.getHigh(), is_positive);
}

int64_t channelOf(nn::ConvOp conv) {
  return conv.getChannelsLast() ? conv.getType().getRank() - 1 : 1;
}

class Rewriter {
 public:
  explicit Rewriter(nn::ConvOp conv)
      : conv_(conv), last_(conv), builder_(conv), loc_(conv.getLoc()) {}

  // The operation whose result the raised convolution replaces: the
  // convolution, or the addition of a bias that joins its shift.
  mlir::Operation* last() const { return last_; }

  Value build(const Dequantized& input, const ScaledWeight& weight) {
    Value steps = input.steps;
    // Padding is 0 behind the zero point. Without padding, the zero point
    // becomes a shift, which depends on the weight alone.
    const bool shifts = input.zero && !isPadded(conv_);
    const Value bias = shifts ? takeBias() : Value();
    if (shifts) steps = toFloat(extended(input));
    mlir::IRMapping mapping;
    mapping.map(conv_.getInput(), steps);
    mapping.map(conv_.getWeight(), weight.steps);
    const Value sum = builder_.clone(*conv_, mapping)->getResult(0);
    const int64_t channels = tensorType(conv_.getWeight()).getDimSize(0);
    Value scale = alongChannels(input.scale, channels);
    for (const View& factor : weight.factors)
      scale = arith::MulFOp::create(builder_, loc_, scale,
                                    alongChannels(factor, channels));
    const Value scaled =
        arith::MulFOp::create(builder_, loc_, sum, alongResult(scale));
    if (!shifts) return scaled;
    const SmallVector<int64_t> dims = llvm::to_vector(
        llvm::seq<int64_t>(1, tensorType(weight.steps).getRank()));
    const Value columns = nn::ReduceOp::create(
        builder_, loc_, nn::ReduceKind::sum, weight.steps, dims);
    const Value zero = toFloat(shrunk(builder_, loc_, input.zero));
    const Value factor = arith::MulFOp::create(
        builder_, loc_, scale, alongChannels(viewOf(zero), channels));
    Value shift = arith::MulFOp::create(builder_, loc_, columns, factor);
    shift = bias
                ? arith::SubFOp::create(builder_, loc_, bias, shift).getResult()
                : arith::NegFOp::create(builder_, loc_, shift).getResult();
    return arith::AddFOp::create(builder_, loc_, scaled, alongResult(shift));
  }

 private:
  // If the only reader of the convolution adds one number per channel: these
  // numbers as a vector.
  Value takeBias() {
    if (!conv_->hasOneUse()) return {};
    auto add = mlir::dyn_cast<arith::AddFOp>(*conv_->user_begin());
    if (!add || add.getLhs() == add.getRhs()) return {};
    const Value other =
        add.getLhs() == conv_.getResult() ? add.getRhs() : add.getLhs();
    builder_.setInsertionPoint(add);
    const Value bias = vectorAlong(builder_, other, channelOf(conv_));
    if (bias)
      last_ = add;
    else
      builder_.setInsertionPoint(conv_);
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
  // The view's numbers as a vector of the output channels.
  Value alongChannels(const View& view, int64_t channels) {
    const Value value = shrunk(builder_, loc_, view.value);
    if (tensorType(value).getNumElements() != 1)
      return buildReshape(builder_, loc_, value, {channels});
    return buildBroadcast(builder_, loc_,
                          {buildReshape(builder_, loc_, value, {}), {}},
                          {channels});
  }
  Value alongResult(Value vector) {
    return buildBroadcast(builder_, loc_, {vector, {channelOf(conv_)}},
                          conv_.getType().getShape());
  }

  nn::ConvOp conv_;
  mlir::Operation* last_;
  OpBuilder builder_;
  mlir::Location loc_;
};

// The other operand, if `value` is this operation with a splat constant.
template <typename Op>
Value operandWith(Value value, double& constant) {
  auto op = value.getDefiningOp<Op>();
  if (!op) return {};
  for (const unsigned operand : {0u, 1u})
    if (const std::optional<double> splat =
            splatOf(op->getOperand(1 - operand)))
      return constant = *splat, op->getOperand(operand);
  return {};
}

// Rounds to unsigned integers, 128 larger, if all readers widen the signed ones
// and subtract a constant zero point. An activation that is never negative has
// the zero point -128, which becomes 0, and libraries need less time for that.
void makeUnsigned(arith::FPToSIOp rounded) {
  const RankedTensorType type = tensorType(rounded.getResult());
  if (!type.getElementType().isInteger(8)) return;
  double high = 0, low = 0, zero = 0;
  const Value raised = operandWith<arith::MinimumFOp>(rounded.getIn(), high);
  const Value moved =
      raised ? operandWith<arith::MaximumFOp>(raised, low) : Value();
  const Value steps = moved ? operandWith<arith::AddFOp>(moved, zero) : Value();
  if (!steps || low != -kOffset || high != kOffset - 1) return;
  for (mlir::Operation* user : rounded->getUsers()) {
    if (!mlir::isa<arith::ExtSIOp>(user) ||
        !tensorType(user->getResult(0)).getElementType().isInteger(32))
      return;
    for (mlir::Operation* reader : user->getUsers()) {
      auto difference = mlir::dyn_cast<arith::SubIOp>(reader);
      if (!difference || difference.getLhs() != user->getResult(0) ||
          !splatConstant(difference.getRhs()))
        return;
    }
  }
  OpBuilder builder(rounded);
  const mlir::Location loc = rounded.getLoc();
  const RankedTensorType floats = tensorType(steps);
  const auto splat = [&](double number) {
    return buildSplat(builder, loc, floats, number);
  };
  Value value =
      arith::AddFOp::create(builder, loc, steps, splat(zero + kOffset));
  value = arith::MaximumFOp::create(builder, loc, value, splat(0));
  value =
      arith::MinimumFOp::create(builder, loc, value, splat(2 * kOffset - 1));
  const Value integers = arith::FPToUIOp::create(builder, loc, type, value);
  for (mlir::Operation* user :
       llvm::make_early_inc_range(rounded->getUsers())) {
    builder.setInsertionPoint(user);
    const auto wide =
        mlir::cast<RankedTensorType>(user->getResult(0).getType());
    const Value extended = arith::ExtUIOp::create(builder, loc, wide, integers);
    for (mlir::Operation* reader :
         llvm::make_early_inc_range(user->getUsers())) {
      builder.setInsertionPoint(reader);
      const auto subtracted = splatConstant(reader->getOperand(1));
      const int64_t old =
          subtracted.getSplatValue<llvm::APInt>().getSExtValue();
      reader->setOperand(0, extended);
      reader->setOperand(
          1, arith::ConstantOp::create(
                 builder, loc,
                 mlir::DenseElementsAttr::get(
                     wide, builder.getI32IntegerAttr(static_cast<int32_t>(
                               old + static_cast<int64_t>(kOffset))))));
    }
    user->erase();
  }
  rounded.erase();
}

class RaiseQuantizedConvolutionsPass
    : public impl::RaiseQuantizedConvolutionsPassBase<
          RaiseQuantizedConvolutionsPass> {
  void runOnOperation() override {
    SmallVector<arith::FPToSIOp> rounded;
    SmallVector<nn::ConvOp> convolutions;
    getOperation().walk([&](arith::FPToSIOp op) { rounded.push_back(op); });
    getOperation().walk([&](nn::ConvOp op) { convolutions.push_back(op); });
    if (convolutions.empty()) return;
    for (arith::FPToSIOp op : rounded) makeUnsigned(op);
    for (nn::ConvOp conv : convolutions) {
      if (!conv.getType().getElementType().isF32()) continue;
      auto input = matchDequantized(conv.getInput());
      const auto weight = matchWeight(conv.getWeight());
      if (!input || !weight || !isOneNumber(input->scale)) continue;
      if (mlir::DenseElementsAttr zero =
              input->zero ? splatConstant(input->zero) : nullptr;
          zero && zero.getSplatValue<llvm::APInt>().isZero())
        input->zero = {};
      Rewriter rewriter(conv);
      const Value result = rewriter.build(*input, *weight);
      rewriter.last()->getResult(0).replaceAllUsesWith(result);
      if (rewriter.last() != conv) rewriter.last()->erase();
      conv.erase();
      ++raised;
    }
  }
};

}  // namespace
}  // namespace partita::simplify
