// Between whole tensors and the programs of devices: one module becomes one for
// each rank of a pipeline.
#ifndef PARTITA_COMPILER_DRIVER_CUT_MODEL_H_
#define PARTITA_COMPILER_DRIVER_CUT_MODEL_H_

#include <string>
#include <vector>

#include "compiler/driver/run_phase.h"
#include "compiler/driver/train_options.h"
#include "compiler/plan/plan.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {

// One module for each rank of a pipeline, first rank first.
using Programs = std::vector<mlir::OwningOpRef<mlir::ModuleOp>>;

struct PortNames {
  std::vector<std::string> inputs, outputs;
};

// What users call the inputs and outputs of @main, in order. Those without a
// name get one, since ranks would count from zero each.
PortNames namePorts(mlir::ModuleOp module);

// The ranks of a pipeline's model, whose tensors have shardings and whose ports
// have names. Fails after diagnostics.
mlir::FailureOr<Programs> cutModel(mlir::ModuleOp module,
                                   const plan::Plan& plan,
                                   const TrainOptions* train, Fault& fault);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_CUT_MODEL_H_
