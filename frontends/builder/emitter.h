// Builds nn, arith and math operations. It makes explicit what models leave
// implicit: broadcasting, signs of integers, folding of constants.
//
// Operations with only constant operands and a small result are evaluated at
// once, so shape code never reaches the module. A wrong operand (e.g. shapes
// that do not broadcast) is reported once at the location. After that the
// emitter continues with zeros of the right shape, and `failed()` is true.
#ifndef PARTITA_FRONTENDS_BUILDER_EMITTER_H_
#define PARTITA_FRONTENDS_BUILDER_EMITTER_H_

#include <cstdint>
#include <string>

#include "dialects/nn/dialect.h"
#include "frontends/builder/element_type.h"
#include "mlir/IR/Builders.h"

namespace partita::builder {

using Shape = llvm::SmallVector<int64_t>;
using Dims = llvm::ArrayRef<int64_t>;

// A tensor, with a flag for unsigned integers (nn types are signless).
struct Val {
  mlir::Value value;
  bool is_unsigned = false;

  explicit operator bool() const { return static_cast<bool>(value); }
  mlir::RankedTensorType type() const {
    return mlir::cast<mlir::RankedTensorType>(value.getType());
  }
  mlir::Type element() const { return type().getElementType(); }
  ElementType elementType() const { return {element(), is_unsigned}; }
  Dims shape() const { return type().getShape(); }
  int64_t rank() const { return type().getRank(); }
  int64_t dim(int64_t i) const { return shape()[i]; }
  int64_t size() const { return type().getNumElements(); }
  bool isFloat() const { return mlir::isa<mlir::FloatType>(element()); }
  bool isBool() const { return element().isInteger(1); }
  // The constant, or null if the value is not constant.
  mlir::DenseElementsAttr constant() const;
};

enum class Compare { eq, ne, lt, le, gt, ge };

class Emitter {
 public:
  Emitter(mlir::OpBuilder builder)
      : builder_(builder), loc_(builder.getUnknownLoc()) {}

  mlir::OpBuilder& builder() { return builder_; }
  mlir::Location loc() const { return loc_; }
  // Starts a new node: sets the location and clears the failure.
  void start(mlir::Location loc);
  bool failed() const { return failed_; }
  // Reports an error, at most once per node.
  void error(const llvm::Twine& message);

  // Types.
  mlir::Type f32() { return builder_.getF32Type(); }
  mlir::Type i64() { return builder_.getI64Type(); }
  mlir::RankedTensorType tensor(Dims shape, mlir::Type element);

  // Constants.
  Val constant(mlir::DenseElementsAttr attr, bool is_unsigned = false);
  Val ints(Dims values);  // a vector of i64
  Val ints(Dims values, Dims shape);
  Val reals(llvm::ArrayRef<double> values, Dims shape, mlir::Type element);
  Val bools(const llvm::SmallVector<bool>& values, Dims shape);
  Val splat(double value, ElementType element, Dims shape = {});
  Val splat(double value, mlir::Type element, Dims shape = {}) {
    return splat(value, ElementType{element}, shape);
  }
  Val splatLike(double value, Val like) {
    return splat(value, like.elementType(), like.shape());
  }
  // The neutral element of a reduction, as a scalar.
  Val neutral(nn::ReduceKind kind, ElementType element);

  // Data movement. `broadcast` aligns shapes on the right, like NumPy;
  // `broadcastDims` maps dimension i to dims[i].
  Val broadcast(Val input, Dims shape);
  Val broadcastDims(Val input, Dims shape, Dims dims);
  Val reshape(Val input, Dims shape);
  Val transpose(Val input, Dims perm);
  Val slice(Val input, Dims starts, Dims sizes, Dims strides);
  Val sliceDim(Val input, int64_t dim, int64_t start, int64_t size,
               int64_t stride = 1);
  Val reverse(Val input, int64_t dim);
  // Negative padding crops. `value` is a scalar and is used only in mode
  // `constant`.
  Val pad(Val input, Val value, Dims low, Dims high,
          nn::PadMode mode = nn::PadMode::constant);
  Val concat(llvm::ArrayRef<Val> inputs, int64_t axis);
  Val gather(Val input, Val indices, Dims axes, int64_t batch_dims = 0);
  Val scatter(Val input, Val indices, Val updates, Dims axes,
              nn::ScatterKind kind, int64_t batch_dims = 0);
  Val iota(Dims shape, int64_t dim, mlir::Type element);
  // Random f32 in [0, 1); `seed` is a scalar i64.
  Val uniform(Val seed, Dims shape);
  // Adds `size` to negative indices, which count from the end.
  Val wrapIndices(Val indices, int64_t size);

