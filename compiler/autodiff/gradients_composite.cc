// Gradients of composites, in closed form. Statistics are recomputed from the
// operands; 16-bit floats are computed in f32, as in the operations.
#include "compiler/autodiff/gradient.h"
#include "compiler/autodiff/gradients.h"
#include "compiler/autodiff/term.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::autodiff {
namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;
using nn::MathBuilder;
using nn::ReduceKind;
namespace arith = mlir::arith;

using Dims = SmallVector<int64_t>;

Dims dimsBetween(int64_t first, int64_t end) {
  return llvm::to_vector(llvm::seq(first, end));
}

// Builds formulas on one operation's values.
class Composite {
 public:
  explicit Composite(Gradient& gradient) : gradient_(gradient) {}

  // Widens a value to at least f32.
  Term term(Value value) {
    return Term(gradient_.builder(), gradient_.loc(),
                gradient_.math.widen(value));
  }
  Term g() { return term(gradient_.ofResult()); }
  // Adds a gradient, narrowed to the operand's type.
  void add(unsigned i, Term x) {
    gradient_.add(i, gradient_.math.narrow(
                         x.value(), MathBuilder::typeOf(gradient_.operand(i))));
  }

  Term sum(Term x, ArrayRef<int64_t> dims) {
    if (dims.empty()) return x;
    return x.with(gradient_.math.reduce(ReduceKind::sum, x.value(), dims));
  }
  Term mean(Term x, ArrayRef<int64_t> dims) {
    double count = 1;
    for (int64_t dim : dims) count *= x.type().getDimSize(dim);
    return sum(x, dims) / count;
  }
  // Broadcasts a reduced Term along `dims` of `like`.
  Term spread(Term reduced, Term like, ArrayRef<int64_t> dims) {
    return like.with(
        gradient_.math.spread(reduced.value(), like.value(), dims));
  }

 private:
  Gradient& gradient_;
};

//===----------------------------------------------------------------------===//
// Softmax and cross-entropy
//===----------------------------------------------------------------------===//

struct Softmax : GradientOpInterface::ExternalModel<Softmax, nn::SoftmaxOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    auto softmax = mlir::cast<nn::SoftmaxOp>(op);
    Composite c(gradient);
    const Term g = c.g(), y = c.term(gradient.result());
    const int64_t axis = softmax.getAxis();
    if (softmax.getLog()) {
      c.add(0, g - exp(y) * c.spread(c.sum(g, axis), g, axis));
    } else {
      c.add(0, y * (g - c.spread(c.sum(g * y, axis), g, axis)));
    }
    return success();
  }
};

// g * (softmax - target distribution), and 0 at ignored positions. The target
// is compared instead of used as an index, so that classes can be divided.
struct CrossEntropy
    : GradientOpInterface::ExternalModel<CrossEntropy, nn::CrossEntropyOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    auto loss = mlir::cast<nn::CrossEntropyOp>(op);
    Composite c(gradient);
    const Term logits = c.term(loss.getLogits());
    const int64_t axis = logits.type().getRank() - 1;
    const double smoothing = loss.getLabelSmoothing().convertToDouble(),
                 classes = logits.type().getDimSize(axis);
    if (classes == 0) return success();
    MathBuilder& b = gradient.math;
    const Term y =
        logits.with(nn::SoftmaxOp::create(gradient.builder(), gradient.loc(),
                                          logits.type(), logits.value(), axis));
    Term error =
        y - isTarget(gradient, loss, axis).choose(1 - smoothing, y.constant(0));
    if (smoothing > 0) error = error - smoothing / classes;

    const Value targets = loss.getTargets();
    const Condition ignored(
        b.compare(arith::CmpIPredicate::eq, targets,
                  b.constantInt(b.typeOf(targets), ignoredIndex(loss))));
    Term g = ignored.choose(0, c.g());
    // The loss is f32; the logits may be wider.
    if (g.type().getElementType() != y.type().getElementType())
      g = g.with(arith::ExtFOp::create(
          gradient.builder(), gradient.loc(),
          g.type().clone(y.type().getElementType()), g.value()));
    c.add(0, c.spread(g, y, axis) * error);
    return success();
  }

 private:
  static int64_t ignoredIndex(nn::CrossEntropyOp loss) {
    return static_cast<int64_t>(loss.getIgnoreIndex());
  }

  // True where a class is its position's target. Classes are compared in i64,
  // because the targets' type may be too narrow.
  static Condition isTarget(Gradient& gradient, nn::CrossEntropyOp loss,
                            int64_t axis) {
    MathBuilder& b = gradient.math;
    Value targets = loss.getTargets();
    RankedTensorType type = b.typeOf(targets).clone(b.i64());
    if (targets.getType() != type)
      targets = arith::ExtSIOp::create(gradient.builder(), gradient.loc(), type,
                                       targets);
    const RankedTensorType all =
        RankedTensorType::get(loss.getLogits().getType().getShape(), b.i64());
    targets = arith::MaxSIOp::create(gradient.builder(), gradient.loc(),
                                     targets, b.constantInt(type, 0));
    targets =
        arith::MinSIOp::create(gradient.builder(), gradient.loc(), targets,
                               b.constantInt(type, all.getDimSize(axis) - 1));
    return Condition(
        b.compare(arith::CmpIPredicate::eq, b.iota(all, axis),
                  b.broadcast(targets, all, dimsBetween(0, axis))));
  }
};

