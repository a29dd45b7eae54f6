// Chooses the implementation of each math operation.
#include "compiler/kernels/lower_math.h"

#include <limits>

#include "llvm/ADT/STLExtras.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

namespace partita::kernels {

using namespace mlir;

namespace {

// Arithmetic on f32 scalars or vectors of one shape.
class FloatBuilder {
 public:
  FloatBuilder(PatternRewriter& rewriter, Location loc, Type type)
      : builder_(loc, rewriter), type_(type) {
    builder_.setInsertionPoint(rewriter.getInsertionBlock(),
                               rewriter.getInsertionPoint());
    integers_ = shaped(builder_.getI32Type());
  }

  Value constant(float value) {
    return make(type_, builder_.getF32FloatAttr(value));
  }
  Value integer(int32_t value) {
    return make(integers_, builder_.getI32IntegerAttr(value));
  }
  Value add(Value a, Value b) { return arith::AddFOp::create(builder_, a, b); }
  Value sub(Value a, Value b) { return arith::SubFOp::create(builder_, a, b); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(builder_, a, b); }
  Value div(Value a, Value b) { return arith::DivFOp::create(builder_, a, b); }
  Value fma(Value a, Value b, Value c) {
    return math::FmaOp::create(builder_, a, b, c);
  }
  Value sqrt(Value a) { return math::SqrtOp::create(builder_, a); }
  Value abs(Value a) { return math::AbsFOp::create(builder_, a); }
  Value withSignOf(Value size, Value sign) {
    return math::CopySignOp::create(builder_, size, sign);
  }
  Value less(Value a, Value b) {
    return arith::CmpFOp::create(builder_, arith::CmpFPredicate::OLT, a, b);
  }
  Value select(Value truth, Value a, Value b) {
    return arith::SelectOp::create(builder_, truth, a, b);
  }
  // a * 2^n, which must be a normal number. The low bits of `shifted` hold n.
  Value scale(Value a, Value shifted) {
    Value bits = arith::BitcastOp::create(builder_, integers_, shifted);
    Value exponent = arith::ShLIOp::create(builder_, bits, integer(23));
    Value sum = arith::AddIOp::create(
        builder_, arith::BitcastOp::create(builder_, integers_, a), exponent);
    return arith::BitcastOp::create(builder_, type_, sum);
  }

 private:
  Type shaped(Type element) {
    auto vector = dyn_cast<VectorType>(type_);
    return vector ? Type(vector.clone(element)) : element;
  }
  Value make(Type type, TypedAttr attr) {
    if (auto vector = dyn_cast<VectorType>(type))
      attr = DenseElementsAttr::get(vector, Attribute(attr));
    return arith::ConstantOp::create(builder_, attr);
  }

  ImplicitLocOpBuilder builder_;
  Type type_, integers_;
};

// 2^n * e^r, where n is the integer nearest to x / ln 2, and e^r = 1 + r + r^2
// q(r) with q a minimax polynomial on |r| <= ln 2 / 2 (Remez, relative error of
// e^r 0.05 ulp). Results that are not normal numbers become 0.
Value expand(FloatBuilder& b, Value x, float per_octave, float octave_high,
             float octave_low, float lowest, float highest) {
  constexpr float kQ[] = {0.4999999341250157f, 0.1666652010781949f,
                          0.04166839421089609f, 0.008368780411192132f,
                          0.0013814467059246574f};
  constexpr float kShift =
      12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  Value shifted = b.fma(x, b.constant(per_octave), b.constant(kShift));
  Value n = b.sub(shifted, b.constant(kShift));
  Value r = b.fma(n, b.constant(-octave_high), x);
  if (octave_low != 0) r = b.fma(n, b.constant(-octave_low), r);
  if (per_octave == 1) r = b.mul(r, b.constant(0.69314718056f));
  Value q = b.constant(kQ[4]);
  for (int i = 3; i >= 0; --i) q = b.fma(q, r, b.constant(kQ[i]));
  Value e = b.add(b.fma(b.mul(r, r), q, r), b.constant(1));
  Value result = b.scale(e, shifted);
  result = b.select(b.less(x, b.constant(lowest)), b.constant(0), result);
  // Too large arguments give infinity; NaN stays.
  Value beyond = b.mul(x, b.constant(std::numeric_limits<float>::infinity()));
  return b.select(b.less(x, b.constant(highest)), result, beyond);
}

// x P(x^2) / Q(x^2) with a relative error of 0.34 ulp up to 3.925 (fitted by
// reweighted least squares), and 1 beyond, where erf rounds to 1.
Value expandErf(FloatBuilder& b, Value x) {
  constexpr float kP[] = {1.1283791487647103f,    0.19000242856526284f,
                          0.05269264309693352f,   0.003747943948265068f,
                          0.0002844217656755391f, 2.0520836870849227e-06f};
  constexpr float kQ[] = {1.0f,
                          0.5017180717051545f,
                          0.11393980419091752f,
                          0.014933387055548208f,
                          0.0011581628804243952f,
                          3.808894117531552e-05f};
  Value square = b.mul(x, x);
  Value p = b.constant(kP[5]), q = b.constant(kQ[5]);
  for (int i = 4; i >= 0; --i) {
    p = b.fma(p, square, b.constant(kP[i]));
    q = b.fma(q, square, b.constant(kQ[i]));
  }
  Value inside = b.div(b.mul(x, p), q);
  Value beyond = b.less(b.constant(3.92f), b.abs(x));
  return b.select(beyond, b.withSignOf(b.constant(1), x), inside);
}

bool isF32(Type type) { return getElementTypeOrSelf(type).isF32(); }

struct ExpandExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter& rewriter) const override {
    if (!isF32(op.getType())) return failure();
    FloatBuilder b(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op,
                       expand(b, op.getOperand(), 1.44269504089f, 0.693359375f,
                              -2.12194440e-4f, -87.336540f, 88.7228394f));
    return success();
  }
};

