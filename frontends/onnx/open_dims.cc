// Collects names of dimensions from inputs' shapes.
#include "frontends/onnx/open_dims.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace partita::onnx {

std::string dimName(const ValueInfo& input, size_t i) {
  const Dim& dim = input.shape[i];
  if (!dim.param.empty()) return std::string(dim.param);
  return std::string(input.name) + "." + std::to_string(i);
}

std::vector<std::string> openDims(const Graph& graph) {
  std::vector<std::string> names;
  for (const ValueInfo& input : graph.inputs)
    for (size_t i = 0; i < input.shape.size(); ++i) {
      if (input.shape[i].value >= 0) continue;
      std::string name = dimName(input, i);
      if (std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(std::move(name));
    }
  return names;
}

std::vector<std::string> openDims(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)),
                          std::istreambuf_iterator<char>());
  Model model;
  WireError error;
  if (!parseModel(bytes, model, error)) return {};
  return openDims(model.graph);
}

}  // namespace partita::onnx
