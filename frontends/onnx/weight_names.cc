// Recognises names of exporters, and finds the parameters of folded weights.
#include "frontends/onnx/weight_names.h"

#include <algorithm>

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

namespace partita::onnx {
namespace {

std::string_view metadata(const Node& node, std::string_view key) {
  for (auto [name, value] : node.metadata)
    if (name == key) return value;
  return {};
}

// "blocks.0.mlp" becomes "blocks_0_mlp", as in names of torch.fx.
std::string mangled(llvm::StringRef name) {
  std::string result = name.str();
  std::replace(result.begin(), result.end(), '.', '_');
  return result;
}

// Returns "blocks_0_mlp_weight" if the node is a linear layer of PyTorch with
// that parameter as its weight, else "".
llvm::StringRef weightOf(const Node& node) {
  llvm::StringRef call(metadata(node, "pkg.torch.onnx.fx_node"));
  constexpr llvm::StringLiteral kLinear =
      "target=torch.ops.aten.linear.default](args = (";
  const size_t begin = call.find(kLinear);
  if (begin == llvm::StringRef::npos) return {};
  llvm::StringRef weight =
      call.drop_front(begin + kLinear.size())
          .split(", ")
          .second.take_until([](char c) { return c == ',' || c == ')'; });
  return weight.consume_front("%p_") ? weight : llvm::StringRef();
}

// Returns "blocks.0.mlp" of "['', 'blocks.0', 'blocks.0.mlp', 'linear_1']".
llvm::StringRef moduleOf(const Node& node) {
  llvm::StringRef scopes(metadata(node, "pkg.torch.onnx.name_scopes"));
  llvm::StringRef last = scopes.rsplit(", ").first.rsplit(", ").second;
  if (last.empty()) last = scopes.rsplit(", ").first;
  return last.trim("[]'");
}

// The parameter's name if it is certain: "a_b_weight" may be "a.b.weight" or
// "a_b.weight", but the module's path is known.
std::string nameOf(llvm::StringRef weight, llvm::StringRef module) {
  if (!module.empty() && !weight.consume_front(mangled(module) + "_"))
    return {};
  // torch.nn.MultiheadAttention's name is the only usual one with "_".
  if (weight.empty() || (weight.contains('_') && weight != "in_proj_weight"))
    return {};
  return module.empty() ? weight.str() : (module + "." + weight).str();
}

// A use of an anonymous initializer as the weight of a linear layer.
struct Use {
  const TensorProto* tensor;
  llvm::StringRef weight;
};

}  // namespace

bool isAnonymous(llvm::StringRef name) {
  if (name.contains("::") || name.starts_with("/")) return true;
  if (llvm::all_of(name, llvm::isDigit)) return true;
  auto [stem, number] = name.rsplit('_');
  bool is_numbered = !number.empty() && llvm::all_of(number, llvm::isDigit);
  // A constant of a module's code.
  if (is_numbered && stem.ends_with(".lifted_tensor")) return true;
  return is_numbered &&
         llvm::is_contained(
             {"val", "lifted_tensor", "scalar_tensor", "const", "Constant"},
             stem);
}

bool isFill(llvm::StringRef name) {
  auto [stem, number] = name.rsplit('_');
  if (!number.empty() && llvm::all_of(number, llvm::isDigit)) name = stem;
  return llvm::is_contained(
      {"zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones",
       "full", "full_like", "new_full"},
      name);
}

bool isBufferName(llvm::StringRef name) {
  llvm::StringRef last = name.rsplit('.').second;
  if (last.empty()) last = name;
  return last.starts_with("running_") || last == "inv_freq" ||
         last == "position_ids" || last == "masked_bias" ||
         last == "num_batches_tracked" ||
         last.starts_with("relative_position_index");
}

bool isTracedOperation(const Node& node) {
  return !metadata(node, "pkg.torch.onnx.fx_node").empty();
}

std::string_view moduleScope(const Node& node) {
  for (auto [key, value] : node.metadata) {
    if (key == "namespace" || key == "pkg.torch.onnx.name_scopes" ||
        key == "pkg.onnxscript.name_scopes")
      return value;
  }
  return {};
}

llvm::DenseMap<const TensorProto*, FoldedWeight> findFoldedWeights(
    const Graph& graph) {
  // By name; the named ones by mangled name, null if two have the same.
  llvm::StringMap<const TensorProto*> anonymous, named;
  for (const TensorProto& tensor : graph.initializers) {
    if (tensor.dims.size() != 2) continue;
    llvm::StringRef name(tensor.name);
    if (isAnonymous(name)) {
      anonymous[name] = &tensor;
    } else if (auto [entry, is_new] = named.try_emplace(mangled(name), &tensor);
               !is_new) {
      entry->second = nullptr;
    }
  }
  llvm::SmallVector<Use> uses;
  llvm::StringMap<std::string> names;  // by mangled name
  for (const Node& node : graph.nodes) {
    if (node.op_type != "MatMul" || node.inputs.size() != 2) continue;
    auto found = anonymous.find(llvm::StringRef(node.inputs[1]));
    llvm::StringRef weight = weightOf(node);
    if (found == anonymous.end() || weight.empty()) continue;
    uses.push_back({found->second, weight});
    std::string& name = names[weight];
    if (name.empty()) name = nameOf(weight, moduleOf(node));
  }
  llvm::DenseMap<const TensorProto*, FoldedWeight> result;
  llvm::StringMap<const TensorProto*> first;  // by mangled name
  for (const Use& use : uses) {
    if (result.contains(use.tensor)) continue;
    FoldedWeight folded;
    if (const TensorProto* other = named.lookup(use.weight)) {
      folded = {std::string(other->name) + ".T", other, true};
    } else if (const std::string& name = names[use.weight]; !name.empty()) {
      folded.name = name + ".T";
      auto [entry, is_new] = first.try_emplace(use.weight, use.tensor);
      if (!is_new) folded.other = entry->second;
    }
    if (!folded.name.empty()) result[use.tensor] = folded;
  }
  return result;
}

}  // namespace partita::onnx
