// Emits the collectives of a reshard plan.
#ifndef PARTITA_COMPILER_PARTITION_RESHARD_BUILDER_H_
#define PARTITA_COMPILER_PARTITION_RESHARD_BUILDER_H_

#include <map>
#include <string>
#include <utility>

#include "compiler/core/reshard.h"
#include "mlir/IR/Builders.h"

namespace partita::partition {

// Returns the type of a value of type `global` on one device.
mlir::RankedTensorType localType(mlir::RankedTensorType global,
                                 const core::Sharding& sharding);

// Converts values between placements. Remembers the collectives for each pair
// of shardings of a shape.
class Resharder {
 public:
  explicit Resharder(core::Mesh mesh) : mesh_(std::move(mesh)) {}

  // Builds the cheapest collectives that convert `local` from placement `from`
  // to placement `to`; returns the value itself if nothing changes. `reduction`
  // combines partial results; `why` is written on each collective.
  mlir::Value build(mlir::OpBuilder& builder, mlir::Location loc,
                    mlir::RankedTensorType global, mlir::Value local,
                    const core::Sharding& from, const core::Sharding& to,
                    core::Reduction reduction, const std::string& why);

 private:
  const core::ReshardPlan& planOf(mlir::RankedTensorType global,
                                  const core::Sharding& from,
                                  const core::Sharding& to,
                                  core::Reduction reduction);

  const core::Mesh mesh_;
  std::map<std::string, core::ReshardPlan> plans_;  // by planOf's arguments
};

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_RESHARD_BUILDER_H_
