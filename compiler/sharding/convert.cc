// One function per structure and direction.
#include "compiler/sharding/convert.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace partita::sharding {

using llvm::SmallVector;
using mlir::failure;
using mlir::FailureOr;
using mlir::MLIRContext;
using mlir::Value;
using mlir::func::FuncOp;

namespace {

FailureOr<core::AxisRef> toCore(dist::AxisAttr attr, const core::Mesh& mesh) {
  const int axis = mesh.Find(attr.getName().str());
  if (axis < 0) return failure();
  if (attr.isWhole()) return core::WholeAxis(mesh, axis);
  return core::AxisRef{axis, attr.getPre(), attr.getSize()};
}

FailureOr<std::vector<core::AxisRef>> toCore(
    llvm::ArrayRef<dist::AxisAttr> attrs, const core::Mesh& mesh) {
  std::vector<core::AxisRef> axes;
  for (dist::AxisAttr attr : attrs) {
    auto axis = toCore(attr, mesh);
    if (mlir::failed(axis)) return failure();
    axes.push_back(*axis);
  }
  return axes;
}

SmallVector<dist::AxisAttr> toAttrs(MLIRContext* context,
                                    const std::vector<core::AxisRef>& axes,
                                    const core::Mesh& mesh) {
  return llvm::map_to_vector(axes, [&](const core::AxisRef& axis) {
    return toAttr(context, axis, mesh);
  });
}

}  // namespace

core::Direction directionOf(dist::BarrierOp barrier) {
  switch (barrier.getDirection()) {
    case dist::Direction::none:
      return core::Direction::kNone;
    case dist::Direction::forward:
      return core::Direction::kForward;
    case dist::Direction::backward:
      return core::Direction::kBackward;
  }
}

FailureOr<core::Mesh> meshOf(mlir::ModuleOp module) {
  auto meshes = module.getOps<dist::MeshOp>();
  if (meshes.empty())
    return module.emitError(
        "expected a dist.mesh that says what devices there are, found none; "
        "give a plan, or --mesh");
  dist::MeshOp op = *meshes.begin();
  core::Mesh mesh;
  for (dist::MeshAxisAttr axis : op.getAxes().getAxes())
    mesh.axes.push_back({axis.getName().str(), axis.getSize()});
  if (auto ids = op.getDeviceIds())
    mesh.device_ids.assign(ids->begin(), ids->end());
  return mesh;
}

void setMesh(mlir::ModuleOp module, const core::Mesh& mesh) {
  for (auto op : llvm::make_early_inc_range(module.getOps<dist::MeshOp>()))
    op.erase();
  MLIRContext* context = module.getContext();
  SmallVector<dist::MeshAxisAttr> axes;
  for (const core::Axis& axis : mesh.axes)
    axes.push_back(dist::MeshAxisAttr::get(context, axis.name, axis.size));
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(module.getBody());
  mlir::DenseI64ArrayAttr ids;
  if (!mesh.device_ids.empty())
    ids = builder.getDenseI64ArrayAttr(mesh.device_ids);
  dist::MeshOp::create(builder, module.getLoc(), "mesh",
                       dist::MeshAttr::get(context, axes), ids);
}

dist::AxisAttr toAttr(MLIRContext* context, const core::AxisRef& axis,
                      const core::Mesh& mesh) {
  const core::Axis& whole = mesh.axes[axis.axis];
  if (axis == core::WholeAxis(mesh, axis.axis))
    return dist::AxisAttr::get(context, whole.name);
  return dist::AxisAttr::get(context, whole.name, axis.pre, axis.size);
}

dist::AxesAttr axesAttr(MLIRContext* context,
                        const std::vector<core::AxisRef>& axes,
                        const core::Mesh& mesh) {
  return dist::AxesAttr::get(context, toAttrs(context, axes, mesh));
}

std::vector<core::AxisRef> axesOf(dist::AxesAttr attr, const core::Mesh& mesh) {
  return *toCore(attr.getAxes(), mesh);
}

dist::ShardingAttr toAttr(MLIRContext* context, const core::Sharding& sharding,
                          const core::Mesh& mesh) {
  SmallVector<dist::DimAttr> dims;
  for (const core::DimSharding& dim : sharding.dims) {
    SmallVector<int64_t> priorities;
    for (const core::AxisRef& axis : dim.axes)
      priorities.push_back(axis.priority);
    if (llvm::all_of(priorities, [](int64_t value) { return value == 0; }))
      priorities.clear();
    dims.push_back(dist::DimAttr::get(context, toAttrs(context, dim.axes, mesh),
                                      dim.open, priorities, dim.block));
  }
  return dist::ShardingAttr::get(context, dims,
                                 toAttrs(context, sharding.replicated, mesh),
                                 toAttrs(context, sharding.unreduced, mesh));
}

FailureOr<core::Sharding> toCore(dist::ShardingAttr attr,
                                 const core::Mesh& mesh) {
  core::Sharding sharding;
  for (dist::DimAttr dim : attr.getDims()) {
    auto axes = toCore(dim.getAxes(), mesh);
    if (mlir::failed(axes)) return failure();
    for (auto [i, axis] : llvm::enumerate(*axes))
      axis.priority = static_cast<int>(dim.getPriority(i));
    sharding.dims.push_back({std::move(*axes), dim.getBlock(), dim.getOpen()});
  }
  auto replicated = toCore(attr.getReplicated(), mesh);
  auto unreduced = toCore(attr.getUnreduced(), mesh);
  if (mlir::failed(replicated) || mlir::failed(unreduced)) return failure();
  sharding.replicated = std::move(*replicated);
  sharding.unreduced = std::move(*unreduced);
  return sharding;
}

dist::ShardingAttr shardingOf(Value value) {
  if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value))
    return llvm::cast<FuncOp>(argument.getOwner()->getParentOp())
        .getArgAttrOfType<dist::ShardingAttr>(argument.getArgNumber(),
                                              dist::kShardingAttr);
  auto all = value.getDefiningOp()->getAttrOfType<mlir::ArrayAttr>(
      dist::kShardingsAttr);
  if (!all) return {};
  return llvm::cast<dist::ShardingAttr>(
      all[llvm::cast<mlir::OpResult>(value).getResultNumber()]);
}

void setSharding(Value value, dist::ShardingAttr sharding) {
  if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value)) {
    llvm::cast<FuncOp>(argument.getOwner()->getParentOp())
        .setArgAttr(argument.getArgNumber(), dist::kShardingAttr, sharding);
    return;
  }
  mlir::Operation* op = value.getDefiningOp();
  SmallVector<mlir::Attribute> all;
  if (auto old = op->getAttrOfType<mlir::ArrayAttr>(dist::kShardingsAttr))
    all.assign(old.begin(), old.end());
  else
    for (mlir::Type type : op->getResultTypes())
      all.push_back(dist::ShardingAttr::getReplicated(
          op->getContext(), llvm::cast<mlir::RankedTensorType>(type).getRank(),
          /*open=*/true));
  all[llvm::cast<mlir::OpResult>(value).getResultNumber()] = sharding;
  op->setAttr(dist::kShardingsAttr,
              mlir::ArrayAttr::get(op->getContext(), all));
}

}  // namespace partita::sharding
