// Says for users how a value is divided.
#ifndef PARTITA_COMPILER_DRIVER_VERIFY_DESCRIBE_PLACEMENT_H_
#define PARTITA_COMPILER_DRIVER_VERIFY_DESCRIBE_PLACEMENT_H_

#include <string>

#include "compiler/core/sharding.h"
#include "mlir/IR/Value.h"

namespace partita::driver {

// E.g. "divided in dimension 0 (X) over t and a sum over d", or "whole on every
// device". The names come from `value`, which is on global shapes.
std::string describePlacement(mlir::Value value, const core::Sharding& sharding,
                              const core::Mesh& mesh);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_VERIFY_DESCRIBE_PLACEMENT_H_
