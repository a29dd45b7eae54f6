// Makes one device's program of a module on whole tensors.
#ifndef PARTITA_COMPILER_PARTITION_PARTITION_H_
#define PARTITA_COMPILER_PARTITION_PARTITION_H_

#include <memory>

#include "compiler/sharding/problem.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace partita::partition {

// On an operation: a number by which to know it again after partitioning. What
// stands for its results then carries the same.
inline constexpr char kOriginAttr[] = "origin";
// Beside it after partitioning: how its results lie, before they are reduced
// and placed.
inline constexpr char kOriginShardingsAttr[] = "origin_shardings";
// And how partial results combine: a core::Reduction.
inline constexpr char kOriginReductionAttr[] = "origin_reduction";

// `module` has a `dist.mesh @mesh` and a sharding on every argument and
// operation. Afterwards all tensors have local shapes, differences of sharding
// are collectives, and the arguments and results of @main say how the global
// tensors lie (`dist.sharding`, `dist.global_type`). The program is the same
// for every device: what depends on the device is computed from
// `dist.coordinate`. Its size does not depend on the mesh's. Needs the
// interfaces of registerLocalForms.
mlir::LogicalResult partitionModule(mlir::ModuleOp module);

// The same of a module without shardings on it, of which `decided` is: as a
// pass, which takes it when it runs.
std::unique_ptr<mlir::Pass> createPartitionPass(
    std::shared_ptr<sharding::Decided> decided);

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_PARTITION_H_
