// Reads the tokens of collectives; see overlap_report.h.
#include "compiler/memory/overlap_report.h"

#include "dialects/exec/dialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::memory {
namespace {

std::string besideOf(exec::CollectiveOp op, exec::AwaitOp await) {
  llvm::MapVector<llvm::StringRef, int64_t> calls;
  int64_t products = 0, convolutions = 0;
  for (mlir::Operation* at = op->getNextNode(); at != await;
       at = at->getNextNode()) {
    if (auto call = llvm::dyn_cast<mlir::func::CallOp>(at))
      ++calls[call.getCallee()];
    products += llvm::isa<exec::GemmOp, exec::GroupedGemmOp>(at);
    convolutions += llvm::isa<exec::ConvOp>(at);
  }
  std::string text;
  const auto add = [&](const std::string& what) {
    text += (text.empty() ? "" : ", ") + what;
  };
  for (const auto& [name, times] : calls)
    add((times > 1 ? std::to_string(times) + " x " : "") + name.str());
  if (products > 0)
    add(std::to_string(products) + (products > 1 ? " products" : " product"));
  if (convolutions > 0)
    add(std::to_string(convolutions) +
        (convolutions > 1 ? " convolutions" : " convolution"));
  return text;
}

}  // namespace

std::vector<OverlapUse> listOverlaps(mlir::ModuleOp module) {
  std::vector<OverlapUse> uses;
  for (auto function : module.getOps<mlir::func::FuncOp>()) {
    for (auto op : function.getOps<exec::CollectiveOp>()) {
      if (op.getToken() == 0) continue;
      auto await =
          llvm::cast<exec::AwaitOp>(*op.getResult().getUsers().begin());
      uses.push_back({exec::stringifyCollectiveKind(op.getKind()).str(),
                      exec::bufferBytes(llvm::cast<mlir::RankedTensorType>(
                          op.getInput().getType())),
                      besideOf(op, await)});
    }
  }
  return uses;
}

}  // namespace partita::memory
