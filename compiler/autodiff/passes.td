// Passes that make a training step of a model.
#ifndef PARTITA_COMPILER_AUTODIFF_PASSES_TD
#define PARTITA_COMPILER_AUTODIFF_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttachLossPass : Pass<"partita-attach-loss", "::mlir::ModuleOp"> {
  let summary = "Turns the model's output into a loss, and batch statistics into updates";
  let description = [{
    The result of `@main` named `output`, or the first result, becomes the
    scalar `loss`; the other results are dropped. `cross-entropy` and `mse` add
    an input `targets` after the other inputs: i64 of the output's shape without
    its last dimension, or a tensor like the output. The loss is the mean over
    all positions whose target is not `ignore-index`. With `none` the output
    must already be a scalar f32.

    A result named `auxiliary_loss`, a scalar f32, is added to the loss. With
    `microbatches` > 1, the step has the mean of those of its microbatches.

    The running statistics of batch norms in training mode become results that
    update their buffers.

    With `microbatches` > 1 the loss is one microbatch's share of the step's
    loss, which is the mean over the positions of all microbatches. The number
    of counted targets of this microbatch, computed by `@count_targets`, becomes
    the result `target_count`. The number in all microbatches is the new input
    `loss_divisor`. `--partita-accumulate` connects the two.

    ```mlir
    func.func @main(%x, %w) -> (tensor<2x5x9xf32>) { ... return %y }
    // becomes
    func.func @main(%x, %targets: tensor<2x5xi64>, %w) -> (tensor<f32> {nn.name = "loss"}) {
      ...
      %l = nn.cross_entropy %y, %targets ...
      %sum = nn.reduce sum %l ...
      return (%sum / number of targets that count)
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::partita::nn::NNDialect"];
  let options = [Option<"loss", "loss", "std::string", /*default=*/"\"cross-entropy\"", "Use this loss: cross-entropy (default), mse or none">,
                 Option<"output", "output", "std::string", /*default=*/"\"\"", "Use the result of this name as the output (default: the first)">,
                 Option<"ignore_index", "ignore-index", "int64_t", /*default=*/"-100", "Ignore positions with this target (default: -100)">,
                 Option<"label_smoothing", "label-smoothing", "double", /*default=*/"0", "Spread this share of the target over all classes (default: 0)">,
                 Option<"microbatches", "microbatches", "int64_t", /*default=*/"1", "Number of microbatches per step (default: 1)">];
}

def ReducePrecisionPass : Pass<"partita-reduce-precision", "::mlir::ModuleOp"> {
  let summary = "Stores parameters and activations in 16 bits";
  let description = [{
    Converts f32 values to `type`, except values that need f32:

    | values | stored as | computed in |
    |---|---|---|
    | parameters | 16 bits (`append-optimizer` adds an f32 copy, which it updates) | |
    | inputs and results of `@main`, buffers, constants | f32 | |
    | products, convolutions, attention | 16 bits | 16-bit factors, f32 sums |
    | routers of experts: their product, scores, choice and weights | f32; weights are rounded for `nn.experts` | f32 |
    | layer norms, RMS norms, softmax | 16 bits | f32 |
    | batch norms | 16 bits; statistics f32 | f32 |
    | elementwise arithmetic, reductions | 16 bits; f32 between one another | f32 |
    | losses, and values computed from them | f32 | f32 |
    | values computed from integers, constants and buffers alone: positions, masks | f32 | f32 |
    | data movement (gather, transpose, concat ...) | as its operand | |

    A chain of elementwise operations and reductions is therefore rounded once,
    at its end. A value within it is rounded if another operation uses it; all
    its users then use the rounded value. Gradients have the types of their
    values.

    ```mlir
    %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %1 = math.erf %0 : tensor<2x8xf32>
    %2 = arith.mulf %0, %1 : tensor<2x8xf32>
    // becomes
    %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x8xbf16>, tensor<8x8xbf16> -> tensor<2x8xbf16>
    %w0 = arith.extf %0 : tensor<2x8xbf16> to tensor<2x8xf32>
    %1 = math.erf %w0 : tensor<2x8xf32>
    %2 = arith.mulf %w0, %1 : tensor<2x8xf32>
    %n2 = arith.truncf %2 : tensor<2x8xf32> to tensor<2x8xbf16>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::partita::nn::NNDialect"];
  let options = [Option<"type", "type", "std::string", /*default=*/"\"bf16\"", "Store values as bf16 (default) or f16">];
}

def ChooseFloat8ProductsPass : Pass<"partita-choose-float8-products", "::mlir::ModuleOp"> {
  let summary = "Marks the products of linear layers that take factors of 8 bits";
  let description = [{
    Marks products of bf16 with `nn.float8 = "forward"`, for
    `--partita-round-float8-factors`. `--partita-differentiate`, which runs in
    between, marks the two products that are gradients of a marked one. Not
    marked, as in the recipes of Transformer Engine and torchao:

    - products with batch dimensions, such as those of attention,
    - routers of experts,
    - the product that no other product or layer follows: the logits,
    - products with a size that is no multiple of 16: GPUs lack them.

    ```mlir
    %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<16x32xbf16>, tensor<32x64xbf16> -> tensor<16x64xbf16>
    // becomes
    %0 = nn.dot_general %x, %w contract = [1] x [0] {nn.float8 = "forward"} : ...
    ```
  }];
  let statistics = [Statistic<"products", "products", "Products that are marked">];
}

def RoundFloat8FactorsPass : Pass<"partita-round-float8-factors", "::mlir::ModuleOp"> {
  let summary = "Rounds the factors of marked products to 8 bits";
  let description = [{
    Each factor x of a marked product has one scale (per-tensor current
    scaling). The gradient is rounded to e5m2, all other factors to e4m3:

        p = the least power of two with |x| <= 1.75 p for all elements
        x' = p / t * round(t / p * x), with t = 2^8 for e4m3 and 2^15 for e5m2

    The largest number of both formats is 1.75 t, so the rounding to 8 bits does
    not overflow; numbers above 1.75 * 2^127 may become infinite. If one number
    is infinite or NaN, all become NaN, as no p exists for it. Powers of two
    make all steps but the rounding exact, and bf16 holds x'. So the product of
    bf16 numbers has the value that a product of bytes and one scale has. If
    devices divide x, p needs the maximum over all of them, an all-reduce of one
    number; a divided step therefore rounds as an undivided one. Gradients pass
    the rounding unchanged, since they are made before.

    ```mlir
    %0 = nn.dot_general %x, %w contract = [1] x [0] {nn.float8 = "forward"} : ...
    // becomes, for each factor
    %wide = arith.extf %x : tensor<16x32xbf16> to tensor<16x32xf32>
    %size = math.absf %wide : tensor<16x32xf32>
    %largest = nn.reduce max %size dims = [0, 1] : tensor<16x32xf32> -> tensor<f32>
    %p = ... exponent of %largest ...
    %scaled = arith.mulf %wide, %up : tensor<16x32xf32>
    %bytes = arith.truncf %scaled : tensor<16x32xf32> to tensor<16x32xf8E4M3FN>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::partita::nn::NNDialect"];
}

def ScaleLossPass : Pass<"partita-scale-loss", "::mlir::ModuleOp"> {
  let summary = "Scales the loss, so that gradients fit f16";
  let description = [{
    Adds the result `scaled_loss`, the loss times a scale.
    `--partita-differentiate` then differentiates this result, and
    `--partita-append-optimizer` divides gradients by the scale, in f32. If a
    gradient of a step is not finite, the step changes no parameter, state or
    buffer, increments the new result `skipped`, and halves the scale. After
    `growth-interval` consecutive good steps the scale doubles. The result
    `loss_scale` is the scale of the step.

    ```mlir
    %unset = arith.cmpf oeq, %stored, %zero : tensor<f32>
    %scale = arith.select %unset, %initial, %stored : tensor<i1>, tensor<f32>
    %scaled = arith.mulf %loss, %scale : tensor<f32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::partita::nn::NNDialect"];
  let options = [Option<"initial", "initial", "double", /*default=*/"65536", "Use this scale in the first step, a power of two (default: 65536)">];
}

def DifferentiatePass : Pass<"partita-differentiate", "::mlir::ModuleOp"> {
  let summary = "Adds the gradients of the loss to the results of @main";
  let description = [{
    The loss is the result of `@main` named `scaled_loss`, which is removed, or
    else `loss`. Adds a result `grad.<name>` for each float argument of kind
    `parameter` whose name matches `train`. The gradient is zero if the loss
    does not depend on the parameter.

    Operations between calls of layers are outlined into functions too. A
    function `@f` becomes `@f_forward`, which also returns the values that
    `@f_backward` needs. The policy `recompute` chooses which values are saved
    and which are recomputed. An attribute `recompute` on an operation takes
    precedence for that operation.

    ```mlir
    %y = call @layer(%x, %w)
    // becomes
    %y, %saved = call @layer_forward(%x, %w)
    ...
    %dx, %dw = call @layer_backward(%x, %w, %saved, %dy)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::func::FuncDialect", "::partita::nn::NNDialect"];
  let options = [Option<"train", "train", "std::string", /*default=*/"\"*\"", "Train parameters that match these globs, separated by ';' (default: all)">,
                 Option<"recompute", "recompute", "std::string", /*default=*/"\"selective\"", "Recompute none, selective (default: elementwise work, moves, norms) or full (whole layers)">,
                 Option<"keep_lse", "keep-lse", "bool", /*default=*/"false", "Attention returns its log-sum-exp to its gradient, which can then be computed on a part of the keys">];
  let statistics = [Statistic<"functions", "functions", "Backward functions made">,
                    Statistic<"saved", "saved", "Values that forward functions save">];
}

def AccumulatePass : Pass<"partita-accumulate", "::mlir::ModuleOp"> {
  let summary = "Makes a step of several microbatches";
  let description = [{
    The body of `@main` computes the loss and the gradients of one microbatch.
    This pass repeats it `microbatches` times, each time on the next rows of the
    batch. It sums losses and gradients, gradients in f32. Each microbatch reads
    the buffers that the previous one updated. Inputs whose first dimension is
    named B get an additional first dimension; in the model's file both
    dimensions are one (`nn.view_of`). An input with the role `seed` has a
    different value in each microbatch. `loss_divisor` becomes the sum of all
    microbatches' `target_count`, or 1 if no target counts.

    With `noise-scale`, results `gradient_noise` and `gradient_signal` estimate
    the covariance and the norm of gradients from the squares of the
    microbatches' gradients and of their sum. Where the batch is divided over
    devices, each microbatch's gradients are reduced for that.

    ```mlir
    func.func @main(%x: tensor<4x6xf32> {nn.dims = ["B", "E"]}, %w) -> (%loss, %dw) {
      %loss, %dw = call @step(%x, %w)
    // becomes, with microbatches=2
    func.func @main(%x: tensor<2x4x6xf32> {nn.view_of = tensor<8x6xf32>}, %w) -> (%loss, %dw) {
      %0 = nn.slice %x starts = [0, 0, 0] ...
      %loss0, %dw0 = call @step(%0, %w)
      %1 = nn.slice %x starts = [1, 0, 0] ...
      %loss1, %dw1 = call @step(%1, %w)
      %loss = arith.addf %loss0, %loss1
      %dw = arith.addf %dw0, %dw1
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::partita::nn::NNDialect"];
  let options = [Option<"microbatches", "microbatches", "int64_t", /*default=*/"1", "Number of microbatches per step (default: 1)">,
                 Option<"noise_scale", "noise-scale", "bool", /*default=*/"false", "Measure the noise of gradients">];
}

def AppendOptimizerPass : Pass<"partita-append-optimizer", "::mlir::ModuleOp"> {
  let summary = "Turns gradients into new parameters";
  let description = [{
    Each result `grad.<parameter>` of `@main` is consumed by one update, which
    returns the new values of the parameter and its states. States are new
    arguments of kind `state`, named `<parameter>/<state>`, initially zero. New
    values are results with `nn.updates`. The learning rate, and the step number
    if the optimizer needs it, are new inputs with `nn.role`.

    A 16-bit parameter has one more state, `<parameter>/master`: its value in
    f32, from the same source. The update is applied to this copy, with states
    in f32, and the parameter is the rounded copy.

    `1bit-adam` continues AdamW after `onebit-warmup` steps. The second moment
    is frozen. A separate function computes the new momentum, and its call is
    marked with `nn.one_bit`: devices may exchange the momentum instead of
    gradients. The states equal AdamW's, so its checkpoint can be used. The
    momentum of `1bit-lamb` with `onebit-warmup` is marked in the same way.
    Without `onebit-warmup`, `1bit-lamb` is LAMB that also keeps
    `<parameter>/ratio` for the second phase.

    `0/1-adam` has three kinds of steps, `zero-one-step`, which share states:
    `variance` updates both moments from whole gradients; in `exchange` and
    `local`, the model reads a copy of each parameter that a function makes
    from the parameter and the sum of the device's own updates. The states
    `local_exp_avg` and `local_sum` differ between devices that share the batch.
    Calls with `nn.own_gradient` take the device's own gradient, and calls with
    `nn.one_bit_mean` the mean of an operand that devices may exchange with one
    bit per element.

    With `clip-norm` > 0, gradients are scaled so that their total norm is at
    most `clip-norm`; the norm becomes the result `grad_norm`.

    With `keep-zeros`, elements of matching parameters of two and more dimensions
    that are zero stay zero, and their gradients count as zero: the weights were
    pruned.

    Adafactor has two states per matrix, `exp_avg_sq_row` and `exp_avg_sq_col`,
    for rows and columns of the shape in the model's file (`nn.view_of`).

    ```mlir
    %p1, %m1, %v1 = call @adamw_update(%p, %g, %m, %v, %lr, %c1, %c2)
    return %loss, %p1, %m1, %v1
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::func::FuncDialect", "::partita::nn::NNDialect"];
  let options = [Option<"optimizer", "optimizer", "std::string", /*default=*/"\"adamw\"", "Use sgd, adam, adamw (default), lamb, adafactor, 1bit-adam, 1bit-lamb or 0/1-adam">,
                 Option<"beta1", "beta1", "double", /*default=*/"0.9", "Decay of the first moment (default: 0.9)">,
                 Option<"beta2", "beta2", "double", /*default=*/"0.999", "Decay of the second moment (default: 0.999)">,
                 Option<"epsilon", "epsilon", "double", /*default=*/"1e-8", "Add this to the root of the second moment (default: 1e-8)">,
                 Option<"momentum", "momentum", "double", /*default=*/"0", "Momentum of sgd (default: 0)">,
                 Option<"nesterov", "nesterov", "bool", /*default=*/"false", "Use Nesterov's momentum with sgd (default: false)">,
                 Option<"weight_decay", "weight-decay", "double", /*default=*/"0.01", "Weight decay (default: 0.01)">,
                 Option<"no_decay", "no-decay", "std::string", /*default=*/"\"\"", "Use no weight decay for parameters that match these globs, separated by ';' (default: none)">,
                 Option<"lr_scale", "lr-scale", "std::string", /*default=*/"\"\"", "Scale learning rates of groups: GLOB=FACTOR, separated by ';'; the last match applies (default: none)">,
                 Option<"keep_zeros", "keep-zeros", "std::string", /*default=*/"\"\"", "Keep zeros of matrices that match these globs, separated by ';' (default: none)">,
                 Option<"clip_norm", "clip-norm", "double", /*default=*/"0", "Limit the total norm of all gradients to this; 0 (default): no limit">,
                 Option<"onebit_warmup", "onebit-warmup", "int64_t", /*default=*/"0", "Number of warm-up steps that computed the second moment, for 1-bit optimizers (default: 0)">,
                 Option<"zero_one_step", "zero-one-step", "std::string", /*default=*/"\"exchange\"", "Step of 0/1-adam: variance, exchange (default) or local">,
                 Option<"growth_interval", "growth-interval", "int64_t", /*default=*/"2000", "Double the loss scale after this many consecutive good steps (default: 2000)">,
                 Option<"keep_gradients", "keep-gradients", "bool", /*default=*/"false", "Keep gradients as results (default: false)">];
}

#endif  // PARTITA_COMPILER_AUTODIFF_PASSES_TD
