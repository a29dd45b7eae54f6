// Passes that choose what is kept.
#ifndef PARTITA_COMPILER_RECOMPUTE_PASSES_TD
#define PARTITA_COMPILER_RECOMPUTE_PASSES_TD

include "mlir/Pass/PassBase.td"

def MarkRecomputationPass : Pass<"partita-mark-recomputation", "::mlir::ModuleOp"> {
  let summary = "Gives each operation the policy that a plan has for its layer";
  let description = [{
    Of the rules that hold an operation's layer the last one counts. Functions
    whose calls ask for different policies become different functions.
    Operations that no rule holds get no mark.

    ```mlir
    // rules="full@h.0"
    %0 = call @h(%x, %w0) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %1 = call @h(%0, %w1) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    // becomes, the operations of @h having the mark
    %0 = call @h(%x, %w0) {recompute = "full"} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %1 = call @h_0(%0, %w1) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    ```
  }];
  let options = [Option<"rules", "rules", "std::string", /*default=*/"\"\"", "As in selective;full@h.*">];
}

#endif  // PARTITA_COMPILER_RECOMPUTE_PASSES_TD