//===----------------------------------------------------------------------===//
// Normalisation
//===----------------------------------------------------------------------===//

// Gradients of nn.layer_norm and nn.rms_norm. Operand 0 is x, followed by scale
// and bias if present. Dimensions from `axis` on are normalised, with
// statistics of x over them; scale and bias have these dimensions. Let n be the
// normalised x and s the gradient times scale. The gradient of x is rstd * (s -
// mean(s) - n * mean(s * n)). The term mean(s) comes from subtracting the mean,
// which rms_norm does not do.
void addNormGradients(Gradient& gradient, Value scale, Value bias, int64_t axis,
                      double epsilon, bool centers) {
  Composite c(gradient);
  const Term x = c.term(gradient.operand(0)), g = c.g();
  const Dims dims = dimsBetween(axis, x.type().getRank()),
             rows = dimsBetween(0, axis);
  if (bias && gradient.wants(scale ? 2 : 1))
    c.add(scale ? 2 : 1, c.sum(g, rows));
  const bool wants_scale = scale && gradient.wants(1);
  if (!gradient.wants(0) && !wants_scale) return;
  const Term centered = centers ? x - c.spread(c.mean(x, dims), x, dims) : x;
  const Term rstd =
      c.spread(rsqrt(c.mean(centered * centered, dims) + epsilon), x, dims);
  const Term normal = centered * rstd;
  if (wants_scale) c.add(1, c.sum(g * normal, rows));
  if (!gradient.wants(0)) return;
  Term scaled = g;
  if (scale) scaled = g * c.spread(c.term(scale), x, rows);
  Term inner =
      scaled - normal * c.spread(c.mean(scaled * normal, dims), x, dims);
  if (centers) inner = inner - c.spread(c.mean(scaled, dims), x, dims);
  c.add(0, rstd * inner);
}

struct LayerNorm
    : GradientOpInterface::ExternalModel<LayerNorm, nn::LayerNormOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    auto norm = mlir::cast<nn::LayerNormOp>(op);
    addNormGradients(gradient, norm.getScale(), norm.getBias(), norm.getAxis(),
                     norm.getEpsilon().convertToDouble(), /*centers=*/true);
    return success();
  }
};

struct RmsNorm : GradientOpInterface::ExternalModel<RmsNorm, nn::RmsNormOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    auto norm = mlir::cast<nn::RmsNormOp>(op);
    addNormGradients(gradient, norm.getScale(), {}, norm.getAxis(),
                     norm.getEpsilon().convertToDouble(), /*centers=*/false);
    return success();
  }
};

