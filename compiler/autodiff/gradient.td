// How gradients flow backwards through an operation.
#ifndef PARTITA_COMPILER_AUTODIFF_GRADIENT_TD
#define PARTITA_COMPILER_AUTODIFF_GRADIENT_TD

include "mlir/IR/OpBase.td"

def GradientOpInterface : OpInterface<"GradientOpInterface"> {
  let cppNamespace = "::partita::autodiff";
  let description = [{
    The gradient of a differentiable operation. Attached from outside (external
    models), as `arith` and `math` are not ours; written with operations of nn,
    arith and math, so that dividing and code generation need to know nothing of
    training.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds, at the gradient's builder, what each wanted operand gets of the
        results' gradients, and hands it over by `gradient.add`. An operand that
        gets nothing has a gradient of zero. Fails after a diagnostic where the
        operation has no gradient with these attributes.
      }],
      "::mlir::LogicalResult", "buildGradient",
      (ins "::partita::autodiff::Gradient &":$gradient)>
  ];
}

#endif  // PARTITA_COMPILER_AUTODIFF_GRADIENT_TD
