// Imports a region into a function of its own, and clones that function's
// operations with the tensors' shape.
#include "frontends/stablehlo/ops/scalar_function.h"

#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OpDefinition.h"

namespace partita::stablehlo {

ScalarFunction::ScalarFunction(OpContext& n, unsigned region,
                               llvm::ArrayRef<ElementType> types)
    : n_(n) {
  const mlir::Location loc = n.e.loc();
  body_ = mlir::func::FuncOp::create(
      loc, "body", mlir::FunctionType::get(loc.getContext(), {}, {}));
  block_ = body_->addEntryBlock();
  Values arguments;
  for (ElementType type : types)
    arguments.push_back({block_->addArgument(n.e.tensor({}, type.type), loc),
                         type.is_unsigned});
  mlir::OpBuilder::InsertionGuard guard(n.e.builder());
  n.e.builder().setInsertionPointToEnd(block_);
  results_ = n.region(region, arguments);
  if (n.failed()) return;
  n.e.start(loc);
  for (mlir::Operation& op : *block_) {
    const bool is_scalar = llvm::all_of(op.getResultTypes(), [](auto type) {
      return mlir::cast<mlir::RankedTensorType>(type).getRank() == 0;
    });
    if (op.hasTrait<mlir::OpTrait::ConstantLike>() ||
        (op.hasTrait<mlir::OpTrait::Elementwise>() && is_scalar))
      continue;
    n.unsupported("'" + op.getName().getStringRef() +
                  "' in a function of scalars");
    return;
  }
}

Values ScalarFunction::apply(llvm::ArrayRef<Val> arguments) const {
  Emitter& e = n_.e;
  if (n_.failed() || arguments.empty()) return {};
  const Shape shape(arguments[0].shape());
  mlir::IRMapping mapping;
  for (auto [argument, value] : llvm::zip(block_->getArguments(), arguments))
    mapping.map(argument, value.value);
  // A constant, or a value from outside of the region.
  const auto spread = [&](mlir::Value scalar) {
    if (!mapping.contains(scalar))
      mapping.map(scalar, e.broadcast({scalar}, shape).value);
  };
  for (mlir::Operation& op : *block_) {
    if (op.hasTrait<mlir::OpTrait::ConstantLike>()) {
      mlir::Operation* copy = e.builder().clone(op);
      mapping.map(op.getResult(0),
                  e.broadcast({copy->getResult(0)}, shape).value);
      continue;
    }
    for (mlir::Value operand : op.getOperands()) spread(operand);
    mlir::Operation* copy = e.builder().clone(op, mapping);
    for (mlir::Value result : copy->getResults())
      result.setType(
          mlir::cast<mlir::RankedTensorType>(result.getType()).clone(shape));
    for (auto [from, to] : llvm::zip(op.getResults(), e.finish(copy)))
      mapping.map(from, to);
  }
  Values results;
  for (Val result : results_) {
    spread(result.value);
    results.push_back({mapping.lookup(result.value), result.is_unsigned});
  }
  return results;
}

}  // namespace partita::stablehlo
