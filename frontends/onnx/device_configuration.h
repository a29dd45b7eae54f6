// Multi-device annotations of an ONNX file (IR version 11 or later) as plain
// structs, decoded but not checked against the model.
#ifndef PARTITA_FRONTENDS_ONNX_DEVICE_CONFIGURATION_H_
#define PARTITA_FRONTENDS_ONNX_DEVICE_CONFIGURATION_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "frontends/onnx/field_decoder.h"
#include "frontends/onnx/wire.h"

namespace partita::onnx {

// DeviceConfigurationProto: a number of devices, with a name that nodes refer
// to.
struct DeviceConfiguration {
  std::string_view name;
  int64_t num_devices = 0;
  std::vector<std::string_view> devices;  // the devices' names, in order
};

// SimpleShardedDimProto: a dimension, or one of the factors fused into it.
struct SimpleSharding {
  int64_t size = -1;       // -1: not given as a number
  std::string_view param;  // name of the size, if it is given by name
  int64_t shards = 0;
};

// ShardedDimProto. Several factors mean an axis that a reshape fused; the first
// factor is the slowest.
struct ShardedDim {
  int64_t axis = 0;  // negative: from the last
  std::vector<SimpleSharding> factors;
};

// ShardingSpecProto: shards are numbered row-major over `dims` in the given
// order. Shard k is on devices[k], or on every device of that group.
struct ShardingSpec {
  std::string_view tensor;
  std::vector<int64_t> devices;
  std::vector<std::pair<int64_t, std::vector<int64_t>>> groups;
  std::vector<ShardedDim> dims;
};

// NodeDeviceConfigurationProto.
struct NodeConfiguration {
  std::string_view configuration;  // the DeviceConfiguration's name
  std::vector<ShardingSpec> specs;
  bool has_stage = false;
  int64_t stage = 0;
};

// Decode the message in `field`. Its bytes must outlive the result. Return
// false after an error; the decoder holds the error.
bool decodeDeviceConfiguration(FieldDecoder& decoder, const Field& field,
                               DeviceConfiguration& out);
bool decodeNodeConfiguration(FieldDecoder& decoder, const Field& field,
                             NodeConfiguration& out);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_DEVICE_CONFIGURATION_H_
