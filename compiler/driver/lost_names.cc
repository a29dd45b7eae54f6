// Counts the weights of @main that importers made constants: they have names
// that an exporter made up when it folded other weights.
#include "compiler/driver/lost_names.h"

#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"

namespace partita::driver {

void reportLostNames(mlir::ModuleOp module, bool training) {
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  int64_t count = 0, lost = 0, elements = 0, lost_elements = 0;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto type =
        mlir::dyn_cast<mlir::RankedTensorType>(main.getArgumentTypes()[i]);
    if (!main.getArgAttr(i, nn::kSourceAttr) || !type ||
        !mlir::isa<mlir::FloatType>(type.getElementType()))
      continue;
    auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
    const bool is_lost = kind && kind.getValue() == "constant";
    ++count;
    elements += type.getNumElements();
    lost += is_lost;
    lost_elements += is_lost ? type.getNumElements() : 0;
  }
  if (lost == 0) return;
  const bool is_most = 2 * lost_elements >= elements;
  if (!is_most && !training) return;
  mlir::InFlightDiagnostic diagnostic = is_most
                                            ? mlir::emitWarning(module.getLoc())
                                            : mlir::emitRemark(module.getLoc());
  diagnostic << "expected weights with their modules' names, found " << lost
             << " of " << count
             << " without: they are constants, which training does not change; "
                "export with torch.onnx.export(..., dynamo=True, "
                "optimize=False), or give the .pt2 file of torch.export.save";
}

}  // namespace partita::driver
