// Passes from nn operations to exec operations.
#ifndef PARTITA_COMPILER_KERNELS_PASSES_TD
#define PARTITA_COMPILER_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerCollectivesPass : Pass<"partita-lower-collectives", "::mlir::ModuleOp"> {
  let summary = "Turns dist operations of a partitioned program into exec.collective and arguments";
  let description = [{
    Axes become numbers: of a mesh's axis, with `pre` and `size`. A group of one
    device needs no collective. What differs between devices, `dist.coordinate`,
    becomes an argument of the public functions (`nn.kind` "coordinate", `nn.axes`
    as in `exec.collective`) and of the private ones that need it, one per
    distinct list of axes. Attributes of `dist` and `nn` on operations, which
    have served their purpose, are dropped.

    ```mlir
    dist.mesh @mesh <["data"=2, "tensor"=4]>
    func.func @main(%x: tensor<4x2xf32>) -> tensor<4x7xf32> {
      %0 = dist.all_gather %x over ["tensor"] dim = 1 : tensor<4x2xf32> -> tensor<4x7xf32>
    // becomes
      %0 = exec.collective all_gather %x axes = [1, 1, 4] {dim = 1 : i64} : tensor<4x2xf32> -> tensor<4x7xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::partita::exec::ExecDialect"];
  let statistics = [Statistic<"collectives", "collectives", "Collectives lowered">];
}

def ExpandGradientsPass : Pass<"partita-expand-gradients", "::mlir::ModuleOp"> {
  let summary = "Writes gradients with operations that libraries and kernels know";
  let description = [{
    `nn.reduce_window_grad` is decomposed, and so is `nn.attention_grad` with a softcap, or with a gradient of
    the bias that is summed over more than the batch; else it has a kernel, which keeps no L x S matrix.

    ```mlir
    %d = nn.reduce_window_grad sum %g window = [3] strides = [2] ... : (tensor<4xf32>) -> tensor<8xf32>
    // becomes
    %p = nn.pad %g ... : tensor<4xf32> -> tensor<10xf32>
    %d = nn.reduce_window sum %p window = [3] strides = [1] ... : tensor<10xf32> -> tensor<8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::partita::nn::NNDialect"];
}

def ChooseLayoutsPass : Pass<"partita-choose-layouts", "::mlir::ModuleOp"> {
  let summary = "Turns convolutions to channels-last and moves the transposes out of the way";
  let description = [{
    Vector code and the convolution library both prefer the channel to be the
    last dimension. Each `nn.conv`, like each of its gradients, is made `channels_last` between
    transposes; transposes then sink below elementwise operations, reductions,
    windows, concatenations and reshapes until they meet their inverse. Private
    functions leave transposes of their arguments and results to the callers.

    ```mlir
    %y = nn.conv %x, %w ... : tensor<1x3x8x8xf32>, ...
    // becomes
    %t = nn.transpose %x perm = [0, 2, 3, 1]
    %c = nn.conv %t, %w ... channels_last
    %y = nn.transpose %c perm = [0, 3, 1, 2]
    ```
  }];
  let dependentDialects = ["::partita::nn::NNDialect"];
}

def SelectLibraryCallsPass : Pass<"partita-select-library-calls", "::mlir::ModuleOp"> {
  let summary = "Gives matrix products and convolutions to libraries";
  let description = [{
    `nn.dot_general` becomes `exec.gemm` with transposes and reshapes of its
    operands absorbed into strides, `nn.conv` and its gradients become `exec.conv`; a bias added
    to the result joins the call. 16-bit floats stay 16 bits wide, and are summed in f32. Products the libraries
    do not know (integers, f64, empty ones) stay and become generated kernels.

    ```mlir
    %0 = nn.dot_general %x, %w contract = [1] x [1] : tensor<2x3xf32>, tensor<4x3xf32> -> tensor<2x4xf32>
    // becomes
    %0 = exec.gemm %x, %w sizes = [1, 2, 4, 3] lhs_strides = [6, 3, 1] rhs_strides = [0, 1, 3] : ...
    ```
  }];
  let dependentDialects = ["::partita::exec::ExecDialect", "::partita::nn::NNDialect"];
  let statistics = [Statistic<"gemms", "gemms", "Matrix products given to the library">,
                    Statistic<"convs", "convs", "Convolutions given to the library">,
                    Statistic<"copies", "copies", "Operands that had to be brought into another order first">];
}

def SplitReductionsPass : Pass<"partita-split-reductions", "::mlir::ModuleOp"> {
  let summary = "Reduces in several steps what has too few results to fill a GPU";
  let description = [{
    A warp computes neighbouring results of a reduction, or one result, reading
    one row after the other: with few results most of a GPU would be idle. Such a
    reduction (a bias's gradient, the scale's of a norm, a batch's statistics,
    the norm of all gradients) is cut: parts of the reduced dimensions first, by
    many warps, then the parts, or parts of those. Into how many is what the model
    of time in the pass finds best, among those that divide the sizes: one of a prime
    size stays whole. Sums of 16-bit floats stay f32 between the steps. Batch norms
    in training whose statistics are such reductions are written with them for this.

    ```mlir
    %0 = nn.reduce sum %x dims = [0] : tensor<8192x768xf32> -> tensor<768xf32>
    // becomes
    %1 = nn.reshape %x : tensor<8192x768xf32> -> tensor<512x16x768xf32>
    %2 = nn.reduce sum %1 dims = [1] : tensor<512x16x768xf32> -> tensor<512x768xf32>
    %3 = nn.reshape %2 : tensor<512x768xf32> -> tensor<16x32x768xf32>
    %4 = nn.reduce sum %3 dims = [1] : tensor<16x32x768xf32> -> tensor<16x768xf32>
    %0 = nn.reduce sum %4 dims = [0] : tensor<16x768xf32> -> tensor<768xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::partita::nn::NNDialect"];
  let statistics = [Statistic<"steps", "steps", "Steps added to reductions">];
}

def FormKernelsPass : Pass<"partita-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Groups everything that is not a library call into kernels";
  let description = [{
    Elementwise operations, reductions and row operations (softmax, norms) that
    walk the same rows become one kernel; data movement is an index map inside
    the kernels that read it. Each kernel is a private function marked
    `exec.kernel`, launched by `exec.launch`; equal kernels are one function.
    Reshapes between kernels are `exec.view`. A private function that is one
    launch is put in the place of its calls.

    ```mlir
    %0 = arith.addf %x, %y : tensor<4x8xf32>
    %1 = nn.softmax %0 axis = 1 : tensor<4x8xf32>
    // becomes
    %1 = exec.launch @kernel_0(%x, %y) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    ```
  }];
  let dependentDialects = ["::partita::exec::ExecDialect", "::mlir::func::FuncDialect"];
  let statistics = [Statistic<"kernels", "kernels", "Distinct kernels">,
                    Statistic<"launches", "launches", "Launches written">];
}

def CountWorkPass : Pass<"partita-count-work", "::mlir::ModuleOp"> {
  let summary = "Writes onto launches what their kernels compute and leave unread";
  let description = [{
    Operands do not tell how many operations attention takes, nor how much of a tensor a kernel
    reads that cuts a slice out of it. Kernels' bodies do: each launch gets `operations` and `unread`, where they are not 0.

    ```mlir
    func.func private @k(%x: tensor<8xf32>) -> tensor<2xf32> attributes {exec.kernel} {
      %0 = nn.slice %x starts = [4] strides = [1] : tensor<8xf32> -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }
    // makes of each launch
    %y = exec.launch @k(%x) {unread = 24 : i64} : (tensor<8xf32>) -> tensor<2xf32>
    ```
  }];
}

def SplitLaunchesPass : Pass<"partita-split-launches", "::mlir::ModuleOp"> {
  let summary = "Makes one launch for each part of a kernel whose code is several";
  let description = [{
    Code generation for GPUs writes some kernels as several, which run one after the other with the same operands
    (`kernel.parts`). The first of their launches has the offsets that were planned; each other goes on with its results.
    Parts other than the last, which is the kernel itself, become functions without a body.

    ```mlir
    %y = exec.launch @k(%x) {exec.offsets = array<i64: 0>} : (tensor<8xf32>) -> tensor<8xf32>
    // becomes
    %0 = exec.launch @k_part_0(%x) {exec.offsets = array<i64: 0>} : (tensor<8xf32>) -> tensor<8xf32>
    %y = exec.launch @k(%x) into(%0 : tensor<8xf32>) : (tensor<8xf32>) -> tensor<8xf32>
    ```
  }];
  let statistics = [Statistic<"added", "added", "Launches added">];
}

#endif  // PARTITA_COMPILER_KERNELS_PASSES_TD
