// Runs one device's program on plain numbers, for all devices of its mesh at
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

// Called with the results after every operation of every function, callees
// included.
using Observer =
    std::function<void(mlir::Operation*, llvm::ArrayRef<Everywhere>)>;

// Runs `function` and returns its results. Operations run in order, each on all
// devices, so collectives see all parts. Supports operations of nn, arith and
// math with a reference, dist's collectives, and calls; any other operation is
// an error.
mlir::FailureOr<llvm::SmallVector<Everywhere>> interpretEverywhere(
    mlir::func::FuncOp function, const core::Mesh& mesh,
    llvm::ArrayRef<Everywhere> arguments, const Observer& observer = {});

// Runs the programs of a pipeline's ranks, each on all devices. A value that
// one rank sends is received by another rank on the same device. Transfers must
// be in these functions, not in their callees. Fails with a diagnostic if no
// rank can continue.
mlir::FailureOr<llvm::SmallVector<llvm::SmallVector<Everywhere>>>
interpretRanks(llvm::ArrayRef<mlir::func::FuncOp> functions,
               const core::Mesh& mesh,
               llvm::ArrayRef<llvm::SmallVector<Everywhere>> arguments,
               const Observer& observer = {});

// Returns the part of a whole tensor on each device. Padding is filled with NaN
// (integers: 0), so that any use of it shows.
Everywhere scatterTensor(const nn::Tensor& whole, const core::Mesh& mesh,
                         const core::Sharding& sharding);
// Returns the whole tensor of type `global`. If several devices hold an
// element, the first device's value is used. `reduction` combines partial
// results.
nn::Tensor assembleTensor(const Everywhere& parts, const core::Mesh& mesh,
                          mlir::RankedTensorType global,
                          const core::Sharding& sharding,
                          core::Reduction reduction = core::Reduction::kSum);

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_SPMD_INTERPRETER_H_
