// Walks the nodes of a graph, its functions and branches, and builds @main.
#ifndef PARTITA_FRONTENDS_ONNX_GRAPH_IMPORTER_H_
#define PARTITA_FRONTENDS_ONNX_GRAPH_IMPORTER_H_

#include <deque>
#include <map>
#include <optional>
#include <string>

#include "frontends/builder/main_builder.h"
#include "frontends/onnx/annotations.h"
#include "frontends/onnx/chosen_rows.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/node_context.h"
#include "frontends/onnx/weight_names.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::onnx {

// The names visible in a graph: its own, then the enclosing graphs' names. A
// function's body has no enclosing graph.
struct Scope {
  Scope* parent = nullptr;
  llvm::StringMap<Val> values;
  // Lists of tensors, which only operators on sequences take.
  llvm::StringMap<llvm::SmallVector<Val>> sequences;
  llvm::StringMap<const TensorProto*> initializers;
  // Shapes with the number of rows that a NonZero chooses.
  llvm::StringSet<> counts;
  // Nodes that are not imported yet, by output. Distinguishes a cycle from a
  // missing value.
  llvm::StringMap<const Node*> later;
  std::map<std::string, int64_t, std::less<>> opsets;
  // In a function's body: the values bound to its attributes.
  std::map<std::string, Attribute, std::less<>> bindings;
};

class GraphImporter {
 public:
  GraphImporter(const Model& model, DataFiles& files,
                const ImportOptions& options, ImportReport& report,
                mlir::func::FuncOp main);

  // Builds @main.
  LogicalResult run();

 private:
  friend class NodeContext;

  LogicalResult declareOpsets(llvm::ArrayRef<OperatorSet> opsets, Scope& scope);
  LogicalResult declareInput(const ValueInfo& input, Scope& scope);
  // The name of a dimension without a size: its parameter, or "x.0".
  std::string dimName(const ValueInfo& input, size_t i) const;
  llvm::SmallVector<std::string> openDims() const;
  LogicalResult checkDimNames();
  FailureOr<Shape> inputShape(const ValueInfo& input);
  LogicalResult declareInitializers(const Graph& graph, Scope& scope);
  LogicalResult finishMain(const Graph& graph, Scope& scope);

  // Reports all nodes without a handler, at once.
  LogicalResult checkSupported(llvm::ArrayRef<Node> nodes, const Scope& scope);
  void collectUnsupported(
      llvm::ArrayRef<Node> nodes, const Scope& scope, int depth,
      std::map<std::string, llvm::SmallVector<std::string>>& found);
  const Function* findFunction(const Node& node) const;

  LogicalResult importNodes(llvm::ArrayRef<Node> nodes, Scope& scope);
  LogicalResult importNode(const Node& node, Scope& scope);
  LogicalResult importWith(const Node& node, Scope& scope);
  // Refuses a node that computes with the number of rows that a NonZero
  // chooses. Shapes may have it: the rows are all rows until they are added up.
  LogicalResult checkCounts(const Node& node, Scope& scope);
  // True for a name, here or in an enclosing graph, that is in Scope::counts.
  static bool isCount(llvm::StringRef name, const Scope& scope);
  // Apply the node's device annotations: of its inputs before it is imported
  // (the node then uses the annotated values), of its outputs afterwards.
  LogicalResult annotateInputs(Node& node, Scope& scope);
  LogicalResult annotateOutputs(const Node& node, Scope& scope);
  void markOutputs(const Node& node, Scope& scope);
  // Only tensors of the main graph are marked; names within functions and
  // branches are not tensors of the file.
  bool marks() const { return options_.mark_tensors && depth_ == 1; }
  LogicalResult inlineFunction(const Function& function, const Node& node,
                               Scope& scope);
  Node bindAttributes(const Node& node, const Scope& scope);
  mlir::Location locationOf(const Node& node);

  // The value of a name; null if there is none.
  Val lookup(llvm::StringRef name, Scope& scope);
  const llvm::SmallVector<Val>* findSequence(llvm::StringRef name,
                                             Scope& scope);
  const TensorProto* findInitializer(llvm::StringRef name, Scope& scope,
                                     Scope** owner);
  FailureOr<Val> materialize(const TensorProto& tensor, llvm::StringRef name);
  FailureOr<Val> addWeight(const TensorProto& tensor, llvm::StringRef name);
  // The value of a folded weight; null if its data is not as the names say.
  Val restore(const TensorProto& tensor, const FoldedWeight& folded,
              Scope& scope);
  std::string kindOf(llvm::StringRef name, mlir::Type element) const;
  void noteNeededInputs(mlir::Value value);

  LogicalResult unsupported(mlir::Location loc, llvm::StringRef name,
                            const llvm::Twine& message);

  const Model& model_;
  DataFiles& files_;
  const ImportOptions& options_;
  ImportReport& report_;
  mlir::func::FuncOp main_;
  Emitter emitter_;
  builder::MainBuilder signature_;
  std::optional<Annotations> annotations_;
  ChosenRows chosen_;
  llvm::DenseMap<const TensorProto*, FoldedWeight> folded_;
  std::deque<std::string> use_names_;  // names of values made for one node's
                                       // use
  int depth_ = 0;
};

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_GRAPH_IMPORTER_H_
