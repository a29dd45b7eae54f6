// Walks the nodes of a graph, its functions and branches, and builds @main.
#ifndef PARTITA_FRONTENDS_ONNX_GRAPH_IMPORTER_H_
#define PARTITA_FRONTENDS_ONNX_GRAPH_IMPORTER_H_

#include <deque>
#include <map>
#include <optional>
#include <string>

#include "frontends/onnx/annotations.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/node_context.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::onnx {

// The names visible in a graph: its own, then those around it. A function's
// body has none around it.
struct Scope {
  Scope* parent = nullptr;
  llvm::StringMap<Val> values;
  llvm::StringMap<const TensorProto*> initializers;
  // Nodes that have not been imported yet, by output: to tell a cycle from a
  // missing value.
  llvm::StringMap<const Node*> later;
  std::map<std::string, int64_t, std::less<>> opsets;
  // In a function's body, what its attributes are bound to.
  std::map<std::string, Attribute, std::less<>> bindings;
};

class GraphImporter {
 public:
  GraphImporter(const Model& model, DataFiles& files,
                const ImportOptions& options, ImportReport& report,
                mlir::func::FuncOp main);

  // Fills in @main.
  LogicalResult run();

 private:
  friend class NodeContext;

  // A weight that became an argument: its block argument and what names and
  // locates it.
  struct Weight {
    mlir::BlockArgument argument;
    const TensorProto* tensor;
    std::string name;
    FileRange range;
  };

  LogicalResult declareOpsets(llvm::ArrayRef<OperatorSet> opsets, Scope& scope);
  LogicalResult declareInput(const ValueInfo& input, Scope& scope);
  // What a dimension that has no size is called: its parameter, or "x.0".
  std::string dimName(const ValueInfo& input, size_t i) const;
  llvm::SmallVector<std::string> openDims() const;
  LogicalResult checkDimNames();
  FailureOr<Shape> inputShape(const ValueInfo& input);
  LogicalResult declareInitializers(const Graph& graph, Scope& scope);
  LogicalResult finishMain(const Graph& graph, Scope& scope);
  void annotateArguments();
  void eraseUnused();

  // Reports all nodes that have no handler, at once.
  LogicalResult checkSupported(llvm::ArrayRef<Node> nodes, const Scope& scope);
  void collectUnsupported(
      llvm::ArrayRef<Node> nodes, const Scope& scope, int depth,
      std::map<std::string, llvm::SmallVector<std::string>>& found);
  const Function* findFunction(const Node& node) const;

  LogicalResult importNodes(llvm::ArrayRef<Node> nodes, Scope& scope);
  LogicalResult importNode(const Node& node, Scope& scope);
  LogicalResult importWith(const Node& node, Scope& scope);
  // What the node says about devices: of its inputs, before it is imported (a
  // node that uses them as it wants them), and of its outputs, after.
  LogicalResult annotateInputs(Node& node, Scope& scope);
  LogicalResult annotateOutputs(const Node& node, Scope& scope);
  void markOutputs(const Node& node, Scope& scope);
  // Names within functions and branches are not the file's tensors.
  bool marks() const { return options_.mark_tensors && depth_ == 1; }
  LogicalResult inlineFunction(const Function& function, const Node& node,
                               Scope& scope);
  Node bindAttributes(const Node& node, const Scope& scope);
  mlir::Location locationOf(const Node& node);

  // A value by name; null if there is none.
  Val lookup(llvm::StringRef name, Scope& scope);
  const TensorProto* findInitializer(llvm::StringRef name, Scope& scope,
                                     Scope** owner);
  FailureOr<Val> materialize(const TensorProto& tensor, llvm::StringRef name);
  FailureOr<Val> addWeight(const TensorProto& tensor, llvm::StringRef name);
  std::string kindOf(const Weight& weight) const;
  Val nextSeed();
  void noteNeededInputs(mlir::Value value);

  LogicalResult unsupported(mlir::Location loc, llvm::StringRef name,
                            const llvm::Twine& message);

  const Model& model_;
  DataFiles& files_;
  const ImportOptions& options_;
  ImportReport& report_;
  mlir::func::FuncOp main_;
  Emitter emitter_;
  std::optional<Annotations> annotations_;
  std::deque<std::string> use_names_;  // of values made for one node's use
  int depth_ = 0;
  llvm::SmallVector<std::pair<std::string, Val>> inputs_;
  llvm::SmallVector<Weight> weights_;
  Val seed_, next_seed_;  // the input, and what the next use of it gets
};

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_GRAPH_IMPORTER_H_
