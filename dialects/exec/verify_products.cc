// Verification of products and convolutions.
#include "dialects/exec/dialect.h"
#include "dialects/exec/verify.h"

namespace partita::exec {

using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;

void GemmOp::build(mlir::OpBuilder& builder, mlir::OperationState& state,
                   mlir::Type result, mlir::Value lhs, mlir::Value rhs,
                   mlir::Value scale, mlir::Value zero, mlir::Value bias,
                   mlir::Value residual, bool lhs_unsigned,
                   llvm::ArrayRef<int64_t> sizes,
                   llvm::ArrayRef<int64_t> lhs_strides,
                   llvm::ArrayRef<int64_t> rhs_strides, mlir::IntegerAttr group,
                   terms::Activation activation) {
  build(builder, state, result, /*kept=*/mlir::Type(),
        /*lhs_sums=*/mlir::Type(), /*rhs_sums=*/mlir::Type(), lhs, rhs, scale,
        zero, bias, residual, /*preactivation=*/mlir::Value(), lhs_unsigned,
        sizes, lhs_strides, rhs_strides, group, activation);
}

static LogicalResult verifyUnscaled(GemmOp op) {
  const mlir::Type element = typeOf(op.getResult()).getElementType();
  // C5
  const bool is_sum = element.isInteger(32);
  if (is_sum && (op.getBias() || op.getResidual() ||
                 op.getActivation() != Activation::kNone))
    return op.emitOpError(
        "expected no bias, residual or activation with a result of i32");
  // C2, C5
  const mlir::Type expected =
      is_sum ? mlir::IntegerType::get(op.getContext(), 8) : element;
  for (mlir::Value operand : op.getOperands())
    if (typeOf(operand).getElementType() != expected)
      return op.emitOpError() << "expected operands of " << expected
                              << ", found " << operand.getType();
  // C4
  if (op.getLhsUnsigned() && !is_sum)
    return op.emitOpError("expected a scale with lhs_unsigned, found none");
  // C6
  if (op.getGroup())
    return op.emitOpError("expected a scale with a group, found none");
  return success();
}

static bool isFloat8(mlir::RankedTensorType type) {
  return llvm::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(
      type.getElementType());
}

// C9
static LogicalResult verifyFloat8(GemmOp op) {
  const mlir::RankedTensorType lhs = typeOf(op.getLhs()),
                               rhs = typeOf(op.getRhs()),
                               result = typeOf(op.getResult());
  if (!isFloat8(lhs) || !isFloat8(rhs) ||
      (lhs.getElementType() == rhs.getElementType() &&
       llvm::isa<mlir::Float8E5M2Type>(lhs.getElementType())))
    return op.emitOpError() << "expected factors of f8E4M3FN, at most one of "
                               "them of f8E5M2 instead, found "
                            << lhs << " and " << rhs;
  const mlir::RankedTensorType scale = typeOf(op.getScale());
  if (scale.getNumElements() != 1 || !scale.getElementType().isF32())
    return op.emitOpError()
           << "expected a scale of one f32 with factors of f8, found " << scale;
  const mlir::Type element = result.getElementType();
  if (!element.isF32() && !element.isF16() && !element.isBF16())
    return op.emitOpError() << "expected a result of f32, f16 or bf16 with "
                               "factors of f8, found "
                            << result;
  if (op.getBias() && typeOf(op.getBias()).getElementType() != element)
    return op.emitOpError() << "expected a bias of " << element << ", found "
                            << op.getBias().getType();
  if (op.getLhsUnsigned() || op.getGroup() || op.getResidual())
    return op.emitOpError(
        "expected no lhs_unsigned, group and residual with factors of f8");
  return success();
}

// C4
static LogicalResult verifyScaled(GemmOp op) {
  const mlir::RankedTensorType lhs = typeOf(op.getLhs()),
                               rhs = typeOf(op.getRhs());
  if (isFloat8(lhs) || isFloat8(rhs)) return verifyFloat8(op);
  const bool is_integer = lhs.getElementType().isInteger(8);
  if (!rhs.getElementType().isInteger(8) ||
      !(is_integer || lhs.getElementType().isF32()))
    return op.emitOpError() << "expected lhs of f32 or i8 and rhs of i8 with "
                               "a scale, found "
                            << lhs << " and " << rhs;
  if (op.getLhsUnsigned() && !is_integer)
    return op.emitOpError()
           << "expected lhs of i8 with lhs_unsigned, found " << lhs;
  const int64_t n = op.getSizes()[2];
  if (!op.getGroup() && typeOf(op.getScale()).getNumElements() != n)
    return op.emitOpError() << "expected " << n << " elements of scale, found "
                            << typeOf(op.getScale()).getNumElements();
  for (mlir::Value value : {op.getResult(), op.getScale(), op.getBias()})
    if (value && !typeOf(value).getElementType().isF32())
      return op.emitOpError() << "expected a result, a scale and a bias of "
                                 "f32, found "
                              << value.getType();
  if (op.getResidual() || op.getActivation() != Activation::kNone)
    return op.emitOpError(
        "expected no residual and no activation with a scale");
  return success();
}

// C6
static LogicalResult verifyGroups(GemmOp op) {
  if (!op.getGroup()) {
    if (!op.getZero()) return success();
    return op.emitOpError("expected a group with zero, found none");
  }
  const auto group = static_cast<int64_t>(*op.getGroup());
  if (group < 2 || group % 2 != 0)
    return op.emitOpError() << "expected an even group, found " << group;
  if (!typeOf(op.getLhs()).getElementType().isF32())
    return op.emitOpError() << "expected lhs of f32 with a group, found "
                            << op.getLhs().getType();
  const int64_t numbers = 2 * typeOf(op.getRhs()).getNumElements();
  for (mlir::Value value : {op.getScale(), op.getZero()})
    if (value && typeOf(value).getNumElements() * group != numbers)
      return op.emitOpError()
             << "expected one scale and zero per group of " << group << " of "
             << numbers << " numbers, found " << value.getType();
  if (op.getZero() && !typeOf(op.getZero()).getElementType().isInteger(8))
    return op.emitOpError()
           << "expected zero of i8, found " << op.getZero().getType();
  return success();
}

// C7
static LogicalResult verifyPreactivation(GemmOp op) {
  const mlir::Value kept = op.getKept(), given = op.getPreactivation();
  if (!kept && !given) return success();
  if (kept && given)
    return op.emitOpError(
        "expected a pre-activation that is kept or given, found both");
  if (op.getActivation() != Activation::kGeluTanh)
    return op.emitOpError(
        "expected the activation gelu_tanh with a pre-activation");
  if (op.getScale() || op.getResidual() || (given && op.getBias()))
    return op.emitOpError() << "expected no scale" << (given ? ", bias" : "")
                            << " and residual with a pre-activation that is "
                            << (given ? "given" : "kept");
  const mlir::Type type = (kept ? kept : given).getType();
  if (type != op.getResult().getType())
    return op.emitOpError() << "expected a pre-activation of the result's type "
                            << op.getResult().getType() << ", found " << type;
  return success();
}

// C8
static LogicalResult verifySums(GemmOp op) {
  const mlir::Value sums = op.getLhsSums() ? op.getLhsSums() : op.getRhsSums();
  if (!sums) return success();
  if (op.getLhsSums() && op.getRhsSums())
    return op.emitOpError("expected sums of lhs or rhs, found both");
  if (op.getSizes()[0] != 1 || op.getScale() || op.getBias() ||
      op.getResidual() || op.getActivation() != Activation::kNone)
    return op.emitOpError(
        "expected a batch of 1 without scale, bias, residual and activation "
        "beside sums");
  const int64_t count = op.getSizes()[op.getLhsSums() ? 1 : 2];
  const mlir::RankedTensorType type = typeOf(sums);
  const mlir::Type element = typeOf(op.getResult()).getElementType();
  if (type.getNumElements() != count || type.getElementType() != element ||
      !llvm::isa<mlir::FloatType>(element))
    return op.emitOpError() << "expected sums of " << count
                            << " floats of the result's type, found " << type;
  return success();
}

LogicalResult GemmOp::verify() {
  auto positive = [](int64_t v) { return v > 0; };
  auto not_negative = [](int64_t v) { return v >= 0; };
  llvm::ArrayRef<int64_t> sizes = getSizes(), lhs = getLhsStrides(),
                          rhs = getRhsStrides();
  // C1
  if (sizes.size() != 4 || !llvm::all_of(sizes, positive))
    return emitOpError("expected 4 positive sizes: batch, m, n, k");
  if (lhs.size() != 3 || rhs.size() != 3 || !llvm::all_of(lhs, not_negative) ||
      !llvm::all_of(rhs, not_negative))
    return emitOpError(
        "expected 3 non-negative strides for each of lhs and rhs");
  auto [batch, m, n, k] = std::tuple(sizes[0], sizes[1], sizes[2], sizes[3]);
  // C2
  if (typeOf(getResult()).getNumElements() != batch * m * n)
    return emitOpError() << "expected " << batch * m * n
                         << " result elements, found "
                         << typeOf(getResult()).getNumElements();
  if (getBias() && typeOf(getBias()).getNumElements() != n)
    return emitOpError() << "expected " << n << " elements of bias, found "
                         << typeOf(getBias()).getNumElements();
  if (getResidual() && typeOf(getResidual()).getNumElements() != batch * m * n)
    return emitOpError() << "expected " << batch * m * n
                         << " elements of residual, found "
                         << typeOf(getResidual()).getNumElements();
  if (failed(getScale() ? verifyScaled(*this) : verifyUnscaled(*this)) ||
      failed(verifyGroups(*this)) || failed(verifyPreactivation(*this)) ||
      failed(verifySums(*this)))
    return mlir::failure();
  // C3
  if (reach({batch, m, k}, lhs) > typeOf(getLhs()).getNumElements())
    return emitOpError("lhs_strides reach outside lhs");
  const int64_t per_byte = getGroup() ? 2 : 1;
  if (reach({batch, k, n}, rhs) > per_byte * typeOf(getRhs()).getNumElements())
    return emitOpError("rhs_strides reach outside rhs");
  return success();
}

LogicalResult GroupedGemmOp::verify() {
  const mlir::RankedTensorType lhs = typeOf(getLhs()), rhs = typeOf(getRhs()),
                               ids = typeOf(getIds()),
                               result = typeOf(getResult());
  const mlir::RankedTensorType matrices = getWeightGrad() ? result : rhs,
                               outs = getWeightGrad() ? rhs : result;
  // C1
  if (getWeightGrad() && getTransposed())
    return emitOpError("expected weight_grad without transposed");
  if (lhs.getRank() != 2 || ids.getRank() != 1 || matrices.getRank() != 3 ||
      outs.getRank() != 2)
    return emitOpError() << "expected rows of rank 2, indices of rank 1 and "
                            "matrices of rank 3, found "
                         << lhs << ", " << ids << ", " << rhs << " and "
                         << result;
  for (mlir::RankedTensorType type : {lhs, rhs, ids, result})
    if (type.getNumElements() == 0)
      return emitOpError() << "expected no sizes of 0, found " << type;
  const int64_t rows = ids.getDimSize(0);
  if (outs.getDimSize(0) != rows || rows % lhs.getDimSize(0) != 0)
    return emitOpError() << "expected " << rows
                         << " rows, as many as indices, and lhs with a "
                            "divisor of that, found "
                         << outs.getDimSize(0) << " and " << lhs.getDimSize(0);
  const int64_t n = matrices.getDimSize(getTransposed() ? 2 : 1),
                k = matrices.getDimSize(getTransposed() ? 1 : 2);
  if (lhs.getDimSize(1) != k || outs.getDimSize(1) != n)
    return emitOpError() << "expected rows of " << k << " and " << n
                         << " elements, as the matrices have, found "
                         << lhs.getDimSize(1) << " and " << outs.getDimSize(1);
  // C2
  if (!ids.getElementType().isInteger(32) &&
      !ids.getElementType().isInteger(64))
    return emitOpError() << "expected indices of i32 or i64, found "
                         << ids.getElementType();
  for (mlir::RankedTensorType type : {lhs, rhs})
    if (type.getElementType() != result.getElementType())
      return emitOpError() << "expected operands of " << result.getElementType()
                           << ", found " << type;
  return success();
}

namespace {

bool hasOne(mlir::Value value, bool is_float) {
  const mlir::Type element = typeOf(value).getElementType();
  return typeOf(value).getNumElements() == 1 &&
         (is_float ? element.isF32() : element.isInteger(32));
}

// C5 and C6: convolutions of integers.
LogicalResult verifyBytes(ConvOp op) {
  const mlir::Type element = typeOf(op.getResult()).getElementType();
  const bool rounds = element.isInteger(8);
  const auto isByte = [](mlir::Value value) {
    return typeOf(value).getElementType().isInteger(8);
  };
  if (!isByte(op.getInput()) || !isByte(op.getWeight()) ||
      (!rounds && !element.isF32()))
    return op.emitOpError()
           << "expected an input and a weight of i8 and a result of f32 or i8 "
              "with a scale, found "
           << op.getInput().getType() << ", " << op.getWeight().getType()
           << " and " << op.getResult().getType();
  for (mlir::Value vector : {op.getScale(), op.getBias()})
    if (vector && (!typeOf(vector).getElementType().isF32() ||
                   typeOf(vector).getNumElements() !=
                       typeOf(op.getWeight()).getDimSize(0)))
      return op.emitOpError() << "expected a scale and a bias of one f32 per "
                                 "output channel, found "
                              << vector.getType();
  if (op.getZero() && !hasOne(op.getZero(), /*is_float=*/false))
    return op.emitOpError()
           << "expected a zero of one i32, found " << op.getZero().getType();
  if (!rounds &&
      (op.getResultScale() || op.getResultZero() || op.getResultUnsigned()))
    return op.emitOpError(
        "expected result_scale, result_zero and result_unsigned with a result "
        "of i8 only");
  if (!rounds) return success();
  if (op.getResidual())
    return op.emitOpError("expected a result of i8 without a residual");
  if (!op.getResultScale() || !hasOne(op.getResultScale(), /*is_float=*/true) ||
      !op.getResultZero() || !hasOne(op.getResultZero(), /*is_float=*/false))
    return op.emitOpError(
        "expected a result_scale of one f32 and a result_zero of one i32 with "
        "a result of i8");
  return success();
}

}  // namespace

LogicalResult ConvOp::verify() {
  size_t spatial = typeOf(getInput()).getRank() - 2;
  // C1
  for (llvm::ArrayRef<int64_t> array :
       {getStrides(), getDilations(), getLow(), getHigh()})
    if (array.size() != spatial)
      return emitOpError() << "expected " << spatial
                           << " entries, one per spatial dimension, found "
                           << array.size();
  // C2
  if (getBias() &&
      typeOf(getBias()).getNumElements() != typeOf(getWeight()).getDimSize(0))
    return emitOpError("expected one bias element per output channel");
  if (getResidual() && getResidual().getType() != getResult().getType())
    return emitOpError("expected a residual of the result's type");
  if (getScale() && mlir::failed(verifyBytes(*this))) return mlir::failure();
  if (!getScale() && (getZero() || getInputUnsigned() || getResultScale() ||
                      getResultZero() || getResultUnsigned()))
    return emitOpError(
        "expected a scale with zero, input_unsigned, result_scale, result_zero "
        "and result_unsigned");
  for (mlir::Value operand : getOperands())
    if (!getScale() && typeOf(operand).getElementType() !=
                           typeOf(getResult()).getElementType())
      return emitOpError() << "expected operands of "
                           << typeOf(getResult()).getElementType() << ", found "
                           << operand.getType();
  // C3
  if (getDirection() != ConvDirection::kForward &&
      (getBias() || getResidual() || getScale() ||
       getActivation() != Activation::kNone))
    return emitOpError(
        "expected a gradient without bias, residual, scale and activation");
  // C4
  if (getActivatesSum() &&
      (!getResidual() || getActivation() == Activation::kNone))
    return emitOpError(
        "expected a residual and an activation with activates_sum");
  return success();
}

}  // namespace partita::exec
