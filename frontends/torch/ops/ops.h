// The handlers, by file. One function builds one operator, or several that
// differ in little; NodeContext::op tells them apart.
#ifndef PARTITA_FRONTENDS_TORCH_OPS_OPS_H_
#define PARTITA_FRONTENDS_TORCH_OPS_OPS_H_

#include "frontends/torch/node_context.h"

namespace partita::torch {

// activation.cc
Val importRelu(NodeContext& n);
Val importGelu(NodeContext& n);
Val importSilu(NodeContext& n);
Val importSigmoid(NodeContext& n);
Val importHardSigmoid(NodeContext& n);
Val importHardTanh(NodeContext& n);
Val importLeakyRelu(NodeContext& n);
Val importElu(NodeContext& n);
Val importSoftplus(NodeContext& n);
Val importMish(NodeContext& n);
Val importSoftmax(NodeContext& n);
Val importDropout(NodeContext& n);

// contraction.cc
Val importLinear(NodeContext& n);
Val importMatmul(NodeContext& n);
Val importGroupedMatmul(NodeContext& n);
Val importAddmm(NodeContext& n);
Val importAttention(NodeContext& n);
Val importEinsum(NodeContext& n);

// convolution.cc
Val importConv(NodeContext& n);
Val importConvTranspose(NodeContext& n);
Val importMaxPool(NodeContext& n);
Val importAvgPool(NodeContext& n);
Val importIm2Col(NodeContext& n);
Val importCol2Im(NodeContext& n);
Val importAdaptivePool(NodeContext& n);

// creation.cc
Val importArange(NodeContext& n);
Val importFull(NodeContext& n);
Val importFillLike(NodeContext& n);
Val importScalarTensor(NodeContext& n);
Val importEye(NodeContext& n);
Val importLinspace(NodeContext& n);
Val importRandom(NodeContext& n);

// elementwise.cc
Val importUnary(NodeContext& n);
Val importBinary(NodeContext& n);
Val importAdd(NodeContext& n);
Val importAddProduct(NodeContext& n);
Val importDiv(NodeContext& n);
Val importFloorDivide(NodeContext& n);
Val importRemainder(NodeContext& n);
Val importPow(NodeContext& n);
Val importCompare(NodeContext& n);
Val importLogical(NodeContext& n);
Val importNot(NodeContext& n);
Val importWhere(NodeContext& n);
Val importMaskedFill(NodeContext& n);
Val importClamp(NodeContext& n);
Val importIsNan(NodeContext& n);

// indexing.cc
Val importEmbedding(NodeContext& n);
Val importIndex(NodeContext& n);
Val importIndexPut(NodeContext& n);
Val importIndexSelect(NodeContext& n);
Val importGather(NodeContext& n);
Val importScatter(NodeContext& n);
Val importOneHot(NodeContext& n);

// loss.cc
Val importCrossEntropy(NodeContext& n);
Val importMse(NodeContext& n);

// movement.cc
Val importIdentity(NodeContext& n);
Val writeIdentity(NodeContext& n, Val base, Val value);
Val importView(NodeContext& n);
Val importViewLike(NodeContext& n);
Val importUnflatten(NodeContext& n);
Val importFlatten(NodeContext& n);
Val importSqueeze(NodeContext& n);
Val importUnsqueeze(NodeContext& n);
Val writeReshaped(NodeContext& n, Val base, Val value);
Val importTranspose(NodeContext& n);
Val writeTranspose(NodeContext& n, Val base, Val value);
Val importPermute(NodeContext& n);
Val writePermute(NodeContext& n, Val base, Val value);
Val importExpand(NodeContext& n);
Val importRepeat(NodeContext& n);
Val importRepeatInterleave(NodeContext& n);
Val importCat(NodeContext& n);
Val importStack(NodeContext& n);
Val importPad(NodeContext& n);
Val importRoll(NodeContext& n);
Val importFlip(NodeContext& n);
Val importTriangle(NodeContext& n);
Val importTo(NodeContext& n);
Val importCopy(NodeContext& n);

// normalisation.cc
Val importLayerNorm(NodeContext& n);
Val importRmsNorm(NodeContext& n);
Val importGroupNorm(NodeContext& n);
Val importBatchNorm(NodeContext& n);
Val importVectorNorm(NodeContext& n);

// reduction.cc
Val importReduce(NodeContext& n);
Val importMinMax(NodeContext& n);
Val importVariance(NodeContext& n);
Val importArgMax(NodeContext& n);
Val importTopK(NodeContext& n);
Val importCumulative(NodeContext& n);
Val importDiff(NodeContext& n);
Val importHistogram(NodeContext& n);

// slicing.cc
Val importSlice(NodeContext& n);
Val writeSlice(NodeContext& n, Val base, Val value);
Val importSelect(NodeContext& n);
Val writeSelect(NodeContext& n, Val base, Val value);
Val importSplit(NodeContext& n);
Val importUnbind(NodeContext& n);

// symbolic.cc: numbers, which are known when the model is imported.
Val importSymSize(NodeContext& n);
Val importSymArithmetic(NodeContext& n);
Val importNothing(NodeContext& n);

}  // namespace partita::torch

#endif  // PARTITA_FRONTENDS_TORCH_OPS_OPS_H_
