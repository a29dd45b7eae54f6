// The interpreter of all devices, with arguments for it.
#include "compiler/driver/verify_runs.h"

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

mlir::FailureOr<llvm::SmallVector<Everywhere>> VerifyRuns::run(
    mlir::ModuleOp module, const core::Mesh& mesh, const std::string& what,
    const partition::Observer& observer) {
  auto main = module.lookupSymbol<FuncOp>("main");
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
  const Clock::time_point start = Clock::now();
  Clock::time_point shown = start;
  int64_t operations = 0;
  return partition::interpretEverywhere(
      main, mesh, arguments,
      [&](Operation* op, llvm::ArrayRef<Everywhere> values) {
        ++operations;
        if (progress_ != nullptr && secondsSince(shown) >= 1) {
          shown = Clock::now();
          *progress_ << llvm::formatv(
              "verify: {0}, {1} operations, {2:F0} s, at {3}\n", what,
              operations, secondsSince(start), describe(op->getLoc()));
          progress_->flush();
        }
        observer(op, values);
      });
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