struct ExpandExp2 : OpRewritePattern<math::Exp2Op> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::Exp2Op op,
                                PatternRewriter& rewriter) const override {
    if (!isF32(op.getType())) return failure();
    FloatBuilder b(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, expand(b, op.getOperand(), 1, 1, 0, -126, 128));
    return success();
  }
};

struct ExpandErf : OpRewritePattern<math::ErfOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ErfOp op,
                                PatternRewriter& rewriter) const override {
    if (!isF32(op.getType())) return failure();
    FloatBuilder b(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, expandErf(b, op.getOperand()));
    return success();
  }
};

// 1 / sqrt(x), also for f64.
struct ExpandRsqrt : OpRewritePattern<math::RsqrtOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::RsqrtOp op,
                                PatternRewriter& rewriter) const override {
    Type type = op.getType();
    TypedAttr one = rewriter.getFloatAttr(getElementTypeOrSelf(type), 1);
    if (auto vector = dyn_cast<VectorType>(type))
      one = DenseElementsAttr::get(vector, Attribute(one));
    Value root = math::SqrtOp::create(rewriter, op.getLoc(), op.getOperand());
    Value numerator = arith::ConstantOp::create(rewriter, op.getLoc(), one);
    rewriter.replaceOpWithNewOp<arith::DivFOp>(op, numerator, root);
    return success();
  }
};

// Two operations, each with the best lowering of this target. An unused one is
// removed.
struct SplitSincos : OpRewritePattern<math::SincosOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::SincosOp op,
                                PatternRewriter& rewriter) const override {
    const Value x = op.getOperand();
    const Value sine = math::SinOp::create(rewriter, op.getLoc(), x);
    rewriter.replaceOp(op,
                       {sine, math::CosOp::create(rewriter, op.getLoc(), x)});
    return success();
  }
};

// Operations of math that LLVM has instructions for, on any type.
constexpr StringRef kInstructions[] = {
    "math.absf",  "math.ceil",  "math.copysign",  "math.floor", "math.fma",
    "math.round", "math.rsqrt", "math.roundeven", "math.sqrt",  "math.trunc"};

}  // namespace

bool isMathInstruction(Operation* op) {
  // Integer operations too: bit counts, absolute values.
  return llvm::is_contained(kInstructions, op->getName().getStringRef()) ||
         !isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()));
}

void populateMathLowerings(RewritePatternSet& patterns, MathLibrary library) {
  patterns.add<ExpandErf, ExpandExp, ExpandExp2, ExpandRsqrt, SplitSincos>(
      patterns.getContext(),
      /*benefit=*/4);
  // Uses MLIR's polynomials that are good to a few units in the last place
  // everywhere; without a library, uses all of them.
  populateMathPolynomialApproximationPatterns(
      patterns,
      [library](StringRef name) {
        return library == MathLibrary::kNone ||
               llvm::is_contained(
                   {"math.acos", "math.asin", "math.erfc", "math.expm1",
                    "math.log", "math.log1p", "math.log2", "math.tanh"},
                   name);
      },
      /*benefit=*/3);
  if (library == MathLibrary::kNone) {
    math::populateExpansionPatterns(patterns);
    return;
  }
  math::populateExpansionPatterns(patterns, {"clampf"});
  RewritePatternSet calls(patterns.getContext());
  populateMathToLibmConversionPatterns(calls);
  for (std::unique_ptr<RewritePattern>& pattern : calls.getNativePatterns())
    if (!pattern->getRootKind() ||
        !llvm::is_contained(kInstructions,
                            pattern->getRootKind()->getStringRef()))
      patterns.add(std::move(pattern));
}

}  // namespace partita::kernels
