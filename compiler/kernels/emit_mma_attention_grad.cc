// Selects the parts of attention's gradient on tensor cores.
#include "compiler/kernels/emit_mma_attention_grad.h"

#include "compiler/core/attention_work.h"
#include "compiler/kernels/emit_mma_attention.h"
#include "compiler/kernels/emit_mma_grad_parts.h"

namespace partita::kernels {

using namespace mlir;

bool fitsMma(func::FuncOp kernel, nn::AttentionGradOp op) {
  // For f32, keys and values of larger heads exceed a block's shared memory.
  return fitsMma(kernel, op, op.getQ(), op.getV()) &&
         core::FitsTensorCores(shapeOf(op.getQ())[3], shapeOf(op.getV())[3],
                               bytesOf(elementOf(op.getQ())),
                               /*gradient=*/true);
}

namespace {

bool wants(nn::AttentionGradOp op, ArrayRef<Output> outputs, unsigned result) {
  return llvm::any_of(outputs, [&](const Output& output) {
    return result < op->getNumResults() &&
           output.value == op->getResult(result);
  });
}

}  // namespace

SmallVector<GradPart> gradPartsOf(nn::AttentionGradOp op,
                                  ArrayRef<Output> outputs) {
  SmallVector<GradPart> parts = {GradPart::statistics};
  if (wants(op, outputs, 0) || wants(op, outputs, 1) || wants(op, outputs, 2))
    parts.push_back(GradPart::keys);
  if (wants(op, outputs, 0)) parts.push_back(GradPart::queries);
  if (wants(op, outputs, 3)) parts.push_back(GradPart::bias);
  return parts;
}

GradWork workOf(nn::AttentionGradOp op, GradPart part, ArrayRef<Output> outputs,
                bool warpgroups) {
  GradWork work;
  const auto read = [&](ValueRange values) {
    for (Value value : values)
      if (value) work.values.push_back(value);
  };
  // A result that is not needed saves its product.
  const auto give = [&](unsigned result, int64_t& products) {
    if (wants(op, outputs, result))
      work.values.push_back(op->getResult(result));
    else
      --products;
  };
  const GradMemory memory(op, wants(op, outputs, 0), warpgroups);
  const int64_t statistics = 2 * memory.statistics,
                sums = memory.floats - memory.sums;
  switch (part) {
    case GradPart::statistics:
      read({op.getResult(), op.getResultGrad()});
      work.shared_floats = statistics;
      if (op.getLse()) {
        read({op.getLse()});
        break;
      }
      read({op.getQ(), op.getK(), op.getBias()});
      work.products = core::kSumsOfWeights;
      break;
    case GradPart::keys:
      work.products = core::kAttentionGradient;
      read({op.getQ(), op.getK(), op.getV(), op.getResultGrad(), op.getBias()});
      // The sums of queries are in cache while blocks of keys add to them.
      work.shared_floats = statistics;
      if (wants(op, outputs, 0))
        work.shared_floats += sums;
      else
        --work.products.of_keys;
      give(1, work.products.of_keys);
      give(2, work.products.of_values);
      break;
    case GradPart::queries:
      read({op.getQGrad()});
      work.shared_floats = sums;
      break;
    case GradPart::bias:
      work.products = core::kBiasGradient;
      read({op.getQ(), op.getK(), op.getV(), op.getResultGrad(), op.getBias(),
            op.getBiasGrad()});
      work.shared_floats = statistics;
      break;
  }
  return work;
}

int64_t sharedFloats(nn::AttentionGradOp op, ArrayRef<Output> outputs,
                     bool warpgroups) {
  return GradMemory(op, wants(op, outputs, 0), warpgroups).floats;
}

FailureOr<int64_t> emitMmaAttentionGrad(Emitter& emitter,
                                        nn::AttentionGradOp op, GradPart part,
                                        ArrayRef<Output> outputs, Value memory,
                                        Value begin, Value end,
                                        bool warpgroups) {
  const GradKernel kernel = {op, outputs, memory, warpgroups};
  switch (part) {
    case GradPart::statistics:
      return emitMmaGradStatistics(emitter, kernel, begin, end);
    case GradPart::keys:
      return warpgroups ? emitGroupGradKeys(emitter, kernel, begin, end)
                        : emitMmaGradKeys(emitter, kernel, begin, end);
    case GradPart::queries:
      return emitMmaGradQueries(emitter, kernel, begin, end);
    case GradPart::bias:
      return emitMmaGradBias(emitter, kernel, begin, end);
  }
  llvm_unreachable("unknown part of the gradient");
}

}  // namespace partita::kernels
