// Handlers: one function per operator or family of operators. Each builds the
// operations of one node.
#ifndef PARTITA_FRONTENDS_ONNX_OPS_OPS_H_
#define PARTITA_FRONTENDS_ONNX_OPS_OPS_H_

#include "frontends/onnx/node_context.h"

namespace partita::onnx {

// activation.cc
LogicalResult importRelu(NodeContext& n);
LogicalResult importSigmoid(NodeContext& n);
LogicalResult importSwish(NodeContext& n);
LogicalResult importHardSigmoid(NodeContext& n);
LogicalResult importLeakyRelu(NodeContext& n);
LogicalResult importPRelu(NodeContext& n);
LogicalResult importElu(NodeContext& n);
LogicalResult importSoftplus(NodeContext& n);
LogicalResult importSoftsign(NodeContext& n);
LogicalResult importMish(NodeContext& n);
LogicalResult importThresholdedRelu(NodeContext& n);
LogicalResult importShrink(NodeContext& n);
LogicalResult importGelu(NodeContext& n);

// attention.cc
LogicalResult importAttention(NodeContext& n);
LogicalResult importRotaryEmbedding(NodeContext& n);

// cast.cc
LogicalResult importCast(NodeContext& n);
LogicalResult importCastLike(NodeContext& n);
LogicalResult importBitCast(NodeContext& n);
// Sets the node's result to `x`, converted.
LogicalResult castTo(NodeContext& n, Val x, ElementType to);

// constant.cc
LogicalResult importConstant(NodeContext& n);
LogicalResult importConstantOfShape(NodeContext& n);
LogicalResult importShape(NodeContext& n);
LogicalResult importSize(NodeContext& n);
LogicalResult importIdentity(NodeContext& n);
LogicalResult importRange(NodeContext& n);
LogicalResult importEyeLike(NodeContext& n);
LogicalResult importOneHot(NodeContext& n);
LogicalResult importDropout(NodeContext& n);
LogicalResult importIf(NodeContext& n);

// contraction.cc
LogicalResult importMatMul(NodeContext& n);
LogicalResult importGemm(NodeContext& n);
LogicalResult importEinsum(NodeContext& n);

// convolution.cc
// The convolution of `x` by `weight` with the node's attributes.
FailureOr<Val> convolution(NodeContext& n, Val x, Val weight);
LogicalResult importConv(NodeContext& n);
LogicalResult importConvTranspose(NodeContext& n);
LogicalResult importCol2Im(NodeContext& n);
LogicalResult importMaxPool(NodeContext& n);
LogicalResult importAveragePool(NodeContext& n);
LogicalResult importLpPool(NodeContext& n);
LogicalResult importGlobalPool(NodeContext& n);

// elementwise.cc
LogicalResult importUnary(NodeContext& n);
LogicalResult importNot(NodeContext& n);
LogicalResult importBinary(NodeContext& n);
LogicalResult importCompare(NodeContext& n);
LogicalResult importVariadic(NodeContext& n);
LogicalResult importPow(NodeContext& n);
LogicalResult importMod(NodeContext& n);
LogicalResult importBitShift(NodeContext& n);
LogicalResult importWhere(NodeContext& n);
LogicalResult importClip(NodeContext& n);
LogicalResult importIsNan(NodeContext& n);
LogicalResult importIsInf(NodeContext& n);

// experts.cc
LogicalResult importMoe(NodeContext& n);

// indexing.cc
LogicalResult importGather(NodeContext& n);
LogicalResult importGatherElements(NodeContext& n);
LogicalResult importScatterElements(NodeContext& n);
LogicalResult importGatherNd(NodeContext& n);
LogicalResult importScatterNd(NodeContext& n);
LogicalResult importCompress(NodeContext& n);
LogicalResult importNonZero(NodeContext& n);
LogicalResult importReverseSequence(NodeContext& n);
LogicalResult importTensorScatter(NodeContext& n);

// loss.cc
LogicalResult importNegativeLogLikelihood(NodeContext& n);
LogicalResult importSoftmaxCrossEntropy(NodeContext& n);

// movement.cc
LogicalResult importReshape(NodeContext& n);
LogicalResult importFlatten(NodeContext& n);
LogicalResult importSqueeze(NodeContext& n);
LogicalResult importUnsqueeze(NodeContext& n);
LogicalResult importTranspose(NodeContext& n);
LogicalResult importExpand(NodeContext& n);
LogicalResult importTile(NodeContext& n);
LogicalResult importConcat(NodeContext& n);
LogicalResult importSplit(NodeContext& n);
LogicalResult importSlice(NodeContext& n);
LogicalResult importPad(NodeContext& n);
LogicalResult importTrilu(NodeContext& n);
LogicalResult importDepthToSpace(NodeContext& n);
LogicalResult importCenterCropPad(NodeContext& n);

// normalisation.cc
LogicalResult importSoftmax(NodeContext& n);
LogicalResult importLayerNormalization(NodeContext& n);
LogicalResult importRmsNormalization(NodeContext& n);
LogicalResult importBatchNormalization(NodeContext& n);
LogicalResult importInstanceNormalization(NodeContext& n);
LogicalResult importGroupNormalization(NodeContext& n);
LogicalResult importLpNormalization(NodeContext& n);
LogicalResult importMeanVarianceNormalization(NodeContext& n);
LogicalResult importLrn(NodeContext& n);

// packed_weights.cc
LogicalResult importMatMulNBits(NodeContext& n);

// quantisation.cc
// Rounds to the nearest integer of type `to` after adding the zero point, if
// there is one.
Val toInteger(Emitter& e, Val real, Val zero_point, ElementType to);
LogicalResult importDynamicQuantizeLinear(NodeContext& n);
LogicalResult importQuantizeLinear(NodeContext& n);
LogicalResult importDequantizeLinear(NodeContext& n);

// quantised_products.cc
LogicalResult importConvInteger(NodeContext& n);
LogicalResult importMatMulInteger(NodeContext& n);
LogicalResult importQLinearConv(NodeContext& n);
LogicalResult importQLinearMatMul(NodeContext& n);

// reduction.cc
LogicalResult importReduce(NodeContext& n);
LogicalResult importArgMax(NodeContext& n);
LogicalResult importHardmax(NodeContext& n);
LogicalResult importTopK(NodeContext& n);
LogicalResult importCumulative(NodeContext& n);

// resize.cc
LogicalResult importResize(NodeContext& n);

// sequence.cc
LogicalResult importSplitToSequence(NodeContext& n);
LogicalResult importSequenceConstruct(NodeContext& n);
LogicalResult importSequenceAt(NodeContext& n);
LogicalResult importSequenceLength(NodeContext& n);
LogicalResult importConcatFromSequence(NodeContext& n);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_OPS_OPS_H_
