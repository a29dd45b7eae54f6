// Checks a node's specification of a tensor's shards against the node and the
// number of devices. Plain data.
#ifndef PARTITA_FRONTENDS_ONNX_PLACEMENT_H_
#define PARTITA_FRONTENDS_ONNX_PLACEMENT_H_

#include <string>

#include "frontends/onnx/device_configuration.h"
#include "frontends/onnx/device_grid.h"

namespace partita::onnx {

// Returns the devices that hold each shard. The dimensions of the placement are
// the factors of all divided axes in the given order, without factors of one
// shard. Returns false with a message in `error` (expected, then found) if
// shards and devices do not match.
bool placementOf(const ShardingSpec& spec, int64_t devices,
                 Placement& placement, std::string& error);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_PLACEMENT_H_
