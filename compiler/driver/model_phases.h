// The first half of the compiler's table of contents: what happens to a model
// before it is cut into kernels.
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

// A phase of the compiler that passes make up; each ends with verified IR,
// dumped under its number with --dump-dir.
struct Phase {
  std::string name;
  std::function<void(mlir::OpPassManager&)> build;
  // What the passes depend on besides the name. Phases of equal names and
  // options may share their passes, which keep nothing from one run to the
  // next. None: no pass of the phase is shared.
  std::optional<std::string> options = std::nullopt;
};

// A step's output becomes a loss; nothing where `train` is null.
std::vector<Phase> attachLoss(const TrainOptions* train);

// nn to nn: what concerns the model alone. Repeated layers become functions,
// unless what follows shall see each of them.
Phase simplifyModel(bool training, bool outline_layers = true);

// f32 to what parameters and activations are stored as; nothing for f32. With
// `train` the loss is scaled where that is f16.
std::vector<Phase> reducePrecision(plan::Precision precision,
                                   const TrainOptions* train = nullptr);

// Factors of merged dimensions become dimensions that can be divided.
std::vector<Phase> exposeFactors();

// Names dimensions, at the size of a microbatch with `train`, which may be
// null. Where the plan divides depth, each operation gets its stage: within
// `memory`, and balanced by `times` where the plan does not list stages.
std::vector<Phase> assignStages(const plan::Plan& plan,
                                const TrainOptions* train,
                                const pipeline::StageMemory& memory = {},
                                const pipeline::StageTimes& times = {});

// A loss to a whole training step.
Phase trainModel(const TrainOptions& train);

// The same of a model with stages; `plan` is null for one device. Nothing where
// `train` is null.
std::vector<Phase> completeStep(const plan::Plan* plan,
                                const TrainOptions* train);

// How each tensor lies on the devices, as the plan says. cut_model.h comes
// next. With `decided` the shardings go there, and none is written on the
// module.
Phase shardModel(const plan::Plan& plan,
                 std::shared_ptr<sharding::Decided> decided = nullptr);

// To what one device computes, on tensors of its own shapes; the plan says
// whether what is gathered is kept. `decided` as shardModel left it.
std::vector<Phase> partitionModel(
    const plan::Plan& plan,
    std::shared_ptr<sharding::Decided> decided = nullptr);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_MODEL_PHASES_H_
