// Translates meshes and shardings; axes become numbers.
#include "compiler/emit/placement.h"

namespace partita::emit {

using mlir::failure;
using mlir::RankedTensorType;

std::unique_ptr<program::MeshT> meshOf(dist::MeshOp mesh) {
  if (!mesh) return nullptr;
  auto result = std::make_unique<program::MeshT>();
  for (dist::MeshAxisAttr axis : mesh.getAxes().getAxes()) {
    auto written = std::make_unique<program::MeshAxisT>();
    written->name = axis.getName().str();
    written->size = axis.getSize();
    result->axes.push_back(std::move(written));
  }
  if (auto ids = mesh.getDeviceIds())
    result->device_ids.assign(ids->begin(), ids->end());
  return result;
}

std::vector<program::AxisPart> axisParts(llvm::ArrayRef<int64_t> triples) {
  std::vector<program::AxisPart> parts;
  for (; !triples.empty(); triples = triples.drop_front(3))
    parts.emplace_back(triples[0], triples[1], triples[2]);
  return parts;
}

mlir::FailureOr<std::unique_ptr<program::ShardT>> shardOf(
    mlir::Location loc, const std::string& name, dist::MeshOp mesh,
    mlir::Type type, mlir::Attribute sharding_attr,
    mlir::Attribute global_type) {
  auto sharding = llvm::dyn_cast_or_null<dist::ShardingAttr>(sharding_attr);
  if (!sharding) return std::unique_ptr<program::ShardT>();
  if (!sharding.getUnreduced().empty())
    return mlir::emitError(loc) << "expected '" << name
                                << "' to be whole sums, found " << sharding,
           failure();
  if (llvm::all_of(sharding.getDims(),
                   [](dist::DimAttr dim) { return dim.getAxes().empty(); }))
    return std::unique_ptr<program::ShardT>();
  auto global = llvm::dyn_cast_or_null<mlir::TypeAttr>(global_type);
  if (!global)
    return mlir::emitError(loc)
               << "expected '" << dist::kGlobalTypeAttr << "' beside the "
               << sharding << " of '" << name
               << "', found none; was the program partitioned?",
           failure();
  auto result = std::make_unique<program::ShardT>();
  auto local = llvm::cast<RankedTensorType>(type);
  auto whole = llvm::cast<RankedTensorType>(global.getValue());
  result->shape.assign(whole.getShape().begin(), whole.getShape().end());
  for (auto [dim, rows] :
       llvm::zip_equal(sharding.getDims(), local.getShape())) {
    auto shard = std::make_unique<program::DimShardT>();
    shard->block = rows;
    for (dist::AxisAttr axis : dim.getAxes())
      shard->axes.emplace_back(mesh.indexOf(axis.getName()), axis.getPre(),
                               mesh.sizeOf(axis));
    result->dims.push_back(std::move(shard));
  }
  return result;
}

}  // namespace partita::emit
