// Runs the interpreter of all devices, with arguments for it.
#include "compiler/driver/verify/verify_runs.h"

#include "compiler/driver/session.h"
#include "compiler/sharding/convert.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "llvm/Support/FormatVariadic.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::driver {

using mlir::Operation;
using mlir::RankedTensorType;
using mlir::func::CallOp;
using mlir::func::FuncOp;
using partition::Everywhere;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

llvm::SmallVector<Everywhere> VerifyRuns::argumentsOf(FuncOp main,
                                                      const core::Mesh& mesh) {
  llvm::SmallVector<Everywhere> arguments;
  largest_.assign(main.getNumArguments(), 0);
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    arguments.emplace_back();
    if (main.getArgument(i).use_empty()) continue;
    auto global =
        main.getArgAttrOfType<mlir::TypeAttr>(i, dist::kGlobalTypeAttr);
    auto type = llvm::cast<RankedTensorType>(
        global ? global.getValue() : main.getArgumentTypes()[i]);
    nn::Tensor tensor = arguments_.get(main, i, type);
    largest_[i] = largestOf(tensor);
    if (!global) {
      arguments.back().push_back(std::move(tensor));
      continue;
    }
    auto sharding =
        main.getArgAttrOfType<dist::ShardingAttr>(i, dist::kShardingAttr);
    arguments.back() = partition::scatterTensor(
        tensor, mesh, *sharding::toCore(sharding, mesh));
  }
  return arguments;
}

partition::Observer VerifyRuns::showing(const std::string& what,
                                        const partition::Observer& observer) {
  const Clock::time_point start = Clock::now();
  return [this, what, observer, start, shown = start, operations = int64_t{0}](
             Operation* op, llvm::ArrayRef<Everywhere> values) mutable {
    ++operations;
    if (progress_ != nullptr && secondsSince(shown) >= 1) {
      shown = Clock::now();
      *progress_ << llvm::formatv(
          "verify: {0}, {1} operations, {2:F0} s, at {3}\n", what, operations,
          secondsSince(start), describe(op->getLoc()));
      progress_->flush();
    }
    if (observer) observer(op, values);
  };
}

mlir::FailureOr<llvm::SmallVector<Everywhere>> VerifyRuns::run(
    mlir::ModuleOp module, const core::Mesh& mesh, const std::string& what,
    const partition::Observer& observer) {
  auto main = module.lookupSymbol<FuncOp>("main");
  return partition::interpretEverywhere(main, mesh, argumentsOf(main, mesh),
                                        showing(what, observer));
}

mlir::FailureOr<llvm::SmallVector<llvm::SmallVector<Everywhere>>>
VerifyRuns::runRanks(llvm::ArrayRef<mlir::ModuleOp> programs,
                     const core::Mesh& mesh) {
  llvm::SmallVector<FuncOp> mains;
  llvm::SmallVector<llvm::SmallVector<Everywhere>> arguments;
  for (mlir::ModuleOp program : programs) {
    mains.push_back(program.lookupSymbol<FuncOp>("main"));
    arguments.push_back(argumentsOf(mains.back(), mesh));
  }
  return partition::interpretRanks(mains, mesh, arguments,
                                   showing("the ranks of the pipeline", {}));
}

InputDependence::InputDependence(FuncOp main) {
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    if (!main.getArgAttr(i, nn::kSourceAttr))
      dependent_.insert(main.getArgument(i));
  follow(main);
}

bool InputDependence::contains(Operation* op) const {
  return llvm::any_of(op->getResults(), [this](mlir::Value result) {
    return dependent_.contains(result);
  });
}

void InputDependence::follow(FuncOp function) {
  for (Operation& op : function.front().without_terminator()) {
    if (auto call = llvm::dyn_cast<CallOp>(op)) {
      auto callee = mlir::SymbolTable::lookupNearestSymbolFrom<FuncOp>(
          call, call.getCalleeAttr());
      spread(call.getOperands(), callee.getArguments());
      follow(callee);
      spread(callee.front().getTerminator()->getOperands(), call.getResults());
    } else if (llvm::any_of(op.getOperands(), [this](mlir::Value operand) {
                 return dependent_.contains(operand);
               })) {
      dependent_.insert(op.result_begin(), op.result_end());
    }
  }
}

void InputDependence::spread(mlir::ValueRange from, mlir::ValueRange to) {
  for (auto [a, b] : llvm::zip_equal(from, to))
    if (dependent_.contains(a)) dependent_.insert(b);
}

}  // namespace partita::driver
