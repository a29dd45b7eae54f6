// Passes from nn operations to exec operations.
#ifndef PARTITA_COMPILER_KERNELS_PASSES_TD
#define PARTITA_COMPILER_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerCollectivesPass : Pass<"partita-lower-collectives", "::mlir::ModuleOp"> {
  let summary = "Lowers dist operations of a partitioned program to exec.collective and arguments";
  let description = [{
    Each part of a mesh axis becomes three numbers: the axis, `pre` and `size`. A group of one
    device needs no collective. `dist.coordinate`, which differs between devices,
    becomes an argument of the public functions (`nn.kind` "coordinate", `nn.axes`
    as in `exec.collective`) and of the private functions that need it, one per
    distinct list of axes. Attributes of `dist` and `nn` on operations are dropped,
    because later passes do not need them.

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

def ExpandExpertsPass : Pass<"partita-expand-experts", "::mlir::ModuleOp"> {
  let summary = "Rewrites mixtures of experts to products that libraries and kernels support";
  let description = [{
    `nn.experts` and its gradient become products of each row with the matrix of its index (`nn.grouped_dot` and
    its gradient), and elementwise operations between them. CPUs' libraries (`partita-select-library-calls`) and
    kernels for GPUs compute these products. The others (of f64, with indices of other types than i32 and i64, empty
    ones) are rewritten to products of every row with every matrix, with 0 in place of rows of other matrices.

    ```mlir
    %y = nn.grouped_dot %x[%ids], %w : tensor<6x4xf64>, tensor<6xi64>, tensor<3x5x4xf64> -> tensor<6x5xf64>
    // becomes
    %own = arith.select ... : tensor<6x3xi1>, tensor<6x3x4xf64>
    %y = nn.dot_general %own, %w contract = [1, 2] x [0, 2] : tensor<6x3x4xf64>, tensor<3x5x4xf64> -> tensor<6x5xf64>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::partita::nn::NNDialect"];
}

def OrderRowsPass : Pass<"partita-order-rows", "::mlir::ModuleOp"> {
  let summary = "Puts the rows of grouped products in order of their matrices, for GPUs";
  let description = [{
    A block of threads multiplies rows that share a matrix. `nn.grouped_dot` and its weight gradient become products
    of rows in order. Products with the same indices share an order, once equal operations are joined.

    ```mlir
    %y = nn.grouped_dot %x[%ids], %w : tensor<6x4xf32>, tensor<6xi64>, tensor<3x5x4xf32> -> tensor<6x5xf32>
    // becomes
    %o = nn.order_rows %ids matrices = 3 : tensor<6xi64> -> tensor<11xi32>
    %y = nn.ordered_dot %x[%o], %w : tensor<6x4xf32>, tensor<11xi32>, tensor<3x5x4xf32> -> tensor<6x5xf32>
    ```
  }];
  let dependentDialects = ["::partita::nn::NNDialect"];
  let statistics = [Statistic<"products", "products", "Products of rows in order">];
}

def ExpandGradientsPass : Pass<"partita-expand-gradients", "::mlir::ModuleOp"> {
  let summary = "Rewrites gradients to operations that libraries and kernels support";
  let description = [{
    `nn.reduce_window_grad` is decomposed; for a maximum or minimum over images of a model with convolutions, between
    transposes to channels last. So is `nn.attention_grad` with a softcap or an empty operand. If its bias
    gets a gradient, it is decomposed as well, unless the bias has one matrix per head for the whole batch and, if heads
    share keys, the matrices of a group have 2^20 elements at most. Otherwise it has a kernel, which stores no L x S matrix
    except the gradient of the bias.

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
  let summary = "Makes convolutions channels-last and moves the transposes out of the way";
  let description = [{
    Vector code and the convolution library both prefer the channel to be the
    last dimension. Each `nn.conv` and each of its gradients becomes `channels_last` between
    transposes. Transposes then sink below elementwise operations, reductions,
    windows, concatenations and reshapes until they meet their inverse. Transposes
    of a private function's arguments and results move to its callers.

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

def RepeatChannelsPass : Pass<"partita-repeat-channels", "::mlir::ModuleOp"> {
  let summary = "Repeats channels for depthwise convolutions with several outputs per channel";
  let description = [{
    oneDNN 2.6 is fast for depthwise convolutions with one output per channel only. The pass repeats each channel in the
    input, which a kernel writes; the copy has as many times the input's elements as there are outputs per channel. On
    images, with two or four outputs and windows of 3 x 3 and 7 x 7, the library took 2.2 to 16.8 times as long without
    it; other windows, sequences and volumes were not measured. All tensors are f32.

    ```mlir
    %y = nn.conv %x, %w ... groups = 8 channels_last : tensor<1x4x4x8xf32>, tensor<16x1x3x3xf32> -> ...
    // becomes
    %0 = nn.broadcast %x dims = [0, 1, 2, 3] : tensor<1x4x4x8xf32> -> tensor<1x4x4x8x2xf32>
    %1 = nn.reshape %0 : tensor<1x4x4x8x2xf32> -> tensor<1x4x4x16xf32>
    %y = nn.conv %1, %w ... groups = 16 channels_last : tensor<1x4x4x16xf32>, tensor<16x1x3x3xf32> -> ...
    ```
  }];
  let dependentDialects = ["::partita::nn::NNDialect"];
  let options = [Option<"most", "most", "int64_t", "4", "Largest number of outputs per channel">];
  let statistics = [Statistic<"repeated", "repeated", "Convolutions whose channels are repeated">];
}

def StoreByTokensPass : Pass<"partita-store-by-tokens", "::mlir::ModuleOp"> {
  let summary = "Stores results of attention with tokens outside of heads, as products read them";
  let description = [{
    In training, a layer's backward pass takes the result of attention from the
    forward pass: as it is, for the gradient of attention, and transposed, for
    the gradient of the weight behind it. The forward pass writes both, and the
    backward pass transposes once more. The pass lets private functions return
    the transposed result, which attention writes itself, and transposes it back
    in the functions that take it: an index map inside the kernel of the
    gradient. It changes results that go from calls to calls only.

    ```mlir
    func.func private @forward(...) -> (..., tensor<8x12x1024x64xbf16>) {
      %y = nn.attention ... -> tensor<8x12x1024x64xbf16>
      %t = nn.transpose %y perm = [0, 2, 1, 3] : tensor<8x12x1024x64xbf16> -> tensor<8x1024x12x64xbf16>
      return ..., %y
    // becomes
      return ..., %t
    ```
  }];
  let dependentDialects = ["::partita::nn::NNDialect"];
  let statistics = [Statistic<"results", "results", "Results stored by tokens">];
}

def PadProductsPass : Pass<"partita-pad-products", "::mlir::ModuleOp"> {
  let summary = "Pads products of 16-bit floats whose rows do not begin at multiples of 16 bytes";
  let description = [{
    Libraries for GPUs are several times slower on such rows; an example are the logits of a vocabulary of 50,257. The pass
    pads the last dimension of an operand or of the result to a multiple of 64, with zeros, and takes the result's own part.
    It changes products with dimensions of at least `least` elements, for which the copies of operands pay. Padding is
    fused into the kernel that computes an operand, and the part into the kernels that read it. Private functions pass padded
    results on to other private functions, such as the logits to the backward pass of a loss. What a model takes and gives
    keeps its size.

    ```mlir
    %0 = nn.dot_general %x, %w contract = [1] x [1] : tensor<8192x1024xbf16>, tensor<50257x1024xbf16> -> tensor<8192x50257xbf16>
    // becomes
    %1 = nn.pad %w, %zero low = [0, 0] high = [47, 0] : tensor<50257x1024xbf16>, tensor<bf16> -> tensor<50304x1024xbf16>
    %2 = nn.dot_general %x, %1 contract = [1] x [1] : tensor<8192x1024xbf16>, tensor<50304x1024xbf16> -> tensor<8192x50304xbf16>
    %0 = nn.slice %2 starts = [0, 0] strides = [1, 1] : tensor<8192x50304xbf16> -> tensor<8192x50257xbf16>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::partita::nn::NNDialect"];
  let options = [Option<"least", "least", "int64_t", "512", "Smallest number of rows, columns and products per element of a padded product">];
  let statistics = [Statistic<"padded", "padded", "Products padded">,
                    Statistic<"passed_on", "passed-on", "Padded results that other functions take">];
}

def SelectLibraryCallsPass : Pass<"partita-select-library-calls", "::mlir::ModuleOp"> {
  let summary = "Lowers matrix products and convolutions to library calls";
  let description = [{
    `nn.dot_general` becomes `exec.gemm`, whose strides absorb transposes and reshapes of its
    operands. Without `gpu`, `nn.grouped_dot` and its weight gradient become `exec.grouped_gemm`, which reads a row that
    is repeated for consecutive indices once. `nn.conv` and its gradients become `exec.conv`. A bias added
    to the result joins the call (with `gpu`, except to 16-bit convolutions), and so does a tensor added to the result of a
    product (f32 only with `gpu`), unless it is repeated or constant. 16-bit floats stay 16 bits wide. The library sums products and addends in f32 and rounds once,
    where the program rounds the product too, so the result is closer to the exact one. Without `gpu`, products of i8 and i8, or of f32
    and i8, join a scale per column, and a bias, that f32 results are multiplied by (`scale`). Products that libraries
    do not support (other integers, f64, empty ones) stay and become generated kernels.

    ```mlir
    %0 = nn.dot_general %x, %w contract = [1] x [1] : tensor<2x3xf32>, tensor<4x3xf32> -> tensor<2x4xf32>
    // becomes
    %0 = exec.gemm %x, %w sizes = [1, 2, 4, 3] lhs_strides = [6, 3, 1] rhs_strides = [0, 1, 3] : ...
    ```
  }];
  let dependentDialects = ["::partita::exec::ExecDialect", "::partita::nn::NNDialect"];
  let options = [Option<"gpu", "gpu", "bool", "false", "Use the libraries of a GPU">];
  let statistics = [Statistic<"gemms", "gemms", "Matrix products lowered to library calls">,
                    Statistic<"grouped_gemms", "grouped-gemms", "Grouped products lowered to library calls">,
                    Statistic<"biases", "biases", "Biases added by library calls">,
                    Statistic<"sums", "sums", "Tensors added by library calls">,
                    Statistic<"convs", "convs", "Convolutions lowered to library calls">,
                    Statistic<"copies", "copies", "Operands copied into another order first">];
}

def SelectFloat8ProductsPass : Pass<"partita-select-float8-products", "::mlir::ModuleOp"> {
  let summary = "Lowers products of factors that are rounded to 8 bits to library calls that read the bytes";
  let description = [{
    For GPUs whose tensor cores multiply floats of 8 bits (sm_89 and later). A factor is recognized if it is
    f8E4M3FN or f8E5M2, widened and multiplied by one number, as `partita-round-float8-factors` writes it; transposes and
    reshapes may follow. The product of both numbers becomes the scale of the `exec.gemm`, and a bias joins the call.

    Such tensor cores read both factors along the contracted dimension, so this one becomes the last of each: the kernel that
    rounds a factor writes it in that order. A product stays as it is if it has batch dimensions, if a size is not a
    multiple of 16, if both factors are f8E5M2, or if something else stands between a factor's rounding and the product, such as
    a collective.

    The factors are exact in 8 bits, so the numbers change only by the order of sums, and by the bits that the tensor cores
    keep of a sum.

    ```mlir
    %w = arith.extf %bytes : tensor<32x16xf8E4M3FN> to tensor<32x16xf32>
    %s = nn.broadcast %scale dims = [] : tensor<f32> -> tensor<32x16xf32>
    %m = arith.mulf %w, %s : tensor<32x16xf32>
    %f = arith.truncf %m : tensor<32x16xf32> to tensor<32x16xbf16>
    %y = nn.dot_general %g, %f contract = [1] x [0] : tensor<16x32xbf16>, tensor<32x16xbf16> -> tensor<16x16xbf16>
    // becomes
    %t = nn.transpose %bytes perm = [1, 0] : tensor<32x16xf8E4M3FN> -> tensor<16x32xf8E4M3FN>
    %y = exec.gemm %g_bytes, %t scale(%both : tensor<1xf32>) sizes = [1, 16, 16, 32] lhs_strides = [0, 32, 1] rhs_strides = [0, 1, 32] : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::partita::exec::ExecDialect", "::partita::nn::NNDialect"];
  let statistics = [Statistic<"products", "products", "Products of floats of 8 bits">];
}

def FuseActivationsPass : Pass<"partita-fuse-activations", "::mlir::ModuleOp"> {
  let summary = "Lets convolutions of CPUs' libraries compute activations and residuals";
  let description = [{
    Joins relu, relu6 and hard-swish to the `exec.conv` whose result they alone read, so that no kernel passes over the
    image once more. Hard-swish is `x * min(max(x / 6 + 0.5, 0), 1)` or `x * min(max(x + 3, 0), 6) / 6`, with factors of
    1/6; other forms stay kernels. A convolution also adds a tensor that nothing reads later, because the memory plan lets
    the sum take its place. A pointwise convolution of images of at least 196 pixels, to at least as many channels, adds
    any tensor that is in memory. The activation may follow the sum.

    Other activations and residuals stay, because the library is slower than the kernels that they become: with oneDNN
    2.6, silu or gelu inside the convolution takes as long as the convolution and a kernel. The limits for residuals were
    measured with AVX-512, one thread and one image. The library may turn NaN into 0, so training does without this pass.
    All tensors are f32.

    ```mlir
    %0 = exec.conv %x, %w ... channels_last : ...
    %1 = arith.addf %0, %r : tensor<1x14x14x8xf32>
    %2 = arith.maximumf %1, %zero : tensor<1x14x14x8xf32>
    // becomes
    %2 = exec.conv %x, %w residual(%r : tensor<1x14x14x8xf32>) ... channels_last activation = relu activates_sum : ...
    ```
  }];
  let dependentDialects = ["::partita::exec::ExecDialect"];
  let statistics = [Statistic<"activations", "activations", "Activations that convolutions compute">,
                    Statistic<"residuals", "residuals", "Tensors that convolutions add">];
}

def FuseRoundingPass : Pass<"partita-fuse-rounding", "::mlir::ModuleOp"> {
  let summary = "Lets convolutions of integers round their results to 8 bits";
  let description = [{
    Joins a division by one scale, the rounding, one zero point and the limits of 8 bits (ONNX's QuantizeLinear) to the
    `exec.conv` of integers whose result they alone read: a quarter of the bytes, and no kernel passes over the image.
    The library adds the zero point before it rounds. With an odd one, a number in the middle between two integers
    therefore becomes the other of them.

    ```mlir
    %0 = exec.conv %x, %w input_unsigned scale(...) ... : ... -> tensor<1x8x8x4xf32>
    %1 = arith.divf %0, %s : tensor<1x8x8x4xf32>
    %2 = math.roundeven %1 : tensor<1x8x8x4xf32>
    %3 = arith.addf %2, %z : tensor<1x8x8x4xf32>
    %4 = arith.maximumf %3, %c0 : tensor<1x8x8x4xf32>
    %5 = arith.minimumf %4, %c255 : tensor<1x8x8x4xf32>
    %6 = arith.fptoui %5 : tensor<1x8x8x4xf32> to tensor<1x8x8x4xi8>
    // becomes
    %6 = exec.conv %x, %w input_unsigned scale(...) result_scale(...) result_zero(...) result_unsigned ... : ... -> tensor<1x8x8x4xi8>
    ```
  }];
  let dependentDialects = ["::partita::exec::ExecDialect"];
  let statistics = [Statistic<"rounded", "rounded", "Convolutions that round their results">];
}

def FuseIntoProductsPass : Pass<"partita-fuse-into-products", "::mlir::ModuleOp"> {
  let summary = "Moves activations and sums into the products beside them";
  let description = [{
    cuBLASLt can finish products of 16-bit floats with GELU (by the tanh approximation), with the gradient of GELU, or
    with the sums of a factor over the contracted dimension, which are the gradient of a bias. Each of these saves a
    kernel that reads and writes a whole tensor. Where the product is read as well, as in training, it becomes a second
    result, `kept`. The library computes the activation from unrounded sums.

    Formulas are recognized by their values at many points, because rewrites and differentiation leave them in many
    forms. GELU by erf and other activations stay kernels. Sizes must be multiples of 8, as the library needs, and
    the product must be a single matrix. An activation stays a kernel if elementwise operations read it: a kernel
    computes both then.

    ```mlir
    %0 = exec.gemm %x, %g sizes = [1, 1024, 4096, 8192] ... : (tensor<8192x1024xbf16>, tensor<8192x4096xbf16>) -> tensor<1024x4096xbf16>
    %1 = nn.reduce sum %g dims = [0] : tensor<8192x4096xbf16> -> tensor<4096xbf16>
    // becomes
    %0, %1 = exec.gemm %x, %g sizes = [1, 1024, 4096, 8192] ... -> tensor<1024x4096xbf16> rhs_sums tensor<4096xbf16>
    ```
  }];
  let dependentDialects = ["::partita::exec::ExecDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"activations", "activations", "Activations that products compute">,
                    Statistic<"gradients", "gradients", "Gradients of activations that products compute">,
                    Statistic<"sums", "sums", "Sums of factors that products compute">];
}

def SplitReductionsPass : Pass<"partita-split-reductions", "::mlir::ModuleOp"> {
  let summary = "Splits reductions with too few results to fill a GPU into several steps";
  let description = [{
    A warp computes one or several neighbouring results of a reduction, reading
    one row after the other. With few results most of a GPU would be idle. Examples
    are the gradients of a bias or of a norm's scale, batch statistics, and the norm
    of all gradients. The pass splits such a reduction: many warps reduce parts of
    the reduced dimensions, and the next steps reduce the partial results. A cost
    model chooses the number of parts among the divisors of the sizes, so a
    reduction of prime size stays whole. Sums of 16-bit floats stay f32 between the
    steps. Batch norms in training are decomposed if their statistics are such
    reductions. If other operations reduce the same rows along their elements, as
    in the backward pass of a norm, the first step sums blocks of rows and is
    marked `kernel.row_sums`: form-kernels lets one kernel do both. If elementwise
    operations compute the rows, and other operations read them, the first step is
    marked `kernel.column_sums`: the kernel that writes the rows sums them on the
    way, as in the gradient of an activation behind a bias. Further steps carry
    the number of steps that follow (`kernel.late_step`).

    ```mlir
    %0 = nn.reduce sum %x dims = [0] : tensor<8192x768xf32> -> tensor<768xf32>
    // becomes
    %1 = nn.reshape %x : tensor<8192x768xf32> -> tensor<512x16x768xf32>
    %2 = nn.reduce sum %1 dims = [1] : tensor<512x16x768xf32> -> tensor<512x768xf32>
    %3 = nn.reshape %2 : tensor<512x768xf32> -> tensor<16x32x768xf32>
    %4 = nn.reduce sum %3 dims = [1] {kernel.late_step = 1 : i64} : tensor<16x32x768xf32> -> tensor<16x768xf32>
    %0 = nn.reduce sum %4 dims = [0] {kernel.late_step = 0 : i64} : tensor<16x768xf32> -> tensor<768xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::partita::nn::NNDialect"];
  let statistics = [Statistic<"steps", "steps", "Steps added to reductions">];
}

def FormKernelsPass : Pass<"partita-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Groups everything that is not a library call into kernels";
  let description = [{
    Elementwise operations, reductions and row operations (softmax, norms) that
    walk the same rows become one kernel. Data movement becomes an index map inside
    the kernels that read it. Each kernel is a private function marked
    `exec.kernel`, launched by `exec.launch`; equal kernels share a function.
    Independent elementwise kernels that read the same value become one, and so do
    the same late steps of independent reductions.
    Reshapes between kernels become `exec.view`. A private function that consists
    of one launch is inlined into its callers.

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
  let summary = "Annotates launches with the work and the unread bytes of their kernels";
  let description = [{
    The operands of a launch do not tell how many operations attention takes, nor how much of a tensor is read
    by a kernel that takes a slice of it. The pass reads both from the kernel's body and sets `operations` and
    `unread` (bytes) on each launch, unless they are 0.

    ```mlir
    func.func private @k(%x: tensor<8xf32>) -> tensor<2xf32> attributes {exec.kernel} {
      %0 = nn.slice %x starts = [4] strides = [1] : tensor<8xf32> -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }
    // turns each launch into
    %y = exec.launch @k(%x) {unread = 24 : i64} : (tensor<8xf32>) -> tensor<2xf32>
    ```
  }];
}

def DescribeAttentionsPass : Pass<"partita-describe-attentions", "::mlir::ModuleOp"> {
  let summary = "Says which launches compute one attention, so that a GPU's library may compute it instead";
  let description = [{
    A kernel qualifies if it consists of one `nn.attention` of f16 or bf16, reads q, k and v as strided views of its arguments
    (transposes, reshapes and slices) and returns its result, transposed or reshaped, and at most its log-sum-exp. The only mask is a
    causal one whose last query sees all keys. Its launches with blocks, which are those on GPUs, get an `exec.attention`: sizes,
    and for each tensor the operand, the offset, and the strides of batch, head and position, in elements. Results are numbered
    behind the operands.

    ```mlir
    func.func private @k(%q: tensor<1x2x4x64xf16>, %k: tensor<1x2x4x64xf16>, %v: tensor<1x2x4x64xf16>) -> tensor<1x2x4x64xf16> attributes {exec.kernel} {
      %0 = nn.attention %q, %k, %v scale = 1.25e-1 : (tensor<1x2x4x64xf16>, tensor<1x2x4x64xf16>, tensor<1x2x4x64xf16>) -> tensor<1x2x4x64xf16>
      return %0 : tensor<1x2x4x64xf16>
    }
    // turns each launch into
    %y = exec.launch @k(%q, %k, %v) {blocks = 2 : i64, exec.attention = {batch = 1 : i64, groups = 2 : i64, heads = 2 : i64, keys = 4 : i64,
        q = array<i64: 0, 0, 512, 256, 64>, ...}} : ...
    ```
  }];
  let statistics = [Statistic<"described", "described", "Launches described">];
}

def SplitLaunchesPass : Pass<"partita-split-launches", "::mlir::ModuleOp"> {
  let summary = "Splits launches of kernels that consist of several parts";
  let description = [{
    Code generation for GPUs writes some kernels as several parts, which run one after the other with the same
    operands (`kernel.parts`). Each part gets a launch. The first launch keeps the planned offsets; each of the
    others writes to the results of the one before. The last part is the kernel itself; the other parts become
    functions without a body. Parts that copy boxes have their own tensor maps (`kernel.part_maps`), which the pass
    gives to their launches. It refuses kernels whose attributes do not have this form.

    ```mlir
    %y = exec.launch @k(%x) {exec.offsets = array<i64: 0>} : (tensor<8xf32>) -> tensor<8xf32>
    // becomes
    %0 = exec.launch @k_part_0(%x) {exec.offsets = array<i64: 0>} : (tensor<8xf32>) -> tensor<8xf32>
    %y = exec.launch @k(%x) into(%0 : tensor<8xf32>) : (tensor<8xf32>) -> tensor<8xf32>
    ```
  }];
  let statistics = [Statistic<"added", "added", "Launches added">];
}

def LabelKernelsPass : Pass<"partita-label-kernels", "::mlir::ModuleOp"> {
  let summary = "Names kernels by their operations and layers, for profiles and reports";
  let description = [{
    A kernel's label (`kernel.label`) lists its operations in order. Operations that only move or convert data are
    left out. A label lists at most four, then the number of the others. The path of the module that launches the
    kernel follows in brackets, with a star in place of words that differ between modules. Equal labels get a number.
    Kernels with the same code share a label.

    Each operation gets the path of its module (`layer`), read from its location. In a function that layers share,
    a path that begins with a dot continues the path of the call.

    ```mlir
    func.func private @h(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = exec.launch @kernel_0(%x) : (tensor<8xf32>) -> tensor<8xf32> loc("h.0.act")
      return %0 : tensor<8xf32>
    }
    func.func private @kernel_0(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel} {
      %0 = math.tanh %x : tensor<8xf32>
      %1 = arith.mulf %x, %0 : tensor<8xf32>
      return %1 : tensor<8xf32>
    }
    // called as h.0 and h.1, becomes
    %0 = exec.launch @kernel_0(%x) {layer = ".act"} : (tensor<8xf32>) -> tensor<8xf32>
    func.func private @kernel_0(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel, kernel.label = "tanh+mul[h.*.act]"}
    ```
  }];
}

def LowerLoopsPass : Pass<"partita-lower-loops", "::mlir::ModuleOp"> {
  let summary = "Replaces loops by calls that repeat";
  let description = [{
    Until here, a loop is not a call, so that no pass moves work out of its body as out of a layer's function: the values that it
    carries differ from iteration to iteration.

    ```mlir
    %go, %y = nn.loop @body(%more, %x) : (tensor<i1>, tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>)
    // becomes
    %0:2 = call @body(%more, %x) {exec.repeats} : (tensor<i1>, tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>)
    ```
  }];
  let dependentDialects = ["::partita::exec::ExecDialect"];
  let statistics = [Statistic<"loops", "loops", "Loops lowered">];
}

#endif  // PARTITA_COMPILER_KERNELS_PASSES_TD
