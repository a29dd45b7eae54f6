// Passes between import and sharding: they bring an exporter's model into the compiler's standard form.
#ifndef PARTITA_COMPILER_SIMPLIFY_PASSES_TD
#define PARTITA_COMPILER_SIMPLIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

def RaiseCompositesPass : Pass<"partita-raise-composites", "::mlir::func::FuncOp"> {
  let summary = "Recognises attention, experts, norms and softmax written out in primitives";
  let description = [{
    Exporters write composites as a dozen small operations. This pass replaces
    these by the composite of the nn dialect:
    - `nn.softmax` from (max, subtract,) exp, sum, divide, and its logarithm;
    - `nn.layer_norm` and `nn.rms_norm` from means, squares and roots, with the
      scale and bias that follow, over the last dimensions or, between
      transposes, over others (the channels of an image);
    - `nn.attention` from softmax(scale * q k^T + bias) v: the scale on the
      scores, on q, on k or on both; biases, masks by select, constant masks of
      causality, a sliding window with or without sinks, and blocks of keys
      (which become attributes), soft caps; heads repeated for
      grouped queries; batched in one, two or more dimensions, and transposed
      (images' [heads, h, pixels]), and with 0 for a softmax's NaN. A constant
      bias of this kind of an `nn.attention` becomes attributes, too, and its
      repeated keys, values and biases become single ones.

    - `nn.experts` from `nn.grouped_dot`, an activation, a product with a second
      `nn.grouped_dot`, and a weighted sum. If rows are sorted by their expert
      for grouped products, and put back in order behind them, they are left in
      their own order instead. A product of each row with a matrix gathered by
      the row's choice of `nn.top_k` becomes `nn.grouped_dot` first. So does a
      product with a matrix per group of consecutive rows whose sizes are data,
      which JAX writes as a sum over groups of masked rows (`ragged_dot`).

    A mask by select becomes a bias: 0 where the key is visible, and the lowest
    finite number elsewhere. A query without a visible key therefore weighs all
    keys equally, as with a select whose fill is finite.

    Powers with simple exponents become products and roots. A division by a
    power of two becomes a product.

    ```mlir
    %0 = nn.dot_general %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : ...
    %1 = arith.mulf %0, %scale : tensor<1x2x4x4xf32>
    %2 = nn.softmax %1 axis = 3 : tensor<1x2x4x4xf32>
    %3 = nn.dot_general %2, %v batch = [0, 1] x [0, 1] contract = [3] x [2] : ...
    // becomes
    %3 = nn.attention %q, %k, %v scale = 3.5355339059327379e-01 : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::partita::nn::NNDialect"];
  let statistics = [Statistic<"attentions", "attentions", "Attentions raised">,
                    Statistic<"experts", "experts", "Mixtures of experts raised">,
                    Statistic<"layer_norms", "layer-norms", "Layer norms raised">,
                    Statistic<"rms_norms", "rms-norms", "RMS norms raised">,
                    Statistic<"softmaxes", "softmaxes", "Softmaxes raised">];
}

def ShrinkBroadcastsPass : Pass<"partita-shrink-broadcasts", "::mlir::func::FuncOp"> {
  let summary = "Moves elementwise work before broadcasts";
  let description = [{
    If every operand of an elementwise operation repeats along a dimension, the
    result repeats too, and the operation moves before the repetition. A gather
    moves before the repetition of its indices. Repeating constants are stored
    once.

    ```mlir
    %0 = nn.broadcast %mask dims = [0, 3] : tensor<2x8xf32> -> tensor<2x4x8x8xf32>
    %1 = arith.mulf %0, %lowest : tensor<2x4x8x8xf32>
    // becomes
    %0 = nn.reshape %mask : tensor<2x8xf32> -> tensor<2x1x1x8xf32>
    %1 = arith.mulf %0, %lowest : tensor<2x1x1x8xf32>
    %2 = nn.broadcast %1 dims = [0, 1, 2, 3] : tensor<2x1x1x8xf32> -> tensor<2x4x8x8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::partita::nn::NNDialect"];
  let statistics = [Statistic<"shrunk", "shrunk", "Operations moved before a repetition">];
}

def AbsorbTransposesPass : Pass<"partita-absorb-transposes", "::mlir::func::FuncOp"> {
  let summary = "Removes transposes of operands and results of matrix products";
  let description = [{
    `nn.dot_general` lists the dimensions that it contracts. A transpose before
    it only renumbers them, if the free dimensions keep their order. A transpose
    after it that puts the free dimensions of the right operand first exchanges
    the operands.

    ```mlir
    %0 = nn.transpose %w perm = [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
    %1 = nn.dot_general %x, %0 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
    // becomes
    %1 = nn.dot_general %x, %w contract = [1] x [1] : tensor<2x4xf32>, tensor<8x4xf32> -> tensor<2x8xf32>

    %2 = nn.dot_general %g, %x contract = [0] x [0] : tensor<2x8xf32>, tensor<2x4xf32> -> tensor<8x4xf32>
    %3 = nn.transpose %2 perm = [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
    // becomes
    %3 = nn.dot_general %x, %g contract = [0] x [0] : tensor<2x4xf32>, tensor<2x8xf32> -> tensor<4x8xf32>
    ```
  }];
  let dependentDialects = ["::partita::nn::NNDialect"];
  let statistics = [Statistic<"absorbed", "absorbed", "Transposes absorbed">];
}

def JoinExpertsPass : Pass<"partita-join-experts", "::mlir::ModuleOp"> {
  let summary = "Makes a mixture of experts of a sum of one MLP per expert";
  let description = [{
    Programs with a loop over experts add up an MLP per expert, whose result for
    a row is multiplied by the row's weight for that expert, or is zero if the
    row did not choose it. If experts 0, 1, ... of a sum all have the same rows,
    choices and weights, the sum becomes `nn.experts`.

    Weights of the experts that are arguments of `@main` from files, without
    another use, become one argument with `nn.parts`: a tensor per expert on
    disk, which can be divided over experts. Slices of one tensor, in order, give
    that tensor. Others are concatenated.

    A sum that lacks one of the experts, or has one twice, stays as it is.

    ```mlir
    %is0 = arith.cmpi eq, %ids, %zero : tensor<6x2xi64>
    %p0 = arith.select %is0, %weights, %zeros : tensor<6x2xi1>, tensor<6x2xf32>
    %c0 = nn.reduce sum %p0 dims = [1] : tensor<6x2xf32> -> tensor<6xf32>
    %y0 = arith.mulf %mlp0, (broadcast of %c0)
    %y = arith.addf %y0, %y1
    // becomes
    %y = nn.experts %x[%ids], %weights gate(%gates : ...) up(%ups : ...) down(%downs : ...) activation = silu : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::partita::nn::NNDialect"];
  let statistics = [Statistic<"mixtures", "mixtures", "Mixtures of experts made">];
}

def FoldBatchNormPass : Pass<"partita-fold-batch-norm", "::mlir::func::FuncOp"> {
  let summary = "Folds inference batch norms into convolutions";
  let description = [{
    `nn.batch_norm` without `training` is a scale and a shift per feature, with
    s = scale / sqrt(variance + epsilon). After a convolution, optionally with a
    bias, the scale is multiplied into the convolution's weight. Elsewhere it
    becomes a product. `--partita-hoist-parameter-work` moves this work on
    parameters to load time.

    ```mlir
    %0 = nn.conv %x, %w ...
    %1 = nn.batch_norm %0, %g, %b, %m, %v feature = 1 epsilon = 1.0e-5 ...
    // becomes
    %0 = nn.conv %x, (%w * s) ...
    %1 = %0 + (%b - %m * s)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::partita::nn::NNDialect"];
  let statistics = [Statistic<"folded", "folded", "Batch norms folded into a convolution">,
                    Statistic<"scaled", "scaled", "Batch norms written as scale and shift">];
}

def FoldScalesPass : Pass<"partita-fold-scales", "::mlir::ModuleOp"> {
  let summary = "Folds scales and shifts per feature into convolutions";
  let description = [{
    Some exporters write a batch norm as a normalisation without scale, then a
    product and a sum with one number per feature. After a convolution, the
    scale is multiplied into the convolution's weight and bias, and the shift
    is added to the bias. `--partita-hoist-parameter-work` moves this work on
    parameters to load time.

    The scale and the shift must be stored values: arguments of `@main` with
    `nn.source`, constants (one number for all features too), and results of
    operations on these alone. A gate that is computed from the input scales
    features as well, but changes with every run. The convolution must have no
    other use.

    ```mlir
    %0 = nn.conv %x, %w ...
    %1 = (%0 + %b) * %s
    %2 = %1 + %t
    // becomes
    %0 = nn.conv %x, (%w * %s) ...
    %1 = %0 + (%b * %s + %t)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::partita::nn::NNDialect"];
  let statistics = [Statistic<"scales", "scales", "Scales folded into a convolution">,
                    Statistic<"shifts", "shifts", "Shifts added to a bias">];
}

def RaiseQuantizedProductsPass : Pass<"partita-raise-quantized-products", "::mlir::func::FuncOp"> {
  let summary = "Moves scales of quantized operands behind products, which then read integers";
  let description = [{
    Models hold a quantized weight as integers of 8 bits with one scale, or one per output channel, and multiply by the
    scale before the product (ONNX's DequantizeLinear). A scale that does not vary along contracted dimensions can be
    multiplied by the product instead, which then reads the integers: they stay 8 bits in memory.

    If both operands are dequantized, the product is one of integers with sums of 32 bits. A zero point of the
    left-hand side becomes a shift per output channel, which depends on the weight alone and joins a bias.

    Kept as they are: weights with a zero point or of unsigned integers, scales per block, and products
    in which a computed value is the only dequantized operand.

    ```mlir
    %0 = arith.sitofp %w : tensor<4x8xi8> to tensor<4x8xf32>
    %1 = nn.broadcast %s dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
    %2 = arith.mulf %0, %1 : tensor<4x8xf32>
    %3 = nn.dot_general %x, %2 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
    // becomes
    %0 = arith.sitofp %w : tensor<4x8xi8> to tensor<4x8xf32>
    %1 = nn.dot_general %x, %0 contract = [1] x [0] : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
    %2 = nn.broadcast %s dims = [1] : tensor<8xf32> -> tensor<2x8xf32>
    %3 = arith.mulf %1, %2 : tensor<2x8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::partita::nn::NNDialect"];
  let statistics = [Statistic<"weights", "weights", "Products of floats and quantized weights">,
                    Statistic<"integers", "integers", "Products of two quantized operands">];
}

def RaiseQuantizedConvolutionsPass : Pass<"partita-raise-quantized-convolutions", "::mlir::func::FuncOp"> {
  let summary = "Moves scales of quantized operands behind convolutions, which then read integers";
  let description = [{
    Models round the input of a convolution to integers of 8 bits, and hold its weight as such, with one scale, or one per
    output channel (ONNX's QuantizeLinear and DequantizeLinear). The scales can be multiplied by the convolution instead,
    which then reads integers, as floats without a fraction. Factors of a batch norm that have joined the scale go with it.

    A zero point stays in front of a convolution with padding, which is 0 behind it. Without padding, it becomes a shift per
    output channel, which depends on the weight alone. Signed integers with a constant zero point become unsigned, with a
    zero point that is larger by 128.

    Kept as they are: convolutions in which one operand alone is dequantized, weights with a zero point or of unsigned
    integers, scales that differ along other dimensions.

    ```mlir
    %0 = arith.mulf %x_steps, %x_scale : tensor<1x2x8xf32>
    %1 = nn.broadcast %w_scale dims = [0] : tensor<4xf32> -> tensor<4x2x3xf32>
    %2 = arith.mulf %w_steps, %1 : tensor<4x2x3xf32>
    %3 = nn.conv %0, %2 ... : tensor<1x2x8xf32>, tensor<4x2x3xf32> -> tensor<1x4x6xf32>
    // becomes
    %0 = nn.conv %x_steps, %w_steps ... : tensor<1x2x8xf32>, tensor<4x2x3xf32> -> tensor<1x4x6xf32>
    %1 = arith.mulf %x_scale, %w_scale : tensor<4xf32>
    %2 = nn.broadcast %1 dims = [1] : tensor<4xf32> -> tensor<1x4x6xf32>
    %3 = arith.mulf %0, %2 : tensor<1x4x6xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::partita::nn::NNDialect"];
  let statistics = [Statistic<"raised", "raised", "Convolutions of two quantized operands">];
}

def OutlineLayersPass : Pass<"partita-outline-layers", "::mlir::ModuleOp"> {
  let summary = "Makes functions of layers that repeat in @main";
  let description = [{
    Finds consecutive stretches of `@main` with equal operations on different
    parameters, and makes a private function of each kind, called once per layer.
    Values that layers share (masks, position biases) are computed before the
    first layer. Functions are named after the scopes in the operations'
    locations, if there are any. Locations affect nothing else.

    ```mlir
    func.func @main(%x, %w0, %w1) {
      %0 = nn.dot_general %x, %w0 ...
      %1 = math.tanh %0
      %2 = nn.dot_general %1, %w1 ...
      %3 = math.tanh %2
    // becomes
    func.func @main(%x, %w0, %w1) {
      %0 = call @layer(%x, %w0)
      %1 = call @layer(%0, %w1)
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect", "::partita::nn::NNDialect"];
  let options = [Option<"min_operations", "min-operations", "int64_t", /*default=*/"4",
                        "Make functions of stretches with at least this many operations (default: 4)">];
  let statistics = [Statistic<"kinds", "kinds", "Layer functions made">,
                    Statistic<"calls", "calls", "Calls of layer functions">];
}

def MergeProjectionsPass : Pass<"partita-merge-projections", "::mlir::ModuleOp"> {
  let summary = "Merges matrix products that share their left operand";
  let description = [{
    The query, key and value projections of a transformer multiply one tensor
    with three parameters. One product with the concatenated parameters, followed
    by three slices, uses the hardware better. `--partita-hoist-parameter-work`
    moves the concatenation to load time.

    ```mlir
    %q = nn.dot_general %x, %wq contract = [1] x [0] : ...
    %k = nn.dot_general %x, %wk contract = [1] x [0] : ...
    // becomes
    %w = nn.concat %wq, %wk axis = 1 : ...
    %qk = nn.dot_general %x, %w contract = [1] x [0] : ...
    %q = nn.slice %qk starts = [0, 0] strides = [1, 1] : ...
    ```
  }];
  let dependentDialects = ["::partita::nn::NNDialect"];
  let statistics = [Statistic<"merged", "merged", "Products that became part of another">];
}

def SinkWideningPass : Pass<"partita-sink-widening", "::mlir::ModuleOp"> {
  let summary = "Moves the widening of integers of 8 bits into layer functions";
  let description = [{
    Libraries multiply integers of 8 bits if they see that the operands of a product or a convolution are widened ones. Where
    all calls of a function pass an argument that they widened in the same way, the function takes the i8 and widens it:
    fewer bytes, too.

    ```mlir
    %0 = arith.sitofp %x : tensor<4xi8> to tensor<4xf32>
    %1 = call @layer(%0) : (tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %1 = call @layer(%x) : (tensor<4xi8>) -> tensor<4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"sunk", "sunk", "Arguments of functions that are i8 now">];
}

def HoistParameterWorkPass : Pass<"partita-hoist-parameter-work", "::mlir::ModuleOp"> {
  let summary = "Moves work on parameters alone to @init, which runs once at load time";
  let description = [{
    An operation that depends on stored tensors alone (arguments of `@main` with
    `nn.source`, and constants) has the same result in every run. Such operations
    move out of layer functions to which every call passes stored tensors, and
    then into the public function `@init`. The results of `@init` are new
    arguments of `@main` with `nn.kind = "derived"`, in the same order. `@main`
    drops arguments that it no longer needs; `@init` has the arguments that it
    needs, with their attributes. Broadcasts, reshapes and widenings stay where
    they are: moving them would only store more bytes. A weight that a convolution
    reads moves, however much smaller it is stored, because libraries pack it. Without `gpu`, integers of 8 bits stay
    integers if the convolution's input has such integers, too: the library for CPUs reads them.

    The weights must not change between runs, so this is not for training.

    ```mlir
    func.func @main(%x: tensor<2xf32>, %w: tensor<2xf32> {nn.kind = "parameter", nn.source = ...}) {
      %0 = math.exp %w : tensor<2xf32>
      %1 = arith.mulf %x, %0 : tensor<2xf32>
    // becomes
    func.func @init(%w: tensor<2xf32> {nn.kind = "parameter", nn.source = ...}) {
      %0 = math.exp %w : tensor<2xf32>
      return %0
    func.func @main(%x: tensor<2xf32>, %0: tensor<2xf32> {nn.kind = "derived", nn.name = "derived.0"}) {
      %1 = arith.mulf %x, %0 : tensor<2xf32>
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect", "::partita::nn::NNDialect"];
  let options = [Option<"gpu", "gpu", "bool", "false", "Use the libraries of a GPU">];
  let statistics = [Statistic<"derived", "derived", "Tensors computed at load time">,
                    Statistic<"dropped", "dropped", "Arguments that @main no longer needs">];
}

def RemoveDeadArgumentsPass : Pass<"partita-remove-dead-arguments", "::mlir::ModuleOp"> {
  let summary = "Drops unused arguments and results of layer functions";
  let description = [{
    Applies to private functions whose only uses are calls. Drops unused
    arguments, results that no call uses, and results that return an argument,
    since the callers have that value already. `@main` and `@init` do not change.

    ```mlir
    func.func private @layer(%x, %unused) { return %x, %y }
    // becomes
    func.func private @layer(%x) { return %y }
    ```
  }];
  let statistics = [Statistic<"arguments", "arguments", "Arguments dropped">,
                    Statistic<"results", "results", "Results dropped">];
}

def JoinScattersPass : Pass<"partita-join-scatters", "::mlir::ModuleOp"> {
  let summary = "Merges the scatters of several calls into one tensor";
  let description = [{
    The gradient of an embedding is zero except in a few rows. If functions
    return such scatters and `@main` only sums them, as it does for microbatches,
    the functions return indices and updates instead. One scatter of all updates
    then follows at the end of the sum, added to the other summands. Does nothing
    if all updates together are larger than the tensor.

    ```mlir
    %g0 = call @backward(%x0, %d0)  // scatters into zeros
    %g1 = call @backward(%x1, %d1)
    %g = arith.addf %g0, %g1
    // becomes
    %i0, %u0 = call @backward(%x0, %d0)
    %i1, %u1 = call @backward(%x1, %d1)
    %i = nn.concat %i0, %i1
    %u = nn.concat %u0, %u1
    %g = nn.scatter %zeros[%i], %u
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::partita::nn::NNDialect"];
  let statistics = [Statistic<"scatters", "scatters", "Scatters taken out of functions">];
}

#endif  // PARTITA_COMPILER_SIMPLIFY_PASSES_TD
