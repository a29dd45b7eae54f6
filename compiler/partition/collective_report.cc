// Reads each function once and multiplies by its runs.
#include "compiler/partition/collective_report.h"

#include "compiler/core/traffic.h"
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

int64_t rowsOf(mlir::Value value, int64_t dim) {
  return llvm::cast<RankedTensorType>(value.getType()).getDimSize(dim);
}

int64_t bytesMoved(Operation* op, int64_t group) {
  if (auto send = llvm::dyn_cast<dist::SendOp>(op))
    return bytesOf(send.getInput());
  const mlir::Value input = op->getOperand(0), output = op->getResult(0);
  core::CollectiveWork work;
  work.group = group;
  work.input_bytes = bytesOf(input);
  const auto along = [&](int64_t dim) {
    work.rows = rowsOf(input, dim);
    work.output_rows = rowsOf(output, dim);
  };
  llvm::TypeSwitch<Operation*>(op)
      .Case([&](dist::AllReduceOp) {
        work.kind = core::CollectiveKind::kAllReduce;
      })
      .Case([&](dist::AllGatherOp) {
        work.kind = core::CollectiveKind::kAllGather;
      })
      .Case([&](dist::ReduceScatterOp scatter) {
        work.kind = core::CollectiveKind::kReduceScatter;
        along(scatter.getDim());
      })
      .Case([&](dist::AllToAllOp all) {
        work.kind = core::CollectiveKind::kAllToAll;
        along(all.getSplitDim());
        work.other_rows = rowsOf(input, all.getConcatDim());
        work.other_output_rows = rowsOf(output, all.getConcatDim());
      })
      .Case([&](dist::ExchangeOp exchange) {
        work.kind = core::CollectiveKind::kExchange;
        along(exchange.getDim());
        work.size = exchange.getSize();
        work.step = exchange.getStep();
        work.offset = exchange.getOffset();
      })
      .Case<dist::SendRowsOp, dist::ReturnRowsOp>([&](auto moved) {
        work.kind = core::CollectiveKind::kSendRows;
        work.rows = rowsOf(input, 0);
        work.size = llvm::cast<RankedTensorType>(moved.getTo().getType())
                        .getNumElements();
      })
      .Default([&](Operation*) { work.kind = core::CollectiveKind::kPermute; });
  return core::BytesMoved(work);
}

}  // namespace

FailureOr<std::vector<CollectiveUse>> listCollectives(mlir::ModuleOp module) {
  FailureOr<core::Mesh> mesh = sharding::meshOf(module);
  if (mlir::failed(mesh)) return failure();
  std::vector<CollectiveUse> uses;
  for (auto [function, times] : countRuns(module))
    for (Operation& op : function.front()) {
      auto attr = op.getAttrOfType<dist::AxesAttr>("axes");
      // Receives are counted at the send.
      if (!attr ||
          llvm::isa<dist::AllSliceOp, dist::CoordinateOp, dist::ReceiveOp>(op))
        continue;
      const std::vector<core::AxisRef> axes = sharding::axesOf(attr, *mesh);
      CollectiveUse use{op.getName().stripDialect().str(),
                        core::ToString(*mesh, axes),
                        core::SizeOf(axes),
                        0,
                        times,
                        "",
                        op.getLoc()};
      use.bytes = bytesMoved(&op, use.group);
      if (auto why = op.getAttrOfType<mlir::StringAttr>("why"))
        use.why = why.str();
      uses.push_back(std::move(use));
    }
  return uses;
}

}  // namespace partita::partition
