// Checks shared by several verifiers. Each emits its own diagnostic: expected,
// then found.
#ifndef PARTITA_DIALECTS_NN_VERIFY_H_
#define PARTITA_DIALECTS_NN_VERIFY_H_

#include <string>

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace partita::nn {

// "[1, 2]"
std::string listToString(llvm::ArrayRef<int64_t> values);

// Requires `count` entries of at least `minimum` in `values`, called `name` in
// the message.
mlir::LogicalResult checkEntries(mlir::Operation* op, llvm::StringRef name,
                                 llvm::ArrayRef<int64_t> values, int64_t count,
                                 int64_t minimum);
// Requires 0 <= dim < rank.
mlir::LogicalResult checkDim(mlir::Operation* op, llvm::StringRef name,
                             int64_t dim, int64_t rank);
// Requires `dims` to be distinct dimensions of a tensor of this rank, at or
// above `first`.
mlir::LogicalResult checkDistinctDims(mlir::Operation* op, llvm::StringRef name,
                                      llvm::ArrayRef<int64_t> dims,
                                      int64_t rank, int64_t first = 0);
// Requires all types to have the element type of the first.
mlir::LogicalResult checkElementTypes(mlir::Operation* op,
                                      llvm::ArrayRef<mlir::Type> types);
mlir::LogicalResult checkType(mlir::Operation* op, llvm::StringRef name,
                              mlir::Type expected, mlir::Type found);
mlir::LogicalResult checkShape(mlir::Operation* op, llvm::StringRef name,
                               llvm::ArrayRef<int64_t> expected,
                               llvm::ArrayRef<int64_t> found);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_VERIFY_H_
