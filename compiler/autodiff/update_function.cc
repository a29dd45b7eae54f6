// Wraps the formulas of optimizer.h in functions that handle types, gradient
// factors and skipped steps.
#include "compiler/autodiff/update_function.h"

#include "mlir/IR/SymbolTable.h"

namespace partita::autodiff {
namespace {

using llvm::SmallVector;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::FuncOp;

FuncOp makePrivate(mlir::ModuleOp module, const std::string& name,
                   llvm::ArrayRef<Value> operands, mlir::TypeRange results) {
  FuncOp function = FuncOp::create(
      operands.front().getLoc(), name,
      mlir::FunctionType::get(module.getContext(),
                              mlir::ValueRange(operands).getTypes(), results));
  function.setPrivate();
  function.addEntryBlock();
  return function;
}

}  // namespace

SmallVector<Value> StepValues::all() const {
  SmallVector<Value> result;
  for (Value StepScalars::* scalar : kStepScalars)
    if (scalars.*scalar) result.push_back(scalars.*scalar);
  for (Value scalar : {factor, finite})
    if (scalar) result.push_back(scalar);
  return result;
}

Value chooseFinite(nn::MathBuilder& math, Value finite, Value updated,
                   Value old) {
  const auto type = nn::MathBuilder::typeOf(updated);
  return math.select(
      math.broadcast(finite, RankedTensorType::get(type.getShape(), math.i1()),
                     {}),
      updated, old);
}

Value zeroWhereZero(nn::MathBuilder& math, Value parameter, Value x) {
  const Value is_zero =
      math.compare(mlir::arith::CmpFPredicate::OEQ, parameter,
                   math.constant(nn::MathBuilder::typeOf(parameter), 0));
  return math.select(is_zero, math.constant(nn::MathBuilder::typeOf(x), 0), x);
}

FuncOp makeUpdate(mlir::ModuleOp module, llvm::StringRef name,
                  const Optimizer& optimizer, const Factored& factored,
                  llvm::ArrayRef<Value> operands, const StepValues& values,
                  mlir::Type stored) {
  const SmallVector<State> states = optimizer.states(factored);
  mlir::Type type = operands[0].getType();
  SmallVector<mlir::Type> results = {type};
  for (size_t i = 0; i < states.size(); ++i)
    if (!states[i].is_frozen) results.push_back(operands[2 + i].getType());
  if (stored != type) results.insert(results.begin(), stored);
  FuncOp function =
      makePrivate(module, (name + "_update").str(), operands, results);
  const mlir::Location loc = function.getLoc();
  mlir::OpBuilder body = mlir::OpBuilder::atBlockBegin(&function.front());
  nn::MathBuilder math(body, loc);
  SmallVector<Value> given(function.getArguments());
  auto next = given.begin() + 2 + states.size();
  const auto take = [&](Value outside) { return outside ? *next++ : Value(); };
  StepValues inside;
  Value wide = math.widen(given[1]);
  // Scalars are f32, parameters may be f64.
  const auto takeNumber = [&](Value outside) {
    const Value scalar = take(outside);
    return scalar ? math.asFloat(scalar,
                                 nn::MathBuilder::typeOf(wide).getElementType())
                  : scalar;
  };
  for (Value StepScalars::* scalar : kStepScalars)
    inside.scalars.*scalar = takeNumber(values.scalars.*scalar);
  inside.factor = takeNumber(values.factor);
  inside.finite = take(values.finite);
  if (inside.factor)
    wide = math.multiply(
        wide, math.broadcast(inside.factor, nn::MathBuilder::typeOf(wide), {}));
  if (optimizer.keeps_zeros) wide = zeroWhereZero(math, given[0], wide);
  const auto old = llvm::ArrayRef(given).slice(2, states.size());
  SmallVector<Value> updated = buildUpdate(math, optimizer, factored, given[0],
                                           wide, old, inside.scalars);
  // Also with momentum from before the pruning.
  if (optimizer.keeps_zeros)
    updated[0] = zeroWhereZero(math, given[0], updated[0]);
  if (inside.finite) {
    SmallVector<Value> before = {given[0]};
    for (auto [state, value] : llvm::zip_equal(states, old))
      if (!state.is_frozen) before.push_back(value);
    for (auto [value, kept] : llvm::zip_equal(updated, before))
      value = chooseFinite(math, inside.finite, value, kept);
  }
  if (stored != type)
    updated.insert(
        updated.begin(),
        math.narrow(updated[0], llvm::cast<RankedTensorType>(stored)));
  mlir::func::ReturnOp::create(body, loc, updated);
  mlir::SymbolTable(module).insert(function);
  return function;
}

FuncOp makeMomentum(mlir::ModuleOp module, llvm::StringRef name,
                    const Optimizer& optimizer,
                    llvm::ArrayRef<Value> operands) {
  FuncOp function = makePrivate(module, (name + "_momentum").str(), operands,
                                operands[0].getType());
  mlir::OpBuilder body = mlir::OpBuilder::atBlockBegin(&function.front());
  nn::MathBuilder math(body, function.getLoc());
  mlir::func::ReturnOp::create(
      body, function.getLoc(),
      buildMomentum(math, optimizer, function.getArgument(0),
                    math.widen(function.getArgument(1))));
  mlir::SymbolTable(module).insert(function);
  return function;
}

}  // namespace partita::autodiff
