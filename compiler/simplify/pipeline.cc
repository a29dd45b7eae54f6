// The passes around dividing that concern the model alone, each with the reason
// for its place.
#include "compiler/simplify/pipeline.h"

#include "compiler/simplify/passes.h"
#include "mlir/Transforms/Passes.h"

namespace partita::simplify {

void buildSimplifyPipeline(mlir::OpPassManager& pm,
                           const SimplifyOptions& options) {
  // Equal values as one value: the patterns that follow compare by value.
  pm.addPass(mlir::createCanonicalizerPass());
  pm.addPass(mlir::createCSEPass());
  // Biases and masks small, before attention takes them as operands.
  pm.addNestedPass<mlir::func::FuncOp>(createShrinkBroadcastsPass());
  pm.addNestedPass<mlir::func::FuncOp>(createRaiseCompositesPass());
  // After attention is known, which says itself how its operands lie.
  pm.addNestedPass<mlir::func::FuncOp>(createAbsorbTransposesPass());
  // After norms are known as such, before layers are compared: what is folded
  // is one operation less in each.
  if (!options.training)
    pm.addNestedPass<mlir::func::FuncOp>(createFoldBatchNormPass());
  pm.addPass(mlir::createCanonicalizerPass());
  pm.addPass(mlir::createCSEPass());
  // As late as possible: equal layers must look equal by now.
  if (options.outline_layers) pm.addPass(createOutlineLayersPass());
  pm.addNestedPass<mlir::func::FuncOp>(mlir::createCSEPass());
}

void buildLoadTimePipeline(mlir::OpPassManager& pm,
                           const LoadTimeOptions& options) {
  // In layer functions, once per kind; its concatenations move to load time.
  if (options.merge_projections && !options.training) {
    pm.addPass(createMergeProjectionsPass());
  }
  if (!options.training) {
    // When layers are functions, and parameters reach them as arguments.
    pm.addPass(createHoistParameterWorkPass());
  }
  // Where microbatches are calls that follow one another, and before what they
  // return is narrowed to what is read.
  if (options.training) pm.addPass(createJoinScattersPass());
  // What earlier passes left unused in signatures.
  pm.addPass(createRemoveDeadArgumentsPass());
  pm.addPass(mlir::createCanonicalizerPass());
  pm.addPass(mlir::createCSEPass());
}

}  // namespace partita::simplify
