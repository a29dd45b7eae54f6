// Movement of data in a manual computation's body.
#include "frontends/stablehlo/manual/batch.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::stablehlo {
namespace {

// Attributes per dimension, with entries for leading dimensions.
Shape after(int64_t lead, int64_t value, Dims entries) {
  Shape result(lead, value);
  result.append(entries.begin(), entries.end());
  return result;
}

// Numbers of dimensions behind leading dimensions, which stay first.
Shape behind(int64_t lead, Dims dims) {
  Shape result = builder::countUp(lead);
  for (int64_t dim : dims) result.push_back(lead + dim);
  return result;
}

}  // namespace

bool Batcher::buildMovement(mlir::Operation& op) {
  if (auto constraint = mlir::dyn_cast<dist::ConstraintOp>(op)) {
    const auto sharding =
        mlir::cast<dist::ShardingAttr>(constraint.getSharding());
    values_[op.getResult(0)] =
        place(get(constraint.getInput()), sharding.getDims(),
              sharding.getReplicated());
    return true;
  }
  if (auto concat = mlir::dyn_cast<nn::ConcatOp>(op)) {
    llvm::SmallVector<Batched> inputs;
    for (mlir::Value input : concat.getInputs()) inputs.push_back(get(input));
    const Shape all = align(inputs);
    llvm::SmallVector<Val> values;
    for (const Batched& input : inputs) values.push_back(input.val);
    setResult(op, {e.concat(values, static_cast<int64_t>(all.size()) +
                                        static_cast<int64_t>(concat.getAxis())),
                   all});
    return true;
  }
  if (!mlir::isa<nn::BroadcastOp, nn::ReshapeOp, nn::TransposeOp, nn::SliceOp,
                 nn::PadOp>(op))
    return false;
  const Batched x = get(op.getOperand(0));
  const int64_t lead = x.lead();
  const Dims local =
      mlir::cast<mlir::RankedTensorType>(op.getResult(0).getType()).getShape();
  const Shape shape = withLead(x.axes, local);
  Val result;
  if (auto broadcast = mlir::dyn_cast<nn::BroadcastOp>(op)) {
    result = e.broadcastDims(x.val, shape, behind(lead, broadcast.getDims()));
  } else if (mlir::isa<nn::ReshapeOp>(op)) {
    result = e.reshape(x.val, shape);
  } else if (auto transpose = mlir::dyn_cast<nn::TransposeOp>(op)) {
    result = e.transpose(x.val, behind(lead, transpose.getPerm()));
  } else if (auto slice = mlir::dyn_cast<nn::SliceOp>(op)) {
    result = e.slice(x.val, after(lead, 0, slice.getStarts()), shape,
                     after(lead, 1, slice.getStrides()));
  } else {
    auto pad = mlir::cast<nn::PadOp>(op);
    const Batched value = get(pad.getValue());
    if (!value.axes.empty()) {
      e.error(
          "shard_map: padding with a value that differs between devices is not "
          "supported");
      return false;
    }
    result = e.pad(x.val, value.val, after(lead, 0, pad.getLow()),
                   after(lead, 0, pad.getHigh()), pad.getMode());
  }
  setResult(op, {result, x.axes});
  return true;
}

}  // namespace partita::stablehlo
