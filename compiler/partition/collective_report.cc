// Reads each function once.
#include "compiler/partition/collective_report.h"

#include "compiler/core/reshard.h"
#include "compiler/partition/run_counts.h"
#include "compiler/sharding/convert.h"
#include "dialects/dist/dialect.h"
#include "llvm/ADT/TypeSwitch.h"

namespace partita::partition {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::Operation;
using mlir::RankedTensorType;

int64_t bytesOf(mlir::Value value) {
  auto type = llvm::cast<RankedTensorType>(value.getType());
  return type.getNumElements() *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

// The most that a device receives of others' rows.
int64_t bytesOfExchange(dist::ExchangeOp op, int64_t group) {
  auto input = llvm::cast<RankedTensorType>(op.getInput().getType());
  const int64_t dim = op.getDim(), size = op.getSize();
  const int64_t block = input.getDimSize(dim);
  const int64_t window =
      llvm::cast<RankedTensorType>(op.getResult().getType()).getDimSize(dim);
  const int64_t row = bytesOf(op.getInput()) / std::max<int64_t>(block, 1);
  int64_t most = 0;
  for (int64_t device = 0; device < group; ++device) {
    const int64_t first = device * static_cast<int64_t>(op.getStep()) +
                          static_cast<int64_t>(op.getOffset());
    const int64_t begin = std::max<int64_t>(first, 0);
    const int64_t end = std::min(first + window, size);
    const int64_t own_begin = std::max(begin, device * block);
    const int64_t own_end = std::min({end, (device + 1) * block, size});
    const int64_t needed = std::max<int64_t>(end - begin, 0);
    const int64_t own = std::max<int64_t>(own_end - own_begin, 0);
    most = std::max(most, (needed - own) * row);
  }
  return most;
}

int64_t bytesSent(Operation* op, int64_t group) {
  auto by = [&](core::CollectiveKind kind) {
    return core::BytesSent(kind, group, bytesOf(op->getOperand(0)));
  };
  return llvm::TypeSwitch<Operation*, int64_t>(op)
      .Case([&](dist::AllReduceOp) {
        return by(core::CollectiveKind::kAllReduce);
      })
      .Case([&](dist::AllGatherOp) {
        return by(core::CollectiveKind::kAllGather);
      })
      .Case([&](dist::ReduceScatterOp) {
        return by(core::CollectiveKind::kReduceScatter);
      })
      .Case(
          [&](dist::AllToAllOp) { return by(core::CollectiveKind::kAllToAll); })
      .Case([&](dist::ExchangeOp exchange) {
        return bytesOfExchange(exchange, group);
      })
      .Default([&](Operation*) { return bytesOf(op->getOperand(0)); });
}

}  // namespace

FailureOr<std::vector<CollectiveUse>> listCollectives(mlir::ModuleOp module) {
  FailureOr<core::Mesh> mesh = sharding::meshOf(module);
  if (mlir::failed(mesh)) return failure();
  std::vector<CollectiveUse> uses;
  for (auto [function, times] : countRuns(module))
    for (Operation& op : function.front()) {
      auto attr = op.getAttrOfType<dist::AxesAttr>("axes");
      if (!attr || llvm::isa<dist::AllSliceOp, dist::CoordinateOp>(op))
        continue;
      const std::vector<core::AxisRef> axes = sharding::axesOf(attr, *mesh);
      CollectiveUse use{op.getName().stripDialect().str(),
                        core::ToString(*mesh, axes),
                        core::SizeOf(axes),
                        0,
                        times,
                        "",
                        op.getLoc()};
      use.bytes = bytesSent(&op, use.group);
      if (auto why = op.getAttrOfType<mlir::StringAttr>("why"))
        use.why = why.str();
      uses.push_back(std::move(use));
    }
  return uses;
}

}  // namespace partita::partition
