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
  SmallVector<GradPart> parts = {GradPart::rows};
  if (wants(op, outputs, 1) || wants(op, outputs, 2))
    parts.push_back(GradPart::keys);
  if (wants(op, outputs, 3)) parts.push_back(GradPart::bias);
  return parts;
}

GradWork workOf(nn::AttentionGradOp op, GradPart part,
                ArrayRef<Output> outputs) {
  GradWork work;
  work.values = {op.getQ(), op.getK(), op.getResultGrad()};
  if (op.getBias()) work.values.push_back(op.getBias());
  // A result that is not needed saves its product.
  const auto give = [&](unsigned result, int64_t& products, int64_t saved) {
    if (wants(op, outputs, result))
      work.values.push_back(op->getResult(result));
    else
      products -= saved;
  };
  switch (part) {
    case GradPart::rows:
      work.products = core::kQueriesGradient;
      work.values.push_back(op.getResult());
      if (!wants(op, outputs, 0)) {
        // Only the scores, once.
        work.products = {1, 0};
        return work;
      }
      give(0, work.products.of_keys, 1);
      break;
    case GradPart::keys:
      work.products = core::kKeysGradient;
      give(1, work.products.of_keys, 1);
      give(2, work.products.of_values, 1);
      break;
    case GradPart::bias:
      work.products = core::kBiasGradient;
      give(3, work.products.of_keys, 0);
      break;
  }
  work.values.push_back(op.getV());
  return work;
}

int64_t sharedFloats(nn::AttentionGradOp op) {
  const ArrayRef<int64_t> q = shapeOf(op.getQ());
  return 2 * q[0] * q[1] * llvm::alignTo(q[2], kGradRows);
}

FailureOr<int64_t> emitMmaAttentionGrad(Emitter& emitter,
                                        nn::AttentionGradOp op, GradPart part,
                                        ArrayRef<Output> outputs, Value memory,
                                        Value begin, Value end) {
  switch (part) {
    case GradPart::rows:
      return emitMmaGradRows(emitter, op, outputs, memory, begin, end);
    case GradPart::keys:
      return emitMmaGradKeys(emitter, op, outputs, memory, begin, end);
    case GradPart::bias:
      return emitMmaGradBias(emitter, op, outputs, memory, begin, end);
  }
  llvm_unreachable("unknown part of the gradient");
}

}  // namespace partita::kernels
