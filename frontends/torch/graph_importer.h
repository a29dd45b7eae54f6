// Walks the nodes of a program and builds @main.
#ifndef PARTITA_FRONTENDS_TORCH_GRAPH_IMPORTER_H_
#define PARTITA_FRONTENDS_TORCH_GRAPH_IMPORTER_H_

#include <map>
#include <string>
#include <vector>

#include "frontends/builder/main_builder.h"
#include "frontends/torch/program.h"
#include "frontends/torch/symbols.h"
#include "frontends/torch/weights.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::torch {

using builder::Dims;
using builder::Emitter;
using builder::Shape;
using builder::Val;
using llvm::failed;
using llvm::failure;
using llvm::FailureOr;
using llvm::LogicalResult;
using llvm::success;

class NodeContext;
struct Handler;

// The names that are visible in a graph. A graph within a node sees only what
// the node gives it.
struct Scope {
  const Graph* graph = nullptr;
  llvm::StringMap<Val> values;
  llvm::StringMap<int64_t> ints;
  // Placeholders of weights that no node has used yet.
  llvm::StringMap<const InputSpec*> weights;
  // Placeholders whose values a program must not change.
  llvm::StringMap<std::string> fixed;
  // A tensor that shares the memory of another: the node that made it.
  struct View {
    std::string base;
    const Node* node;
  };
  llvm::StringMap<View> views;
  std::vector<std::string> view_order;
};

class GraphImporter {
 public:
  GraphImporter(const Program& program, Weights weights, const Symbols& symbols,
                mlir::func::FuncOp main);

  // Builds @main.
  LogicalResult run();

 private:
  friend class NodeContext;

  LogicalResult declareInputs(Scope& scope);
  LogicalResult declareTensor(const std::string& name, Scope& scope);
  LogicalResult finishMain(Scope& scope);

  // Reports all nodes without a handler, at once.
  LogicalResult checkSupported();
  LogicalResult importNodes(const Graph& graph, Scope& scope);
  LogicalResult importNode(const Node& node, Scope& scope);
  LogicalResult importWith(const Handler& handler, const Node& node,
                           Scope& scope);
  // Inlines the graph of a node, e.g. one that runs without gradients.
  LogicalResult inlineGraph(const Node& node, Scope& scope);
  LogicalResult checkResults(const Node& node, Scope& scope);

  // Gives a tensor a new value, and with it the tensors that share its memory.
  LogicalResult assign(const std::string& name, Val value, Scope& scope);
  void addView(const std::string& name, const std::string& base,
               const Node& node, Scope& scope);

  // The value of a name; null after an error.
  Val lookup(const std::string& name, Scope& scope);
  Val materialize(const InputSpec& spec, const std::string& placeholder);
  // The first name in the state dict of the weights tied to this one.
  const std::string& firstName(const Stored& stored, const std::string& name);

  const Program& program_;
  Weights weights_;
  const Symbols& symbols_;
  mlir::func::FuncOp main_;
  Emitter emitter_;
  builder::MainBuilder signature_;
  // By identity, which tied weights share.
  std::map<std::string, Val> shared_;
  std::map<std::string, std::string> first_names_;  // filled at first use
  int depth_ = 0;
};

}  // namespace partita::torch

#endif  // PARTITA_FRONTENDS_TORCH_GRAPH_IMPORTER_H_
