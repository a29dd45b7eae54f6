// Builds masks, and the default form: the operation on local shapes.
#include "compiler/partition/local_form.h"

#include "compiler/partition/local_form.cc.inc"
#include "compiler/partition/local_forms.h"
#include "compiler/sharding/convert.h"
#include "compiler/sharding/dims.h"
#include "compiler/sharding/problem.h"
#include "dialects/nn/math_builder.h"

namespace partita::partition {

using llvm::SmallVector;
using mlir::FailureOr;
using mlir::RankedTensorType;
using mlir::Value;

namespace {

// True if some shard has rows beyond the end.
bool hasTail(int64_t size, const core::DimSharding& dim) {
  return core::BlockOf(size, dim) * core::SizeOf(dim.axes) != size;
}

bool dividesByZero(mlir::Operation* op) {
  return llvm::isa<mlir::arith::DivSIOp, mlir::arith::DivUIOp,
                   mlir::arith::RemSIOp, mlir::arith::RemUIOp,
                   mlir::arith::CeilDivSIOp, mlir::arith::CeilDivUIOp,
                   mlir::arith::FloorDivSIOp>(op);
}

}  // namespace

mlir::StringAttr LocalForm::why(const std::string& what) const {
  return builder.getStringAttr(what + ", for " +
                               sharding::describeOperation(op));
}

RankedTensorType LocalForm::resultType(int i) const {
  auto type = llvm::cast<RankedTensorType>(op->getResult(i).getType());
  return type.clone(
      core::LocalShape(type.getShape().vec(), sharding.results[i]));
}

Value LocalForm::firstRow(int64_t size, const core::DimSharding& dim) const {
  Value index = dist::CoordinateOp::create(
      builder, loc(), RankedTensorType::get({}, builder.getI64Type()),
      sharding::axesAttr(builder.getContext(), dim.axes, mesh));
  return nn::MathBuilder(builder, loc())
      .multiplyInt(index, core::BlockOf(size, dim));
}

Value LocalForm::insideMask(RankedTensorType like, int64_t dim, int64_t size,
                            const core::DimSharding& sharding) const {
  nn::MathBuilder math(builder, loc());
  auto row =
      RankedTensorType::get({like.getDimSize(dim)}, builder.getI64Type());
  Value first = math.broadcast(firstRow(size, sharding), row, {});
  Value position = math.addInt(math.iota(row, 0), first);
  Value inside = math.compare(mlir::arith::CmpIPredicate::slt, position,
                              math.constantInt(row, size));
  return math.broadcast(inside, like.clone(builder.getI1Type()), {dim});
}

Value LocalForm::cleanRows(Value local, int64_t dim, int64_t size,
                           const core::DimSharding& sharding,
                           mlir::TypedAttr neutral) const {
  if (!hasTail(size, sharding)) return local;
  auto type = llvm::cast<RankedTensorType>(local.getType());
  Value filler = mlir::arith::ConstantOp::create(
      builder, loc(), mlir::DenseElementsAttr::get(type, neutral));
  return nn::MathBuilder(builder, loc())
      .select(insideMask(type, dim, size, sharding), local, filler);
}

Value LocalForm::cleanOperand(int i) const {
  Value local = operands[i];
  auto shape = globalShape(op->getOperand(i));
  auto element = llvm::cast<RankedTensorType>(local.getType()).getElementType();
  for (auto [dim, factors] : llvm::enumerate(rule.operands[i]))
    for (int factor : factors)
      if (core::IsPartialInSome(rule, factor) &&
          !sharding.factors[factor].axes.empty()) {
        local =
            cleanRows(local, dim, shape[dim], sharding.operands[i].dims[dim],
                      neutralOf(rule.factors[factor].reduction, element));
        break;
      }
  return local;
}

mlir::TypedAttr neutralOf(core::Reduction reduction, mlir::Type element) {
  const bool lowest = reduction == core::Reduction::kMax;
  const bool highest = reduction == core::Reduction::kMin;
  const bool one = reduction == core::Reduction::kProduct ||
                   reduction == core::Reduction::kAll;
  if (auto type = llvm::dyn_cast<mlir::FloatType>(element)) {
    const llvm::fltSemantics& semantics = type.getFloatSemantics();
    if (lowest || highest)
      return mlir::FloatAttr::get(type,
                                  llvm::APFloat::getInf(semantics, lowest));
    return mlir::FloatAttr::get(type, one ? 1.0 : 0.0);
  }
  const unsigned width = element.getIntOrFloatBitWidth();
  llvm::APInt value(width, one ? 1 : 0);
  // i1 is unsigned.
  if (lowest && width > 1) value = llvm::APInt::getSignedMinValue(width);
  if (highest)
    value =
        width > 1 ? llvm::APInt::getSignedMaxValue(width) : llvm::APInt(1, 1);
  return mlir::IntegerAttr::get(element, value);
}

Value spreadScalar(const LocalForm& form, Value scalar, RankedTensorType type) {
  nn::MathBuilder math(form.builder, form.loc());
  mlir::Type element = type.getElementType();
  auto scalar_type = RankedTensorType::get({}, element);
  if (llvm::isa<mlir::FloatType>(element))
    scalar = mlir::arith::SIToFPOp::create(form.builder, form.loc(),
                                           scalar_type, scalar);
  else if (element.getIntOrFloatBitWidth() < 64)
    scalar = mlir::arith::TruncIOp::create(form.builder, form.loc(),
                                           scalar_type, scalar);
  return math.broadcast(scalar, type, {});
}

mlir::Operation* cloneLocally(const LocalForm& form, mlir::ValueRange operands,
                              mlir::TypeRange results) {
  mlir::OperationState state(form.loc(), form.op->getName(), operands, results,
                             {});
  for (mlir::NamedAttribute attr : form.op->getAttrs()) {
    llvm::StringRef name = attr.getName().getValue();
    if (name.starts_with("dist.") || name == sharding::kDimsAttr ||
        name == "nn.rule" || name == sharding::kSharesAttr ||
        name == sharding::kOwnShareAttr)
      continue;
    state.addAttribute(attr.getName(), attr.getValue());
  }
  return form.builder.create(state);
}

void registerLocalForms(mlir::DialectRegistry& registry) {
  registry.addExtension(+[](mlir::MLIRContext* context, nn::NNDialect*) {
    registerAttentionForms(context);
    registerIndexForms(context);
    registerExpertForms(context);
    registerWindowForms(context);
  });
}

// Checks an operation between values of devices and their rows: no device reads
// several rows, and a gradient that must be its own is not reduced before.
mlir::LogicalResult checkShares(const LocalForm& form) {
  if (llvm::isa<nn::ReduceOp>(form.op)) {
    const int64_t rows = form.operandType(0).getDimSize(0);
    if (rows == 1) return mlir::success();
    return form.op->emitError("expected one row per device of ")
           << form.op->getOperand(0).getType() << ", found " << rows
           << "; the plan divides this tensor otherwise along the axes of B";
  }
  auto name = form.op->getAttrOfType<mlir::StringAttr>(sharding::kOwnShareAttr);
  mlir::Operation* source = form.op->getOperand(0).getDefiningOp();
  if (!name || !form.sharding.operands[0].unreduced.empty() ||
      (source && source->hasTrait<mlir::OpTrait::ConstantLike>()))
    return mlir::success();
  return form.op->emitError("expected every device's own gradient of '")
         << name.getValue()
         << "', found the mean of all devices; local steps of 0/1-adam need a "
            "model whose gradients are sums over the batch";
}

FailureOr<SmallVector<Value>> buildLocal(const LocalForm& form) {
  if (auto special = llvm::dyn_cast<LocalFormOpInterface>(form.op))
    return special.buildLocal(form);
  if (form.op->hasAttr(sharding::kSharesAttr) &&
      mlir::failed(checkShares(form)))
    return mlir::failure();
  SmallVector<Value> operands;
  for (size_t i = 0; i < form.operands.size(); ++i)
    operands.push_back(form.cleanOperand(i));
  // Rows beyond the end are undefined and must not trap.
  if (dividesByZero(form.op) && form.operandType(1).getRank() > 0)
    for (auto [dim, sharding] : llvm::enumerate(form.sharding.operands[1].dims))
      operands[1] = form.cleanRows(
          operands[1], dim, form.globalShape(form.op->getOperand(1))[dim],
          sharding,
          form.builder.getIntegerAttr(form.operandType(1).getElementType(), 1));
  SmallVector<mlir::Type> results;
  for (unsigned i = 0; i < form.op->getNumResults(); ++i)
    results.push_back(form.resultType(i));
  SmallVector<Value> locals(
      cloneLocally(form, operands, results)->getResults());
  // A value that is not partial is its own mean.
  if (form.op->hasAttr(sharding::kSharesAttr) &&
      !form.sharding.operands[0].unreduced.empty())
    locals[0] = nn::MathBuilder(form.builder, form.loc())
                    .multiply(locals[0], static_cast<double>(form.globalShape(
                                             form.op->getResult(0))[0]));
  return locals;
}

}  // namespace partita::partition
