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

def HoldGathersPass : Pass<"partita-hold-gathers", "::mlir::ModuleOp"> {
  let summary = "Gathers parameters in @main, not in each layer";
  let description = [{
    In functions that only @main calls, gathers of nothing but parameters, with
    what they are computed of, go in front of each call, and their results become
    arguments. Equal ones, of the backward pass and of other microbatches, are
    then one, whose result is kept for the whole step: `gather: {hold: step}`.

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
  let statistics = [Statistic<"gathers", "gathers", "Number of gathers moved, counted in functions">];
}

def MergeCollectivesPass : Pass<"partita-merge-collectives", "::mlir::ModuleOp"> {
  let summary = "Sends small tensors together";
  let description = [{
    All-reduces, reduce-scatters and all-gathers of one function over the same
    axes become one while nothing but sums over microbatches, which wait, reads
    their results: gradients are reduced, and parameters gathered, in buckets. A bucket is full at `bucket-bytes`; what is
    as large is sent alone, as are scalars. Tensors lie side by side in a bucket,
    the dimension that is scattered or gathered first.

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
                        "Bytes of a full bucket (25 MiB, as PyTorch's DistributedDataParallel)">];
}

#endif  // PARTITA_COMPILER_PARTITION_PASSES_TD
