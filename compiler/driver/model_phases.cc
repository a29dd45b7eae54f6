// Pass lists, each line with the reason for its place.
#include "compiler/driver/model_phases.h"

#include "compiler/autodiff/passes.h"
#include "compiler/partition/partition.h"
#include "compiler/partition/passes.h"
#include "compiler/pipeline/delayed_step.h"
#include "compiler/pipeline/passes.h"
#include "compiler/plan/names.h"
#include "compiler/plan/plan_schedule.h"
#include "compiler/recompute/passes.h"
#include "compiler/sharding/apply_plan.h"
#include "compiler/sharding/passes.h"
#include "compiler/simplify/passes.h"
#include "compiler/simplify/pipeline.h"
#include "mlir/Dialect/Func/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

namespace partita::driver {
namespace {

// The plan's corrections, as the option of the pass that names dimensions.
std::string namesOption(const plan::Plan& plan) {
  std::string text;
  for (const plan::Name& name : plan.names)
    text += (text.empty() ? "" : ";") + name.tensor + ":" +
            std::to_string(name.dim) + "=" + name.dimension;
  return text;
}

// The schedule of a training step. Empty if depth is not divided, or if the
// schedule is wrong, which cutting reports.
core::Schedule scheduleOf(const plan::Plan& plan) {
  if (plan::DepthAxes(plan).empty()) return {};
  auto schedule = plan::ScheduleOf(plan, /*trains=*/true);
  return schedule.ok() ? *std::move(schedule) : core::Schedule();
}

}  // namespace

std::vector<Phase> attachLoss(const TrainOptions* train) {
  if (!train) return {};
  // Before layers are found, because layers must return everything that a step
  // returns besides the loss. In the model as imported, every stored tensor is
  // an argument.
  return {{"loss", [train = *train](mlir::OpPassManager& pm) {
             autodiff::AttachLossPassOptions options;
             options.loss = train.loss;
             options.output = train.loss_output;
             options.ignore_index = train.ignore_index;
             options.label_smoothing = train.label_smoothing;
             options.microbatches = train.microbatches;
             pm.addPass(autodiff::createAttachLossPass(options));
           }}};
}

Phase simplifyModel(bool training, bool outline_layers) {
  // Composites first: later passes handle them better than their parts.
  simplify::SimplifyOptions options;
  options.training = training;
  options.outline_layers = outline_layers;
  return {"simplify", [options](mlir::OpPassManager& pm) {
            simplify::buildSimplifyPipeline(pm, options);
          }};
}

std::vector<Phase> reducePrecision(plan::Precision precision,
                                   const TrainOptions* train) {
  if (precision == plan::Precision::kF32) return {};
  autodiff::ReducePrecisionPassOptions options;
  const bool has_float8 = precision == plan::Precision::kF8;
  options.type = plan::NameOf(plan::PrecisionNames(),
                              has_float8 ? plan::Precision::kBF16 : precision);
  // By now there are composites, which decide themselves what they compute in
  // f32. Gradients come later and follow the precision of the model.
  const bool scaled = train && precision == plan::Precision::kF16;
  autodiff::ScaleLossPassOptions scaling;
  if (scaled) scaling.initial = train->loss_scale;
  return {{"precision", [=](mlir::OpPassManager& pm) {
             pm.addPass(autodiff::createReducePrecisionPass(options));
             if (scaled) pm.addPass(autodiff::createScaleLossPass(scaling));
             // Factors of a training step are rounded when it has its
             // gradients.
             if (has_float8 && !train) {
               pm.addPass(autodiff::createChooseFloat8ProductsPass());
               pm.addPass(autodiff::createRoundFloat8FactorsPass());
             }
             pm.addPass(mlir::createCanonicalizerPass());
             pm.addPass(mlir::createCSEPass());
           }}};
}

Phase trainModel(const TrainOptions& train, plan::Precision precision) {
  const bool has_float8 = precision == plan::Precision::kF8;
  return {"differentiate", [train, has_float8](mlir::OpPassManager& pm) {
            // While parameter names still tell the layers apart.
            pm.addPass(recompute::createMarkRecomputationPass(
                train.recompute, train.recompute_origin));
            if (has_float8)
              pm.addPass(autodiff::createChooseFloat8ProductsPass());
            autodiff::DifferentiatePassOptions gradients;
            gradients.train = train.trained;
            gradients.keep_lse = train.keep_lse;
            pm.addPass(autodiff::createDifferentiatePass(gradients));
            // Gradients are those of the unrounded factors.
            if (has_float8)
              pm.addPass(autodiff::createRoundFloat8FactorsPass());
            autodiff::AccumulatePassOptions sums;
            sums.microbatches = train.first_microbatch ? 1 : train.microbatches;
            sums.noise_scale = train.noise_scale;
            pm.addPass(autodiff::createAccumulatePass(sums));
            autodiff::AppendOptimizerPassOptions optimizer;
            optimizer.optimizer = train.optimizer;
            optimizer.beta1 = train.beta1;
            optimizer.beta2 = train.beta2;
            optimizer.epsilon = train.epsilon;
            optimizer.momentum = train.momentum;
            optimizer.weight_decay = train.weight_decay;
            optimizer.nesterov = train.nesterov;
            optimizer.no_decay = train.no_decay;
            optimizer.lr_scale = train.lr_scale;
            optimizer.keep_zeros = train.keep_zeros;
            optimizer.clip_norm = train.clip_norm;
            optimizer.onebit_warmup = train.onebit_warmup;
            optimizer.zero_one_step = train.zero_one_step;
            optimizer.keep_gradients = train.keep_gradients;
            pm.addPass(autodiff::createAppendOptimizerPass(optimizer));
            // Removes functions that were replaced by a forward and a backward
            // one.
            pm.addPass(mlir::createSymbolDCEPass());
            // Removes results of layers that nobody reads.
            pm.addPass(simplify::createRemoveDeadArgumentsPass());
            pm.addPass(mlir::createCanonicalizerPass());
            pm.addPass(mlir::createCSEPass());
          }};
}

std::vector<Phase> exposeFactors() {
  return {
      // Checks users' rules by executing them, before anything relies on them.
      {"rules",
       [](mlir::OpPassManager& pm) {
         pm.addPass(sharding::createVerifyRulesPass());
       }},
      // Splits merged dimensions while slices and reshapes can move freely.
      {"expose",
       [](mlir::OpPassManager& pm) {
         pm.addPass(sharding::createExposeFactorsPass());
         pm.addPass(mlir::createCanonicalizerPass());
         pm.addPass(mlir::createCSEPass());
       }},
  };
}

std::vector<Phase> assignStages(const plan::Plan& plan,
                                const TrainOptions* train,
                                const pipeline::StageMemory& memory,
                                const pipeline::StageTimes& times) {
  std::vector<Phase> phases;
  phases.push_back({"name", [plan](mlir::OpPassManager& pm) {
                      sharding::NameDimensionsPassOptions options;
                      options.names = namesOption(plan);
                      pm.addPass(sharding::createNameDimensionsPass(options));
                    }});
  // All later passes see the size of a microbatch.
  if (train && train->microbatches > 1)
    phases.push_back({"split-batch", [train = *train](mlir::OpPassManager& pm) {
                        sharding::SplitBatchPassOptions options;
                        options.microbatches = train.microbatches;
                        pm.addPass(sharding::createSplitBatchPass(options));
                      }});
  if (plan::DepthAxes(plan).empty()) return phases;
  // Before gradients, which are computed on the stages of the values they
  // belong to. Cutting reports errors in the schedule.
  if (auto schedule = plan::ScheduleOf(plan, train != nullptr); schedule.ok())
    phases.push_back(
        {"stages", [plan, memory, times,
                    stages = schedule->stages](mlir::OpPassManager& pm) {
           pm.addPass(
               pipeline::createAssignStagesPass(stages, plan, memory, times));
         }});
  return phases;
}

std::vector<Phase> completeStep(const plan::Plan* plan,
                                const TrainOptions* train,
                                plan::Precision precision) {
  if (!train) return {};
  // Gradients of exposed dimensions need no exposing of their own. Names are
  // found in the model alone and spread to the operations that gradients add.
  std::vector<Phase> phases = {trainModel(*train, precision)};
  if (!plan) return phases;
  const core::Schedule schedule = scheduleOf(*plan);
  // After the optimizer, since updates belong to steps, too.
  if (!schedule.flushes) {
    auto weights = pipeline::delayedWeights(schedule);
    // Cutting refuses schedules that cannot be run without a flush.
    if (weights.ok())
      phases.push_back(
          {"delay-stages",
           [weights = *weights, steps = train->pipemare,
            correction = train->pipemare_correction](mlir::OpPassManager& pm) {
             pipeline::DelayStagesPassOptions options;
             options.weights = weights;
             options.rate_steps = steps;
             options.correction = correction;
             pm.addPass(pipeline::createDelayStagesPass(options));
           }});
  }
  if (std::string cells = pipeline::cellsToSplit(
          schedule.flushes ? schedule : pipeline::delayedStep(schedule));
      !cells.empty())
    phases.push_back({"split-backward", [cells](mlir::OpPassManager& pm) {
                        pipeline::SplitBackwardPassOptions options;
                        options.cells = cells;
                        pm.addPass(pipeline::createSplitBackwardPass(options));
                        pm.addPass(mlir::createSymbolDCEPass());
                        pm.addPass(simplify::createRemoveDeadArgumentsPass());
                      }});
  phases.push_back({"spread-names", [](mlir::OpPassManager& pm) {
                      pm.addPass(sharding::createNameDimensionsPass());
                    }});
  return phases;
}

Phase shardModel(const plan::Plan& plan,
                 std::shared_ptr<sharding::Decided> decided) {
  // From here to partitioning, all passes must keep names and shardings.
  return {"shard", [plan, decided](mlir::OpPassManager& pm) {
            pm.addPass(sharding::createApplyPlanPass(plan, decided));
          }};
}

std::vector<Phase> partitionModel(const plan::Plan& plan,
                                  std::shared_ptr<sharding::Decided> decided) {
  const bool hold = plan.gather && plan.gather->hold == plan::Hold::kStep;
  const auto divide = [hold, decided](mlir::OpPassManager& pm) {
    pm.addPass(decided ? partition::createPartitionPass(decided)
                       : partition::createPartitionPass());
    // Before equal operations of layers are joined, so that none of them needs
    // two arguments for one parameter.
    if (hold) pm.addPass(partition::createHoldGathersPass());
  };
  const auto join = [](mlir::OpPassManager& pm) {
    // Merges functions that had to differ until here and are equal now, e.g.
    // the updates of parameters. Later passes then process one of them.
    pm.addPass(mlir::func::createDuplicateFunctionEliminationPass());
    // Merges equal masks and reshards.
    pm.addPass(mlir::createCanonicalizerPass());
    pm.addPass(mlir::createCSEPass());
  };
  if (decided) return {{"partition", divide}, {"join", join, ""}};
  return {{"partition", [=](mlir::OpPassManager& pm) {
             divide(pm);
             join(pm);
           }}};
}

}  // namespace partita::driver
