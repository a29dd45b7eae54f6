// Reads the multi-device annotations of a model as a mesh and shardings.
#ifndef PARTITA_FRONTENDS_ONNX_ANNOTATIONS_H_
#define PARTITA_FRONTENDS_ONNX_ANNOTATIONS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dialects/dist/dialect.h"
#include "frontends/onnx/device_configuration.h"
#include "frontends/onnx/device_grid.h"
#include "frontends/onnx/emitter.h"
#include "frontends/onnx/model.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::onnx {

// One configuration of a model. Its mesh is the coarsest grid that explains all
// device lists, with axes x, y, z, a3, a4 ... A tensor has the first sharding
// that its producer or a user gives it: an attribute of the argument or
// operation that it is. Where a later user wants another, `dist.constraint`
// stands at that use.
class Annotations {
 public:
  // Where a node is, for messages.
  using LocationOf = llvm::function_ref<mlir::Location(const Node&)>;

  // Reads the configuration of this name; if `wanted` is empty, the only one
  // that there is. Nothing where the model has none or `wanted` is "none".
  // Fails, with a diagnostic, on a name that the model does not have and on
  // whatever in it contradicts itself or the model.
  static mlir::FailureOr<std::optional<Annotations>> read(
      const Model& model, const std::string& wanted, mlir::Location loc,
      LocationOf location_of);

  // Puts the mesh into the module.
  void addMesh(mlir::ModuleOp module) const;

  // The value, as this node's annotation of `tensor` wants it: annotated, or a
  // new one. The same value where the node says nothing.
  mlir::FailureOr<Val> apply(const Node& node, std::string_view tensor,
                             Val value, Emitter& emitter);

  // Counts what was annotated, for those who apply it, and reports what could
  // not be.
  void finish(mlir::func::FuncOp main);

 private:
  // One spec of one node.
  struct Entry {
    ShardingSpec spec;
    size_t placement = 0;  // index into placements_
  };

  // `strict`: unknown names of configurations are errors.
  mlir::LogicalResult addNode(const Node& node, bool strict,
                              mlir::Location loc);
  mlir::LogicalResult addSpec(const Node& node, const ShardingSpec& spec,
                              mlir::Location loc, std::vector<Entry>& entries);
  // Nodes of graphs in attributes too.
  mlir::LogicalResult addNodes(llvm::ArrayRef<Node> nodes, bool strict,
                               LocationOf location_of);
  mlir::LogicalResult findMesh(mlir::Location loc);
  const Entry* find(const Node& node, std::string_view tensor) const;
  mlir::FailureOr<dist::ShardingAttr> shardingOf(const Entry& entry,
                                                 mlir::RankedTensorType type,
                                                 mlir::Location loc) const;

  dist::ShardingAttr annotationOf(mlir::Value value) const;
  void annotate(mlir::Value value, dist::ShardingAttr sharding);

  std::string name_;
  int64_t devices_ = 0;             // 0: none was chosen
  std::vector<std::string> known_;  // all configurations of the model
  std::vector<Placement> placements_;
  std::vector<std::string> described_;  // the first tensor of each placement
  Grid grid_;
  // By the configurations of the node, which copies of it share.
  llvm::DenseMap<const void*, std::vector<Entry>> entries_;
  // Of arguments, whose attributes are written when the signature is known.
  llvm::DenseMap<mlir::Value, dist::ShardingAttr> arguments_;
  int64_t constants_ = 0, stages_ = 0;
};

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_ANNOTATIONS_H_
