// Decodes ONNX messages: one function per message, each a switch over the field
// numbers of onnx.proto.
#include "frontends/onnx/model.h"

#include <cstring>

#include "frontends/onnx/field_decoder.h"

namespace partita::onnx {
namespace {

class Parser : public FieldDecoder {
 public:
  using FieldDecoder::FieldDecoder;

  bool model(std::string_view bytes, Model& out);
  bool tensor(const Field& field, TensorProto& out);

 private:
  bool real(const Field& field, const char* what, float& out);
  bool reals(const Field& field, const char* what, std::vector<float>& out);
  // Reads a packed field of fixed-size numbers, or a single number.
  bool fixedData(const Field& field, WireType type, unsigned size,
                 const char* what, std::string_view& out, uint64_t& offset);

  bool pair(const Field& field, const char* name, Strings& out);
  bool attribute(const Field& field, Attribute& out);
  bool attributeNested(const Field& field, Attribute& out);
  bool nodeConfiguration(const Field& field, Node& out);
  bool node(const Field& field, Node& out);
  bool graph(const Field& field, Graph& out);
  bool function(const Field& field, Function& out);
  bool opset(const Field& field, OperatorSet& out);
  bool valueInfo(const Field& field, ValueInfo& out);
  bool type(const Field& field, ValueInfo& out);
  bool tensorType(const Field& field, ValueInfo& out);
  bool shape(const Field& field, ValueInfo& out);
};

float toFloat(uint64_t bits) {
  uint32_t word = static_cast<uint32_t>(bits);
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

bool Parser::real(const Field& field, const char* what, float& out) {
  if (!expect(field, WireType::kFixed32, what)) return false;
  out = toFloat(field.value);
  return true;
}

bool Parser::reals(const Field& field, const char* what,
                   std::vector<float>& out) {
  if (field.type != WireType::kBytes) {
    out.push_back(0);
    return real(field, what, out.back());
  }
  if (field.bytes.size() % 4 != 0) {
    error().set(field.offset, std::string("expected ") + what +
                                  " to be a multiple of 4 bytes");
    return false;
  }
  for (size_t i = 0; i < field.bytes.size(); i += 4) {
    float value;
    std::memcpy(&value, field.bytes.data() + i, 4);
    out.push_back(value);
  }
  return true;
}

bool Parser::fixedData(const Field& field, WireType type, unsigned size,
                       const char* what, std::string_view& out,
                       uint64_t& offset) {
  if (field.type == WireType::kBytes && field.bytes.size() % size == 0 &&
      out.empty()) {
    out = field.bytes;
    offset = field.offset;
    return true;
  }
  // Unpacked or split fields are legal, but no ONNX writer produces them and a
  // view cannot represent them.
  error().set(field.offset, std::string("expected ") + what +
                                " to be one packed field of " +
                                std::to_string(size) + "-byte numbers");
  return false;
}

bool Parser::pair(const Field& field, const char* name, Strings& out) {
  out.emplace_back();
  return message(field, name, [&](const Field& part) {
    if (part.number == 1) return text(part, "key", out.back().first);
    if (part.number == 2) return text(part, "value", out.back().second);
    return true;
  });
}

bool Parser::tensor(const Field& field, TensorProto& out) {
  out.offset = field.offset;
  return message(field, "TensorProto", [&](const Field& part) {
    int64_t number = 0;
    switch (part.number) {
      case 1:
        return integers(part, "TensorProto.dims", out.dims);
      case 2:
        if (!integer(part, "TensorProto.data_type", number)) return false;
        out.type = static_cast<DataType>(static_cast<int32_t>(number));
        return true;
      case 4:
        return fixedData(part, WireType::kFixed32, 4, "TensorProto.float_data",
                         out.floats, out.floats_offset);
      case 5:
      case 7:
      case 11:
        return integers(part, "TensorProto integer data", out.ints);
      case 6:
        out.strings.emplace_back();
        return text(part, "TensorProto.string_data", out.strings.back());
      case 8:
        return text(part, "TensorProto.name", out.name);
      case 9:
        out.has_raw = true;
        out.raw_offset = part.offset;
        return text(part, "TensorProto.raw_data", out.raw);
      case 10:
        return fixedData(part, WireType::kFixed64, 8, "TensorProto.double_data",
                         out.doubles, out.doubles_offset);
      case 13:
        return pair(part, "TensorProto.external_data", out.external);
      case 14:
        if (!integer(part, "TensorProto.data_location", number)) return false;
        out.is_external = number == 1;
        return true;
      default:
        return true;
    }
  });
}

bool Parser::attributeNested(const Field& field, Attribute& out) {
  if (field.number == 5) {
    out.t = std::make_shared<TensorProto>();
    return tensor(field, *out.t);
  }
  out.g = std::make_shared<Graph>();
  return graph(field, *out.g);
}

bool Parser::attribute(const Field& field, Attribute& out) {
  return message(field, "AttributeProto", [&](const Field& part) {
    int64_t number = 0;
    switch (part.number) {
      case 1:
        return text(part, "AttributeProto.name", out.name);
      case 2:
        return real(part, "AttributeProto.f", out.f);
      case 3:
        return integer(part, "AttributeProto.i", out.i);
      case 4:
        return text(part, "AttributeProto.s", out.s);
      case 5:
      case 6:
        return attributeNested(part, out);
      case 7:
        return reals(part, "AttributeProto.floats", out.floats);
      case 8:
        return integers(part, "AttributeProto.ints", out.ints);
      case 9:
        out.strings.emplace_back();
        return text(part, "AttributeProto.strings", out.strings.back());
      case 20:
        if (!integer(part, "AttributeProto.type", number)) return false;
        out.type = static_cast<int32_t>(number);
        return true;
      case 21:
        return text(part, "AttributeProto.ref_attr_name", out.ref);
      default:
        return true;
    }
  });
}

bool Parser::nodeConfiguration(const Field& field, Node& out) {
  if (!out.device_configurations)
    out.device_configurations =
        std::make_shared<std::vector<NodeConfiguration>>();
  out.device_configurations->emplace_back();
  return decodeNodeConfiguration(*this, field,
                                 out.device_configurations->back());
}

bool Parser::node(const Field& field, Node& out) {
  return message(field, "NodeProto", [&](const Field& part) {
    switch (part.number) {
      case 1:
        out.inputs.emplace_back();
        return text(part, "NodeProto.input", out.inputs.back());
      case 2:
        out.outputs.emplace_back();
        return text(part, "NodeProto.output", out.outputs.back());
      case 3:
        return text(part, "NodeProto.name", out.name);
      case 4:
        return text(part, "NodeProto.op_type", out.op_type);
      case 5:
        out.attributes.emplace_back();
        return attribute(part, out.attributes.back());
      case 7:
        return text(part, "NodeProto.domain", out.domain);
      case 8:
        return text(part, "NodeProto.overload", out.overload);
      case 9:
        return pair(part, "NodeProto.metadata_props", out.metadata);
      case 10:
        return nodeConfiguration(part, out);
      default:
        return true;
    }
  });
}

bool Parser::shape(const Field& field, ValueInfo& out) {
  out.has_shape = true;
  return message(field, "TensorShapeProto", [&](const Field& part) {
    if (part.number != 1) return true;
    out.shape.emplace_back();
    return message(part, "TensorShapeProto.Dimension", [&](const Field& dim) {
      if (dim.number == 1)
        return integer(dim, "Dimension.dim_value", out.shape.back().value);
      if (dim.number == 2)
        return text(dim, "Dimension.dim_param", out.shape.back().param);
      return true;
    });
  });
}

bool Parser::tensorType(const Field& field, ValueInfo& out) {
  return message(field, "TypeProto.Tensor", [&](const Field& part) {
    int64_t number = 0;
    if (part.number == 1) {
      if (!integer(part, "TypeProto.Tensor.elem_type", number)) return false;
      out.type = static_cast<DataType>(static_cast<int32_t>(number));
      return true;
    }
    if (part.number == 2) return shape(part, out);
    return true;
  });
}

bool Parser::type(const Field& field, ValueInfo& out) {
  return message(field, "TypeProto", [&](const Field& part) {
    switch (part.number) {
      case 1:
        return tensorType(part, out);
      case 4:
        out.other_type = "sequence";
        return true;
      case 5:
        out.other_type = "map";
        return true;
      case 8:
        out.other_type = "sparse tensor";
        return true;
      case 9:
        out.other_type = "optional";
        return true;
      default:
        return true;
    }
  });
}

bool Parser::valueInfo(const Field& field, ValueInfo& out) {
  return message(field, "ValueInfoProto", [&](const Field& part) {
    if (part.number == 1) return text(part, "ValueInfoProto.name", out.name);
    if (part.number == 2) return type(part, out);
    return true;
  });
}

bool Parser::graph(const Field& field, Graph& out) {
  return message(field, "GraphProto", [&](const Field& part) {
    switch (part.number) {
      case 1:
        out.nodes.emplace_back();
        return node(part, out.nodes.back());
      case 2:
        return text(part, "GraphProto.name", out.name);
      case 5:
        out.initializers.emplace_back();
        return tensor(part, out.initializers.back());
      case 11:
        out.inputs.emplace_back();
        return valueInfo(part, out.inputs.back());
      case 12:
        out.outputs.emplace_back();
        return valueInfo(part, out.outputs.back());
      case 13:
        out.value_infos.emplace_back();
        return valueInfo(part, out.value_infos.back());
      case 15:
        out.sparse_initializers.emplace_back();
        return text(part, "GraphProto.sparse_initializer",
                    out.sparse_initializers.back());
      default:
        return true;
    }
  });
}

bool Parser::opset(const Field& field, OperatorSet& out) {
  return message(field, "OperatorSetIdProto", [&](const Field& part) {
    if (part.number == 1)
      return text(part, "OperatorSetIdProto.domain", out.domain);
    if (part.number == 2)
      return integer(part, "OperatorSetIdProto.version", out.version);
    return true;
  });
}

bool Parser::function(const Field& field, Function& out) {
  return message(field, "FunctionProto", [&](const Field& part) {
    switch (part.number) {
      case 1:
        return text(part, "FunctionProto.name", out.name);
      case 4:
        out.inputs.emplace_back();
        return text(part, "FunctionProto.input", out.inputs.back());
      case 5:
        out.outputs.emplace_back();
        return text(part, "FunctionProto.output", out.outputs.back());
      case 6:
        out.attributes.emplace_back();
        return text(part, "FunctionProto.attribute", out.attributes.back());
      case 7:
        out.nodes.emplace_back();
        return node(part, out.nodes.back());
      case 9:
        out.opsets.emplace_back();
        return opset(part, out.opsets.back());
      case 10:
        return text(part, "FunctionProto.domain", out.domain);
      case 11:
        out.default_attributes.emplace_back();
        return attribute(part, out.default_attributes.back());
      case 13:
        return text(part, "FunctionProto.overload", out.overload);
      default:
        return true;
    }
  });
}

bool Parser::model(std::string_view bytes, Model& out) {
  Field file;
  file.type = WireType::kBytes;
  file.bytes = bytes;
  bool has_graph = false;
  bool ok = message(file, "ModelProto", [&](const Field& part) {
    switch (part.number) {
      case 1:
        return integer(part, "ModelProto.ir_version", out.ir_version);
      case 2:
        return text(part, "ModelProto.producer_name", out.producer_name);
      case 3:
        return text(part, "ModelProto.producer_version", out.producer_version);
      case 7:
        has_graph = true;
        return graph(part, out.graph);
      case 8:
        out.opsets.emplace_back();
        return opset(part, out.opsets.back());
      case 14:
        return pair(part, "ModelProto.metadata_props", out.metadata);
      case 25:
        out.functions.emplace_back();
        return function(part, out.functions.back());
      case 26:
        out.configurations.emplace_back();
        return decodeDeviceConfiguration(*this, part,
                                         out.configurations.back());
      default:
        return true;
    }
  });
  if (!ok) return false;
  if (!has_graph) {
    error().set(bytes.size(),
                "expected a graph (field 7 of ModelProto), found the end: the "
                "file is truncated, or not "
                "an ONNX model");
    return false;
  }
  return true;
}

}  // namespace

std::string toString(DataType type) {
  static constexpr const char* kNames[] = {
      "UNDEFINED",      "FLOAT",      "UINT8",
      "INT8",           "UINT16",     "INT16",
      "INT32",          "INT64",      "STRING",
      "BOOL",           "FLOAT16",    "DOUBLE",
      "UINT32",         "UINT64",     "COMPLEX64",
      "COMPLEX128",     "BFLOAT16",   "FLOAT8E4M3FN",
      "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ",
      "UINT4",          "INT4",       "FLOAT4E2M1",
      "FLOAT8E8M0",     "UINT2",      "INT2"};
  auto code = static_cast<int32_t>(type);
  if (code >= 0 && code < static_cast<int32_t>(std::size(kNames)))
    return kNames[code];
  return "DataType " + std::to_string(code);
}

bool parseModel(std::string_view bytes, Model& model, WireError& error) {
  return Parser(error).model(bytes, model);
}

bool parseTensor(std::string_view bytes, TensorProto& tensor,
                 WireError& error) {
  Field file;
  file.type = WireType::kBytes;
  file.bytes = bytes;
  return Parser(error).tensor(file, tensor);
}

}  // namespace partita::onnx
