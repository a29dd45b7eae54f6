// Passes that divide the layers of a model into pipeline stages.
#ifndef PARTITA_COMPILER_PIPELINE_PASSES_TD
#define PARTITA_COMPILER_PIPELINE_PASSES_TD

include "mlir/Pass/PassBase.td"

def AssignStagesPass : Pass<"partita-assign-stages", "::mlir::ModuleOp"> {
  let summary = "Assigns the operations of @main to pipeline stages";
  let description = [{
    Cuts the sequence of layer calls and the operations between them into
    `stages` runs (`nn.stage`), so that the largest run has the least work. Among
    equally good cuts it takes the cut that sends the fewest bytes to the next
    stage. An operation that depends on inputs and constants alone has the stage
    of its users. If several stages use it, it has no stage, and each computes
    it.

    `last` chooses the cuts explicitly, by one pattern of layers per stage. A
    stage ends with the last operation that its pattern matches; the last stage
    ends with the model. Every pattern must match an operation after the previous
    stage.

    ```mlir
    // stages=2
    %1 = call @layer(%0, %w0)
    %2 = call @layer(%1, %w1)
    // becomes
    %1 = call @layer(%0, %w0) {nn.stage = 0 : i64}
    %2 = call @layer(%1, %w1) {nn.stage = 1 : i64}
    ```
  }];
  let options = [Option<"stages", "stages", "int64_t", /*default=*/"1", "Number of stages; 1 (default): mark nothing">,
                 Option<"last", "last", "std::string", /*default=*/"\"\"", "End stages after these layers, e.g. *.h.5;*.h.11 (default: balance the work)">];
}

def SplitBackwardPass : Pass<"partita-split-backward", "::mlir::ModuleOp"> {
  let summary = "Splits backward calls into input gradients and weight gradients";
  let description = [{
    Splits each call of @main that computes gradients (`nn.backward`) in two:
    one computes gradients that other backward calls need (`"input"`), the other
    computes the rest (`"weight"`). No call waits for weight gradients, so a
    schedule may delay them. If one part would be empty, the call is not split,
    only marked. Calls of one function share its halves.

    The first half passes values to the second. The second half recomputes
    elementwise operations if this passes fewer bytes. A gradient without a
    product, such as that of a norm's scale, stays in the first half if the
    second would need more bytes to compute it.

    ```mlir
    %dx, %dw = call @layer_backward(%x, %w, %h, %dy) {nn.backward, nn.microbatch = 0 : i64, nn.stage = 1 : i64}
    // becomes
    %dx, %dh = call @layer_backward_input(%w, %h, %dy) {nn.backward = "input", ...}
    %dw = call @layer_backward_weight(%x, %dh) {nn.backward = "weight", ...}
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::partita::nn::NNDialect"];
  let options = [Option<"cells", "cells", "std::string", /*default=*/"\"all\"", "Split the calls of these cells: all (default), or STAGE.MICROBATCH, separated by ';'">];
  let statistics = [Statistic<"functions", "functions", "Functions split in two">,
                    Statistic<"passed", "passed", "Values that first halves pass to second halves">];
}

def DelayStagesPass : Pass<"partita-delay-stages", "::mlir::ModuleOp"> {
  let summary = "Overlaps consecutive steps, so that the pipeline stays full";
  let description = [{
    For schedules without flushes. Each stage runs one microbatch later per
    earlier stage, and all gradients run as late as in the last stage. The
    pipeline therefore stays full at the end of a step. Work that falls into the
    next step reads activations, inputs and weights of this step from new states
    (`delayed/...`), so a microbatch's backward uses the weights of its forward.
    With `weights=previous` these are the weights of one whole step before the
    gradients of the microbatch's step begin to be summed (PipeDream-2BW). With
    `weights=newest` they are the newest weights when the microbatch reaches the
    stage (PipeDream).

    Updates, the loss and other results of all microbatches belong to an earlier
    step, 1 + (stages - 2) / microbatches steps before. The first steps update
    nothing, and their results are 0.

    With `correction=D` > 0, backwards do not use the weights of their forward,
    which then need not be kept. They use the newest weights minus `n` times the
    moving average of updates. Here `n` is the number of updates since the
    forward, averaged over a step's microbatches, and each update has weight
    `1 - D^(1/n)` in the moving average (the second technique of PipeMare).

    With `rate-steps` > 0, the learning rate of a stage is divided by
    `d^(1 - k / rate-steps)` in update `k` if its weights are on average `d` > 1
    updates older than with flushes (the first technique of PipeMare, Yang et
    al., 2021). Refused if no stage has such weights.

    ```mlir
    // stages=2, microbatches 0 and 1
    %a1 = call @f0(%x1, %u) {nn.microbatch = 1 : i64, nn.stage = 0 : i64}
    %y1 = call @f1(%a1, %w) {nn.microbatch = 1 : i64, nn.stage = 1 : i64}
    // becomes
    %y1 = call @f1(%delayed_a1, %delayed_w) {nn.microbatch = 1 : i64, nn.stage = 1 : i64}
    ...
    %a1 = call @f0(%x1, %u) {nn.microbatch = 1 : i64, nn.stage = 0 : i64}
    return ..., %a1, %w
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::partita::nn::NNDialect"];
  let options = [Option<"weights", "weights", "std::string", /*default=*/"\"previous\"", "Use the previous (default) or newest weights">,
                 Option<"correction", "correction", "double", /*default=*/"0", "Correct the newest weights by a moving average in which this share of an update is left after `n` more; 0 (default): use the weights of the forward">,
             Option<"rate_steps", "rate-steps", "int64_t", /*default=*/"0", "Slow down stages with old weights for this many updates (default: 0)">];
}

#endif  // PARTITA_COMPILER_PIPELINE_PASSES_TD
