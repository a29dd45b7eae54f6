// Passes that make one device's program.
#ifndef PARTITA_COMPILER_PARTITION_PASSES_TD
#define PARTITA_COMPILER_PARTITION_PASSES_TD

include "mlir/Pass/PassBase.td"

def PartitionPass : Pass<"partita-partition", "::mlir::ModuleOp"> {
  let summary = "Converts to local shapes and inserts collectives";
  let description = [{
    Replaces every operation by its local form. If an operation needs a value in
    another placement, inserts the cheapest sequence of collectives, once for all
    equal uses. Partial results are reduced at their definition, directly into
    their annotated placement. The program is the same for every device.

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

def HoldGathersPass : Pass<"partita-hold-gathers", "::mlir::ModuleOp"> {
  let summary = "Gathers parameters in @main, not in each layer";
  let description = [{
    In functions that only @main calls, gathers that depend on parameters alone
    move in front of each call, with the operations that they depend on. Their
    results become arguments. Equal gathers, of the backward pass and of other
    microbatches, are then merged, and the result is held for the whole step:
    `gather: {hold: step}`.

    ```mlir
    func.func private @layer(%x: tensor<4xf32>, %w: tensor<2xf32>) -> tensor<4xf32> {
      %0 = dist.all_gather %w over ["data"] dim = 0 : tensor<2xf32> -> tensor<4xf32>
      %1 = arith.addf %x, %0 : tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    // becomes, with the gather in front of its calls,
    func.func private @layer(%x: tensor<4xf32>, %w: tensor<2xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
      %1 = arith.addf %x, %g : tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    ```
  }];
  let statistics = [Statistic<"gathers", "gathers", "Gathers moved, counted once per function">];
}

def MergeCollectivesPass : Pass<"partita-merge-collectives", "::mlir::ModuleOp"> {
  let summary = "Merges collectives on small tensors";
  let description = [{
    Merges all-reduces, reduce-scatters or all-gathers of one function over the
    same axes, as long as no operation reads their results. Sums over
    microbatches are exempt: they are delayed. Gradients are therefore reduced,
    and parameters gathered, in buckets. A bucket is full at `bucket-bytes`.
    Scalars and tensors of at least this size are sent alone. A bucket
    concatenates its tensors; the scattered or gathered dimension comes first.

    ```mlir
    %0 = dist.all_reduce %x over ["data"] sum : tensor<4x6xf32>
    %1 = dist.all_reduce %y over ["data"] sum : tensor<8xf32>
    // becomes
    %a = nn.reshape %x : tensor<4x6xf32> -> tensor<1x24xf32>
    %b = nn.reshape %y : tensor<8xf32> -> tensor<1x8xf32>
    %c = nn.concat %a, %b axis = 1 : (tensor<1x24xf32>, tensor<1x8xf32>) -> tensor<1x32xf32>
    %d = dist.all_reduce %c over ["data"] sum : tensor<1x32xf32>
    // and slices of %d
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::partita::nn::NNDialect"];
  let options = [Option<"bucket_bytes", "bucket-bytes", "int64_t", /*default=*/"::partita::core::kBucketBytes",
                        "Size of a full bucket in bytes (default: 25 MiB, as in PyTorch's DistributedDataParallel)">];
}

#endif  // PARTITA_COMPILER_PARTITION_PASSES_TD
