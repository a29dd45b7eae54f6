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
      // Before work moves to load time. Work that depends only on a device's
      // coordinates moves too; collectives must be recognized so that they
      // stay.
      {"collectives",
       [](mlir::OpPassManager& pm) {
         pm.addPass(partition::createMergeCollectivesPass());
         pm.addPass(mlir::createCanonicalizerPass());
         pm.addPass(kernels::createLowerCollectivesPass());
       },
       ""},
      // Merges functions that had to differ while dimensions were named and
      // divided, and are equal now: updates of parameters, and layers that an
      // entry of the plan acted on.
      {"merge-functions",
       [](mlir::OpPassManager& pm) {
         pm.addPass(mlir::func::createDuplicateFunctionEliminationPass());
       }},
      // Before layouts and library calls, which then see operands as they are
      // at each run.
      {"load-time",
       [options](mlir::OpPassManager& pm) {
         simplify::LoadTimeOptions load_time;
         load_time.training = options.training;
         load_time.gpu = options.gpu;
         simplify::buildLoadTimePipeline(pm, load_time);
       },
       (options.training ? std::string("training") : "") +
           (options.gpu ? " gpu" : "")},
      // Chooses layouts while convolutions and transposes are still nn
      // operations that can be moved.
      {"layouts",
       [options](mlir::OpPassManager& pm) {
         pm.addPass(kernels::createExpandExpertsPass());
         if (options.gpu) pm.addPass(kernels::createOrderRowsPass());
         pm.addPass(kernels::createExpandGradientsPass());
         pm.addPass(kernels::createChooseLayoutsPass());
         if (options.gpu)
           pm.addPass(kernels::createStoreByTokensPass());
         else
           pm.addPass(kernels::createRepeatChannelsPass());
         pm.addPass(mlir::createCanonicalizerPass());
         pm.addPass(mlir::createCSEPass());
       },
       options.gpu ? "gpu" : ""},
      // Library calls before fusion, which fills the space between them.
      // Products of a function share padded operands.
      {"library-calls",
       [options](mlir::OpPassManager& pm) {
         if (options.gpu) {
           pm.addPass(kernels::createPadProductsPass());
           pm.addPass(mlir::createCSEPass());
         }
         // Before other products are selected, in 16 bits.
         if (options.float8) {
           pm.addPass(kernels::createSelectFloat8ProductsPass());
           pm.addPass(mlir::createCSEPass());
         }
         kernels::SelectLibraryCallsPassOptions calls;
         calls.gpu = options.gpu;
         pm.addPass(kernels::createSelectLibraryCallsPass(calls));
         // Before reductions are split.
         if (options.gpu) pm.addPass(kernels::createFuseIntoProductsPass());
         if (!options.gpu && !options.training) {
           pm.addPass(kernels::createFuseActivationsPass());
           // After activations, which come before it.
           pm.addPass(kernels::createFuseRoundingPass());
         }
       }},
      // Splits reductions while their operands can still be fused into them.
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
            overlap.rows = !options.gpu;
            pm.addPass(memory::createOverlapCollectivesPass(overlap));
          }};
}

std::vector<Phase> planResources(const LowerOptions& options) {
  return {
      // After code generation, which may still change what a launch needs.
      // Offsets are decided last.
      {"memory",
       [options](mlir::OpPassManager& pm) {
         pm.addPass(kernels::createLowerLoopsPass());
         // Only on CPUs: kernels of GPUs may read through a cache that does
         // not see writes. In training this was not measured.
         memory::PlanMemoryPassOptions plan;
         plan.inPlace = !options.gpu && !options.training;
         pm.addPass(memory::createPlanMemoryPass(plan));
       }},
      // One operation for each of the program's instructions.
      {"instructions",
       [](mlir::OpPassManager& pm) {
         // While bodies of kernels still contain all the work of launches.
         pm.addPass(kernels::createCountWorkPass());
         pm.addPass(kernels::createDescribeAttentionsPass());
         // The parts write to the memory planned for the whole launch.
         pm.addPass(kernels::createSplitLaunchesPass());
         // Memory places tell which launches touch the same memory.
         pm.addPass(memory::createJoinLaunchesPass());
         // After all that write places: it reads them.
         pm.addPass(memory::createCopyReturnedPass());
         // Last: names every instruction, and the kernels by all their
         // launches.
         pm.addPass(kernels::createLabelKernelsPass());
       }},
  };
}

OrderOptions orderOf(const plan::Plan* plan, bool gpu, bool overlap) {
  OrderOptions options;
  options.gpu = gpu;
  options.overlap = overlap;
  if (plan)
    options.prefetch = plan->gather      ? plan->gather->prefetch
                       : plan->zero == 3 ? 1
                                         : 0;
  return options;
}

}  // namespace partita::driver
