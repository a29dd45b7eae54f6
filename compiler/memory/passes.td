// Passes that place buffers.
#ifndef PARTITA_COMPILER_MEMORY_PASSES_TD
#define PARTITA_COMPILER_MEMORY_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExposeGathersPass : Pass<"partita-expose-gathers", "::mlir::ModuleOp"> {
  let summary = "Moves gathers of parameters from layers to their calls";
  let description = [{
    If only the mains of devices call a function, its gathers that depend on nothing but parameters move in front of
    each call, with the kernels that pack them. Their results become arguments of the function. In front of the call,
    they can be started before the layer runs.

    ```mlir
    func.func private @layer(%x: tensor<4xf32>, %w: tensor<2xf32>) -> tensor<4xf32> {
      %0 = exec.collective all_gather %w axes = [0, 1, 2] {dim = 0 : i64} : tensor<2xf32> -> tensor<4xf32>
      %1 = exec.launch @k(%x, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    // becomes, with the gather in front of its calls,
    func.func private @layer(%x: tensor<4xf32>, %w: tensor<2xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
      %1 = exec.launch @k(%x, %g) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    ```
  }];
  let statistics = [Statistic<"gathers", "gathers", "Number of gathers moved, counted in functions">];
}

def OverlapCollectivesPass : Pass<"partita-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "Starts collectives early and awaits them late";
  let description = [{
    In the mains of devices, each collective moves up to where its input is available, together with the kernels that
    pack it: a bucket of gradients is reduced as soon as its last gradient is computed. Kernels that unpack its result
    move down to the first operation that needs them. A collective with calls or library calls in between is started and
    awaited; other collectives stay as they are.

    Inputs and results of collectives in flight take at most `most-bytes`: the oldest one is awaited and unpacked before
    a new one starts. A larger collective is not started. It moves behind the next sends in front of its first user, so
    that other ranks need not wait. Nothing moves up past the send of a value that was computed before it.

    In layers, rows on their way to experts and back travel in the same way: beside the products of shared experts.
    Other collectives of layers stay, as what follows needs their results. Rows among GPUs stay, too (`rows=false`),
    because the host waits for their numbers.

    ```mlir
    %g:2 = call @backward(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %h = call @backward_2(%g#0) : (tensor<4xf32>) -> tensor<4xf32>
    %s = exec.collective all_reduce %g#1 axes = [0, 1, 2] : tensor<4xf32> -> tensor<4xf32>
    // becomes
    %g:2 = call @backward(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %t = exec.collective all_reduce %g#1 axes = [0, 1, 2] {token = 1 : i64} : tensor<4xf32> -> tensor<4xf32>
    %h = call @backward_2(%g#0) : (tensor<4xf32>) -> tensor<4xf32>
    %s = exec.await %t, %g#1 token = 1 : tensor<4xf32>, tensor<4xf32>
    ```
  }];
  let options = [Option<"most_bytes", "most-bytes", "int64_t", /*default=*/"::partita::core::kBytesInFlight",
                        "Limit on bytes of inputs and results in flight (64 MiB: a full bucket, its sum, and some more)">,
                 Option<"ahead", "ahead", "int64_t", /*default=*/"0",
                        "Start gathers of nothing but arguments this many calls before their use; their bytes do not count">,
                 Option<"rows", "rows", "bool", /*default=*/"true", "Start collectives of experts' rows">];
  let statistics = [Statistic<"started", "started", "Number of collectives that are started">];
}

def PlanMemoryPass : Pass<"partita-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Places every buffer of a program";
  let description = [{
    Walks each function in program order, callees first. Computes how long each result lives (a view extends the life of
    its value), and places results and the frames of callees in the function's frame. A value that the function returns
    is written straight into the caller's memory where possible. Annotates `exec.offsets`, `exec.frame_offset` and
    `exec.frame_bytes`.

    With `in-place`, the result of a launch, a convolution or a call takes the place of an operand that nothing reads
    later, if each of the operand's elements is read before it is overwritten: operands of elementwise kernels, and
    residuals. This saves reading the result's memory into the cache before it is written, and the library adds faster.

    ```mlir
    %0 = exec.launch @k(%x) {exec.offsets = array<i64: 0>} : (tensor<8xf32>) -> tensor<8xf32>
    %1 = exec.launch @k(%0) {exec.offsets = array<i64: -1>} : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
    ```
  }];
  let options = [Option<"inPlace", "in-place", "bool", /*default=*/"false",
                        "Let results take the place of operands that they replace element by element">];
  let statistics = [Statistic<"buffers", "buffers", "Number of buffers placed">];
}

def JoinLaunchesPass : Pass<"partita-join-launches", "::mlir::ModuleOp"> {
  let summary = "Joins launches that update parameters with the same code";
  let description = [{
    In functions that update stored tensors, joins launches into one `exec.launch_pieces` of at most 256, if their
    kernels share one code and there are only launches between them, none of which writes memory that another reads or
    writes. A result that updates an argument uses that argument's memory. On GPUs only launches of code that takes pieces
    have a range. All of them become an `exec.launch_pieces`, of as many pieces as the code's parameters hold.

    ```mlir
    %a = exec.launch @k_0(%p) {exec.offsets = array<i64: -1>, range = 8 : i64, ...} : (tensor<8xf32>) -> tensor<8xf32>
    %b = exec.launch @k_1(%q) {exec.offsets = array<i64: -2>, range = 4 : i64, ...} : (tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %0:2 = exec.launch_pieces [@k_0, @k_1](%p, %q) ranges = [8, 4] {exec.offsets = array<i64: -1, -2>, ...} :
      (tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>)
    ```
  }];
  let dependentDialects = ["::partita::exec::ExecDialect"];
  let statistics = [Statistic<"joined", "joined", "Number of launches that became part of another">];
}

def CopyReturnedPass : Pass<"partita-copy-returned", "::mlir::ModuleOp"> {
  let summary = "Copies results that no operation could write where the caller wants them";
  let description = [{
    These are arguments, constants, values that are returned twice, and new values of stored tensors whose old ones are
    read later. Each gets an `exec.copy` in front of the return. If an argument is updated and its old value is a result
    too, the old value is read before it is overwritten. Stored tensors that exchange their values are refused.

    ```mlir
    return %x, %x : tensor<8xf32>, tensor<8xf32>
    // becomes
    %0 = exec.copy %x {exec.offsets = array<i64: -1>} : tensor<8xf32>
    %1 = exec.copy %x {exec.offsets = array<i64: -2>} : tensor<8xf32>
    return %0, %1 : tensor<8xf32>, tensor<8xf32>
    ```
  }];
  let dependentDialects = ["::partita::exec::ExecDialect"];
  let statistics = [Statistic<"copies", "copies", "Number of results copied">];
}

#endif  // PARTITA_COMPILER_MEMORY_PASSES_TD
