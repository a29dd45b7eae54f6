// Estimates the memory of each part of a model in training, before stages are
// cut.
#ifndef PARTITA_COMPILER_PIPELINE_KEPT_BYTES_H_
#define PARTITA_COMPILER_PIPELINE_KEPT_BYTES_H_

#include <vector>

#include "llvm/ADT/StringMap.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::pipeline {

// Bytes per device.
struct KeptBytes {
  struct Parameter {
    double all = 0;    // parameter, gradients, and optimizer states unless
                       // they are on the host
    double alone = 0;  // one version of the parameter
  };
  llvm::StringMap<Parameter> parameters;  // by name
  // Per part: forward values that backward reads, per microbatch. If two parts
  // read a value, it counts for the later part, to which it may have to be
  // sent.
  std::vector<double> saved;
};

// Measures a module whose values have shardings. nn.stage on calls of @main
// holds the number of their part, 0 to parts - 1, instead of a stage. With
// several microbatches, each trained parameter has two gradients: one
// microbatch's gradient exists as a whole before it is added to the sum.
KeptBytes keptBytes(mlir::ModuleOp module, int parts, bool states_on_host);

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_KEPT_BYTES_H_
