// Builds arith, math and nn operations on tensors in a notation close to
// formulas.
//
// Operands of binary operations must have equal types. A double is a splat of
// the other operand's type.
#ifndef PARTITA_DIALECTS_NN_MATH_BUILDER_H_
#define PARTITA_DIALECTS_NN_MATH_BUILDER_H_

#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::nn {

class MathBuilder {
 public:
  using Value = mlir::Value;
  using Type = mlir::RankedTensorType;

  MathBuilder(mlir::OpBuilder& builder, mlir::Location loc)
      : builder_(builder), loc_(loc) {}

  static Type typeOf(Value x) { return mlir::cast<Type>(x.getType()); }
  mlir::Type i1() { return builder_.getI1Type(); }
  mlir::Type i64() { return builder_.getI64Type(); }

  // Splats.
  Value constant(Type type, double value);
  Value constantInt(Type type, int64_t value);

  // Floats.
  Value add(Value x, Value y);
  Value subtract(Value x, Value y);
  Value multiply(Value x, Value y);
  Value divide(Value x, Value y);
  Value add(Value x, double y) { return add(x, constant(typeOf(x), y)); }
  Value multiply(Value x, double y) {
    return multiply(x, constant(typeOf(x), y));
  }
  Value divide(Value x, double y) { return divide(x, constant(typeOf(x), y)); }
  Value exp(Value x);
  Value log(Value x);
  Value sqrt(Value x);
  Value rsqrt(Value x);
  Value cos(Value x);
  Value tanh(Value x);

  // Integers.
  Value addInt(Value x, Value y);
  Value multiplyInt(Value x, Value y);
  Value andInt(Value x, Value y);
  Value xorInt(Value x, Value y);
  Value shiftRight(Value x, Value y);
  Value addInt(Value x, int64_t y) {
    return addInt(x, constantInt(typeOf(x), y));
  }
  Value multiplyInt(Value x, int64_t y) {
    return multiplyInt(x, constantInt(typeOf(x), y));
  }
  Value andInt(Value x, int64_t y) {
    return andInt(x, constantInt(typeOf(x), y));
  }
  Value shiftRight(Value x, int64_t y) {
    return shiftRight(x, constantInt(typeOf(x), y));
  }
  Value divideInt(Value x, int64_t y);  // rounds towards 0
  Value clampInt(Value x, int64_t low, int64_t high);

  // Selection.
  Value compare(mlir::arith::CmpFPredicate predicate, Value x, Value y);
  Value compare(mlir::arith::CmpIPredicate predicate, Value x, Value y);
  Value select(Value condition, Value x, Value y);

  // Element types. Floats of 16 bits or less are computed in f32.
  Value widen(Value x);
  Value narrow(Value x, Type type);
  Value asFloat(Value x, mlir::Type element);  // x is of floats
  Value toFloat(Value x, mlir::Type element);

  // nn operations.
  Value reshape(Value x, llvm::ArrayRef<int64_t> shape);
  Value broadcast(Value x, Type type, llvm::ArrayRef<int64_t> dims);
  Value reduce(ReduceKind kind, Value x, llvm::ArrayRef<int64_t> dims);
  // Repeats a reduction's result along the reduced dimensions of `like`.
  Value spread(Value reduced, Value like, llvm::ArrayRef<int64_t> dims);
  Value dotGeneral(Value x, Value y, llvm::ArrayRef<int64_t> x_batch,
                   llvm::ArrayRef<int64_t> y_batch,
                   llvm::ArrayRef<int64_t> x_contract,
                   llvm::ArrayRef<int64_t> y_contract);
  Value iota(Type type, int64_t dim);
  // Takes one element of each row: [..., m] at indices [..., 1] gives [...].
  Value gatherPerRow(Value rows, Value columns);
  // Takes rows of x by their numbers, a vector.
  Value takeRows(Value x, Value numbers);
  // The first `size` elements of a dimension.
  Value firstOf(Value x, int64_t dim, int64_t size);
  Value elements(mlir::DenseElementsAttr elements);

 private:
  mlir::OpBuilder& builder_;
  mlir::Location loc_;
};

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_MATH_BUILDER_H_
