// Passes that place buffers.
#ifndef PARTITA_COMPILER_MEMORY_PASSES_TD
#define PARTITA_COMPILER_MEMORY_PASSES_TD

include "mlir/Pass/PassBase.td"

def PlanMemoryPass : Pass<"partita-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Gives every buffer of a program its place";
  let description = [{
    Walks each function in program order, callees first, computes how long each
    result lives (views prolong what they view) and places results and the
    frames of callees in the function's frame. A value that the function
    returns is written straight into the caller's memory where possible.
    Annotates `exec.offsets`, `exec.frame_offset` and `exec.frame_bytes`.

    ```mlir
    %0 = exec.launch @k(%x) {exec.offsets = array<i64: 0>} : (tensor<8xf32>) -> tensor<8xf32>
    %1 = exec.launch @k(%0) {exec.offsets = array<i64: -1>} : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
    ```
  }];
  let statistics = [Statistic<"buffers", "buffers", "Number of buffers placed">];
}

#endif  // PARTITA_COMPILER_MEMORY_PASSES_TD
