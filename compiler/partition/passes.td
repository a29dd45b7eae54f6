// Passes that make one device's program.
#ifndef PARTITA_COMPILER_PARTITION_PASSES_TD
#define PARTITA_COMPILER_PARTITION_PASSES_TD

include "mlir/Pass/PassBase.td"

def PartitionPass : Pass<"partita-partition", "::mlir::ModuleOp"> {
  let summary = "Makes local shapes and inserts collectives";
  let description = [{
    Every operation gets its local form; every difference between how a value
    lies and how an operation needs it becomes the cheapest sequence of
    collectives, once for all equal uses. Partial results go at their definition
    directly to where they are wanted. The program is the same for every device.

    ```mlir
    dist.mesh @mesh <["data"=2]>
    func.func @main(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<[{"data"}, {} ]> }) -> tensor<6xf32> {
      %0 = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<[{ } ]>]} : tensor<8x6xf32> -> tensor<6xf32>
      return %0 : tensor<6xf32>
    }
    // becomes
    func.func @main(%x: tensor<4x6xf32> ...) -> (tensor<6xf32> ...) {
      %0 = nn.reduce sum %x dims = [0] : tensor<4x6xf32> -> tensor<6xf32>
      %1 = dist.all_reduce %0 over ["data"] sum : tensor<6xf32>
      return %1 : tensor<6xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::partita::nn::NNDialect", "::partita::dist::DistDialect"];
}

#endif  // PARTITA_COMPILER_PARTITION_PASSES_TD
