// The code generator's interface to an operation.
#ifndef PARTITA_COMPILER_KERNELS_KERNEL_OP_INTERFACE_TD
#define PARTITA_COMPILER_KERNELS_KERNEL_OP_INTERFACE_TD

include "mlir/IR/OpBase.td"

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::partita::kernels";
  let description = [{
    Computes an operation on whole tensors element by element. External models attach it to `arith`, `math` and `nn`
    operations (`registerKernelModels`).
  }];
  let methods = [
    InterfaceMethod<[{
        Emits code for the element at `index` of result number `result`. Asks the emitter for elements of operands,
        which emits each of them once. Emits a diagnostic on failure.
      }],
      "::mlir::FailureOr<::partita::kernels::Lanes>", "emitElement",
      (ins "::partita::kernels::Emitter &":$emitter, "unsigned":$result, "::llvm::ArrayRef<::partita::kernels::Index>":$index)>,
    InterfaceMethod<"How the operation may be fused with its neighbours.",
      "::partita::kernels::KernelRole", "kernelRole", (ins)>
  ];
}

#endif  // PARTITA_COMPILER_KERNELS_KERNEL_OP_INTERFACE_TD
