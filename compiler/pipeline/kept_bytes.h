// What a training step keeps of the parts of a model, before it is cut.
#ifndef PARTITA_COMPILER_PIPELINE_KEPT_BYTES_H_
#define PARTITA_COMPILER_PIPELINE_KEPT_BYTES_H_

#include <vector>

#include "llvm/ADT/StringMap.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::pipeline {

// Bytes on one device.
struct KeptBytes {
  struct Parameter {
    double all = 0;    // with its gradients and, but for those on the host,
                       // the optimizer's states
    double alone = 0;  // a version of it
  };
  llvm::StringMap<Parameter> parameters;  // by name
  // By part: what it computes on its way forward that is read on the way back,
  // of one microbatch. What two parts read counts for the later one, which may
  // have to be sent it.
  std::vector<double> saved;
};

// Of a module whose values have shardings. Calls of @main bear the number of
// their part, 0 to parts - 1, where a stage's would be (nn.stage). A step of
// several microbatches has two gradients of what it trains: one microbatch's is
// there as a whole before it is added to the sum.
KeptBytes keptBytes(mlir::ModuleOp module, int parts, bool states_on_host);

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_KEPT_BYTES_H_
