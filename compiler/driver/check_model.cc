// Checks functions, calls and types before the first phase.
#include "compiler/driver/check_model.h"

#include "dialects/nn/dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::driver {
namespace {

using mlir::LogicalResult;
using mlir::success;
using mlir::func::FuncOp;

LogicalResult checkFunctions(mlir::ModuleOp module) {
  bool fine = true;
  if (!module.lookupSymbol<FuncOp>("main")) {
    module.emitError(
        "expected a function named 'main', found none; was the model "
        "imported?");
    fine = false;
  }
  for (FuncOp function : module.getOps<FuncOp>()) {
    if (!function.isExternal()) continue;
    function.emitError("expected every function to have a body, found '")
        << function.getName() << "' without one";
    fine = false;
  }
  return success(fine);
}

// Depth first; a call back into a function that is still open is a cycle.
class CycleFinder {
 public:
  explicit CycleFinder(mlir::ModuleOp module) : module_(module) {}

  LogicalResult visit(FuncOp function) {
    State& state = states_[function];
    if (state == State::kDone) return success();
    if (state == State::kOpen)
      return function.emitError(
                 "expected functions that do not call themselves, found '")
             << function.getName() << "'";
    state = State::kOpen;
    auto result = function.walk([&](mlir::Operation* op) {
      FuncOp callee;
      if (auto call = llvm::dyn_cast<mlir::func::CallOp>(op))
        callee = module_.lookupSymbol<FuncOp>(call.getCallee());
      else if (auto loop = llvm::dyn_cast<nn::LoopOp>(op))
        callee = module_.lookupSymbol<FuncOp>(loop.getBody());
      return callee && mlir::failed(visit(callee))
                 ? mlir::WalkResult::interrupt()
                 : mlir::WalkResult::advance();
    });
    states_[function] = State::kDone;
    return success(!result.wasInterrupted());
  }

 private:
  enum class State { kNew, kOpen, kDone };
  mlir::ModuleOp module_;
  llvm::DenseMap<mlir::Operation*, State> states_;
};

}  // namespace

LogicalResult checkModel(mlir::ModuleOp module) {
  bool fine = mlir::succeeded(checkFunctions(module));
  CycleFinder cycles(module);
  for (FuncOp function : module.getOps<FuncOp>())
    fine &= mlir::succeeded(cycles.visit(function));
  for (const auto& [name, loc] : unsupportedTypes(module)) {
    mlir::emitError(loc)
        << "expected tensors of static shape with elements f32, f64, f16, "
           "bf16, f8E4M3FN, f8E5M2, i1, i8, i16, i32 or i64, found "
        << name << "; sizes are settled at import, with --dim";
    fine = false;
  }
  return success(fine);
}

std::map<std::string, mlir::Location> unsupportedTypes(mlir::ModuleOp module) {
  std::map<std::string, mlir::Location> found;
  auto check = [&](mlir::Type type, mlir::Location loc) {
    auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
    const bool is_static = tensor && tensor.hasStaticShape();
    mlir::Type element = is_static ? tensor.getElementType() : type;
    if (is_static &&
        (element.isF32() || element.isF64() || element.isF16() ||
         element.isBF16() ||
         llvm::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(element) ||
         element.isInteger(1) || element.isInteger(8) ||
         element.isInteger(16) || element.isInteger(32) ||
         element.isInteger(64)))
      return;
    std::string name;
    llvm::raw_string_ostream(name) << element;
    found.try_emplace(name, loc);
  };
  module.walk([&](mlir::Operation* op) {
    for (mlir::Type type : op->getResultTypes()) check(type, op->getLoc());
    if (auto function = llvm::dyn_cast<FuncOp>(op))
      for (mlir::BlockArgument argument : function.getArguments())
        check(argument.getType(), argument.getLoc());
  });
  return found;
}

}  // namespace partita::driver
