// The dist dialect: how a model is divided over many devices, and the
// collectives between them.
#ifndef PARTITA_DIALECTS_DIST_DIALECT_TD
#define PARTITA_DIALECTS_DIST_DIALECT_TD

include "mlir/IR/OpBase.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::partita::dist";
  let summary = "Meshes, shardings and collectives";
  let description = [{
    A divided module holds one `dist.mesh @mesh`. Axis attributes refer to the axes
    of the mesh by name. The dialect has two halves:

    - Before partitioning, types are global. Shardings are attributes. The
      value-level operations `dist.constraint`, `dist.barrier`, `dist.group` and
      `dist.reshard` direct propagation and partitioning; each returns its operand
      unchanged.
    - After partitioning, types are local. Every device runs the same program on its
      shards, and collectives move data between devices.

    A dimension of size S divided over n devices has blocks of b rows. b is
    ceil(S / n) unless the sharding gives another block. Device i holds rows
    [i * b, min((i + 1) * b, S)). Local shapes always have the full block of b rows;
    the padding rows after the rows held are undefined. A collective that takes a
    dimension from S rows to b writes 0 into the padding rows. A collective that
    takes it from b to S drops the rows after S.

    | attribute          | on               | meaning |
    |--------------------|------------------|---------|
    | `dist.sharding`    | argument, result | `#dist.sharding` of the value |
    | `dist.shardings`   | operation        | array of `#dist.sharding`, one per result |
    | `dist.global_type` | argument, result | the undivided tensor's type; set by partitioning on functions that users call |
    | `dist.annotations` | module           | the number of operations that an importer gave shardings |
    | `dist.entries`     | module           | the text of each plan entry, for messages |
    | `dist.attention`   | module           | the plan's `attention` that a file of annotations keeps |
    | `dist.long_attention` | attention     | how it is computed where queries are divided: 1 heads are divided instead (Ulysses), 2 keys travel in a ring; without it, keys are gathered |
    | `dist.row_exchange` | experts       | rows travel to the devices that have their experts; the number bounds the rows that a device receives, as a factor over the even share (0: no bound but all rows of the group); without it, rows are gathered |
    | `dist.barred`      | operation        | the priorities of plan entries that do not apply to the operation |

    On arguments and results of functions and on operations:
    - (C1) Axes are axes of the mesh; `pre` times `size` of a sub-axis divides the axis.
    - (C2) No part of an axis is used twice.
    - (C3) There is one entry per dimension of the global type.
    - (C4) Blocks are at least 1 and cover the dimension.
    - (C5) With `dist.global_type`, the value's type is the local type that the sharding gives for it.
  }];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = "void registerAttributes();";
  let useDefaultAttributePrinterParser = 1;
}

#endif  // PARTITA_DIALECTS_DIST_DIALECT_TD
