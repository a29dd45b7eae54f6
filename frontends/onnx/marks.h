// Which of the file's tensors an operation's results are: a part of its
// location, which passes keep where they replace the operation.
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
  // Set where the value is the tensor as one node uses it: that node's first
  // output.
  mlir::StringAttr use;
};

// Adds to the location of the operation that gives the value.
void mark(mlir::Value value, llvm::StringRef tensor, llvm::StringRef use = {});

std::vector<Mark> marksOf(mlir::Location loc);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_MARKS_H_
