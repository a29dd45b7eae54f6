// Unions are objects with one member, named by the alternative ("as_int").
#include "frontends/torch/read_graph.h"

#include <algorithm>

namespace partita::torch {
namespace {

using Kind = Argument::Kind;
using Inside = JsonReader::Inside;

// The member of a union: its name and value. Fails and returns null if there is
// none.
const Json* alternative(JsonReader& reader, const Json& json,
                        std::string& name) {
  if (json.is_object()) {
    for (auto member = json.begin(); member != json.end(); ++member) {
      if (member->is_null()) continue;
      name = member.key();
      return &*member;
    }
  }
  reader.fail("expected an object with one member, found " +
              std::string(json.type_name()));
  return nullptr;
}

// {"name": ...}
bool readName(JsonReader& reader, const Json& json, std::string& name) {
  if (!reader.readMember(json, "name", name)) return false;
  return !name.empty() || reader.fail("expected a name, found an empty one");
}

bool addInt(JsonReader& reader, const Json& json, Argument& argument) {
  IntArgument value;
  if (json.is_boolean()) {
    value.value = json.get<bool>();
  } else if (!reader.read(json, value.value)) {
    return false;
  }
  argument.ints.push_back(std::move(value));
  return true;
}

// {"as_name": ...} or {"as_int": ...}, also of floats and booleans.
bool addSymbolic(JsonReader& reader, const Json& json, Argument& argument) {
  std::string name;
  const Json* value = alternative(reader, json, name);
  if (!value) return false;
  Inside inside(reader, name);
  if (name != "as_name") return addInt(reader, *value, argument);
  IntArgument named;
  if (!reader.read(*value, named.name)) return false;
  argument.ints.push_back(std::move(named));
  return true;
}

bool addTensor(JsonReader& reader, const Json& json, Argument& argument) {
  return readName(reader, json, argument.names.emplace_back());
}

bool addOptionalTensor(JsonReader& reader, const Json& json,
                       Argument& argument) {
  std::string name;
  const Json* value = alternative(reader, json, name);
  if (!value) return false;
  Inside inside(reader, name);
  if (name == "as_tensor") return addTensor(reader, *value, argument);
  argument.names.emplace_back();
  return name == "as_none" || reader.fail("expected as_tensor or as_none");
}

bool readScalarType(JsonReader& reader, const Json& json, ScalarType& type) {
  int64_t number = 0;
  if (!reader.read(json, number)) return false;
  type = static_cast<ScalarType>(std::clamp<int64_t>(number, 0, 255));
  return true;
}

// A row of the table of alternatives.
struct Alternative {
  const char* name;
  Kind kind;
  bool is_list;
  bool (*add)(JsonReader&, const Json&, Argument&);
};

constexpr Alternative kAlternatives[] = {
    {"as_tensor", Kind::kTensor, false, addTensor},
    {"as_tensors", Kind::kTensors, true, addTensor},
    {"as_optional_tensors", Kind::kTensors, true, addOptionalTensor},
    {"as_int", Kind::kInt, false, addInt},
    {"as_ints", Kind::kInts, true, addInt},
    {"as_sym_int", Kind::kInt, false, addSymbolic},
    {"as_sym_ints", Kind::kInts, true, addSymbolic},
    {"as_bool", Kind::kBool, false, addInt},
    {"as_bools", Kind::kBools, true, addInt},
    {"as_sym_bool", Kind::kBool, false, addSymbolic},
    {"as_sym_bools", Kind::kBools, true, addSymbolic},
    {"as_float", Kind::kFloat, false,
     [](JsonReader& reader, const Json& json, Argument& argument) {
       return reader.read(json, argument.floats.emplace_back());
     }},
    {"as_floats", Kind::kFloats, true,
     [](JsonReader& reader, const Json& json, Argument& argument) {
       return reader.read(json, argument.floats.emplace_back());
     }},
    {"as_string", Kind::kString, false,
     [](JsonReader& reader, const Json& json, Argument& argument) {
       return reader.read(json, argument.text);
     }},
    {"as_strings", Kind::kStrings, true,
     [](JsonReader& reader, const Json& json, Argument& argument) {
       return reader.read(json, argument.names.emplace_back());
     }},
    {"as_scalar_type", Kind::kScalarType, false, addInt},
    {"as_graph", Kind::kGraph, false,
     [](JsonReader& reader, const Json& json, Argument& argument) {
       auto graph = std::make_shared<Graph>();
       const Json* content = reader.required(json, "graph");
       if (!content || !readGraph(reader, *content, *graph)) return false;
       argument.graph = std::move(graph);
       return true;
     }},
};

// "s0" for the expression "Symbol('s0', positive=True, integer=True)"; others
// stay.
std::string withoutAssumptions(const std::string& expression) {
  constexpr std::string_view kSymbol = "Symbol('";
  const size_t end = expression.find('\'', kSymbol.size());
  if (expression.compare(0, kSymbol.size(), kSymbol) != 0 ||
      end == std::string::npos || expression.find(')') != expression.size() - 1)
    return expression;
  return expression.substr(kSymbol.size(), end - kSymbol.size());
}

bool readSymInt(JsonReader& reader, const Json& json, SymInt& size) {
  std::string name;
  const Json* value = alternative(reader, json, name);
  if (!value) return false;
  Inside inside(reader, name);
  if (name == "as_int") return reader.read(*value, size.value);
  if (name != "as_expr") return reader.fail("expected as_int or as_expr");
  if (!reader.readMember(*value, "expr_str", size.expression)) return false;
  size.expression = withoutAssumptions(size.expression);
  return !size.expression.empty() || reader.fail("expected an expression");
}

bool readSymInts(JsonReader& reader, const Json& object, const char* key,
                 std::vector<SymInt>& sizes) {
  const Json* list = reader.required(object, key);
  if (!list) return false;
  Inside inside(reader, key);
  return reader.forEach(*list, [&](const Json& json) {
    return readSymInt(reader, json, sizes.emplace_back());
  });
}

// The path of the innermost module, from entries "key,path,type;...".
std::string modulePath(const std::string& stack) {
  const size_t last = stack.rfind(';');
  const std::string entry =
      last == std::string::npos ? stack : stack.substr(last + 1);
  const size_t first = entry.find(',');
  if (first == std::string::npos) return "";
  const size_t second = entry.find(',', first + 1);
  return entry.substr(first + 1, second == std::string::npos
                                     ? std::string::npos
                                     : second - first - 1);
}

// The innermost line outside torch, from Python's stack trace.
SourceLine sourceLine(const std::string& trace) {
  constexpr char kFile[] = "File \"", kLine[] = "\", line ";
  SourceLine found;
  for (size_t at = trace.find(kFile); at != std::string::npos;
       at = trace.find(kFile, at)) {
    at += sizeof(kFile) - 1;
    const size_t end = trace.find(kLine, at);
    if (end == std::string::npos) break;
    const std::string path = trace.substr(at, end - at);
    at = end + sizeof(kLine) - 1;
    if (!found.file.empty() && path.find("/torch/") != std::string::npos)
      continue;
    found.file = path.substr(path.rfind('/') + 1);
    found.line = 0;
    for (size_t i = at;
         i < trace.size() && i < at + 8 && trace[i] >= '0' && trace[i] <= '9';
         ++i)
      found.line = found.line * 10 + (trace[i] - '0');
  }
  return found;
}

bool readNode(JsonReader& reader, const Json& json, Node& node) {
  if (!reader.readMember(json, "target", node.target)) return false;
  const Json* inputs = reader.required(json, "inputs");
  const Json* outputs = reader.required(json, "outputs");
  if (!inputs || !outputs) return false;
  {
    Inside inside(reader, "inputs");
    if (!reader.forEach(*inputs, [&](const Json& input) {
          NamedArgument& named = node.inputs.emplace_back();
          const Json* argument = reader.required(input, "arg");
          return argument && reader.readMember(input, "name", named.name) &&
                 readArgument(reader, *argument, named.argument);
        }))
      return false;
  }
  {
    Inside inside(reader, "outputs");
    if (!reader.forEach(*outputs, [&](const Json& output) {
          return readArgument(reader, output, node.outputs.emplace_back());
        }))
      return false;
  }
  if (const Json* name = JsonReader::optional(json, "name");
      name && !reader.read(*name, node.name))
    return false;
  if (node.name.empty() && !node.outputs.empty() &&
      !node.outputs.front().names.empty())
    node.name = node.outputs.front().names.front();
  const Json* metadata = JsonReader::optional(json, "metadata");
  if (!metadata) return true;
  std::string text;
  if (const Json* stack = JsonReader::optional(*metadata, "nn_module_stack")) {
    if (!reader.read(*stack, text)) return false;
    node.module = modulePath(text);
  }
  if (const Json* trace = JsonReader::optional(*metadata, "stack_trace")) {
    if (!reader.read(*trace, text)) return false;
    node.source = sourceLine(text);
  }
  return true;
}

bool readArguments(JsonReader& reader, const Json& object, const char* key,
                   std::vector<Argument>& arguments) {
  const Json* list = reader.required(object, key);
  if (!list) return false;
  Inside inside(reader, key);
  return reader.forEach(*list, [&](const Json& json) {
    return readArgument(reader, json, arguments.emplace_back());
  });
}

}  // namespace

bool readArgument(JsonReader& reader, const Json& json, Argument& argument) {
  std::string name;
  const Json* value = alternative(reader, json, name);
  if (!value) return false;
  Inside inside(reader, name);
  if (name == "as_none") return true;
  if (name == "as_optional_tensor") {
    argument.kind = Kind::kTensor;
    if (!addOptionalTensor(reader, *value, argument)) return false;
    if (argument.names.front().empty()) argument = {};
    return true;
  }
  if (name == "as_memory_format" || name == "as_layout" ||
      name == "as_device") {
    argument.kind = Kind::kOption;
    return true;
  }
  for (const Alternative& row : kAlternatives) {
    if (name != row.name) continue;
    argument.kind = row.kind;
    if (!row.is_list) return row.add(reader, *value, argument);
    return reader.forEach(*value, [&](const Json& element) {
      return row.add(reader, element, argument);
    });
  }
  argument.kind = Kind::kOther;
  argument.text = name;
  return true;
}

bool readTensorMeta(JsonReader& reader, const Json& json, TensorMeta& meta) {
  const Json* dtype = reader.required(json, "dtype");
  const Json* offset = reader.required(json, "storage_offset");
  if (const Json* grad = JsonReader::optional(json, "requires_grad");
      grad && !reader.read(*grad, meta.requires_grad))
    return false;
  return dtype && offset && readScalarType(reader, *dtype, meta.dtype) &&
         readSymInts(reader, json, "sizes", meta.sizes) &&
         readSymInts(reader, json, "strides", meta.strides) &&
         readSymInt(reader, *offset, meta.storage_offset);
}

bool readGraph(JsonReader& reader, const Json& json, Graph& graph) {
  Inside inside(reader, "graph");
  if (!readArguments(reader, json, "inputs", graph.inputs) ||
      !readArguments(reader, json, "outputs", graph.outputs))
    return false;
  const Json* nodes = reader.required(json, "nodes");
  const Json* tensors = reader.required(json, "tensor_values");
  if (!nodes || !tensors) return false;
  {
    Inside list(reader, "nodes");
    if (!reader.forEach(*nodes, [&](const Json& node) {
          return readNode(reader, node, graph.nodes.emplace_back());
        }))
      return false;
  }
  {
    Inside table(reader, "tensor_values");
    if (!reader.forEachMember(
            *tensors, [&](const std::string& name, const Json& meta) {
              return readTensorMeta(reader, meta, graph.tensors[name]);
            }))
      return false;
  }
  const Json* sym_ints = JsonReader::optional(json, "sym_int_values");
  if (!sym_ints) return true;
  Inside table(reader, "sym_int_values");
  return reader.forEachMember(
      *sym_ints, [&](const std::string& name, const Json& value) {
        return readSymInt(reader, value, graph.sym_ints[name]);
      });
}

}  // namespace partita::torch
