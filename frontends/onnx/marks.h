// Marks an operation's results with the names of the file's tensors. A mark is
// a part of the location, which passes keep when they replace the operation.
#ifndef PARTITA_FRONTENDS_ONNX_MARKS_H_
#define PARTITA_FRONTENDS_ONNX_MARKS_H_

#include <vector>

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Value.h"

namespace partita::onnx {

struct Mark {
  mlir::StringAttr tensor;
  unsigned result = 0;
  // Set if the value is the tensor as used by one node: the node's first
  // output.
  mlir::StringAttr use;
};

// Adds a mark to the location of the operation that produces the value.
void mark(mlir::Value value, llvm::StringRef tensor, llvm::StringRef use = {});

std::vector<Mark> marksOf(mlir::Location loc);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_MARKS_H_
