// Moves flattening reshapes behind the operations that use them.
#ifndef PARTITA_COMPILER_SHARDING_SINK_RESHAPES_H_
#define PARTITA_COMPILER_SHARDING_SINK_RESHAPES_H_

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {

// Returns the number of operations that a flattening moved behind.
mlir::FailureOr<int64_t> sinkReshapes(mlir::func::FuncOp function);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_SINK_RESHAPES_H_
