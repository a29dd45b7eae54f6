// Reductions and windows in a manual computation's body.
#include "frontends/stablehlo/manual/batch.h"

namespace partita::stablehlo {
namespace {

Shape withDefault(int64_t lead, int64_t value, Dims entries) {
  Shape result(lead, value);
  result.append(entries.begin(), entries.end());
  return result;
}

}  // namespace

bool Batcher::buildReduction(mlir::Operation& op) {
  if (auto reduce = mlir::dyn_cast<nn::ReduceOp>(op)) {
    const Batched x = get(reduce.getInput());
    Shape dims;
    for (int64_t dim : reduce.getDims()) dims.push_back(x.lead() + dim);
    setResult(op, {e.reduce(reduce.getKind(), x.val, dims, /*keep_dims=*/false),
                   x.axes});
    return true;
  }
  auto window = mlir::dyn_cast<nn::ReduceWindowOp>(op);
  if (!window) return false;
  const Batched x = get(window.getInput());
  const int64_t lead = x.lead();
  setResult(op, {e.reduceWindow(window.getKind(), x.val,
                                withDefault(lead, 1, window.getWindow()),
                                withDefault(lead, 1, window.getStrides()),
                                withDefault(lead, 1, window.getDilations()),
                                withDefault(lead, 0, window.getLow()),
                                withDefault(lead, 0, window.getHigh())),
                 x.axes});
  return true;
}

}  // namespace partita::stablehlo
