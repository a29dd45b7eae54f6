// Seeing through broadcasts, reshapes and transposes: what pattern matching on
// written-out models needs everywhere.
#ifndef PARTITA_COMPILER_SIMPLIFY_VIEW_H_
#define PARTITA_COMPILER_SIMPLIFY_VIEW_H_

#include <optional>

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace partita::simplify {

mlir::RankedTensorType tensorType(mlir::Value value);

// A tensor as seen from another, larger one that repeats it: dimension i of
// `value` runs along dimension `dims[i]` of the larger one. Entries of
// dimensions of size 1 mean nothing.
struct View {
  mlir::Value value;
  mlir::SmallVector<int64_t> dims;

  // The entries of `dims` for dimensions larger than 1.
  mlir::SmallVector<int64_t> largeDims() const;
};

// A value seen from itself.
View viewOf(mlir::Value value);
// The same tensor behind broadcasts, and behind reshapes that only add or drop
// dimensions of size 1.
View peel(View view);
// An operand that has the shape of the elementwise operation that defines
// `view`.
View operandOf(const View& view, unsigned operand);

// The value, seen through broadcasts and reshapes, as a constant with all
// elements equal; null if it is not one.
mlir::DenseElementsAttr splatConstant(mlir::Value value);
// The number that all elements of a floating-point constant are, seen through
// broadcasts and reshapes.
std::optional<double> splatOf(mlir::Value value);

// What a reduction over `dims` of `input` is taken from.
struct Reduced {
  mlir::Value input;
  mlir::SmallVector<int64_t> dims;

  bool operator==(const Reduced& other) const {
    return input == other.input && dims == other.dims;
  }
};

// `view`, seen from a tensor of the reduction's input shape, is a reduction
// whose result is repeated along the reduced dimensions.
std::optional<Reduced> matchSum(const View& view,
                                mlir::ArrayRef<int64_t> shape);
std::optional<Reduced> matchMax(const View& view,
                                mlir::ArrayRef<int64_t> shape);
// As a sum divided by the number of summands, or multiplied by its inverse.
std::optional<Reduced> matchMean(const View& view,
                                 mlir::ArrayRef<int64_t> shape);

// Builders that compose with a reshape or transpose that defines `value`, and
// build nothing where nothing changes.
mlir::Value buildReshape(mlir::OpBuilder& builder, mlir::Location loc,
                         mlir::Value value, mlir::ArrayRef<int64_t> shape);
mlir::Value buildTranspose(mlir::OpBuilder& builder, mlir::Location loc,
                           mlir::Value value, mlir::ArrayRef<int64_t> perm);
// The view's tensor, repeated to the shape of the larger one.
mlir::Value buildBroadcast(mlir::OpBuilder& builder, mlir::Location loc,
                           const View& view, mlir::ArrayRef<int64_t> shape);
// A constant with all elements equal, of a tensor type with float elements.
mlir::Value buildSplat(mlir::OpBuilder& builder, mlir::Location loc,
                       mlir::RankedTensorType type, double value);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_VIEW_H_
