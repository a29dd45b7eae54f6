// Finds the arguments that take a result through the calls of both functions.
#include "compiler/kernels/passed_results.h"

#include "compiler/kernels/layouts_of_calls.h"

namespace partita::kernels {

using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

PassedResults::PassedResults(mlir::ModuleOp module)
    : module_(module), calls_(findCalls(module)) {}

bool PassedResults::replace(
    FuncOp function, unsigned index, Value value,
    llvm::function_ref<Value(mlir::OpBuilder&, Value)> restore) {
  const std::optional<Arguments> readers = readersOf(function, index);
  if (!readers) return false;
  function.front().getTerminator()->setOperand(index, value);
  updateType(function);
  for (CallOp call : calls_.lookup(function.getName()))
    call.getResult(index).setType(value.getType());
  for (auto [reader, place] : *readers) {
    FuncOp taker = reader;
    mlir::BlockArgument argument = taker.getArgument(place);
    argument.setType(value.getType());
    auto builder = mlir::OpBuilder::atBlockBegin(&taker.front());
    const Value former = restore(builder, argument);
    argument.replaceAllUsesExcept(former, former.getDefiningOp());
    updateType(taker);
    // The names of dimensions describe the former result.
    taker.removeArgAttr(place, "nn.dims");
  }
  return true;
}

// The arguments that take the result. Absent if it has other uses, or if these
// arguments take other values as well.
std::optional<PassedResults::Arguments> PassedResults::readersOf(
    FuncOp function, unsigned index) {
  const auto calls = calls_.find(function.getName());
  if (calls == calls_.end()) return std::nullopt;
  Arguments readers;
  for (CallOp call : calls->second)
    for (mlir::OpOperand& use : call.getResult(index).getUses()) {
      auto reader = llvm::dyn_cast<CallOp>(use.getOwner());
      if (!reader || !calls_.contains(reader.getCallee())) return std::nullopt;
      readers.insert({module_.lookupSymbol<FuncOp>(reader.getCallee()),
                      use.getOperandNumber()});
    }
  for (auto [reader, argument] : readers)
    for (CallOp call : calls_.lookup(FuncOp(reader).getName())) {
      auto result = llvm::dyn_cast<mlir::OpResult>(call.getOperand(argument));
      auto maker =
          result ? llvm::dyn_cast<CallOp>(result.getOwner()) : CallOp();
      if (!maker || maker.getCallee() != function.getName() ||
          result.getResultNumber() != index)
        return std::nullopt;
    }
  return readers;
}

}  // namespace partita::kernels
