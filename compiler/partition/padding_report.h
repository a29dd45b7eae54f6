// Lists the padding of a divided program: dimensions whose sizes are not
// divisible.
#ifndef PARTITA_COMPILER_PARTITION_PADDING_REPORT_H_
#define PARTITA_COMPILER_PARTITION_PADDING_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"

namespace partita::partition {

// All values in which a dimension of one name and size is divided in one way by
// one entry.
struct Padding {
  std::string name;     // as in nn.dims: "B", "N*8"; empty: no name
  int64_t size = 0;     // rows
  int64_t block = 0;    // rows per device, padding included
  int64_t devices = 1;  // number of blocks
  // Rows that stay together: 8 if a head has 8 features.
  int64_t unit = 1;
  std::string axes;    // "tensor", "data, tensor:(1)2"
  int priority = 0;    // of the last axis: 0 for overrides and
                       // annotations, else the plan's entries from 1
  int64_t values = 0;  // number of values, times the calls of their layer
  // Padding bytes of all values on the device with most padding, per run of the
  // program.
  int64_t bytes = 0;
  std::string largest;  // the value with most padding
  int dim = 0;          // the dimension of that value
};

// Lists the paddings of a module on whole tensors with shardings, largest
// first. If an operation takes a value in another placement, that placement
// counts too. Fails with a diagnostic if the module has no mesh.
mlir::FailureOr<std::vector<Padding>> listPaddings(mlir::ModuleOp module);

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_PADDING_REPORT_H_
