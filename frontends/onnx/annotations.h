// Reads a model's multi-device annotations as a mesh and shardings.
#ifndef PARTITA_FRONTENDS_ONNX_ANNOTATIONS_H_
#define PARTITA_FRONTENDS_ONNX_ANNOTATIONS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dialects/dist/dialect.h"
#include "frontends/onnx/builder_names.h"
#include "frontends/onnx/device_configuration.h"
#include "frontends/onnx/device_grid.h"
#include "frontends/onnx/model.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::onnx {

// One device configuration of a model. Its mesh is the coarsest grid that
// explains all device lists, with axes x, y, z, a3, a4 ... A tensor gets the
// first sharding that its producer or a user specifies, as an attribute of its
// argument or operation. If a later user specifies another sharding, a
// `dist.constraint` is inserted at that use.
class Annotations {
 public:
  // Returns a node's location for messages.
  using LocationOf = llvm::function_ref<mlir::Location(const Node&)>;

  // Reads the configuration named `wanted`; if `wanted` is empty, the only one.
  // Returns nothing if the model has none or `wanted` is "none". Fails, with a
  // diagnostic, on an unknown name and on contradictions within the annotations
  // or with the model.
  static mlir::FailureOr<std::optional<Annotations>> read(
      const Model& model, const std::string& wanted, mlir::Location loc,
      LocationOf location_of);

  // Adds the mesh to the module, and how attention over a divided sequence is
  // computed, if the file says so.
  void addMesh(mlir::ModuleOp module) const;

  // Applies this node's annotation of `tensor` to the value. Returns the value,
  // or a new one with that sharding. Without an annotation, returns the value
  // unchanged.
  mlir::FailureOr<Val> apply(const Node& node, std::string_view tensor,
                             Val value, Emitter& emitter);

  // Records the number of annotated operations for the passes that apply them,
  // and reports the annotations that could not be applied.
  void finish(mlir::func::FuncOp main);

 private:
  // One spec of one node.
  struct Entry {
    ShardingSpec spec;
    size_t placement = 0;  // index into placements_
  };

  // `strict`: unknown configuration names are errors.
  mlir::LogicalResult addNode(const Node& node, bool strict,
                              mlir::Location loc);
  mlir::LogicalResult addSpec(const Node& node, const ShardingSpec& spec,
                              mlir::Location loc, std::vector<Entry>& entries);
  // Includes the nodes of graphs in attributes.
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
  std::string attention_;           // a plan's `attention`; empty: none
  int64_t devices_ = 0;             // 0: no configuration was chosen
  std::vector<std::string> known_;  // all configurations of the model
  std::vector<Placement> placements_;
  std::vector<std::string> described_;  // the first tensor of each placement
  Grid grid_;
  // By the node's list of configurations, which copies of the node share.
  llvm::DenseMap<const void*, std::vector<Entry>> entries_;
  // Shardings of arguments; the attributes are written once the signature is
  // known.
  llvm::DenseMap<mlir::Value, dist::ShardingAttr> arguments_;
  int64_t constants_ = 0, stages_ = 0;
};

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_ANNOTATIONS_H_
