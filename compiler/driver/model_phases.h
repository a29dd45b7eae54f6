// The first half of the compiler's table of contents: phases on a model before
// it is lowered to kernels.
#ifndef PARTITA_COMPILER_DRIVER_MODEL_PHASES_H_
#define PARTITA_COMPILER_DRIVER_MODEL_PHASES_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/driver/train_options.h"
#include "compiler/pipeline/passes.h"
#include "compiler/plan/plan.h"
#include "compiler/sharding/problem.h"
#include "mlir/Pass/PassManager.h"

namespace partita::driver {

// A phase of the compiler, made of passes. The IR after it is verified, and
// dumped under the phase's number with --dump-dir.
struct Phase {
  std::string name;
  std::function<void(mlir::OpPassManager&)> build;
  // A text of all values that the passes depend on. Phases with equal names and
  // options may share passes, since passes keep no state between runs. Without
  // it, no pass of the phase is shared.
  std::optional<std::string> options = std::nullopt;
};

// Turns an output of the model into a loss. No phases if `train` is null.
std::vector<Phase> attachLoss(const TrainOptions* train);

// Simplifies the model, from nn to nn. Outlines repeated layers to functions,
// unless later phases need to see each of them.
Phase simplifyModel(bool training, bool outline_layers = true);

// Stores parameters and activations in `precision`, in bf16 for kF8. No phases
// for f32. With `train` and f16, also scales the loss.
std::vector<Phase> reducePrecision(plan::Precision precision,
                                   const TrainOptions* train = nullptr);

// Splits merged dimensions into factors that can be divided.
std::vector<Phase> exposeFactors();

// Names dimensions; with `train`, which may be null, at the size of a
// microbatch. If the plan divides depth, assigns each operation a stage: within
// `memory`, and balanced by `times` if the plan does not list the stages.
std::vector<Phase> assignStages(const plan::Plan& plan,
                                const TrainOptions* train,
                                const pipeline::StageMemory& memory = {},
                                const pipeline::StageTimes& times = {});

// Turns a loss into a whole training step. With kF8, linear layers take factors
// of 8 bits.
Phase trainModel(const TrainOptions& train,
                 plan::Precision precision = plan::Precision::kF32);

// The same for a model with stages. `plan` is null for one device. No phases if
// `train` is null.
std::vector<Phase> completeStep(const plan::Plan* plan,
                                const TrainOptions* train,
                                plan::Precision precision);

// Decides the sharding of each tensor by the plan. cut_model.h follows. If
// `decided` is given, the shardings are stored there and not in the module.
Phase shardModel(const plan::Plan& plan,
                 std::shared_ptr<sharding::Decided> decided = nullptr);

// Turns the module into the program of one device, on local shapes. The plan
// says whether gathered parameters are kept for the step. `decided` is what
// shardModel stored.
std::vector<Phase> partitionModel(
    const plan::Plan& plan,
    std::shared_ptr<sharding::Decided> decided = nullptr);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_MODEL_PHASES_H_
