// Emits the collectives of a reshard plan.
#ifndef PARTITA_COMPILER_PARTITION_RESHARD_BUILDER_H_
#define PARTITA_COMPILER_PARTITION_RESHARD_BUILDER_H_

#include <map>
#include <string>
#include <utility>

#include "compiler/core/reshard.h"
#include "mlir/IR/Builders.h"

namespace partita::partition {

// What a value of `global` type is, on one device.
mlir::RankedTensorType localType(mlir::RankedTensorType global,
                                 const core::Sharding& sharding);

// Reshards values, and remembers the collectives between two shardings of a
// shape.
class Resharder {
 public:
  explicit Resharder(core::Mesh mesh) : mesh_(std::move(mesh)) {}

  // `local`, placed as `from`, placed as `to` by the cheapest collectives; the
  // value itself where nothing changes. `reduction` is how partial results
  // combine; `why` is written on each collective.
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
  std::map<std::string, core::ReshardPlan> plans_;  // by all of these as text
};

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_RESHARD_BUILDER_H_
