// What the code generator needs to know about an operation.
#ifndef PARTITA_COMPILER_KERNELS_KERNEL_OP_INTERFACE_TD
#define PARTITA_COMPILER_KERNELS_KERNEL_OP_INTERFACE_TD

include "mlir/IR/OpBase.td"

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::partita::kernels";
  let description = [{
    How an operation on whole tensors is computed element by element. External models give it to `arith`, `math` and
    `nn` operations (`registerKernelModels`).
  }];
  let methods = [
    InterfaceMethod<[{
        Emits code for the element at `index` of result number `result`. Operands' elements are asked of the
        emitter, which emits each once. Emits a diagnostic where it fails.
      }],
      "::mlir::FailureOr<::partita::kernels::Lanes>", "emitElement",
      (ins "::partita::kernels::Emitter &":$emitter, "unsigned":$result, "::llvm::ArrayRef<::partita::kernels::Index>":$index)>,
    InterfaceMethod<"What fusing the operation with its neighbours means.",
      "::partita::kernels::KernelRole", "kernelRole", (ins)>
  ];
}

#endif  // PARTITA_COMPILER_KERNELS_KERNEL_OP_INTERFACE_TD
