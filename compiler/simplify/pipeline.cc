// Passes on the model before sharding and after partitioning, each with the
// reason for its place.
#include "compiler/simplify/pipeline.h"

#include "compiler/simplify/passes.h"
#include "mlir/Transforms/Passes.h"

namespace partita::simplify {

void buildSimplifyPipeline(mlir::OpPassManager& pm,
                           const SimplifyOptions& options) {
  // First merge equal values: later patterns compare by value.
  pm.addPass(mlir::createCanonicalizerPass());
  pm.addPass(mlir::createCSEPass());
  // Before attention takes biases and masks as operands.
  pm.addNestedPass<mlir::func::FuncOp>(createShrinkBroadcastsPass());
  pm.addNestedPass<mlir::func::FuncOp>(createRaiseCompositesPass());
  // After attention is raised, because it fixes the layout of its operands.
  pm.addNestedPass<mlir::func::FuncOp>(createAbsorbTransposesPass());
  // After transposes of weights are gone.
  pm.addPass(createJoinExpertsPass());
  // After norms are raised, and before layers are compared, so that layers have
  // fewer operations.
  if (!options.training) {
    pm.addNestedPass<mlir::func::FuncOp>(createFoldBatchNormPass());
    // After batch norms, which leave a convolution and a shift.
    pm.addPass(createFoldScalesPass());
  }
  // Before layers are compared, so that layers have fewer operations.
  pm.addNestedPass<mlir::func::FuncOp>(createRaiseQuantizedProductsPass());
  // After batch norms, whose scales join those of weights.
  pm.addNestedPass<mlir::func::FuncOp>(createRaiseQuantizedConvolutionsPass());
  pm.addPass(mlir::createCanonicalizerPass());
  pm.addPass(mlir::createCSEPass());
  // Run as late as possible: equal layers must look equal.
  if (options.outline_layers) pm.addPass(createOutlineLayersPass());
  pm.addNestedPass<mlir::func::FuncOp>(mlir::createCSEPass());
}

void buildLoadTimePipeline(mlir::OpPassManager& pm,
                           const LoadTimeOptions& options) {
  // After layers are functions, so once per kind; before concatenations move to
  // load time.
  if (options.merge_projections && !options.training) {
    pm.addPass(createMergeProjectionsPass());
  }
  if (!options.training) {
    // Before the widening is stored, and while layers widen nothing else.
    pm.addPass(createSinkWideningPass());
    // After layers are functions, which receive parameters as arguments.
    pm.addPass(createHoistParameterWorkPass({options.gpu}));
  }
  // After microbatches are separate calls; before their unused results are
  // removed.
  if (options.training) pm.addPass(createJoinScattersPass());
  // Removes arguments and results that earlier passes left unused.
  pm.addPass(createRemoveDeadArgumentsPass());
  pm.addPass(mlir::createCanonicalizerPass());
  pm.addPass(mlir::createCSEPass());
}

}  // namespace partita::simplify
