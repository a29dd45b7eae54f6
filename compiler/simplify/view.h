// Looks through broadcasts, reshapes and transposes, for patterns on models
// written out in primitives.
#ifndef PARTITA_COMPILER_SIMPLIFY_VIEW_H_
#define PARTITA_COMPILER_SIMPLIFY_VIEW_H_

#include <optional>

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace partita::simplify {

mlir::RankedTensorType tensorType(mlir::Value value);

// A tensor as part of a larger tensor that repeats it: dimension i of `value`
// runs along dimension `dims[i]` of the larger tensor. Entries for dimensions
// of size 1 have no meaning.
struct View {
  mlir::Value value;
  mlir::SmallVector<int64_t> dims;

  // Returns the entries of `dims` for dimensions larger than 1.
  mlir::SmallVector<int64_t> largeDims() const;
};

// Returns the view of a value from itself.
View viewOf(mlir::Value value);
// Looks through broadcasts, and through reshapes that only add or drop
// dimensions of size 1.
View peel(View view);
// Returns the view of an operand of the elementwise operation that defines
// `view`.
View operandOf(const View& view, unsigned operand);

// Returns the value as a splat constant, looking through broadcasts and
// reshapes; null if it is not one.
mlir::DenseElementsAttr splatConstant(mlir::Value value);
// Returns the number in a floating-point splat constant, looking through
// broadcasts and reshapes.
std::optional<double> splatOf(mlir::Value value);

// The operand and dimensions of a reduction.
struct Reduced {
  mlir::Value input;
  mlir::SmallVector<int64_t> dims;

  bool operator==(const Reduced& other) const {
    return input == other.input && dims == other.dims;
  }
};

// Matches a reduction whose result is repeated along the reduced dimensions.
// `view` is seen from a tensor of the reduction's input shape.
std::optional<Reduced> matchSum(const View& view,
                                mlir::ArrayRef<int64_t> shape);
std::optional<Reduced> matchMax(const View& view,
                                mlir::ArrayRef<int64_t> shape);
// Matches a sum divided by the number of summands, or multiplied by the
// inverse.
std::optional<Reduced> matchMean(const View& view,
                                 mlir::ArrayRef<int64_t> shape);

// Builders that merge with a reshape or transpose that defines `value`, and
// build nothing if nothing changes.
mlir::Value buildReshape(mlir::OpBuilder& builder, mlir::Location loc,
                         mlir::Value value, mlir::ArrayRef<int64_t> shape);
mlir::Value buildTranspose(mlir::OpBuilder& builder, mlir::Location loc,
                           mlir::Value value, mlir::ArrayRef<int64_t> perm);
// Broadcasts the view's tensor to the shape of the larger tensor.
mlir::Value buildBroadcast(mlir::OpBuilder& builder, mlir::Location loc,
                           const View& view, mlir::ArrayRef<int64_t> shape);
// Builds a splat constant of a float tensor type.
mlir::Value buildSplat(mlir::OpBuilder& builder, mlir::Location loc,
                       mlir::RankedTensorType type, double value);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_VIEW_H_
