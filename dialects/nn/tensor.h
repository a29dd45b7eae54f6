// A tensor of plain numbers for reference implementations.
//
// It is slow and obvious on purpose. Elements are row-major. Floats of any
// width are stored as double and integers (including i1) as int64_t. `set`
// rounds to the element type, so a bf16 tensor holds bf16 values. Integers are
// sign-extended from the element type's width (i1 is 0 or 1).
#ifndef PARTITA_DIALECTS_NN_TENSOR_H_
#define PARTITA_DIALECTS_NN_TENSOR_H_

#include <cstdint>
#include <vector>

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Support/LLVM.h"

namespace partita::nn {

// The multi-dimensional index of a row-major position in a tensor of this
// shape.
llvm::SmallVector<int64_t> indexAt(llvm::ArrayRef<int64_t> shape,
                                   int64_t position);

class Tensor {
 public:
  // All elements 0.
  explicit Tensor(mlir::RankedTensorType type);

  // Converts a dense constant of any element type, including splats.
  static Tensor fromAttr(mlir::DenseElementsAttr attr);
  // Reads row-major little-endian elements (i1: one byte each). Fails if the
  // number of bytes does not fit the type.
  static mlir::FailureOr<Tensor> fromBytes(mlir::RankedTensorType type,
                                           llvm::ArrayRef<char> bytes);

  mlir::DenseElementsAttr toAttr() const;
  std::vector<char> toBytes() const;

  mlir::RankedTensorType type() const { return type_; }
  llvm::ArrayRef<int64_t> shape() const { return type_.getShape(); }
  int64_t rank() const { return type_.getRank(); }
  int64_t size() const { return size_; }
  bool isFloat() const { return float_type_ != nullptr; }

  // The element at a row-major position. `getFloat` requires a float tensor,
  // `getInt` an integer tensor.
  double getFloat(int64_t position) const { return floats_[position]; }
  int64_t getInt(int64_t position) const { return ints_[position]; }
  void setFloat(int64_t position, double value);
  void setInt(int64_t position, int64_t value);
  // Copies one element of a tensor of the same element type.
  void copyFrom(int64_t position, const Tensor& source,
                int64_t source_position);

  // The row-major position of an index, and the inverse.
  int64_t position(llvm::ArrayRef<int64_t> index) const;
  llvm::SmallVector<int64_t> index(int64_t position) const {
    return indexAt(shape(), position);
  }

 private:
  mlir::RankedTensorType type_;
  int64_t size_;
  mlir::FloatType float_type_;  // null for integers
  std::vector<double> floats_;
  std::vector<int64_t> ints_;
};

// Rounds to the nearest value of a float type (ties to even).
double roundToType(double value, mlir::FloatType type);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_TENSOR_H_
