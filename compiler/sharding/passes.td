// Passes that decide how a model is divided: from names of dimensions to a sharding on every value.
#ifndef PARTITA_COMPILER_SHARDING_PASSES_TD
#define PARTITA_COMPILER_SHARDING_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExposeFactorsPass : Pass<"partita-expose-factors", "::mlir::ModuleOp"> {
  let summary = "Makes every factor that can be divided the first of its dimension";
  let description = [{
    A dimension that is several factors can be divided along its first only.
    Exporters merge dimensions where a plan wants them apart; this pass undoes
    it, and computes the same numbers.

    Flattening moves behind what does not care for it, until the reshape that
    undoes it cancels it: products (of free dimensions), elementwise work,
    norms over other dimensions, gathers, reductions.

    ```mlir
    %0 = nn.reshape %x : tensor<4x8x32xf32> -> tensor<32x32xf32>
    %1 = nn.dot_general %0, %w contract = [1] x [0] : tensor<32x32xf32>, tensor<32x96xf32> -> tensor<32x96xf32>
    // becomes
    %0 = nn.dot_general %x, %w contract = [2] x [0] : tensor<4x8x32xf32>, tensor<32x96xf32> -> tensor<4x8x96xf32>
    %1 = nn.reshape %0 : tensor<4x8x96xf32> -> tensor<32x96xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::partita::nn::NNDialect"];
  let statistics = [Statistic<"sunk", "sunk", "Operations that a flattening moved behind">];
}

#endif  // PARTITA_COMPILER_SHARDING_PASSES_TD
