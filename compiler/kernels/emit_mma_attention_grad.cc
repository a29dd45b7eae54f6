// Which parts attention's gradient on tensor cores has.
#include "compiler/kernels/emit_mma_attention_grad.h"

#include "compiler/kernels/emit_mma_attention.h"
#include "compiler/kernels/emit_mma_grad_parts.h"

namespace partita::kernels {

using namespace mlir;

bool fitsMma(func::FuncOp kernel, nn::AttentionGradOp op) {
  // Of f32, keys and values of larger heads are more than a block's memory.
  const int64_t largest =
      std::max(shapeOf(op.getQ())[3], shapeOf(op.getV())[3]);
  return fitsMma(kernel, op, op.getQ(), op.getV()) &&
         (bytesOf(elementOf(op.getQ())) == 2 || largest <= 64);
}

SmallVector<GradPart> gradPartsOf(nn::AttentionGradOp op,
                                  ArrayRef<Output> outputs) {
  const auto wants = [&](unsigned result) {
    return llvm::any_of(outputs, [&](const Output& output) {
      return result < op->getNumResults() &&
             output.value == op->getResult(result);
    });
  };
  SmallVector<GradPart> parts = {GradPart::rows};
  if (wants(1) || wants(2)) parts.push_back(GradPart::keys);
  if (wants(3)) parts.push_back(GradPart::bias);
  return parts;
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
  llvm_unreachable("a part that there is not");
}

}  // namespace partita::kernels
