// Replaces the weights of a model that any frontend has imported.
#include "dialects/nn/dialect.h"
#include "frontends/huggingface/huggingface.h"
#include "frontends/huggingface/weights.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/base/range_names.h"

namespace partita::huggingface {

mlir::LogicalResult takeWeights(mlir::ModuleOp module,
                                const std::string& folder, MayLack may_lack,
                                llvm::ArrayRef<llvm::StringRef> others) {
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  if (!main)
    return module.emitError("expected a function named 'main', found none");
  const mlir::Location loc =
      mlir::FileLineColLoc::get(module.getContext(), folder, 0, 0);
  if (!Weights::exist(folder))
    return mlir::emitError(loc)
           << "expected a folder with model.safetensors, weights.safetensors "
              "or model.safetensors.index.json (a checkpoint of partita train "
              "is one), found none of them";
  mlir::FailureOr<Weights> weights = Weights::open(folder, module.getContext());
  if (failed(weights)) return mlir::failure();
  // Only models that round activations read their ranges.
  weights->ignore({std::string("*") + base::kRangeLowSuffix,
                   std::string("*") + base::kRangeHighSuffix});
  weights->ignore(others);
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
    if (!name || !main.getArgAttr(i, nn::kSourceAttr)) continue;
    auto type =
        llvm::dyn_cast<mlir::RankedTensorType>(main.getArgument(i).getType());
    const auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
    const bool is_state = kind && kind.getValue() == "state";
    // Other arguments that are not f32 are not weights and stay unchanged.
    if (!type || (!type.getElementType().isF32() && !is_state)) {
      weights->ignore({name.getValue()});
      continue;
    }
    if (may_lack && may_lack(name.getValue()) && !weights->has(name.getValue()))
      continue;
    const bool in_parts = main.getArgAttr(i, nn::kPartsAttr) != nullptr;
    const Weights::Source source =
        in_parts
            ? weights->parts(name.getValue(), type.getShape(), Init::zeros(),
                             module.getContext())
            : weights->source(name.getValue(), type,
                              main.getArgAttr(i, nn::kUnsignedAttr) != nullptr,
                              module.getContext());
    if (source.data) main.setArgAttr(i, nn::kSourceAttr, source.data);
  }
  return weights->finish(loc);
}

}  // namespace partita::huggingface
