// Lists the collectives that run beside other work.
#ifndef PARTITA_COMPILER_MEMORY_OVERLAP_REPORT_H_
#define PARTITA_COMPILER_MEMORY_OVERLAP_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"

namespace partita::memory {

// A started collective, and its device's work until it is awaited.
struct OverlapUse {
  std::string kind;    // as in the exec dialect
  int64_t bytes = 0;   // of its input
  std::string beside;  // "3 x block_backward, segment_backward, 2 products"
};

// Lists the started collectives in the functions of a module after
// --partita-overlap-collectives, in order.
std::vector<OverlapUse> listOverlaps(mlir::ModuleOp module);

}  // namespace partita::memory

#endif  // PARTITA_COMPILER_MEMORY_OVERLAP_REPORT_H_
