// Lists the kernels of an artifact.
#ifndef PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_KERNELS_H_
#define PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_KERNELS_H_

#include "llvm/Support/JSON.h"
#include "runtime/program/artifact.h"

namespace partita::driver {

// Returns one row per kernel: `label`, `symbol` in the code, `launches` and
// `traffic_bytes`, which launches read and write. Both are sums over one step
// of all pipeline ranks. The kernel with the most traffic comes first.
llvm::json::Array kernelsIn(const program::Program& program);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_KERNELS_H_
