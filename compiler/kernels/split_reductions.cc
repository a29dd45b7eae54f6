// Splits reductions with too few results to fill a GPU into several steps; see
// passes.td.
#include "compiler/core/reduction_steps.h"
#include "compiler/kernels/passes.h"
#include "dialects/nn/math_builder.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

#define GEN_PASS_DEF_SPLITREDUCTIONSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::RankedTensorType;

std::vector<core::ReductionStep> stepsOf(RankedTensorType type,
                                         ArrayRef<int64_t> dims) {
  if (type.getNumElements() == 0) return {};
  return core::ReductionSteps(type.getShape().vec(), dims.vec());
}

// Writes the reduction in several steps if that is faster. Returns the number
// of added steps.
int64_t split(nn::ReduceOp op) {
  const auto type = llvm::cast<RankedTensorType>(op.getInput().getType());
  const std::vector<core::ReductionStep> steps = stepsOf(type, op.getDims());
  if (steps.size() < 2) return 0;
  mlir::OpBuilder builder(op);
  nn::MathBuilder b(builder, op.getLoc());
  // All steps sum 16-bit floats in f32.
  const bool is_float = llvm::isa<mlir::FloatType>(type.getElementType());
  mlir::Value value = is_float ? b.widen(op.getInput()) : op.getInput();
  for (const core::ReductionStep& step : steps)
    value = nn::ReduceOp::create(builder, op.getLoc(), op.getKind(),
                                 b.reshape(value, step.shape), step.dims);
  op.replaceAllUsesWith(is_float ? b.narrow(value, op.getType()) : value);
  op.erase();
  return static_cast<int64_t>(steps.size()) - 1;
}

bool hasLongStatistics(nn::BatchNormOp op) {
  const auto type = llvm::cast<RankedTensorType>(op.getInput().getType());
  SmallVector<int64_t> others;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (dim != static_cast<int64_t>(op.getFeature())) others.push_back(dim);
  return stepsOf(type, others).size() > 1;
}

class SplitReductions : public impl::SplitReductionsPassBase<SplitReductions> {
 public:
  void runOnOperation() override {
    // Batch statistics may be such reductions.
    SmallVector<nn::BatchNormOp> norms;
    getOperation().walk([&](nn::BatchNormOp op) {
      if (op.getTraining() && hasLongStatistics(op)) norms.push_back(op);
    });
    for (nn::BatchNormOp op : norms) {
      mlir::OpBuilder builder(op);
      auto results = op.decompose(builder);
      if (mlir::failed(results)) return signalPassFailure();
      op->replaceAllUsesWith(*results);
      op->erase();
    }
    SmallVector<nn::ReduceOp> reductions;
    getOperation().walk([&](nn::ReduceOp op) { reductions.push_back(op); });
    for (nn::ReduceOp op : reductions) steps += split(op);
  }
};

}  // namespace
}  // namespace partita::kernels
