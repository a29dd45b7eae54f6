// Pass lists, each line with the reason for its place.
#include "compiler/driver/model_phases.h"

#include "compiler/partition/passes.h"
#include "compiler/sharding/apply_plan.h"
#include "compiler/sharding/passes.h"
#include "compiler/simplify/pipeline.h"
#include "mlir/Transforms/Passes.h"

namespace partita::driver {
namespace {

// The plan's corrections as the option of the pass that names dimensions.
std::string namesOption(const plan::Plan& plan) {
  std::string text;
  for (const plan::Name& name : plan.names)
    text += (text.empty() ? "" : ";") + name.tensor + ":" +
            std::to_string(name.dim) + "=" + name.dimension;
  return text;
}

}  // namespace

std::vector<Phase> simplifyModel() {
  return {
      // Composites first: every later pass knows them better than their parts.
      // Layers become functions.
      {"simplify",
       [](mlir::OpPassManager& pm) { simplify::buildSimplifyPipeline(pm); }},
  };
}

std::vector<Phase> divideModel(const plan::Plan& plan) {
  return {
      // Merged dimensions come apart, while slices and reshapes can move
      // freely; names are given to what is there then.
      {"name",
       [plan](mlir::OpPassManager& pm) {
         pm.addPass(sharding::createExposeFactorsPass());
         pm.addPass(mlir::createCanonicalizerPass());
         pm.addPass(mlir::createCSEPass());
         sharding::NameDimensionsPassOptions options;
         options.names = namesOption(plan);
         pm.addPass(sharding::createNameDimensionsPass(options));
       }},
      // From here to partitioning only passes that keep names and shardings.
      {"shard",
       [plan](mlir::OpPassManager& pm) {
         pm.addPass(sharding::createApplyPlanPass(plan));
       }},
      {"partition",
       [](mlir::OpPassManager& pm) {
         pm.addPass(partition::createPartitionPass());
         // Masks and reshards that are equal become one.
         pm.addPass(mlir::createCanonicalizerPass());
         pm.addPass(mlir::createCSEPass());
       }},
  };
}

}  // namespace partita::driver