// In training mode the statistics are the batch's and depend on x, as in
// nn.layer_norm. The running statistics do not affect the loss.
struct BatchNorm
    : GradientOpInterface::ExternalModel<BatchNorm, nn::BatchNormOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    if (!gradient.ofResult()) return success();
    auto norm = mlir::cast<nn::BatchNormOp>(op);
    const bool training = norm.getTraining();
    Composite c(gradient);
    const Term x = c.term(norm.getInput()), g = c.g();
    const int64_t feature = norm.getFeature();
    Dims others = dimsBetween(0, x.type().getRank());
    others.erase(others.begin() + feature);

    const Term mean = training ? c.mean(x, others) : c.term(norm.getMean());
    const Term centered = x - c.spread(mean, x, others);
    const Term variance = training ? c.mean(centered * centered, others)
                                   : c.term(norm.getVariance());
    const Term rstd = rsqrt(variance + norm.getEpsilon().convertToDouble());
    const Term factor = rstd * c.term(norm.getScale());
    const Term normal = centered * c.spread(rstd, x, others);
    const Term of_bias = c.sum(g, others), of_scale = c.sum(g * normal, others);

    if (gradient.wants(0)) {
      Term inner = g;
      if (training) {
        double count = 1;
        for (int64_t dim : others) count *= x.type().getDimSize(dim);
        inner = g - c.spread(of_bias / count, x, others) -
                normal * c.spread(of_scale / count, x, others);
      }
      c.add(0, c.spread(factor, x, others) * inner);
    }
    if (gradient.wants(1)) c.add(1, of_scale);
    if (gradient.wants(2)) c.add(2, of_bias);
    if (training) return success();
    if (gradient.wants(3)) c.add(3, -(factor * of_bias));
    if (gradient.wants(4)) c.add(4, -0.5 * (factor * rstd * of_scale));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

struct Attention
    : GradientOpInterface::ExternalModel<Attention, nn::AttentionOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    auto attention = mlir::cast<nn::AttentionOp>(op);
    const Value bias = attention.getBias();
    const bool wants_bias = bias && gradient.wants(3);
    if (attention.getLse() && gradient.ofResult(1))
      return op->emitOpError()
             << "expected no gradient of 'lse', which has none, found one; use "
                "'lse' for values that need no gradient only";
    auto all = nn::AttentionGradOp::create(
        gradient.builder(), gradient.loc(), attention.getQ().getType(),
        attention.getK().getType(), attention.getV().getType(),
        wants_bias ? bias.getType() : mlir::Type(), attention.getQ(),
        attention.getK(), attention.getV(), attention.getResult(),
        gradient.ofResult(), bias, attention.getShift(),
        attention.getQSegments(), attention.getKSegments(), attention.getLse(),
        attention.getFirstHead(), attention.getScaleAttr(),
        attention.getCausalOffsetAttr(), attention.getWindowAttr(),
        attention.getSinksAttr(), attention.getBlocksAttr(),
        attention.getBlockSizeAttr(), attention.getSoftcapAttr());
    for (auto [i, part] : llvm::enumerate(all->getResults())) {
      if (gradient.wants(i)) gradient.add(i, part);
    }
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Packed weights
//===----------------------------------------------------------------------===//

// A scale's gradient is the sum over its group of gradient times integer.
struct Dequantize
    : GradientOpInterface::ExternalModel<Dequantize, nn::DequantizeOp> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    auto dequantize = mlir::cast<nn::DequantizeOp>(op);
    Composite c(gradient);
    const Term g = c.g();
    Term scale = c.term(gradient.operand(1));
    const Value ones = gradient.math.constant(scale.type(), 1);
    const Value integers = nn::DequantizeOp::create(
        gradient.builder(), gradient.loc(), g.type(), dequantize.getPacked(),
        ones, dequantize.getZero());
    const int64_t last = g.type().getRank() - 1;
    c.add(1, c.sum(g * g.with(integers), {last}));
    return success();
  }
};

}  // namespace

void registerCompositeGradients(mlir::MLIRContext* context) {
  nn::SoftmaxOp::attachInterface<Softmax>(*context);
  nn::CrossEntropyOp::attachInterface<CrossEntropy>(*context);
  nn::LayerNormOp::attachInterface<LayerNorm>(*context);
  nn::RmsNormOp::attachInterface<RmsNorm>(*context);
  nn::BatchNormOp::attachInterface<BatchNorm>(*context);
  nn::AttentionOp::attachInterface<Attention>(*context);
  nn::DequantizeOp::attachInterface<Dequantize>(*context);
}

}  // namespace partita::autodiff
