// Finds parameters, buffers and folded weights by their names and the metadata
// of the exporter.
#ifndef PARTITA_FRONTENDS_ONNX_WEIGHT_NAMES_H_
#define PARTITA_FRONTENDS_ONNX_WEIGHT_NAMES_H_

#include <string>

#include "frontends/onnx/model.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringRef.h"

namespace partita::onnx {

// True for names that exporters invent for tensors outside any module:
// "onnx::MatMul_12", "/attn/Constant_3", "val_7", "15"; and for constants of a
// module's code: "attn.lifted_tensor_0".
bool isAnonymous(llvm::StringRef name);

// True for names that PyTorch's exporter gives to tensors of one number that
// code of a module makes: "zeros_like", "full_2".
bool isFill(llvm::StringRef name);

// True for names of stored but untrained state of a module.
bool isBufferName(llvm::StringRef name);

// True if the exporter translated the node from an operation of torch.export.
bool isTracedOperation(const Node& node);

// The path of PyTorch modules that the exporter recorded for the node; empty if
// there is none.
std::string_view moduleScope(const Node& node);

// The weight of a linear layer that PyTorch's exporter transposed and renamed
// when it folded constants.
struct FoldedWeight {
  // The parameter in the module, with ".T" because it is stored transposed.
  std::string name;
  // Another initializer with the same parameter, or null.
  const TensorProto* other = nullptr;
  bool other_is_transposed = false;
};

// Finds the folded weights of the model's main graph by the metadata of the
// nodes that use them: `pkg.torch.onnx.fx_node` has the parameter's name with
// "_" for ".", `pkg.torch.onnx.name_scopes` the path of its module.
llvm::DenseMap<const TensorProto*, FoldedWeight> findFoldedWeights(
    const Graph& graph);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_WEIGHT_NAMES_H_
