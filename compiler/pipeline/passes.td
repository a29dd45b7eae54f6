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

    ```mlir
    // stages=2
    %1 = call @layer(%0, %w0)
    %2 = call @layer(%1, %w1)
    // becomes
    %1 = call @layer(%0, %w0) {nn.stage = 0 : i64}
    %2 = call @layer(%1, %w1) {nn.stage = 1 : i64}
    ```
  }];
  let options = [Option<"stages", "stages", "int64_t", /*default=*/"1", "How many stages; 1: nothing is marked">];
}

#endif  // PARTITA_COMPILER_PIPELINE_PASSES_TD
