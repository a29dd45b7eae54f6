// Passes that spread the layers of a model over the stages of a pipeline.
#ifndef PARTITA_COMPILER_PIPELINE_PASSES_TD
#define PARTITA_COMPILER_PIPELINE_PASSES_TD

include "mlir/Pass/PassBase.td"

def AssignStagesPass : Pass<"partita-assign-stages", "::mlir::ModuleOp"> {
  let summary = "Says which stage of a pipeline computes what of @main";
  let description = [{
    Calls of layers, and what stands between them, in the order in which they
    are computed, are cut into `stages` runs whose largest takes the least work
    (`nn.stage`); among equally good cuts the one that sends the fewest bytes to
    the next stage holds. What follows from inputs and constants alone has the
    stage of what uses it, and none where several stages do: each computes it.

    `last` cuts elsewhere: a pattern of layers for each stage, which ends with
    the last operation that it holds; the last stage ends with the model. Every
    pattern must hold something behind the stage before.

    ```mlir
    // stages=2
    %1 = call @layer(%0, %w0)
    %2 = call @layer(%1, %w1)
    // becomes
    %1 = call @layer(%0, %w0) {nn.stage = 0 : i64}
    %2 = call @layer(%1, %w1) {nn.stage = 1 : i64}
    ```
  }];
  let options = [Option<"stages", "stages", "int64_t", /*default=*/"1", "How many stages; 1: nothing is marked">,
                 Option<"last", "last", "std::string", /*default=*/"\"\"", "The last layer of each, as in *.h.5;*.h.11; empty: balanced">];
}

def SplitBackwardPass : Pass<"partita-split-backward", "::mlir::ModuleOp"> {
  let summary = "Gradients that others wait for first, those of weights apart";
  let description = [{
    A call of @main that computes gradients (`nn.backward`) becomes two: one for
    those that other such calls need (`"input"`), and one for the rest
    (`"weight"`), which nobody waits for, so a schedule may put it off. Where
    nothing is left for one of the two, the call is the other. Calls of the same
    function share what it becomes.

    The first passes on what the second needs of it. What is elementwise the
    second computes again, if that keeps fewer bytes between them; and a
    gradient without a product, as that of a norm's scale, stays with the first
    where the second would have to be given more than that.

    ```mlir
    %dx, %dw = call @layer_backward(%x, %w, %h, %dy) {nn.backward, nn.microbatch = 0 : i64, nn.stage = 1 : i64}
    // becomes
    %dx, %dh = call @layer_backward_input(%w, %h, %dy) {nn.backward = "input", ...}
    %dw = call @layer_backward_weight(%x, %dh) {nn.backward = "weight", ...}
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::partita::nn::NNDialect"];
  let options = [Option<"cells", "cells", "std::string", /*default=*/"\"all\"", "Whose calls: all, or STAGE.MICROBATCH, separated by ';'">];
  let statistics = [Statistic<"functions", "functions", "Functions cut in two">,
                    Statistic<"passed", "passed", "Values that first functions pass to second ones">];
}

def DelayStagesPass : Pass<"partita-delay-stages", "::mlir::ModuleOp"> {
  let summary = "Lets microbatches of the next step follow before a step is complete";
  let description = [{
    For schedules without a flush. What a stage computes comes a microbatch
    later for each stage in front of it, and all gradients as late as the last
    stage's, so at the end of a step the pipeline stays full. What falls into
    the next step reads activations, inputs and weights of this one from new
    states (`delayed/...`); so a microbatch's gradients are of the weights that
    its forward had. With `weights=previous` those are what they were a whole
    step before the step of the microbatch began to be added up (PipeDream-2BW);
    with `newest` the newest there were when it came to the stage (PipeDream).

    An update, the loss and whatever else is of all microbatches belong to the
    step 1 + (stages - 2) / microbatches before; the first ones update nothing,
    and their results are 0.

    With `correction=D` gradients do not have the weights of their forward,
    which need then not be kept, but the newest, less by what the updates since
    are on average: `n` times their moving average, in which an update counts
    `1 - D^(1/n)`, `n` being how many they are, on average over a step's
    microbatches (the second technique of PipeMare). 0: no such thing.

    With `rate-steps` the learning rate of each stage whose weights are on
    average `d` > 1 updates older than those of a step that flushes is divided
    by `d^(1 - k / rate-steps)` in update `k` (the first technique of PipeMare,
    Yang et al., 2021); where no stage's are, that is refused.

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
  let options = [Option<"weights", "weights", "std::string", /*default=*/"\"previous\"", "previous or newest">,
                 Option<"correction", "correction", "double", /*default=*/"0", "What is left of an update in the moving average after as many as gradients' weights are ahead; 0: they have their forward's">,
             Option<"rate_steps", "rate-steps", "int64_t", /*default=*/"0", "For how many updates stages of old weights learn more slowly; 0: none">];
}

#endif  // PARTITA_COMPILER_PIPELINE_PASSES_TD
