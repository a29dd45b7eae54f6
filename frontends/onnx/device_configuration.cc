// Decodes the device messages: one function per message, each a switch over the
// field numbers of onnx.proto.
#include "frontends/onnx/device_configuration.h"

namespace partita::onnx {
namespace {

using Group = std::pair<int64_t, std::vector<int64_t>>;

bool decodeGroup(FieldDecoder& in, const Field& field, Group& out) {
  return in.message(field, "IntIntListEntryProto", [&](const Field& part) {
    if (part.number == 1)
      return in.integer(part, "IntIntListEntryProto.key", out.first);
    if (part.number == 2)
      return in.integers(part, "IntIntListEntryProto.value", out.second);
    return true;
  });
}

bool decodeFactor(FieldDecoder& in, const Field& field, SimpleSharding& out) {
  return in.message(field, "SimpleShardedDimProto", [&](const Field& part) {
    switch (part.number) {
      case 1:
        return in.integer(part, "SimpleShardedDimProto.dim_value", out.size);
      case 2:
        return in.text(part, "SimpleShardedDimProto.dim_param", out.param);
      case 3:
        return in.integer(part, "SimpleShardedDimProto.num_shards", out.shards);
      default:
        return true;
    }
  });
}

bool decodeDim(FieldDecoder& in, const Field& field, ShardedDim& out) {
  return in.message(field, "ShardedDimProto", [&](const Field& part) {
    if (part.number == 1)
      return in.integer(part, "ShardedDimProto.axis", out.axis);
    if (part.number != 2) return true;
    out.factors.emplace_back();
    return decodeFactor(in, part, out.factors.back());
  });
}

bool decodeSpec(FieldDecoder& in, const Field& field, ShardingSpec& out) {
  return in.message(field, "ShardingSpecProto", [&](const Field& part) {
    switch (part.number) {
      case 1:
        return in.text(part, "ShardingSpecProto.tensor_name", out.tensor);
      case 2:
        return in.integers(part, "ShardingSpecProto.device", out.devices);
      case 3:
        out.groups.emplace_back();
        return decodeGroup(in, part, out.groups.back());
      case 4:
        out.dims.emplace_back();
        return decodeDim(in, part, out.dims.back());
      default:
        return true;
    }
  });
}

}  // namespace

bool decodeDeviceConfiguration(FieldDecoder& in, const Field& field,
                               DeviceConfiguration& out) {
  return in.message(field, "DeviceConfigurationProto", [&](const Field& part) {
    switch (part.number) {
      case 1:
        return in.text(part, "DeviceConfigurationProto.name", out.name);
      case 2:
        return in.integer(part, "DeviceConfigurationProto.num_devices",
                          out.num_devices);
      case 3:
        out.devices.emplace_back();
        return in.text(part, "DeviceConfigurationProto.device",
                       out.devices.back());
      default:
        return true;
    }
  });
}

bool decodeNodeConfiguration(FieldDecoder& in, const Field& field,
                             NodeConfiguration& out) {
  return in.message(
      field, "NodeDeviceConfigurationProto", [&](const Field& part) {
        switch (part.number) {
          case 1:
            return in.text(part,
                           "NodeDeviceConfigurationProto.configuration_id",
                           out.configuration);
          case 2:
            out.specs.emplace_back();
            return decodeSpec(in, part, out.specs.back());
          case 3:
            out.has_stage = true;
            return in.integer(
                part, "NodeDeviceConfigurationProto.pipeline_stage", out.stage);
          default:
            return true;
        }
      });
}

}  // namespace partita::onnx
