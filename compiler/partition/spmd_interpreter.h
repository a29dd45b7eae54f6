// Runs one device's program on plain numbers for all devices of its mesh at
// once: the oracle of partitioning.
#ifndef PARTITA_COMPILER_PARTITION_SPMD_INTERPRETER_H_
#define PARTITA_COMPILER_PARTITION_SPMD_INTERPRETER_H_

#include <functional>
#include <vector>

#include "compiler/core/sharding.h"
#include "compiler/core/terms.h"
#include "dialects/nn/tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::partition {

// A value on every device, by position in the mesh.
using Everywhere = std::vector<nn::Tensor>;

// Called after every operation of every function, callees included, with its
// results.
using Observer =
    std::function<void(mlir::Operation*, llvm::ArrayRef<Everywhere>)>;

// The values that `function` returns, one per result, for these arguments, one
// per argument. Operations run in order, each on all devices, so collectives
// see all parts. Operations are those of the nn, arith and math dialects with a
// reference, dist's collectives and calls; anything else is an error there.
mlir::FailureOr<llvm::SmallVector<Everywhere>> interpretEverywhere(
    mlir::func::FuncOp function, const core::Mesh& mesh,
    llvm::ArrayRef<Everywhere> arguments, const Observer& observer = {});

// The same of the programs of a pipeline's ranks, by rank, each on all devices:
// what one sends, another receives on the same device. Transfers are in these
// functions, not in their callees. Fails, with a diagnostic, where no rank can
// go on.
mlir::FailureOr<llvm::SmallVector<llvm::SmallVector<Everywhere>>>
interpretRanks(llvm::ArrayRef<mlir::func::FuncOp> functions,
               const core::Mesh& mesh,
               llvm::ArrayRef<llvm::SmallVector<Everywhere>> arguments,
               const Observer& observer = {});

// The part of a whole tensor that each device has. What lies beyond a
// dimension's end is filled with NaN (integers: 0), so that whoever uses it is
// found out.
Everywhere scatterTensor(const nn::Tensor& whole, const core::Mesh& mesh,
                         const core::Sharding& sharding);
// The whole tensor of type `global`; where several devices have an element, the
// first one's is taken. Partial results are combined by `reduction`.
nn::Tensor assembleTensor(const Everywhere& parts, const core::Mesh& mesh,
                          mlir::RankedTensorType global,
                          const core::Sharding& sharding,
                          core::Reduction reduction = core::Reduction::kSum);

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_SPMD_INTERPRETER_H_
