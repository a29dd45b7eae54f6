// Passes that decide how a model is divided: they name dimensions and give every value a sharding.
#ifndef PARTITA_COMPILER_SHARDING_PASSES_TD
#define PARTITA_COMPILER_SHARDING_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExposeFactorsPass : Pass<"partita-expose-factors", "::mlir::ModuleOp"> {
  let summary = "Makes every divisible factor the first factor of its dimension";
  let description = [{
    A dimension with several factors can be divided along its first factor
    only. Exporters merge dimensions that a plan needs separate; this pass
    splits them again. The computed numbers do not change.

    A flattening reshape moves behind operations that work on the unflattened
    value too, until the inverse reshape cancels it. These operations are
    products (over free dimensions), elementwise work, norms over other
    dimensions, gathers, reductions and choices of the largest.

    ```mlir
    %0 = nn.reshape %x : tensor<4x8x32xf32> -> tensor<32x32xf32>
    %1 = nn.dot_general %0, %w contract = [1] x [0] : tensor<32x32xf32>, tensor<32x96xf32> -> tensor<32x96xf32>
    // becomes
    %0 = nn.dot_general %x, %w contract = [2] x [0] : tensor<4x8x32xf32>, tensor<32x96xf32> -> tensor<4x8x96xf32>
    %1 = nn.reshape %0 : tensor<4x8x96xf32> -> tensor<32x96xf32>
    ```

    Packed projections are separated. If a product or convolution, including
    its bias, is used only in slices of one dimension, and the slices are the
    dimension's first factor, the slices move up to the parameters. That
    dimension of the parameter becomes two, with the same bytes, in functions
    and their callers. Work on parameters moves to load time later.

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
  let summary = "Reduces the model's batch to one microbatch";
  let description = [{
    Requires named dimensions (`--partita-name-dimensions`). Divides the size of
    every dimension that carries B by `microbatches`. Later passes differentiate
    and divide one microbatch; `--partita-accumulate` makes a step of several.
    Refuses models whose batch rows are treated differently, or depend on each
    other except through batch norms, the loss, and ranges of activations that
    training rounds. Refuses inputs whose batch is not their first dimension.

    ```mlir
    // microbatches=2
    func.func @main(%x: tensor<8x6xf32> {nn.dims = ["B", "E"]}) -> tensor<8x6xf32> {
    // becomes
    func.func @main(%x: tensor<4x6xf32> {nn.dims = ["B", "E"]}) -> tensor<4x6xf32> {
    ```
  }];
  let options = [Option<"microbatches", "microbatches", "int64_t", /*default=*/"1", "Number of microbatches; must divide the batch (default: 1)">];
}

def ApplyPlanPass : Pass<"partita-apply-plan", "::mlir::ModuleOp"> {
  let summary = "Gives every value the sharding that a plan implies";
  let description = [{
    Requires named dimensions (`--partita-name-dimensions`). Applies overrides
    and the model's own annotations first, then each entry of the plan in order.
    An entry adds its axes to every dimension of its name whose value does not
    use them yet, and the axes propagate to dimensions without names. If the
    normalised dimension of a composite is divided, the composite is decomposed.

    ```mlir
    // mesh="data=2" shard="B=data"
    func.func @main(%x: tensor<8x6xf32> {nn.dims = ["B", "E"]}) -> tensor<8x6xf32> {
    // becomes
    dist.mesh @mesh <["data"=2]>
    func.func @main(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<[{"data", ?}p1, {?} ]>, ...
    ```
  }];
  let options = [Option<"plan_path", "plan", "std::string", "", "Read the plan from this file">,
                 Option<"mesh", "mesh", "std::string", "", "Use this mesh, e.g. data=2,tensor=2, if no plan file is given">,
                 Option<"shard", "shard", "std::string", "", "Use these entries, e.g. B=data,M=tensor;L=tensor, if no plan file is given">];
  let dependentDialects = ["::partita::dist::DistDialect"];
}

def VerifyRulesPass : Pass<"partita-verify-rules", "::mlir::ModuleOp"> {
  let summary = "Executes the sharding rules that users attach";
  let description = [{
    A wrong `nn.rule` would silently produce wrong numbers when its operation is
    divided. This pass evaluates each operation with such a rule on shapes of at
    most five elements per factor, undivided and divided over up to eight
    devices, and refuses the rule if the results differ. The cost depends on the
    model's shapes only for factors that the rule keeps whole.

    ```mlir
    // refused: each half of the rows would be normalised separately
    %y = nn.softmax %x axis = 0 {nn.rule = #nn.rule<([i]) -> ([i]) {i=8}>} : tensor<8xf32>
    ```
  }];
  let dependentDialects = ["::partita::nn::NNDialect"];
  let statistics = [Statistic<"verified", "verified", "Rules executed">];
}

def NameDimensionsPass : Pass<"partita-name-dimensions", "::mlir::ModuleOp"> {
  let summary = "Names dimensions by their meaning";
  let description = [{
    Dimensions that sharding rules tie together, also across calls, form one
    class. The structure of the model names each class:

    | name | where it occurs |
    |------|------------------|
    | B    | the first dimension of inputs; the batch of attention and images |
    | N    | heads of attention; the size of a head has no name |
    | L    | the sequence of attention; the second dimension of token inputs |
    | H, W | spatial dimensions of convolutions, also after a stride |
    | E    | widths of embeddings, residual sums and normalised values; channels |
    | M    | the dimension between a product from E and a product to E; also between colours and the single width made from it |
    | V    | rows of token embeddings; the last dimension of logits |
    | X    | experts; the batch dimension of products with parameters |

    The result is the attribute `nn.dims` on arguments and operations. It lists
    the segments of each dimension, most significant first, by name or size. If
    a name repeats within a value, the repetition has a prime. `L=H*W` is a
    flattened image that attention reads as a sequence.

    ```mlir
    func.func @main(%x: tensor<4x8xi64>, %w: tensor<32x3x32xf32>)
    // becomes
    func.func @main(%x: tensor<4x8xi64> {nn.dims = ["B", "L"]}, %w: tensor<32x3x32xf32> {nn.dims = ["E", "3", "N*8"]})
    ```
  }];
  let options = [Option<"names", "names", "std::string", /*default=*/"\"\"",
                        "Set these names, which take precedence: 'h.*.mlp.up.weight:1=M;...' (default: none)">];
}

#endif  // PARTITA_COMPILER_SHARDING_PASSES_TD
