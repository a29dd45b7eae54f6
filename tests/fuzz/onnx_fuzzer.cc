// Fuzzes the ONNX reader. Any bytes are refused with a message that points into
// them, or read into views inside them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "frontends/onnx/device_configuration.h"
#include "frontends/onnx/model.h"
#include "frontends/onnx/open_dims.h"
#include "frontends/onnx/placement.h"

namespace {

namespace onnx = partita::onnx;

class Checker {
 public:
  explicit Checker(std::string_view file) : file_(file) {}

  void Graph(const onnx::Graph& graph) const {
    Inside(graph.name);
    for (const onnx::TensorProto& tensor : graph.initializers) Tensor(tensor);
    for (const onnx::Node& node : graph.nodes) Node(node);
  }

  void Node(const onnx::Node& node) const {
    Inside(node.op_type);
    for (std::string_view name : node.inputs) Inside(name);
    for (std::string_view name : node.outputs) Inside(name);
    for (const onnx::Attribute& attribute : node.attributes) {
      Inside(attribute.name);
      Inside(attribute.s);
      if (attribute.t) Tensor(*attribute.t);
      if (attribute.g) Graph(*attribute.g);
    }
    if (!node.device_configurations) return;
    for (const onnx::NodeConfiguration& configuration :
         *node.device_configurations)
      Devices(configuration);
  }

 private:
  void Devices(const onnx::NodeConfiguration& configuration) const {
    Inside(configuration.configuration);
    for (const onnx::ShardingSpec& spec : configuration.specs) {
      Inside(spec.tensor);
      onnx::Placement placement;
      std::string message;
      constexpr int64_t kDevices = 4;
      if (!onnx::placementOf(spec, kDevices, placement, message)) {
        if (message.empty()) abort();
        continue;
      }
      onnx::Grid grid;
      size_t culprit = 0;
      onnx::findGrid(kDevices, {placement}, grid, culprit);
    }
  }

  void Inside(std::string_view view) const {
    if (view.data() == nullptr) return;
    if (view.data() < file_.data() ||
        view.data() + view.size() > file_.data() + file_.size())
      abort();
  }

  void Tensor(const onnx::TensorProto& tensor) const {
    Inside(tensor.name);
    Inside(tensor.raw);
    Inside(tensor.floats);
    Inside(tensor.doubles);
    // The importer writes this offset into the module.
    if (tensor.has_raw && tensor.raw.data() != file_.data() + tensor.raw_offset)
      abort();
  }

  std::string_view file_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  onnx::Model model;
  onnx::WireError error;
  if (!onnx::parseModel(file, model, error)) {
    if (!error.isSet() || error.offset > size) abort();
    return 0;
  }
  if (error.isSet()) abort();
  const Checker checker(file);
  checker.Graph(model.graph);
  for (const std::string& name : onnx::openDims(model.graph))
    if (name.empty()) abort();
  for (const onnx::Function& function : model.functions)
    for (const onnx::Node& node : function.nodes) checker.Node(node);
  return 0;
}
