// Passes that make a training step of a model.
#ifndef PARTITA_COMPILER_AUTODIFF_PASSES_TD
#define PARTITA_COMPILER_AUTODIFF_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttachLossPass : Pass<"partita-attach-loss", "::mlir::ModuleOp"> {
  let summary = "Turns the model's output into a loss, and batch statistics into updates";
  let description = [{
    The first result of `@main`, or the one named by `output`, becomes the
    scalar `loss`; the other results are dropped. `cross-entropy` and `mse` take
    a new input `targets`, after the other inputs: i64 of the output's shape
    without its last dimension, or a tensor like the output. The loss is the
    mean over all positions whose target is not `ignore-index`. With `none` the
    output is a scalar f32 already.

    The running statistics of batch norms in training mode become results that
    update their buffers.

    With `microbatches` the loss is the share that a microbatch has of the
    step's: the mean over the positions of all. How many of its targets count,
    `@count_targets` of them, becomes the result `target_count`; how many there
    are in all, the new input `loss_divisor`. `--partita-accumulate` brings the
    two together.

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
  let options = [Option<"loss", "loss", "std::string", /*default=*/"\"cross-entropy\"", "cross-entropy, mse or none">,
                 Option<"output", "output", "std::string", /*default=*/"\"\"", "Which result: its name; empty: the first">,
                 Option<"ignore_index", "ignore-index", "int64_t", /*default=*/"-100", "Target of positions that do not count">,
                 Option<"label_smoothing", "label-smoothing", "double", /*default=*/"0", "Share of the target spread over all classes">,
                 Option<"microbatches", "microbatches", "int64_t", /*default=*/"1", "How many make a step">];
}

def ReducePrecisionPass : Pass<"partita-reduce-precision", "::mlir::ModuleOp"> {
  let summary = "Stores parameters and activations in 16 bits";
  let description = [{
    What was f32 becomes `type`, but for what needs f32:

    | what | stored as | computed in |
    |---|---|---|
    | parameters | 16 bits (`append-optimizer` adds an f32 copy, which it updates) | |
    | inputs and results of `@main`, buffers, constants | f32 | |
    | products, convolutions, attention | 16 bits | 16-bit factors, f32 sums |
    | layer norms, RMS norms, softmax | 16 bits | f32 |
    | batch norms | 16 bits; statistics f32 | f32 |
    | elementwise arithmetic, reductions | 16 bits; f32 between one another | f32 |
    | losses, what is computed of them | f32 | f32 |
    | positions, masks: what follows from integers, constants and buffers alone | f32 | f32 |
    | what only moves (gather, transpose, concat ...) | as its operand | |

    So a chain of elementwise operations and reductions is rounded once, at its
    end, or where something else uses a value of it; then all use the rounded
    value. Gradients follow, as they have the types of their values.

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
  let options = [Option<"type", "type", "std::string", /*default=*/"\"bf16\"", "bf16 or f16">];
}

def ScaleLossPass : Pass<"partita-scale-loss", "::mlir::ModuleOp"> {
  let summary = "Scales what is differentiated, so that gradients fit f16";
  let description = [{
    The result `scaled_loss`, the loss times a scale, is what
    `differentiate` takes then; `append-optimizer` scales gradients back, in
    f32. A step of which some gradient is not finite changes no parameter, no
    state and no buffer, counts in the new result `skipped`, and halves the
    scale, which `growth-interval` good steps in a row double. The result
    `loss_scale` is the scale of the step.

    ```mlir
    %unset = arith.cmpf oeq, %stored, %zero : tensor<f32>
    %scale = arith.select %unset, %initial, %stored : tensor<i1>, tensor<f32>
    %scaled = arith.mulf %loss, %scale : tensor<f32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::partita::nn::NNDialect"];
  let options = [Option<"initial", "initial", "double", /*default=*/"65536", "The scale of the first step: a power of two">];
}

def DifferentiatePass : Pass<"partita-differentiate", "::mlir::ModuleOp"> {
  let summary = "Adds the gradients of the loss to the results of @main";
  let description = [{
    The loss is the result of `@main` named `scaled_loss`, which goes, or
    `loss`. For each argument of kind
    `parameter` that is of floats and whose name matches `train`, there is a new
    result named `grad.<name>`, a zero where the loss does not depend on it.

    What stands between the calls of layers becomes functions too. A function
    `@f` becomes `@f_forward`, which also returns what `@f_backward` needs of
    it: `recompute` says what is kept, and what is computed again, an
    operation's own attribute `recompute` for that operation.

    ```mlir
    %y = call @layer(%x, %w)
    // becomes
    %y, %saved = call @layer_forward(%x, %w)
    ...
    %dx, %dw = call @layer_backward(%x, %w, %saved, %dy)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::func::FuncDialect", "::partita::nn::NNDialect"];
  let options = [Option<"train", "train", "std::string", /*default=*/"\"*\"", "Globs of the parameters to train, separated by ';'">,
                 Option<"recompute", "recompute", "std::string", /*default=*/"\"selective\"", "none, selective (what is elementwise, norms) or full (whole layers)">];
  let statistics = [Statistic<"functions", "functions", "Backward functions made">,
                    Statistic<"saved", "saved", "Values that forward functions keep">];
}

def AccumulatePass : Pass<"partita-accumulate", "::mlir::ModuleOp"> {
  let summary = "Makes a step of several microbatches";
  let description = [{
    The body of `@main` computes the loss and the gradients of one microbatch.
    It is repeated `microbatches` times, on the next rows of the batch each
    time: losses and gradients are added up, gradients in f32; buffers that a
    microbatch updates are what the next one reads. Inputs get a dimension in
    front; their first one was named B. As the model has it, the two are one
    (`nn.view_of`). An input with the role `seed` is another number for each
    microbatch. `loss_divisor` is the sum of all microbatches'
    `target_count`, or 1 where no target counts.

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
  let options = [Option<"microbatches", "microbatches", "int64_t", /*default=*/"1", "How many">];
}

def AppendOptimizerPass : Pass<"partita-append-optimizer", "::mlir::ModuleOp"> {
  let summary = "Turns gradients into new parameters";
  let description = [{
    Each result of `@main` named `grad.<parameter>` is consumed by one update,
    whose results are the parameter's new value and that of its states. States
    are new arguments of kind `state`, named `<parameter>/<state>`, zero at
    first; new values are results with `nn.updates`. The learning rate, and the
    step's number where the optimizer needs it, are new inputs with `nn.role`.

    A parameter of 16 bits has a state more, `<parameter>/master`: its value in
    f32, from the same source. That is updated, with states in f32; the
    parameter is what it rounds to.

    `1bit-adam` is AdamW after `onebit-warmup` steps of it: the second moment
    stays as it is, and the new momentum is made by a function of its own, whose
    call says so (`nn.one_bit`): devices may exchange it in the place of
    gradients. It has the states of AdamW, so that it takes over its checkpoint.
    So is the momentum of `1bit-lamb` with `onebit-warmup`; without it, it is LAMB
    that keeps what its second phase needs, `<parameter>/ratio`.

    With `clip-norm` gradients are scaled so that the norm of all of them
    together is at most that; the norm becomes the result `grad_norm`.

    Adafactor keeps of a matrix a state for its rows and one for its columns,
    `exp_avg_sq_row` and `exp_avg_sq_col`, by the shape that the model has it
    in (`nn.view_of`).

    ```mlir
    %p1, %m1, %v1 = call @adamw_update(%p, %g, %m, %v, %lr, %c1, %c2)
    return %loss, %p1, %m1, %v1
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::func::FuncDialect", "::partita::nn::NNDialect"];
  let options = [Option<"optimizer", "optimizer", "std::string", /*default=*/"\"adamw\"", "sgd, adam, adamw, lamb, adafactor, 1bit-adam or 1bit-lamb">,
                 Option<"beta1", "beta1", "double", /*default=*/"0.9", "Of the first moment">,
                 Option<"beta2", "beta2", "double", /*default=*/"0.999", "Of the second moment">,
                 Option<"epsilon", "epsilon", "double", /*default=*/"1e-8", "Added to the root of the second moment">,
                 Option<"momentum", "momentum", "double", /*default=*/"0", "Of sgd">,
                 Option<"nesterov", "nesterov", "bool", /*default=*/"false", "Nesterov's momentum, of sgd">,
                 Option<"weight_decay", "weight-decay", "double", /*default=*/"0.01", "Weight decay">,
                 Option<"no_decay", "no-decay", "std::string", /*default=*/"\"\"", "Globs of parameters without weight decay, separated by ';'">,
                 Option<"lr_scale", "lr-scale", "std::string", /*default=*/"\"\"", "Learning rates of groups: GLOB=FACTOR, separated by ';'; the last that matches">,
                 Option<"clip_norm", "clip-norm", "double", /*default=*/"0", "Largest norm of all gradients together; 0: any">,
                 Option<"onebit_warmup", "onebit-warmup", "int64_t", /*default=*/"0", "Of 1-bit optimizers: how many steps made the second moment">,
                 Option<"growth_interval", "growth-interval", "int64_t", /*default=*/"2000", "Good steps in a row that double the loss scale">,
                 Option<"keep_gradients", "keep-gradients", "bool", /*default=*/"false", "Whether gradients stay results">];
}

#endif  // PARTITA_COMPILER_AUTODIFF_PASSES_TD
