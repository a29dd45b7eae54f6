// Converts a sharding to ONNX's form, which says which device holds which
// shard.
#ifndef PARTITA_COMPILER_DRIVER_SHARDING_SPEC_H_
#define PARTITA_COMPILER_DRIVER_SHARDING_SPEC_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/core/sharding.h"
#include "frontends/onnx/device_configuration.h"

namespace partita::driver {

// The inverse of the importer's conversion. Nothing if ONNX cannot express the
// sharding: partial sums, and blocks that are not the even share of a factor of
// the dimension.
std::optional<onnx::ShardingSpec> specOf(const core::Mesh& mesh,
                                         const std::vector<int64_t>& shape,
                                         const core::Sharding& sharding);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_SHARDING_SPEC_H_
