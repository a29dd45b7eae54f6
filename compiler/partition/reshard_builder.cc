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
    case core::CollectiveKind::kSendRows:
    case core::CollectiveKind::kReturnRows:
      break;
  }
  llvm_unreachable("no reshard broadcasts, or sends single rows");
}

}  // namespace

Value Resharder::build(mlir::OpBuilder& builder, mlir::Location loc,
                       RankedTensorType global, Value local,
                       const core::Sharding& from, const core::Sharding& to,
                       core::Reduction reduction, const std::string& why) {
  if (from.SamePlacement(to)) return local;
  const mlir::StringAttr words = builder.getStringAttr(why);
  for (const core::Collective& step : planOf(global, from, to, reduction).steps)
    local = buildStep(builder, loc, mesh_, global, local, step, words)
                ->getResult(0);
  return local;
}

const core::ReshardPlan& Resharder::planOf(RankedTensorType global,
                                           const core::Sharding& from,
                                           const core::Sharding& to,
                                           core::Reduction reduction) {
  const std::vector<int64_t> shape = global.getShape().vec();
  const int64_t bytes = llvm::divideCeil(global.getElementTypeBitWidth(), 8);
  std::string key =
      std::to_string(bytes) + " " + std::to_string(static_cast<int>(reduction));
  for (const int64_t size : shape) key += " " + std::to_string(size);
  key += core::ToString(mesh_, from) + core::ToString(mesh_, to);
  const auto [plan, is_new] = plans_.try_emplace(std::move(key));
  if (is_new)
    plan->second = core::PlanReshard(mesh_, shape, bytes, from, to, reduction);
  return plan->second;
}

}  // namespace partita::partition
