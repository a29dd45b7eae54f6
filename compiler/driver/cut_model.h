// Cuts one module of whole tensors into one module per pipeline rank.
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

// One module per pipeline rank, first rank first.
using Programs = std::vector<mlir::OwningOpRef<mlir::ModuleOp>>;

struct PortNames {
  std::vector<std::string> inputs, outputs;
};

// The users' names of the inputs and outputs of @main, in order. Unnamed ones
// get a number here, because each rank would count its own from zero.
PortNames namePorts(mlir::ModuleOp module);

// Cuts a model into its pipeline ranks. Its tensors must have shardings and its
// inputs and outputs names. Fails after diagnostics.
mlir::FailureOr<Programs> cutModel(mlir::ModuleOp module,
                                   const plan::Plan& plan,
                                   const TrainOptions* train, Fault& fault);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_CUT_MODEL_H_
