// Rules of arith and math operations: the same operation on lanes. Rules that
// need more operations are in emit_numbers.cc.
#include "compiler/kernels/emit_elementwise.h"

#include <numeric>

#include "compiler/kernels/emit_models.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"

namespace partita::kernels {

using namespace mlir;

FailureOr<Operands> operandsAt(Operation* op, Emitter& emitter,
                               ArrayRef<Index> index) {
  // Reductions come first: they may store in scratch the values that the other
  // operands need.
  SmallVector<unsigned> order(op->getNumOperands());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](unsigned a, unsigned b) {
    return emitter.reductionsBehind(op->getOperand(a)) >
           emitter.reductionsBehind(op->getOperand(b));
  });
  Operands result;
  SmallVector<Lanes> elements(order.size());
  for (unsigned i : order) {
    FailureOr<Lanes> element = emitter.element(op->getOperand(i), index);
    if (failed(element)) return failure();
    elements[i] = *element;
    result.lanes = std::max(result.lanes, element->lanes);
  }
  for (Lanes element : elements)
    result.values.push_back(emitter.splat(element, result.lanes));
  return result;
}

Lanes cloneOn(Operation* op, Emitter& emitter, unsigned number,
              const Operands& operands) {
  IRMapping mapping;
  for (auto [from, to] : llvm::zip_equal(op->getOperands(), operands.values))
    mapping.map(from, to);
  Operation* clone = op->cloneWithoutRegions(mapping);
  clone->setDiscardableAttrs(DictionaryAttr::get(op->getContext()));
  for (OpResult result : clone->getResults())
    result.setType(emitter.withLanes(emitter.computeType(elementOf(result)),
                                     operands.lanes));
  emitter.builder().insert(clone);
  return {clone->getResult(number), operands.lanes};
}

namespace {

template <typename OpTy>
struct CloneModel : KernelOpInterface::ExternalModel<CloneModel<OpTy>, OpTy> {
  FailureOr<Lanes> emitElement(Operation* op, Emitter& emitter, unsigned number,
                               ArrayRef<Index> index) const {
    FailureOr<Operands> operands = operandsAt(op, emitter, index);
    if (failed(operands)) return failure();
    return cloneOn(op, emitter, number, *operands);
  }
  KernelRole kernelRole(Operation*) const { return KernelRole::elementwise; }
};

// A splat is a scalar; other constants become read-only arrays of the module.
struct ConstantModel
    : KernelOpInterface::ExternalModel<ConstantModel, arith::ConstantOp> {
  FailureOr<Lanes> emitElement(Operation* op, Emitter& emitter, unsigned,
                               ArrayRef<Index> index) const {
    auto attr =
        dyn_cast<DenseElementsAttr>(cast<arith::ConstantOp>(op).getValue());
    if (!attr)
      return op->emitOpError(
          "expected a dense constant of a tensor in a kernel");
    if (!attr.isSplat())
      return emitter.load(
          emitter.constantArray(attr),
          linearize(index, rowMajorStrides(attr.getType().getShape())));
    ImplicitLocOpBuilder& builder = emitter.builder();
    Type held = emitter.computeType(attr.getElementType());
    TypedAttr scalar;
    if (isa<FloatType>(held)) {
      APFloat value = attr.getSplatValue<APFloat>();
      bool loses;
      value.convert(cast<FloatType>(held).getFloatSemantics(),
                    APFloat::rmNearestTiesToEven, &loses);
      scalar = FloatAttr::get(held, value);
    } else {
      scalar = builder.getIntegerAttr(held, attr.getSplatValue<APInt>());
    }
    return Lanes{arith::ConstantOp::create(builder, scalar), 0};
  }
  KernelRole kernelRole(Operation*) const { return KernelRole::elementwise; }
};

}  // namespace

void attachElementwiseModels(MLIRContext& context) {
  using namespace arith;
  using namespace math;
  attachModel<CloneModel, AddFOp, SubFOp, MulFOp, RemFOp, NegFOp, MaximumFOp,
              MinimumFOp, MaxNumFOp, MinNumFOp, CmpFOp>(context);
  attachModel<CloneModel, AddIOp, SubIOp, MulIOp, AndIOp, OrIOp, XOrIOp, ShLIOp,
              ShRUIOp, ShRSIOp, MaxSIOp, MaxUIOp, MinSIOp, MinUIOp, CmpIOp,
              MulSIExtendedOp, MulUIExtendedOp, AddUIExtendedOp>(context);
  attachModel<CloneModel, SelectOp, ExtUIOp, ExtSIOp, TruncIOp, UIToFPOp,
              SIToFPOp>(context);
  attachModel<CloneModel, AbsFOp, AbsIOp, AcosOp, AcoshOp, AsinOp, AsinhOp,
              AtanOp, AtanhOp, Atan2Op, CbrtOp, CeilOp, ClampFOp, CopySignOp,
              CosOp, CoshOp, SinOp, SinhOp, SincosOp, TanOp, TanhOp>(context);
  attachModel<CloneModel, CountLeadingZerosOp, CountTrailingZerosOp, CtPopOp,
              ErfOp, ErfcOp, ExpOp, Exp2Op, ExpM1Op, FloorOp, FmaOp, IsFiniteOp,
              IsNaNOp>(context);
  attachModel<CloneModel, LogOp, Log10Op, Log1pOp, Log2Op, RsqrtOp, SqrtOp,
              RoundEvenOp, RoundOp, math::TruncOp>(context);
  arith::ConstantOp::attachInterface<ConstantModel>(context);
}

}  // namespace partita::kernels
