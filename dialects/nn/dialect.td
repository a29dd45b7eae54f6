// The nn dialect: the tensor operations of a model.
#ifndef PARTITA_DIALECTS_NN_DIALECT_TD
#define PARTITA_DIALECTS_NN_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::partita::nn";
  let summary = "Neural-network computations on whole tensors";
  let description = [{
    Value-semantics operations on ranked tensors of static shape. Elementwise
    arithmetic is upstream `arith` and `math` on tensors; `nn` adds contraction,
    reduction, data movement and a few composites. A composite stays one operation
    because its implementation as a whole is faster than its parts. Shapes are
    static: an importer folds symbolic sizes.

    A model is a module with one public function `@main`. Its arguments carry
    discardable attributes:

    | attribute   | on       | meaning |
    |-------------|----------|---------|
    | `nn.kind`   | argument | `"input"`, `"parameter"`, `"buffer"`, `"constant"`, `"state"`, `"derived"` or `"coordinate"`; see below |
    | `nn.name`   | argument, result | the user-visible name: a graph input, or a state-dict key |
    | `nn.source` | argument | the source of its data: `#nn.file<...>`, `#nn.init<...>` or, with `nn.parts`, a list of `#nn.file<...>`; absent on inputs |
    | `nn.parts` | argument | the model's files hold a tensor per index of dimension 0, e.g. one per expert; `*` in `nn.name` stands for the index |
    | `nn.view_of` | argument | the undivided tensor type in the user's model, if this argument has another shape (a reshaped parameter, an input split into microbatches) |
    | `nn.axes` | coordinate argument | parts of mesh axes, three numbers each (axis, pre, size), slowest first |
    | `nn.updates` | result | the `nn.name` of the parameter, buffer or state that this result updates; such results come last |
    | `nn.role` | argument | the value that the trainer feeds to an input: `"learning_rate"` (scalar f32), `"step"` or `"seed"` (scalar i64; the first step is 1); absent for data |
    | `nn.unsigned` | argument, result | the signless integer type represents an unsigned integer |
    | `nn.dims`   | argument | names of its dimensions, found by `compiler/sharding`: `["E", "3", "N*8"]`; on an operation, one list per result |

    Kinds of arguments: a `"parameter"` is trained. A `"buffer"` is stored, but not
    trained. A `"state"` is an optimizer state, kept from step to step like the
    parameters. A `"derived"` value is computed from stored tensors by `@init`. A
    `"coordinate"` is the device's index along `nn.axes`.

    Any operation may carry `nn.rule`, a `#nn.rule<...>`. It overrides the rule of
    the operation's `ShardingRuleOpInterface`.

    A module may have a public function `@init`. Its arguments are stored tensors
    as above, and its results are the `"derived"` arguments of `@main`, in order. It
    runs once, when the model is loaded.

    Inputs come first. Layers that repeat are private functions, called by
    `func.call`; `@main` is a flat list of calls and operations.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let hasConstantMaterializer = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

#endif  // PARTITA_DIALECTS_NN_DIALECT_TD
