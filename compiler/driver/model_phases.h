// The first half of the compiler's table of contents: what happens to a model
// before it is cut into kernels.
#ifndef PARTITA_COMPILER_DRIVER_MODEL_PHASES_H_
#define PARTITA_COMPILER_DRIVER_MODEL_PHASES_H_

#include <functional>
#include <string>
#include <vector>

#include "compiler/driver/train_options.h"
#include "compiler/pipeline/passes.h"
#include "compiler/plan/plan.h"
#include "mlir/Pass/PassManager.h"

namespace partita::driver {

// A phase of the compiler that passes make up; each ends with verified IR,
// dumped under its number with --dump-dir.
struct Phase {
  std::string name;
  std::function<void(mlir::OpPassManager&)> build;
};

// nn to nn: what concerns the model alone. With `train`, which may be null,
// its output becomes a loss first. Repeated layers become functions, unless
// what follows shall see each of them.
std::vector<Phase> simplifyModel(const TrainOptions* train = nullptr,
                                 bool outline_layers = true);

// f32 to what parameters and activations are stored as; nothing for f32. With
// `train` the loss is scaled where that is f16.
std::vector<Phase> reducePrecision(plan::Precision precision,
                                   const TrainOptions* train = nullptr);

// A loss to a whole training step, on one device.
std::vector<Phase> trainModel(const TrainOptions& train);

// Whole tensors whose dimensions have names; with `train` a whole training step
// of them. Stages that the plan does not list are balanced by `times`. Where
// depth is whole, nothing of the plan matters but microbatches, recomputation
// and names.
std::vector<Phase> nameModel(const plan::Plan& plan,
                             const TrainOptions* train = nullptr,
                             const pipeline::StageTimes& times = {});

// How each tensor lies on the devices, as the plan says. From here to
// partitioning only passes that keep names and shardings; cut_model.h comes
// next.
Phase shardModel(const plan::Plan& plan);
// Both.
std::vector<Phase> divideModel(const plan::Plan& plan,
                               const TrainOptions* train = nullptr);

// To what one device computes, on tensors of its own shapes; the plan says
// whether what is gathered is kept.
Phase partitionModel(const plan::Plan& plan);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_MODEL_PHASES_H_
