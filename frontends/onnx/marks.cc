// A mark is a fused location whose metadata is [tensor, result, use].
#include "frontends/onnx/marks.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace partita::onnx {

void mark(mlir::Value value, llvm::StringRef tensor, llvm::StringRef use) {
  mlir::Operation* op = value.getDefiningOp();
  if (!op) return;
  mlir::Builder builder(op->getContext());
  const unsigned result = mlir::cast<mlir::OpResult>(value).getResultNumber();
  op->setLoc(mlir::FusedLoc::get(
      builder.getContext(), {op->getLoc()},
      builder.getArrayAttr({builder.getStringAttr(tensor),
                            builder.getI64IntegerAttr(result),
                            builder.getStringAttr(use)})));
}

std::vector<Mark> marksOf(mlir::Location loc) {
  std::vector<Mark> marks;
  loc->walk([&](mlir::Location part) {
    auto fused = mlir::dyn_cast<mlir::FusedLoc>(part);
    auto data =
        fused ? mlir::dyn_cast_or_null<mlir::ArrayAttr>(fused.getMetadata())
              : mlir::ArrayAttr();
    if (!data || data.size() != 3) return mlir::WalkResult::advance();
    auto tensor = mlir::dyn_cast<mlir::StringAttr>(data[0]);
    auto result = mlir::dyn_cast<mlir::IntegerAttr>(data[1]);
    auto use = mlir::dyn_cast<mlir::StringAttr>(data[2]);
    if (tensor && result && use)
      marks.push_back({tensor, static_cast<unsigned>(result.getInt()),
                       use.empty() ? mlir::StringAttr() : use});
    return mlir::WalkResult::advance();
  });
  return marks;
}

}  // namespace partita::onnx
