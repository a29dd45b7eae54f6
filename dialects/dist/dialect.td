// The dist dialect: how a model lies on many devices, and what moves between
// them.
#ifndef PARTITA_DIALECTS_DIST_DIALECT_TD
#define PARTITA_DIALECTS_DIST_DIALECT_TD

include "mlir/IR/OpBase.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::partita::dist";
  let summary = "Meshes, shardings and collectives";
  let description = [{
    A module that is divided holds one `dist.mesh @mesh`. Axes are attributes and
    know the mesh by name only. The dialect has two halves:

    - before partitioning, types are global: shardings are attributes, and the
      value-level operations `dist.constraint`, `dist.barrier`, `dist.group` and
      `dist.reshard` say what propagation and partitioning shall do. Each means
      its operand;
    - after it, types are local: every device runs the same program on its
      shards, and the collectives say what moves.

    A dimension of size S divided over n devices has blocks of b rows, ceil(S / n)
    unless the sharding says otherwise: device i holds rows [i * b, min((i + 1) * b, S)).
    Local shapes are the whole block; what lies behind the rows held is undefined.
    Collectives that take a dimension from S rows to b fill it up with 0, those that
    take it from b to S drop what lies behind S.

    | attribute          | on               | meaning |
    |--------------------|------------------|---------|
    | `dist.sharding`    | argument, result | `#dist.sharding` of the value |
    | `dist.shardings`   | operation        | array of `#dist.sharding`, one per result |
    | `dist.global_type` | argument, result | after partitioning, of functions that users call: the undivided tensor's type |

    On arguments and results of functions and on operations:
    - (C1) Axes are axes of the mesh; `pre` times `size` of a sub-axis divides the axis.
    - (C2) No part of an axis is used twice.
    - (C3) There is one entry per dimension of the global type.
    - (C4) Blocks are at least 1 and cover the dimension.
    - (C5) With `dist.global_type`, the type is the block of it that the sharding gives.
  }];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = "void registerAttributes();";
  let useDefaultAttributePrinterParser = 1;
}

#endif  // PARTITA_DIALECTS_DIST_DIALECT_TD
