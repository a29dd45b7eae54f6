// Reads the signature and the tables of weights of an exported program.
#include "frontends/torch/program.h"
#include "frontends/torch/read_graph.h"
#include "runtime/base/checked_json.h"

namespace partita::torch {
namespace {

using Inside = JsonReader::Inside;

constexpr int64_t kSchemaMajor = 8;
constexpr char kModels[] = "models/";
constexpr char kWeights[] = "data/weights/";
constexpr char kConstants[] = "data/constants/";

// {"arg": {"name": ...}, key: ...}
bool readTensorSpec(JsonReader& reader, const Json& json, const char* key,
                    Argument& argument, std::string& target) {
  const Json* arg = reader.required(json, "arg");
  if (!arg || !reader.readMember(json, key, target)) return false;
  argument.kind = Argument::Kind::kTensor;
  return reader.readMember(*arg, "name", argument.names.emplace_back());
}

bool readInputSpec(JsonReader& reader, const Json& json, InputSpec& spec) {
  using Kind = InputSpec::Kind;
  struct Row {
    const char* name;
    Kind kind;
    const char* target;
  };
  static constexpr Row kRows[] = {
      {"parameter", Kind::kParameter, "parameter_name"},
      {"buffer", Kind::kBuffer, "buffer_name"},
      {"tensor_constant", Kind::kConstant, "tensor_constant_name"},
  };
  if (const Json* user = JsonReader::optional(json, "user_input")) {
    const Json* arg = reader.required(*user, "arg");
    return arg && readArgument(reader, *arg, spec.argument);
  }
  if (const Json* value = JsonReader::optional(json, "constant_input")) {
    spec.kind = Kind::kValue;
    return reader.readMember(*value, "name", spec.target);
  }
  for (const Row& row : kRows) {
    const Json* content = JsonReader::optional(json, row.name);
    if (!content) continue;
    spec.kind = row.kind;
    return readTensorSpec(reader, *content, row.target, spec.argument,
                          spec.target);
  }
  return reader.fail(
      "expected a user input, parameter, buffer, tensor constant or constant; "
      "custom objects and tokens are not supported");
}

bool readOutputSpec(JsonReader& reader, const Json& json, OutputSpec& spec) {
  if (const Json* user = JsonReader::optional(json, "user_output")) {
    const Json* arg = reader.required(*user, "arg");
    return arg && readArgument(reader, *arg, spec.argument);
  }
  if (const Json* loss = JsonReader::optional(json, "loss_output")) {
    const Json* arg = reader.required(*loss, "arg");
    spec.argument.kind = Argument::Kind::kTensor;
    return arg &&
           reader.readMember(*arg, "name", spec.argument.names.emplace_back());
  }
  spec.kind = OutputSpec::Kind::kMutation;
  if (const Json* mutation = JsonReader::optional(json, "buffer_mutation"))
    return readTensorSpec(reader, *mutation, "buffer_name", spec.argument,
                          spec.target);
  return reader.fail(
      "expected a user output, a loss or a changed buffer; programs with "
      "gradients or changed inputs are not supported: export the forward "
      "model");
}

// Names of the leaves of a tree of outputs: keys of dictionaries, positions in
// tuples. Ends after `most` names, or at a name that is too long: a small file
// could ask for gigabytes.
void nameLeaves(const Json& tree, const std::string& prefix, size_t most,
                std::vector<std::string>& names) {
  constexpr size_t kLongestName = 4096;
  if (names.size() >= most || prefix.size() > kLongestName) return;
  const Json* type = JsonReader::optional(tree, "type");
  const Json* children = JsonReader::optional(tree, "children_spec");
  if (!type || !children || !children->is_array()) {
    names.push_back(prefix);
    return;
  }
  Json keys;
  base::JsonError error;  // without keys, positions are the names
  if (const Json* context = JsonReader::optional(tree, "context");
      context && context->is_string())
    keys = base::ParseJson(context->get<std::string>(), error);
  const bool is_named = keys.is_array() && keys.size() == children->size();
  size_t index = 0;
  for (const Json& child : *children) {
    std::string name = std::to_string(index);
    if (is_named && keys[index].is_string())
      name = keys[index].get<std::string>();
    if (names.size() >= most) return;
    nameLeaves(child, prefix.empty() ? name : prefix + "." + name, most, names);
    ++index;
  }
}

// The names of outputs; empty if the file does not say.
std::vector<std::string> outputNames(const Json& graph_module, size_t outputs) {
  const Json* calls = JsonReader::optional(graph_module, "module_call_graph");
  if (!calls || !calls->is_array() || calls->empty()) return {};
  const Json* signature = JsonReader::optional(calls->front(), "signature");
  const Json* text =
      signature ? JsonReader::optional(*signature, "out_spec") : nullptr;
  if (!text || !text->is_string()) return {};
  std::string error;
  const std::string wrapped = "{\"tree\":" + text->get<std::string>() + "}";
  const Json parsed = parseJson(wrapped, error);
  if (!error.empty()) return {};
  // [version, tree]
  const Json* tree = JsonReader::optional(parsed, "tree");
  if (!tree || !tree->is_array() || tree->size() != 2) return {};
  std::vector<std::string> names;
  nameLeaves((*tree)[1], "", outputs, names);
  return names;
}

bool readBound(JsonReader& reader, const Json& json, const char* key,
               int64_t& bound) {
  const Json* value = JsonReader::optional(json, key);
  if (!value || value->is_string()) return true;  // "inf"
  return reader.read(*value, bound);
}

bool readVersion(JsonReader& reader, const Json& json, Program& program) {
  const Json* version = reader.required(json, "schema_version");
  if (!version) return false;
  {
    Inside inside(reader, "schema_version");
    if (!reader.readMember(*version, "major", program.schema_major) ||
        !reader.readMember(*version, "minor", program.schema_minor))
      return false;
  }
  if (const Json* torch = JsonReader::optional(json, "torch_version");
      torch && !reader.read(*torch, program.torch_version))
    return false;
  if (program.schema_major == kSchemaMajor) return true;
  return reader.fail(
      "expected schema version 8 (torch 2.9 and newer), found " +
      std::to_string(program.schema_major) + "." +
      std::to_string(program.schema_minor) + " (torch " +
      (program.torch_version.empty() ? "unknown" : program.torch_version) +
      "); export the model again with a matching torch");
}

bool readContents(JsonReader& reader, const Json& json, Program& program) {
  if (!readVersion(reader, json, program)) return false;
  const Json* module = reader.required(json, "graph_module");
  if (!module) return false;
  Inside inside(reader, "graph_module");
  const Json* graph = reader.required(*module, "graph");
  const Json* signature = reader.required(*module, "signature");
  if (!graph || !signature || !readGraph(reader, *graph, program.graph))
    return false;
  const Json* inputs = reader.required(*signature, "input_specs");
  const Json* outputs = reader.required(*signature, "output_specs");
  if (!inputs || !outputs) return false;
  {
    Inside list(reader, "signature.input_specs");
    if (!reader.forEach(*inputs, [&](const Json& spec) {
          return readInputSpec(reader, spec, program.inputs.emplace_back());
        }))
      return false;
  }
  {
    Inside list(reader, "signature.output_specs");
    if (!reader.forEach(*outputs, [&](const Json& spec) {
          return readOutputSpec(reader, spec, program.outputs.emplace_back());
        }))
      return false;
  }
  program.output_names = outputNames(*module, program.outputs.size());
  return true;
}

}  // namespace

std::string toString(ScalarType type) {
  switch (type) {
    case ScalarType::kUnknown:
      return "unknown";
    case ScalarType::kByte:
      return "uint8";
    case ScalarType::kChar:
      return "int8";
    case ScalarType::kShort:
      return "int16";
    case ScalarType::kInt:
      return "int32";
    case ScalarType::kLong:
      return "int64";
    case ScalarType::kHalf:
      return "float16";
    case ScalarType::kFloat:
      return "float32";
    case ScalarType::kDouble:
      return "float64";
    case ScalarType::kComplexHalf:
      return "complex32";
    case ScalarType::kComplexFloat:
      return "complex64";
    case ScalarType::kComplexDouble:
      return "complex128";
    case ScalarType::kBool:
      return "bool";
    case ScalarType::kBfloat16:
      return "bfloat16";
    case ScalarType::kUint16:
      return "uint16";
    case ScalarType::kFloat8E4M3FN:
      return "float8_e4m3fn";
    case ScalarType::kFloat8E5M2:
      return "float8_e5m2";
    case ScalarType::kFloat8E4M3FNUZ:
      return "float8_e4m3fnuz";
    case ScalarType::kFloat8E5M2FNUZ:
      return "float8_e5m2fnuz";
    case ScalarType::kFloat8E8M0FNU:
      return "float8_e8m0fnu";
    case ScalarType::kUint32:
      return "uint32";
    case ScalarType::kUint64:
      return "uint64";
  }
  return "scalar type " + std::to_string(static_cast<int>(type));
}

bool readProgram(std::string_view text, Program& program, std::string& error) {
  const Json json = parseJson(text, error);
  if (!error.empty()) return false;
  JsonReader reader;
  bool fine = readContents(reader, json, program);
  if (const Json* ranges = JsonReader::optional(json, "range_constraints");
      fine && ranges) {
    Inside inside(reader, "range_constraints");
    fine = reader.forEachMember(
        *ranges, [&](const std::string& symbol, const Json& bounds) {
          Range& range = program.ranges[symbol];
          return readBound(reader, bounds, "min_val", range.low) &&
                 readBound(reader, bounds, "max_val", range.high);
        });
  }
  error = reader.error();
  return fine;
}

bool readPayloads(std::string_view text, const std::string& folder,
                  std::map<std::string, Payload>& payloads,
                  std::string& error) {
  const Json json = parseJson(text, error);
  if (!error.empty()) return false;
  JsonReader reader;
  const Json* table = reader.required(json, "config");
  Inside inside(reader, "config");
  const bool fine =
      table && reader.forEachMember(*table, [&](const std::string& name,
                                                const Json& entry) {
        Payload& payload = payloads[name];
        std::string file;
        if (!reader.readMember(entry, "path_name", file) ||
            !reader.readMember(entry, "use_pickle", payload.is_pickled))
          return false;
        payload.path = folder + file;
        const Json* meta = JsonReader::optional(entry, "tensor_meta");
        if (!meta) {  // an object, which the importer refuses if it is used
          payload.is_pickled = true;
          return true;
        }
        Inside member(reader, "tensor_meta");
        return readTensorMeta(reader, *meta, payload.meta);
      });
  error = reader.error();
  return fine;
}

bool readArchive(const Archive& archive, Program& program, std::string& error) {
  std::string name;
  for (const auto& [path, entry] : archive.entries()) {
    constexpr std::string_view kJson = ".json";
    const std::string_view models(kModels);
    if (path.compare(0, models.size(), models) != 0 ||
        path.size() <= models.size() + kJson.size() ||
        path.compare(path.size() - kJson.size(), kJson.size(), kJson) != 0)
      continue;
    if (!name.empty()) {
      error = "expected one model, found " + std::string(kModels) + name +
              ".json and " + path + ": save each in its own file";
      return false;
    }
    name =
        path.substr(models.size(), path.size() - models.size() - kJson.size());
  }
  if (name.empty()) {
    const bool is_old = archive.find("serialized_exported_program.json");
    error = is_old ? "expected the archive of torch 2.9 or newer, found the "
                     "one of an older torch: load it there, and save it "
                     "again with a newer one"
                   : "expected an entry models/NAME.json, found none: was the "
                     "file written by torch.export.save?";
    return false;
  }
  const std::string path = kModels + name + ".json";
  if (!readProgram(archive.contents(*archive.find(path)), program, error)) {
    error = path + ": " + error;
    return false;
  }
  struct Table {
    const char* folder;
    const char* suffix;
    std::map<std::string, Payload>* payloads;
  };
  for (const Table& table :
       {Table{kWeights, "_weights_config.json", &program.weights},
        Table{kConstants, "_constants_config.json", &program.constants}}) {
    const std::string config = table.folder + name + table.suffix;
    const Entry* entry = archive.find(config);
    if (!entry) {
      error = "expected an entry " + config + ", found none" +
              (archive.find(table.folder + name + ".pt")
                   ? "; its weights are pickled: load and save the model again "
                     "with torch 2.9 or newer"
                   : "");
      return false;
    }
    if (!readPayloads(archive.contents(*entry), table.folder, *table.payloads,
                      error)) {
      error = config + ": " + error;
      return false;
    }
  }
  return true;
}

}  // namespace partita::torch
