// The interface between an operator's handler and one node: inputs, attributes
// and outputs.
#ifndef PARTITA_FRONTENDS_ONNX_NODE_CONTEXT_H_
#define PARTITA_FRONTENDS_ONNX_NODE_CONTEXT_H_

#include <string>

#include "frontends/onnx/builder_names.h"
#include "frontends/onnx/model.h"
#include "frontends/onnx/tensor_data.h"

namespace partita::onnx {

class GraphImporter;
struct Scope;

using llvm::failed;
using llvm::failure;
using llvm::FailureOr;
using llvm::LogicalResult;
using llvm::success;

class NodeContext {
 public:
  NodeContext(GraphImporter& importer, Scope& scope, const Node& node,
              int64_t opset);

  Emitter& e;
  const Node& node;
  const int64_t opset;

  llvm::StringRef op() const { return llvm::StringRef(node.op_type); }

  // Inputs. The table of handlers gives the number of required inputs; the
  // others may be absent.
  unsigned numInputs() const { return node.inputs.size(); }
  bool has(unsigned i) const {
    return i < node.inputs.size() && !node.inputs[i].empty();
  }
  Val in(unsigned i);
  llvm::SmallVector<Val> ins();
  // The tensors of a sequence. Reports an error if input i is a tensor.
  FailureOr<llvm::SmallVector<Val>> sequence(unsigned i);
  // The value of input i. Reports an error if it is not known at import time.
  FailureOr<mlir::DenseElementsAttr> constant(unsigned i);
  FailureOr<Shape> constInts(unsigned i);
  FailureOr<llvm::SmallVector<double>> constFloats(unsigned i);
  FailureOr<double> constFloat(unsigned i);
  // True if input i is known at import time. Reports nothing.
  bool isConstant(unsigned i);

  // Attributes, with default values. A wrong type is an error at the node.
  bool hasAttr(llvm::StringRef name) const;
  int64_t attrInt(llvm::StringRef name, int64_t absent);
  double attrFloat(llvm::StringRef name, double absent);
  std::string attrString(llvm::StringRef name, llvm::StringRef absent);
  Shape attrInts(llvm::StringRef name, Dims absent = {});
  llvm::SmallVector<double> attrFloats(llvm::StringRef name);
  const TensorProto* attrTensor(llvm::StringRef name);
  const Graph* attrGraph(llvm::StringRef name);

  // Maps a dimension counted from the end to 0 .. rank - 1.
  FailureOr<int64_t> axis(int64_t axis, int64_t rank);
  FailureOr<Shape> axes(Dims axes, int64_t rank);

  // Outputs.
  bool wants(unsigned i) const {
    return i < node.outputs.size() && !node.outputs[i].empty();
  }
  void out(unsigned i, Val value);
  LogicalResult result(Val value);
  LogicalResult sequenceResult(llvm::ArrayRef<Val> values);

  LogicalResult error(const llvm::Twine& message);
  // Reports a feature that nn lacks. Features are counted by name:
  // "Resize(antialias)".
  LogicalResult unsupported(llvm::StringRef what);

  // The element type of a DataType number. Reports unsupported ones.
  FailureOr<ElementType> elementType(int64_t data_type);
  FailureOr<mlir::DenseElementsAttr> decode(const TensorProto& tensor);
  // A constant, or an argument if the tensor is large.
  FailureOr<Val> materialize(const TensorProto& tensor, llvm::StringRef name);
  // If input i is an initializer that became an argument: another argument with
  // the same data, named `name`. Otherwise null.
  Val separateInitializer(unsigned i, llvm::StringRef name);
  // The indices of the elements that are not zero, for NonZero.
  Val chooseRows(Val mask);
  // Returns a new scalar i64 seed at each call, derived from the input `seed`.
  // The first call creates that input. Each call adds the same operations, so
  // that layers stay equal.
  Val nextSeed();
  FailureOr<llvm::SmallVector<Val>> inlineGraph(const Graph& graph);

 private:
  const Attribute* find(llvm::StringRef name, int32_t type);

  GraphImporter& importer_;
  Scope& scope_;
};

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_NODE_CONTEXT_H_
