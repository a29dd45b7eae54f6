// The ordered pass lists, each line with the reason for its place.
#include "compiler/driver/pipeline.h"

#include "compiler/kernels/passes.h"
#include "compiler/memory/passes.h"
#include "compiler/partition/passes.h"
#include "compiler/simplify/passes.h"
#include "compiler/simplify/pipeline.h"
#include "mlir/Dialect/Func/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

namespace partita::driver {

std::vector<Phase> lowerToExec(const LowerOptions& options) {
  return {
      // Before work moves to load time: what devices' coordinates determine
      // moves with it, and collectives must be known not to.
      {"collectives",
       [](mlir::OpPassManager& pm) {
         pm.addPass(partition::createMergeCollectivesPass());
         pm.addPass(mlir::createCanonicalizerPass());
         pm.addPass(kernels::createLowerCollectivesPass());
       },
       ""},
      // Functions that had to be apart while dimensions were named and divided
      // (each parameter's update, layers that an entry of the plan acted on)
      // and are equal now.
      {"merge-functions",
       [](mlir::OpPassManager& pm) {
         pm.addPass(mlir::func::createDuplicateFunctionEliminationPass());
       }},
      // Before layouts and library calls, which then find operands as they are
      // at each run.
      {"load-time",
       [options](mlir::OpPassManager& pm) {
         simplify::LoadTimeOptions load_time;
         load_time.training = options.training;
         simplify::buildLoadTimePipeline(pm, load_time);
       },
       options.training ? "training" : ""},
      // Layouts while convolutions and transposes are still nn operations that
      // can be moved about.
      {"layouts",
       [](mlir::OpPassManager& pm) {
         pm.addPass(kernels::createExpandGradientsPass());
         pm.addPass(kernels::createChooseLayoutsPass());
         pm.addPass(mlir::createCanonicalizerPass());
         pm.addPass(mlir::createCSEPass());
       },
       ""},
      // Library calls before fusion: fusion fills the space between them.
      {"library-calls",
       [](mlir::OpPassManager& pm) {
         pm.addPass(kernels::createSelectLibraryCallsPass());
       }},
      // Reductions are cut while what they read may still become part of them.
      {"kernels",
       [options](mlir::OpPassManager& pm) {
         if (options.gpu) pm.addPass(kernels::createSplitReductionsPass());
         pm.addPass(kernels::createFormKernelsPass());
       }},
  };
}

Phase orderWork(const OrderOptions& options) {
  return {"order", [options](mlir::OpPassManager& pm) {
            if (!options.overlap) return;
            if (options.prefetch > 0)
              pm.addPass(memory::createExposeGathersPass());
            memory::OverlapCollectivesPassOptions overlap;
            overlap.ahead = options.prefetch;
            pm.addPass(memory::createOverlapCollectivesPass(overlap));
          }};
}

std::vector<Phase> planResources(const OrderOptions& options) {
  return {
      // The order of each device's operations is final from here on.
      orderWork(options),
      // After code generation, which may still change what a launch needs;
      // offsets are the last thing decided.
      {"memory",
       [](mlir::OpPassManager& pm) {
         pm.addPass(memory::createPlanMemoryPass());
       }},
      // One operation for each of the program's instructions.
      {"instructions",
       [](mlir::OpPassManager& pm) {
         // While bodies of kernels still say all that launches compute.
         pm.addPass(kernels::createCountWorkPass());
         // Parts write where the launch was to write.
         pm.addPass(kernels::createSplitLaunchesPass());
         // Places say which launches touch each other's memory.
         pm.addPass(memory::createJoinLaunchesPass());
         // Last: it reads what all others have written.
         pm.addPass(memory::createCopyReturnedPass());
       }},
  };
}

OrderOptions orderOf(const plan::Plan* plan, bool overlap) {
  OrderOptions options;
  options.overlap = overlap;
  if (plan)
    options.prefetch = plan->gather      ? plan->gather->prefetch
                       : plan->zero == 3 ? 1
                                         : 0;
  return options;
}

}  // namespace partita::driver
