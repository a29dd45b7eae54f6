#include "frontends/torch/test_archive.h"

namespace partita::torch {
namespace {

using Json = TestProgram::Json;

// A little-endian integer; bytes beyond the eighth are zero.
std::string bytesOf(uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i)
    bytes += i < 8 ? static_cast<char>(value >> (8 * i) & 0xff) : '\0';
  return bytes;
}

Json sizeOf(int64_t size) {
  if (size >= 0) return {{"as_int", size}};
  return {{"as_expr", {{"expr_str", "s0"}, {"hint", {{"as_int", 3}}}}}};
}

Json metaOf(const std::vector<int64_t>& sizes, bool requires_grad) {
  Json meta = {{"dtype", 7},
               {"sizes", Json::array()},
               {"strides", Json::array()},
               {"storage_offset", {{"as_int", 0}}},
               {"requires_grad", requires_grad}};
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    meta["strides"].insert(meta["strides"].begin(), sizeOf(stride));
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  for (int64_t size : sizes) meta["sizes"].push_back(sizeOf(size));
  return meta;
}

}  // namespace

std::string zipOf(
    const std::vector<std::pair<std::string, std::string>>& entries,
    int method) {
  std::string file, directory;
  for (const auto& [name, data] : entries) {
    // Version, flags, method, time, date, checksum, sizes, lengths of name and
    // extra field.
    const std::string common =
        bytesOf(20, 2) + bytesOf(0, 2) + bytesOf(method, 2) + bytesOf(0, 4) +
        bytesOf(0, 4) + bytesOf(data.size(), 4) + bytesOf(data.size(), 4) +
        bytesOf(name.size(), 2) + bytesOf(0, 2);
    directory += "PK\x01\x02" + bytesOf(20, 2) + common + bytesOf(0, 10) +
                 bytesOf(file.size(), 4) + name;
    file += "PK\x03\x04" + common + name + data;
  }
  const std::string end =
      "PK\x05\x06" + bytesOf(0, 4) + bytesOf(entries.size(), 2) +
      bytesOf(entries.size(), 2) + bytesOf(directory.size(), 4) +
      bytesOf(file.size(), 4) + bytesOf(0, 2);
  return file + directory + end;
}

std::string archiveOf(const std::map<std::string, std::string>& entries) {
  std::vector<std::pair<std::string, std::string>> listed;
  for (const auto& [name, data] : entries)
    listed.emplace_back("model/" + name, data);
  return zipOf(listed);
}

Json TestProgram::emptyProgram() {
  return {
      {"schema_version", {{"major", 8}, {"minor", 20}}},
      {"torch_version", "2.15.0"},
      {"graph_module",
       {{"graph",
         {{"inputs", Json::array()},
          {"outputs", Json::array()},
          {"nodes", Json::array()},
          {"tensor_values", Json::object()},
          {"sym_int_values", Json::object()}}},
        {"signature",
         {{"input_specs", Json::array()}, {"output_specs", Json::array()}}}}}};
}

Json TestProgram::tensor(const std::string& name) {
  return {{"as_tensor", {{"name", name}}}};
}
Json TestProgram::integer(int64_t value) { return {{"as_int", value}}; }
Json TestProgram::real(double value) { return {{"as_float", value}}; }
Json TestProgram::integers(const std::vector<int64_t>& values) {
  return {{"as_ints", values}};
}

void TestProgram::describe(const std::string& name,
                           const std::vector<int64_t>& sizes) {
  json_["graph_module"]["graph"]["tensor_values"][name] = metaOf(sizes, false);
}

void TestProgram::input(const std::string& name,
                        const std::vector<int64_t>& sizes) {
  describe(name, sizes);
  Json& module = json_["graph_module"];
  module["graph"]["inputs"].push_back(tensor(name));
  module["signature"]["input_specs"].push_back(
      {{"user_input", {{"arg", tensor(name)}}}});
}

void TestProgram::parameter(const std::string& name, const std::string& path,
                            const std::vector<int64_t>& sizes,
                            const std::vector<float>& values) {
  describe(name, sizes);
  Json& module = json_["graph_module"];
  module["graph"]["inputs"].push_back(tensor(name));
  module["signature"]["input_specs"].push_back(
      {{"parameter", {{"arg", {{"name", name}}}, {"parameter_name", path}}}});
  const std::string file = "weight_" + std::to_string(data_.size());
  weights_["config"][path] = {{"path_name", file},
                              {"is_param", true},
                              {"use_pickle", false},
                              {"tensor_meta", metaOf(sizes, true)}};
  data_["data/weights/" + file] =
      std::string(reinterpret_cast<const char*>(values.data()),
                  values.size() * sizeof(float));
}

void TestProgram::node(const std::string& target,
                       const std::vector<std::pair<std::string, Json>>& inputs,
                       const std::string& result,
                       const std::vector<int64_t>& sizes,
                       const std::string& module) {
  describe(result, sizes);
  Json node = {{"target", "torch.ops." + target},
               {"name", result},
               {"inputs", Json::array()},
               {"outputs", Json::array({tensor(result)})},
               {"metadata",
                {{"nn_module_stack", "L,,Model;L.m," + module + ",Layer"},
                 {"stack_trace",
                  "  File \"/home/me/model.py\", line 18, in forward\n"}}}};
  for (const auto& [name, argument] : inputs)
    node["inputs"].push_back({{"name", name}, {"arg", argument}});
  json_["graph_module"]["graph"]["nodes"].push_back(node);
}

void TestProgram::output(const std::string& name) {
  Json& module = json_["graph_module"];
  module["graph"]["outputs"].push_back(tensor(name));
  module["signature"]["output_specs"].push_back(
      {{"user_output", {{"arg", tensor(name)}}}});
}

std::map<std::string, std::string> TestProgram::entries() const {
  std::map<std::string, std::string> entries = data_;
  entries["archive_format"] = "pt2";
  entries["models/model.json"] = json_.dump();
  entries["data/weights/model_weights_config.json"] = weights_.dump();
  entries["data/constants/model_constants_config.json"] = R"({"config": {}})";
  return entries;
}

std::string TestProgram::bytes() const { return archiveOf(entries()); }

}  // namespace partita::torch
