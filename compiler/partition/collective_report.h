// What a divided program sends: every collective, how often, how much, and why.
#ifndef PARTITA_COMPILER_PARTITION_COLLECTIVE_REPORT_H_
#define PARTITA_COMPILER_PARTITION_COLLECTIVE_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Location.h"

namespace partita::partition {

struct CollectiveUse {
  std::string kind;    // all_reduce, all_gather ... as in the dist dialect
  std::string axes;    // "tensor", "data, tensor:(1)2"
  int64_t group = 1;   // devices that take part together
  int64_t bytes = 0;   // each time; see core::BytesMoved
  int64_t times = 1;   // in one run of the program
  std::string why;     // in words
  mlir::Location loc;  // of the operation it is for
};

// The collectives of a partitioned module, in program order, those of a layer
// function once with the number of its calls. Slices that move nothing are left
// out. Fails, with a diagnostic, where the module has no mesh.
mlir::FailureOr<std::vector<CollectiveUse>> listCollectives(
    mlir::ModuleOp module);

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_COLLECTIVE_REPORT_H_
