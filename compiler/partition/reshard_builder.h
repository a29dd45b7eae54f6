// Emits the collectives of a reshard plan.
#ifndef PARTITA_COMPILER_PARTITION_RESHARD_BUILDER_H_
#define PARTITA_COMPILER_PARTITION_RESHARD_BUILDER_H_

#include "compiler/core/reshard.h"
#include "mlir/IR/Builders.h"

namespace partita::partition {

// What a value of `global` type is, on one device.
mlir::RankedTensorType localType(mlir::RankedTensorType global,
                                 const core::Sharding& sharding);

// `local`, placed as `from`, placed as `to` by the cheapest collectives; the
// value itself where nothing changes. `reduction` is how partial results
// combine; `why` is written on each collective.
mlir::Value buildReshard(mlir::OpBuilder& builder, mlir::Location loc,
                         const core::Mesh& mesh, mlir::RankedTensorType global,
                         mlir::Value local, const core::Sharding& from,
                         const core::Sharding& to, core::Reduction reduction,
                         const std::string& why);

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_RESHARD_BUILDER_H_
