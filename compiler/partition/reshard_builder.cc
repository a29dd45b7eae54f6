// Emits one dist operation per step of the plan.
#include "compiler/partition/reshard_builder.h"

#include "compiler/sharding/convert.h"
#include "dialects/dist/dialect.h"

namespace partita::partition {

using mlir::RankedTensorType;
using mlir::Value;

RankedTensorType localType(RankedTensorType global,
                           const core::Sharding& sharding) {
  return global.clone(core::LocalShape(global.getShape().vec(), sharding));
}

namespace {

mlir::Operation* buildStep(mlir::OpBuilder& builder, mlir::Location loc,
                           const core::Mesh& mesh, RankedTensorType global,
                           Value local, const core::Collective& step,
                           mlir::Attribute why) {
  RankedTensorType type = localType(global, step.result);
  dist::AxesAttr axes =
      sharding::axesAttr(builder.getContext(), step.axes, mesh);
  switch (step.kind) {
    case core::CollectiveKind::kAllReduce:
      return dist::AllReduceOp::create(builder, loc, type, local, axes,
                                       step.reduction, why);
    case core::CollectiveKind::kAllGather:
      return dist::AllGatherOp::create(builder, loc, type, local, axes,
                                       step.dim, why);
    case core::CollectiveKind::kReduceScatter:
      return dist::ReduceScatterOp::create(builder, loc, type, local, axes,
                                           step.dim, step.reduction, why);
    case core::CollectiveKind::kAllToAll:
      return dist::AllToAllOp::create(builder, loc, type, local, axes, step.dim,
                                      step.other_dim, why);
    case core::CollectiveKind::kAllSlice:
      return dist::AllSliceOp::create(builder, loc, type, local, axes, step.dim,
                                      why);
    case core::CollectiveKind::kExchange:
      return dist::ExchangeOp::create(
          builder, loc, type, local, axes, step.dim,
          global.getDimSize(step.dim), type.getDimSize(step.dim),
          /*offset=*/0, /*fill=*/llvm::APFloat(0.0), why);
    case core::CollectiveKind::kPermute:
      return dist::PermuteOp::create(
          builder, loc, type, local, axes,
          sharding::axesAttr(builder.getContext(), step.to_axes, mesh), why);
    case core::CollectiveKind::kBroadcast:
      break;
  }
  llvm_unreachable("no reshard broadcasts");
}

}  // namespace

Value buildReshard(mlir::OpBuilder& builder, mlir::Location loc,
                   const core::Mesh& mesh, RankedTensorType global, Value local,
                   const core::Sharding& from, const core::Sharding& to,
                   core::Reduction reduction, const std::string& why) {
  if (from.SamePlacement(to)) return local;
  const core::ReshardPlan plan =
      core::PlanReshard(mesh, global.getShape().vec(),
                        llvm::divideCeil(global.getElementTypeBitWidth(), 8),
                        from, to, reduction);
  for (const core::Collective& step : plan.steps) {
    local = buildStep(builder, loc, mesh, global, local, step,
                      builder.getStringAttr(why))
                ->getResult(0);
  }
  return local;
}

}  // namespace partita::partition
