// Lists the collectives of a divided program: count, bytes and reason.
#ifndef PARTITA_COMPILER_PARTITION_COLLECTIVE_REPORT_H_
#define PARTITA_COMPILER_PARTITION_COLLECTIVE_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Location.h"

namespace partita::partition {

struct CollectiveUse {
  std::string kind;    // name in the dist dialect: all_reduce, all_gather ...
  std::string axes;    // "tensor", "data, tensor:(1)2"
  int64_t group = 1;   // number of participating devices
  int64_t bytes = 0;   // per execution; see core::BytesMoved
  int64_t times = 1;   // executions per run of the program
  std::string why;     // reason, for users
  mlir::Location loc;  // of the operation that needs it
};

// Lists the collectives of a partitioned module in program order. A collective
// of a layer function appears once, with the number of calls. Omits slices,
// which move nothing. Fails with a diagnostic if the module has no mesh.
mlir::FailureOr<std::vector<CollectiveUse>> listCollectives(
    mlir::ModuleOp module);

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_COLLECTIVE_REPORT_H_
