// A region on scalars, applied to whole tensors element by element.
#ifndef PARTITA_FRONTENDS_STABLEHLO_OPS_SCALAR_FUNCTION_H_
#define PARTITA_FRONTENDS_STABLEHLO_OPS_SCALAR_FUNCTION_H_

#include "frontends/stablehlo/op_context.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::stablehlo {

class ScalarFunction {
 public:
  // Imports region `region` of `n` once, for scalar arguments of these types.
  // Reports an error if it does more than compute with scalars.
  ScalarFunction(OpContext& n, unsigned region,
                 llvm::ArrayRef<ElementType> types);

  // The results for each element of tensors of one shape. Empty after an error.
  Values apply(llvm::ArrayRef<Val> arguments) const;

 private:
  OpContext& n_;
  mlir::OwningOpRef<mlir::func::FuncOp> body_;
  mlir::Block* block_ = nullptr;  // of body_
  Values results_;
};

}  // namespace partita::stablehlo

#endif  // PARTITA_FRONTENDS_STABLEHLO_OPS_SCALAR_FUNCTION_H_
