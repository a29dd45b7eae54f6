// Passes that decide how a model is divided: from names of dimensions to a sharding on every value.
#ifndef PARTITA_COMPILER_SHARDING_PASSES_TD
#define PARTITA_COMPILER_SHARDING_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExposeFactorsPass : Pass<"partita-expose-factors", "::mlir::ModuleOp"> {
  let summary = "Makes every factor that can be divided the first of its dimension";
  let description = [{
    A dimension that is several factors can be divided along its first only.
    Exporters merge dimensions where a plan wants them apart; this pass undoes
    it, and computes the same numbers.

    Flattening moves behind what does not care for it, until the reshape that
    undoes it cancels it: products (of free dimensions), elementwise work,
    norms over other dimensions, gathers, reductions.

    ```mlir
    %0 = nn.reshape %x : tensor<4x8x32xf32> -> tensor<32x32xf32>
    %1 = nn.dot_general %0, %w contract = [1] x [0] : tensor<32x32xf32>, tensor<32x96xf32> -> tensor<32x96xf32>
    // becomes
    %0 = nn.dot_general %x, %w contract = [2] x [0] : tensor<4x8x32xf32>, tensor<32x96xf32> -> tensor<4x8x96xf32>
    %1 = nn.reshape %0 : tensor<4x8x96xf32> -> tensor<32x96xf32>
    ```

    Packed projections come apart. Where a product (or convolution), with what
    is added to it, is used in slices of a dimension only, and the slices are
    its first factor, they move up to the parameters, whose dimension becomes
    two: the same bytes, in functions and their callers alike. Work on
    parameters moves to load time later on.

    ```mlir
    func.func @main(%x: tensor<8x32xf32>, %w: tensor<32x96xf32> {nn.source = ...}) {
      %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<8x32xf32>, tensor<32x96xf32> -> tensor<8x96xf32>
      %q = nn.slice %0 starts = [0, 0] strides = [1, 1] : tensor<8x96xf32> -> tensor<8x32xf32>
      ...
    // becomes
    func.func @main(%x: tensor<8x32xf32>, %w: tensor<32x3x32xf32> {nn.source = ...}) {
      %0 = nn.slice %w starts = [0, 0, 0] strides = [1, 1, 1] : tensor<32x3x32xf32> -> tensor<32x1x32xf32>
      %1 = nn.reshape %0 : tensor<32x1x32xf32> -> tensor<32x32xf32>
      %q = nn.dot_general %x, %1 contract = [1] x [0] : tensor<8x32xf32>, tensor<32x32xf32> -> tensor<8x32xf32>
      ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::partita::nn::NNDialect"];
  let statistics = [Statistic<"sunk", "sunk", "Operations that a flattening moved behind">,
                    Statistic<"hoisted", "hoisted", "Slices moved up to parameters">,
                    Statistic<"viewed", "viewed", "Parameters given another shape">];
}

def SplitBatchPass : Pass<"partita-split-batch", "::mlir::ModuleOp"> {
  let summary = "Makes the model one of a microbatch";
  let description = [{
    Wants named dimensions (`--partita-name-dimensions`). Every dimension that
    carries B becomes `microbatches` times smaller: what is differentiated and
    divided from here on is one microbatch, and `--partita-accumulate` makes a
    step of several. Refused where rows of the batch are not treated alike, or
    depend on each other otherwise than by batch norms and the loss, and where
    an input has its batch elsewhere than first.

    ```mlir
    // microbatches=2
    func.func @main(%x: tensor<8x6xf32> {nn.dims = ["B", "E"]}) -> tensor<8x6xf32> {
    // becomes
    func.func @main(%x: tensor<4x6xf32> {nn.dims = ["B", "E"]}) -> tensor<4x6xf32> {
    ```
  }];
  let options = [Option<"microbatches", "microbatches", "int64_t", /*default=*/"1", "How many; divides the batch">];
}

def ApplyPlanPass : Pass<"partita-apply-plan", "::mlir::ModuleOp"> {
  let summary = "Gives every value a sharding, as a plan says";
  let description = [{
    Wants named dimensions (`--partita-name-dimensions`). Overrides and the
    model's own annotations first, then each entry of the plan in order:
    its axes go to every dimension of that name whose value does not use
    them yet, and travel on to what has no name. Composites whose normalised
    dimension comes out divided are decomposed.

    ```mlir
    // mesh="data=2" shard="B=data"
    func.func @main(%x: tensor<8x6xf32> {nn.dims = ["B", "E"]}) -> tensor<8x6xf32> {
    // becomes
    dist.mesh @mesh <["data"=2]>
    func.func @main(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<[{"data", ?}p1, {?} ]>, ...
    ```
  }];
  let options = [Option<"plan_path", "plan", "std::string", "", "Plan file">,
                 Option<"mesh", "mesh", "std::string", "", "Mesh, as in data=2,tensor=2, if no plan file is given">,
                 Option<"shard", "shard", "std::string", "", "Entries, as in B=data,M=tensor;L=tensor, if no plan file is given">];
  let dependentDialects = ["::partita::dist::DistDialect"];
}

def VerifyRulesPass : Pass<"partita-verify-rules", "::mlir::ModuleOp"> {
  let summary = "Executes the sharding rules that users attach";
  let description = [{
    A wrong `nn.rule` would divide its operation to wrong numbers, silently.
    This pass evaluates each operation that carries one, on shapes of at most
    five elements a factor, undivided and divided over up to eight devices, and
    refuses the rule where the two differ. The cost does not grow with the
    model's shapes, but for factors that the rule keeps whole.

    ```mlir
    // refused: each half of the rows would be normalised by itself
    %y = nn.softmax %x axis = 0 {nn.rule = #nn.rule<([i]) -> ([i]) {i=8}>} : tensor<8xf32>
    ```
  }];
  let dependentDialects = ["::partita::nn::NNDialect"];
  let statistics = [Statistic<"verified", "verified", "Rules executed">];
}

def NameDimensionsPass : Pass<"partita-name-dimensions", "::mlir::ModuleOp"> {
  let summary = "Finds what each dimension means";
  let description = [{
    Dimensions that the sharding rules of operations tie together, across
    calls, are one class; the structure of the model names it:

    | name | where it is seen |
    |------|------------------|
    | B    | the first dimension of inputs; the batch of attention and images |
    | N    | heads of attention; the size of a head has no name |
    | L    | the sequence of attention; the second dimension of token inputs |
    | H, W | spatial dimensions of convolutions, and what a stride makes of them |
    | E    | widths of embeddings and residual sums, what is normalised, channels |
    | M    | what lies between a product from and a product to E; between colours and the one width they lead to |
    | V    | rows of token embeddings; the last dimension of logits |
    | X    | the batch dimension of products with parameters: experts |

    The result is the attribute `nn.dims` on arguments and operations: per
    dimension its segments, the most significant first, by name or size. A name
    that a value has twice gets a prime. `L=H*W` is a flattened image that
    attention reads as a sequence.

    ```mlir
    func.func @main(%x: tensor<4x8xi64>, %w: tensor<32x3x32xf32>)
    // becomes
    func.func @main(%x: tensor<4x8xi64> {nn.dims = ["B", "L"]}, %w: tensor<32x3x32xf32> {nn.dims = ["E", "3", "N*8"]})
    ```
  }];
  let options = [Option<"names", "names", "std::string", /*default=*/"\"\"",
                        "Names that outrank what is found: 'h.*.mlp.up.weight:1=M;...'">];
}

#endif  // PARTITA_COMPILER_SHARDING_PASSES_TD
