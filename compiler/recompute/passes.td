// Passes that choose what the backward pass recomputes.
#ifndef PARTITA_COMPILER_RECOMPUTE_PASSES_TD
#define PARTITA_COMPILER_RECOMPUTE_PASSES_TD

include "mlir/Pass/PassBase.td"

def MarkRecomputationPass : Pass<"partita-mark-recomputation", "::mlir::ModuleOp"> {
  let summary = "Marks each operation with the plan's recompute policy for its layer";
  let description = [{
    The last rule that matches an operation's layer wins. Functions whose calls have different policies are copied.
    Operations that no rule matches get no mark.

    ```mlir
    // rules="full@h.0"
    %0 = call @h(%x, %w0) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %1 = call @h(%0, %w1) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    // becomes, with marks on the operations of @h
    %0 = call @h(%x, %w0) {recompute = "full"} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %1 = call @h_0(%0, %w1) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    ```
  }];
  let options = [Option<"rules", "rules", "std::string", /*default=*/"\"\"", "Policies by layer, e.g. selective;full@h.*">];
}

#endif  // PARTITA_COMPILER_RECOMPUTE_PASSES_TD
