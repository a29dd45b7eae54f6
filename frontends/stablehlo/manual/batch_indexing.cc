// Gathers and scatters in a manual computation's body: leading dimensions are
// further batch dimensions.
#include "frontends/stablehlo/manual/batch.h"

namespace partita::stablehlo {
namespace {

Shape shifted(int64_t by, Dims dims) {
  Shape result;
  for (int64_t dim : dims) result.push_back(dim + by);
  return result;
}

}  // namespace

bool Batcher::buildIndexing(mlir::Operation& op) {
  if (auto gather = mlir::dyn_cast<nn::GatherOp>(op)) {
    Batched operands[] = {get(gather.getInput()), get(gather.getIndices())};
    const int64_t batch = static_cast<int64_t>(gather.getBatchDims());
    // Other indices into the same tensor need no copies of it.
    const bool is_shared = operands[0].axes.empty() && batch == 0;
    const Shape all = is_shared ? operands[1].axes : align(operands);
    const int64_t lead = is_shared ? 0 : static_cast<int64_t>(all.size());
    setResult(op, {e.gather(operands[0].val, operands[1].val,
                            shifted(lead, gather.getAxes()), batch + lead),
                   all});
    return true;
  }
  auto scatter = mlir::dyn_cast<nn::ScatterOp>(op);
  if (!scatter) return false;
  Batched operands[] = {get(scatter.getInput()), get(scatter.getIndices()),
                        get(scatter.getUpdates())};
  const Shape all = align(operands);
  const int64_t lead = static_cast<int64_t>(all.size());
  setResult(op, {e.scatter(operands[0].val, operands[1].val, operands[2].val,
                           shifted(lead, scatter.getAxes()), scatter.getKind(),
                           static_cast<int64_t>(scatter.getBatchDims()) + lead),
                 all});
  return true;
}

}  // namespace partita::stablehlo
