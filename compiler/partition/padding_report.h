// What a divided program pads: dimensions whose sizes do not divide.
#ifndef PARTITA_COMPILER_PARTITION_PADDING_REPORT_H_
#define PARTITA_COMPILER_PARTITION_PADDING_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"

namespace partita::partition {

// All values in which a dimension of one name and size is divided in one way,
// for one reason.
struct Padding {
  std::string name;     // as nn.dims says it: "B", "N*8"; empty: no name
  int64_t size = 0;     // rows
  int64_t block = 0;    // rows of each device, those beyond the end included
  int64_t devices = 1;  // in so many blocks
  // Rows that stay together: 8 where a head has 8 features.
  int64_t unit = 1;
  std::string axes;    // "tensor", "data, tensor:(1)2"
  int priority = 0;    // of whoever put the last there: 0 overrides and
                       // annotations, then the plan's entries from 1
  int64_t values = 0;  // how many, those of a layer once for each call
  // Rows beyond the end, of all of them, on the device that has most: what one
  // run of the program computes and holds for nothing.
  int64_t bytes = 0;
  std::string largest;  // the value in which most bytes are
  int dim = 0;          // and which dimension of it
};

// The paddings of a module on whole tensors, every value of which has its
// sharding, those that waste most first. Values that an operation takes
// otherwise than they lie count where they are taken. Fails, with a diagnostic,
// where the module has no mesh.
mlir::FailureOr<std::vector<Padding>> listPaddings(mlir::ModuleOp module);

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_PADDING_REPORT_H_