  // Elementwise operations with broadcasting. Element types must agree;
  // booleans use and / or.
  Val add(Val a, Val b);
  Val sub(Val a, Val b);
  Val mul(Val a, Val b);
  Val div(Val a, Val b);
  Val remainder(Val a, Val b);  // with the sign of a
  Val maximum(Val a, Val b);
  Val minimum(Val a, Val b);
  Val bitAnd(Val a, Val b);
  Val bitOr(Val a, Val b);
  Val bitXor(Val a, Val b);
  Val compare(Compare kind, Val a, Val b);
  Val select(Val condition, Val a, Val b);
  // The second operand is a scalar constant of a's type.
  Val add(Val a, double b) { return add(a, splat(b, a.elementType())); }
  Val sub(Val a, double b) { return sub(a, splat(b, a.elementType())); }
  Val mul(Val a, double b) { return mul(a, splat(b, a.elementType())); }
  Val div(Val a, double b) { return div(a, splat(b, a.elementType())); }
  Val maximum(Val a, double b) { return maximum(a, splat(b, a.elementType())); }
  Val minimum(Val a, double b) { return minimum(a, splat(b, a.elementType())); }
  Val compare(Compare kind, Val a, double b) {
    return compare(kind, a, splat(b, a.elementType()));
  }

  Val neg(Val a);
  Val abs(Val a);
  Val logicalNot(Val a);
  Val sigmoid(Val a);
  Val cast(Val a, ElementType to);
  Val cast(Val a, mlir::Type to) { return cast(a, ElementType{to}); }
  // Any other arith or math operation with one operand and a result of its
  // type.
  template <typename OpT>
  Val unary(Val a) {
    return {create<OpT>(a.value), a.is_unsigned};
  }
  template <typename OpT>
  Val binary(Val a, Val b) {
    if (!unify(a, b)) return a;
    return {create<OpT>(a.value, b.value), a.is_unsigned};
  }

  // Reduction (dims in any order) and contraction. Unsigned integers compare as
  // unsigned.
  Val reduce(nn::ReduceKind kind, Val input, Dims dims, bool keep_dims);
  Val mean(Val input, Dims dims, bool keep_dims);
  Val reduceWindow(nn::ReduceKind kind, Val input, Dims window, Dims strides,
                   Dims dilations, Dims low, Dims high);
  Val dot(Val lhs, Val rhs, Dims lhs_batch, Dims rhs_batch, Dims lhs_contract,
          Dims rhs_contract);
  // NumPy's matmul, including vectors and batches.
  Val matmul(Val lhs, Val rhs);
  Val softmax(Val input, int64_t axis, bool log = false);

  // Creates, verifies and folds an operation; returns its first result.
  template <typename OpT, typename... Args>
  mlir::Value create(Args&&... args) {
    return finish(OpT::create(builder_, loc_, std::forward<Args>(args)...))[0];
  }
  llvm::SmallVector<mlir::Value> finish(mlir::Operation* op);

  // The shape to which both broadcast. Reports an error if there is none.
  Shape broadcastShape(Dims a, Dims b);

 private:
  // Broadcasts an operand. A mask that is combined with computed values is not
  // folded, because the folded constant would have a copy for every head.
  Val spread(Val input, Dims shape, bool folds);
  // Broadcasts both values to one shape; false after an error.
  bool unify(Val& a, Val& b);
  template <typename FloatOp, typename SignedOp, typename UnsignedOp>
  Val arithmetic(Val a, Val b);
  mlir::Value castFloats(mlir::Value value, mlir::FloatType from,
                         mlir::FloatType to);

  mlir::OpBuilder builder_;
  mlir::Location loc_;
  bool failed_ = false;
};

// A shape for messages: "[2, 3]".
std::string toString(Dims shape);

// Returns 0, 1, ..., count - 1.
Shape countUp(int64_t count);
// The permutation that undoes `perm`.
Shape inversePermutation(Dims perm);
int64_t product(Dims sizes);

}  // namespace partita::builder

#endif  // PARTITA_FRONTENDS_BUILDER_EMITTER_H_
