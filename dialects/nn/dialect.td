// The nn dialect: what a model computes.
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
    reduction, data movement and a few composites that are kept whole because
    whole they are fast. Shapes are static: an importer folds symbolic sizes.

    A model is a module with one public function `@main`. Its arguments carry
    discardable attributes:

    | attribute   | on       | meaning |
    |-------------|----------|---------|
    | `nn.kind`   | argument | `"input"`, `"parameter"` (trained), `"buffer"` (stored, not trained), `"constant"`, `"state"` (of the optimizer: kept from step to step beside the parameters), `"derived"` (from stored ones, by `@init`) or `"coordinate"` (of the device, along `nn.axes`) |
    | `nn.name`   | argument, result | the name users know: a graph input, or a state-dict key |
    | `nn.source` | argument | where its data comes from: `#nn.file<...>` or `#nn.init<...>`; absent on inputs |
    | `nn.axes` | argument | of a coordinate: parts of mesh axes, three numbers each (axis, pre, size), the first the slowest |
    | `nn.updates` | result | the `nn.name` of a parameter, buffer or state whose new value this is; such results come last |
    | `nn.role` | argument | what the trainer feeds an input with: `"learning_rate"` (a scalar f32), `"step"` or `"seed"` (scalar i64, the first step is 1); absent: data |
    | `nn.unsigned` | argument, result | the signless integer type stands for an unsigned one |
    | `nn.dims`   | argument | names of its dimensions, as `compiler/sharding` finds them: `["E", "3", "N*8"]`; on an operation one list per result |

    Any operation may carry `nn.rule`, a `#nn.rule<...>`: how it may be divided,
    instead of what its `ShardingRuleOpInterface` says.

    Where there is a public function `@init`, its arguments are stored tensors as
    above and its results are the `"derived"` arguments of `@main`, in order: it
    runs once, when a model is loaded.

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
