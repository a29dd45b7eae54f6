// Makes one device's program from a module on whole tensors.
#ifndef PARTITA_COMPILER_PARTITION_PARTITION_H_
#define PARTITA_COMPILER_PARTITION_PARTITION_H_

#include <memory>

#include "compiler/sharding/problem.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace partita::partition {

// On an operation: a number that identifies it after partitioning. The
// operation that defines its results then carries this number.
inline constexpr char kOriginAttr[] = "origin";
// Set by partitioning: the shardings of the results before they are reduced and
// placed.
inline constexpr char kOriginShardingsAttr[] = "origin_shardings";
// Set by partitioning: how partial results combine, a core::Reduction.
inline constexpr char kOriginReductionAttr[] = "origin_reduction";

// Requires `dist.mesh @mesh` and a sharding on every argument and operation.
// Afterwards all tensors have local shapes, and collectives convert between
// shardings. Arguments and results of @main record the placement of their
// global tensors (`dist.sharding`, `dist.global_type`). The program is the same
// for every device: values that depend on the device are computed from
// `dist.coordinate`. Its size does not depend on the mesh size. Requires the
// interfaces of registerLocalForms.
mlir::LogicalResult partitionModule(mlir::ModuleOp module);

// Does the same as a pass, for a module whose shardings are in `decided` and
// not in its attributes. The pass consumes `decided` when it runs.
std::unique_ptr<mlir::Pass> createPartitionPass(
    std::shared_ptr<sharding::Decided> decided);

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_PARTITION_H_
