// The interface that builds the gradient of an operation.
#ifndef PARTITA_COMPILER_AUTODIFF_GRADIENT_TD
#define PARTITA_COMPILER_AUTODIFF_GRADIENT_TD

include "mlir/IR/OpBase.td"

def GradientOpInterface : OpInterface<"GradientOpInterface"> {
  let cppNamespace = "::partita::autodiff";
  let description = [{
    Builds the gradient of a differentiable operation. Implementations are
    external models, because `arith` and `math` belong to MLIR. Gradients consist
    of operations of nn, arith and math, so that partitioning and code generation
    need no support for training.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the gradient of each wanted operand from the results' gradients,
        at the gradient's builder, and passes it to `gradient.add`. An operand
        without such a call has a zero gradient. Fails with a diagnostic if the
        operation has no gradient with these attributes.
      }],
      "::mlir::LogicalResult", "buildGradient",
      (ins "::partita::autodiff::Gradient &":$gradient)>
  ];
}

#endif  // PARTITA_COMPILER_AUTODIFF_GRADIENT_TD
