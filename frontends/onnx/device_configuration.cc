// Decodes the messages about devices: one function per message, each a switch
// over the field numbers of onnx.proto.
#include "frontends/onnx/device_configuration.h"

#include <string>

namespace partita::onnx {
namespace {

class Decoder {
 public:
  explicit Decoder(WireError& error) : error_(error) {}

  bool configuration(const Field& field, DeviceConfiguration& out) {
    return message(field, [&](const Field& part) {
      switch (part.number) {
        case 1:
          return text(part, "DeviceConfigurationProto.name", out.name);
        case 2:
          return integer(part, "DeviceConfigurationProto.num_devices",
                         out.num_devices);
        case 3:
          out.devices.emplace_back();
          return text(part, "DeviceConfigurationProto.device",
                      out.devices.back());
        default:
          return true;
      }
    });
  }

  bool node(const Field& field, NodeConfiguration& out) {
    return message(field, [&](const Field& part) {
      switch (part.number) {
        case 1:
          return text(part, "NodeDeviceConfigurationProto.configuration_id",
                      out.configuration);
        case 2:
          out.specs.emplace_back();
          return expectMessage(part, "ShardingSpecProto") &&
                 spec(part, out.specs.back());
        case 3:
          out.has_stage = true;
          return integer(part, "NodeDeviceConfigurationProto.pipeline_stage",
                         out.stage);
        default:
          return true;
      }
    });
  }

 private:
  template <typename Decode>
  bool message(const Field& field, Decode decode) {
    WireReader reader(field.bytes, field.offset, error_);
    Field part;
    while (reader.next(part))
      if (!decode(part)) break;
    return !error_.isSet();
  }

  bool expect(const Field& field, WireType type, const char* what) {
    if (field.type == type) return true;
    error_.set(field.offset, std::string("expected ") + what + " (field " +
                                 std::to_string(field.number) + ") to be " +
                                 toString(type) + ", found " +
                                 toString(field.type));
    return false;
  }

  bool expectMessage(const Field& field, const char* what) {
    return expect(field, WireType::kBytes, what);
  }

  bool text(const Field& field, const char* what, std::string_view& out) {
    if (!expect(field, WireType::kBytes, what)) return false;
    out = field.bytes;
    return true;
  }

  bool integer(const Field& field, const char* what, int64_t& out) {
    if (!expect(field, WireType::kVarint, what)) return false;
    out = static_cast<int64_t>(field.value);
    return true;
  }

  // Packed, or one of them.
  bool integers(const Field& field, const char* what,
                std::vector<int64_t>& out) {
    if (field.type != WireType::kBytes) {
      out.emplace_back();
      return integer(field, what, out.back());
    }
    WireReader reader(field.bytes, field.offset, error_);
    uint64_t value;
    while (reader.nextVarint(value)) out.push_back(static_cast<int64_t>(value));
    return !error_.isSet();
  }

  bool spec(const Field& field, ShardingSpec& out) {
    return message(field, [&](const Field& part) {
      switch (part.number) {
        case 1:
          return text(part, "ShardingSpecProto.tensor_name", out.tensor);
        case 2:
          return integers(part, "ShardingSpecProto.device", out.devices);
        case 3:
          out.groups.emplace_back();
          return expectMessage(part, "IntIntListEntryProto") &&
                 group(part, out.groups.back());
        case 4:
          out.dims.emplace_back();
          return expectMessage(part, "ShardedDimProto") &&
                 dim(part, out.dims.back());
        default:
          return true;
      }
    });
  }

  bool group(const Field& field,
             std::pair<int64_t, std::vector<int64_t>>& out) {
    return message(field, [&](const Field& part) {
      if (part.number == 1)
        return integer(part, "IntIntListEntryProto.key", out.first);
      if (part.number == 2)
        return integers(part, "IntIntListEntryProto.value", out.second);
      return true;
    });
  }

  bool dim(const Field& field, ShardedDim& out) {
    return message(field, [&](const Field& part) {
      if (part.number == 1)
        return integer(part, "ShardedDimProto.axis", out.axis);
      if (part.number != 2) return true;
      out.factors.emplace_back();
      return expectMessage(part, "SimpleShardedDimProto") &&
             factor(part, out.factors.back());
    });
  }

  bool factor(const Field& field, SimpleSharding& out) {
    return message(field, [&](const Field& part) {
      switch (part.number) {
        case 1:
          return integer(part, "SimpleShardedDimProto.dim_value", out.size);
        case 2:
          return text(part, "SimpleShardedDimProto.dim_param", out.param);
        case 3:
          return integer(part, "SimpleShardedDimProto.num_shards", out.shards);
        default:
          return true;
      }
    });
  }

  WireError& error_;
};

}  // namespace

bool parseDeviceConfiguration(const Field& field, DeviceConfiguration& out,
                              WireError& error) {
  return Decoder(error).configuration(field, out);
}

bool parseNodeConfiguration(const Field& field, NodeConfiguration& out,
                            WireError& error) {
  return Decoder(error).node(field, out);
}

}  // namespace partita::onnx
