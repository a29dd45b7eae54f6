// Checks what a node says about a tensor's shards, as far as the node and the
// number of devices tell. Plain data.
#ifndef PARTITA_FRONTENDS_ONNX_PLACEMENT_H_
#define PARTITA_FRONTENDS_ONNX_PLACEMENT_H_

#include <string>

#include "frontends/onnx/device_configuration.h"
#include "frontends/onnx/device_grid.h"

namespace partita::onnx {

// Which devices hold which shard. The dimensions of the placement are the
// factors of all divided axes in the order given, those of one shard left out.
// False with a message in `error` (what was expected, what was found) where
// shards and devices do not match.
bool placementOf(const ShardingSpec& spec, int64_t devices,
                 Placement& placement, std::string& error);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_PLACEMENT_H_
