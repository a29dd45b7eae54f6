// The table of operators, by family.
#include "frontends/torch/handlers.h"

#include "frontends/torch/ops/ops.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::torch {
namespace {

constexpr char kAny[] = "*";

// Operator, overloads, handler; for views also what writes to them.
constexpr Handler kHandlers[] = {
    // Arithmetic.
    {"aten.abs", kAny, importUnary},
    {"aten.add", "Tensor,Scalar", importAdd},
    {"aten.addcdiv", kAny, importAddProduct},
    {"aten.addcmul", kAny, importAddProduct},
    {"aten.atan", kAny, importUnary},
    {"aten.bitwise_and", "Tensor,Scalar", importBinary},
    {"aten.__and__", "Tensor,Scalar", importBinary},
    {"aten.bitwise_not", kAny, importNot},
    {"aten.bitwise_or", "Tensor,Scalar", importBinary},
    {"aten.__or__", "Tensor,Scalar", importBinary},
    {"aten.bitwise_xor", "Tensor,Scalar", importBinary},
    {"aten.__xor__", "Tensor,Scalar", importBinary},
    {"aten.ceil", kAny, importUnary},
    {"aten.clamp", kAny, importClamp},
    {"aten.clamp_max", kAny, importClamp},
    {"aten.clamp_min", kAny, importClamp},
    {"aten.cos", kAny, importUnary},
    {"aten.cosh", kAny, importUnary},
    {"aten.div", "Tensor,Scalar,Tensor_mode,Scalar_mode", importDiv},
    {"aten.divide", "Tensor,Scalar,Tensor_mode,Scalar_mode", importDiv},
    {"aten.true_divide", "Tensor,Scalar", importDiv},
    {"aten.erf", kAny, importUnary},
    {"aten.exp", kAny, importUnary},
    {"aten.expm1", kAny, importUnary},
    {"aten.floor", kAny, importUnary},
    {"aten.floor_divide", "default,Scalar", importFloorDivide},
    {"aten.fmod", "Tensor,Scalar", importRemainder},
    {"aten.isinf", kAny, importIsNan},
    {"aten.isnan", kAny, importIsNan},
    {"aten.log", kAny, importUnary},
    {"aten.log1p", kAny, importUnary},
    {"aten.log2", kAny, importUnary},
    {"aten.maximum", kAny, importBinary},
    {"aten.minimum", kAny, importBinary},
    {"aten.mul", "Tensor,Scalar", importBinary},
    {"aten.multiply", "Tensor,Scalar", importBinary},
    {"aten.neg", kAny, importUnary},
    {"aten.pow", "Tensor_Tensor,Tensor_Scalar,Scalar", importPow},
    {"aten.reciprocal", kAny, importUnary},
    {"aten.remainder", "Tensor,Scalar", importRemainder},
    {"aten.round", "default", importUnary},
    {"aten.rsqrt", kAny, importUnary},
    {"aten.rsub", "Tensor,Scalar", importAdd},
    {"aten.sign", kAny, importUnary},
    {"aten.sin", kAny, importUnary},
    {"aten.sinh", kAny, importUnary},
    {"aten.sqrt", kAny, importUnary},
    {"aten.square", kAny, importUnary},
    {"aten.sub", "Tensor,Scalar", importAdd},
    {"aten.tan", kAny, importUnary},
    {"aten.tanh", kAny, importUnary},
    {"aten.trunc", kAny, importUnary},

    // Comparison and logic.
    {"aten.eq", "Tensor,Scalar", importCompare},
    {"aten.ge", "Tensor,Scalar", importCompare},
    {"aten.gt", "Tensor,Scalar", importCompare},
    {"aten.le", "Tensor,Scalar", importCompare},
    {"aten.logical_and", kAny, importLogical},
    {"aten.logical_not", kAny, importNot},
    {"aten.logical_or", kAny, importLogical},
    {"aten.logical_xor", kAny, importLogical},
    {"aten.lt", "Tensor,Scalar", importCompare},
    {"aten.masked_fill", kAny, importMaskedFill},
    {"aten.ne", "Tensor,Scalar", importCompare},
    {"aten.where", "self,ScalarSelf,ScalarOther,Scalar", importWhere},

    // Activation functions.
    {"aten.dropout", kAny, importDropout},
    {"aten.elu", kAny, importElu},
    {"aten.gelu", kAny, importGelu},
    {"aten.hardsigmoid", kAny, importHardSigmoid},
    {"aten.hardswish", kAny, importHardSigmoid},
    {"aten.hardtanh", kAny, importHardTanh},
    {"aten.leaky_relu", kAny, importLeakyRelu},
    {"aten.log_softmax", "int", importSoftmax},
    {"aten._log_softmax", kAny, importSoftmax},
    {"aten.mish", kAny, importMish},
    {"aten.relu", kAny, importRelu},
    {"aten.relu6", kAny, importRelu},
    {"aten.sigmoid", kAny, importSigmoid},
    {"aten.silu", kAny, importSilu},
    {"aten.softmax", "int", importSoftmax},
    {"aten._softmax", kAny, importSoftmax},
    {"aten.softplus", kAny, importSoftplus},

    // Contractions.
    {"aten.addmm", kAny, importAddmm},
    {"aten.baddbmm", kAny, importAddmm},
    {"aten.bmm", kAny, importMatmul},
    {"aten.einsum", kAny, importEinsum},
    {"aten.linear", kAny, importLinear},
    {"aten._grouped_mm", kAny, importGroupedMatmul},
    {"aten.matmul", kAny, importMatmul},
    {"aten.mm", kAny, importMatmul},
    {"aten.scaled_dot_product_attention", kAny, importAttention},
    {"transformers.grouped_mm_fallback", kAny, importGroupedMatmul},

    // Convolutions and pooling.
    {"aten.adaptive_avg_pool1d", kAny, importAdaptivePool},
    {"aten.adaptive_avg_pool2d", kAny, importAdaptivePool},
    {"aten.avg_pool1d", kAny, importAvgPool},
    {"aten.avg_pool2d", kAny, importAvgPool},
    {"aten.avg_pool3d", kAny, importAvgPool},
    {"aten.col2im", kAny, importCol2Im},
    {"aten.conv1d", "default,padding", importConv},
    {"aten.conv2d", "default,padding", importConv},
    {"aten.conv3d", "default,padding", importConv},
    {"aten.conv_transpose1d", kAny, importConvTranspose},
    {"aten.conv_transpose2d", kAny, importConvTranspose},
    {"aten.convolution", kAny, importConv},
    {"aten.im2col", kAny, importIm2Col},
    {"aten.max_pool1d", kAny, importMaxPool},
    {"aten.max_pool2d", kAny, importMaxPool},
    {"aten.max_pool3d", kAny, importMaxPool},

    // Normalisations.
    {"aten.batch_norm", kAny, importBatchNorm},
    {"aten.group_norm", kAny, importGroupNorm},
    {"aten.layer_norm", kAny, importLayerNorm},
    {"aten.linalg_vector_norm", kAny, importVectorNorm},
    {"aten.rms_norm", kAny, importRmsNorm},

    // Reductions.
    {"aten.all", "default,dim,dims", importReduce},
    {"aten.amax", kAny, importReduce},
    {"aten.amin", kAny, importReduce},
    {"aten.any", "default,dim,dims", importReduce},
    {"aten.argmax", kAny, importArgMax},
    {"aten.argmin", kAny, importArgMax},
    {"aten.cumprod", "default", importCumulative},
    {"aten.cumsum", "default", importCumulative},
    {"aten.diff", kAny, importDiff},
    {"aten.histc", kAny, importHistogram},
    {"aten.logsumexp", "default", importReduce},
    {"aten.max", "default,dim,other", importMinMax},
    {"aten.mean", "default,dim", importReduce},
    {"aten.min", "default,dim,other", importMinMax},
    {"aten.prod", "default,dim_int", importReduce},
    {"aten.sort", "default,stable", importTopK},
    {"aten.std", "default,dim,correction", importVariance},
    {"aten.sum", "default,dim_IntList", importReduce},
    {"aten.topk", kAny, importTopK},
    {"aten.var", "default,dim,correction", importVariance},

    // Indexing.
    {"aten.embedding", kAny, importEmbedding},
    {"aten.gather", "default", importGather},
    {"aten.index", "Tensor", importIndex},
    {"aten.index_put", "default", importIndexPut},
    {"aten.index_select", "default", importIndexSelect},
    {"aten.one_hot", kAny, importOneHot},
    {"aten.scatter", "src,value", importScatter},
    {"aten.scatter_add", "default", importScatter},

    // Losses.
    {"aten.cross_entropy_loss", kAny, importCrossEntropy},
    {"aten.l1_loss", kAny, importMse},
    {"aten.mse_loss", kAny, importMse},

    // Tensors from numbers.
    {"aten.arange", "default,start,start_step", importArange},
    {"aten.bernoulli", "default,p,float", importRandom},
    {"aten.empty", "memory_format", importFull},
    {"aten.empty_like", kAny, importFillLike},
    {"aten.eye", "default,m", importEye},
    {"aten.fill", kAny, importFillLike},
    {"aten.full", "default", importFull},
    {"aten.full_like", kAny, importFillLike},
    {"aten.linspace", "default", importLinspace},
    {"aten.new_empty", kAny, importFull},
    {"aten.new_full", kAny, importFull},
    {"aten.new_ones", kAny, importFull},
    {"aten.new_zeros", kAny, importFull},
    {"aten.ones", "default", importFull},
    {"aten.ones_like", kAny, importFillLike},
    {"aten.rand", "default", importRandom},
    {"aten.rand_like", "default", importRandom},
    {"aten.randn", "default", importRandom},
    {"aten.randn_like", "default", importRandom},
    {"aten.scalar_tensor", kAny, importScalarTensor},
    {"aten.zero", kAny, importFillLike},
    {"aten.zeros", "default", importFull},
    {"aten.zeros_like", kAny, importFillLike},

    // Movement.
    {"aten.alias", kAny, importIdentity, true, writeIdentity},
    {"aten.cat", "default", importCat},
    {"aten.chunk", kAny, importSplit, true},
    {"aten.clone", kAny, importIdentity},
    {"aten.constant_pad_nd", kAny, importPad},
    {"aten.contiguous", kAny, importIdentity},
    {"aten.copy", kAny, importCopy},
    {"aten.detach", kAny, importIdentity, true, writeIdentity},
    {"aten.detach_copy", kAny, importIdentity},
    {"aten.expand", kAny, importExpand, true},
    {"aten.expand_as", kAny, importViewLike, true},
    {"aten.flatten", "using_ints", importFlatten, true, writeReshaped},
    {"aten.flip", kAny, importFlip},
    {"aten.lift_fresh_copy", kAny, importIdentity},
    {"aten.narrow", "default", importSlice, true, writeSlice},
    {"aten.numpy_T", kAny, importTranspose, true, writeTranspose},
    {"aten.pad", kAny, importPad},
    {"aten.permute", kAny, importPermute, true, writePermute},
    {"aten.repeat", kAny, importRepeat},
    {"aten.repeat_interleave", "self_int", importRepeatInterleave},
    {"aten.reshape", kAny, importView, true, writeReshaped},
    {"aten.reshape_as", kAny, importViewLike, true, writeReshaped},
    {"aten.roll", kAny, importRoll},
    {"aten.select", "int", importSelect, true, writeSelect},
    {"aten.slice", "Tensor", importSlice, true, writeSlice},
    {"aten.split", "Tensor,sizes", importSplit, true},
    {"aten.split_with_sizes", kAny, importSplit, true},
    {"aten.squeeze", "default,dim,dims", importSqueeze, true, writeReshaped},
    {"aten.stack", kAny, importStack},
    {"aten.t", kAny, importTranspose, true, writeTranspose},
    {"aten.tile", kAny, importRepeat},
    {"aten.to", "dtype,device,dtype_layout,other", importTo},
    {"aten._to_copy", kAny, importTo},
    {"aten.transpose", "int", importTranspose, true, writeTranspose},
    {"aten.tril", kAny, importTriangle},
    {"aten.triu", kAny, importTriangle},
    {"aten.type_as", kAny, importTo},
    {"aten.unbind", "int", importUnbind, true},
    {"aten.unflatten", "int", importUnflatten, true, writeReshaped},
    {"aten.unsqueeze", kAny, importUnsqueeze, true, writeReshaped},
    {"aten._unsafe_view", kAny, importView},
    {"aten.view", "default", importView, true, writeReshaped},
    {"aten.view_as", kAny, importViewLike, true, writeReshaped},

    // Numbers and checks of shapes.
    {"aten._assert_scalar", kAny, importNothing},
    {"aten._assert_tensor_metadata", kAny, importNothing},
    {"aten.sym_constrain_range_for_size", kAny, importNothing},
    {"aten.sym_numel", kAny, importSymSize},
    {"aten.sym_size", "int", importSymSize},
    {"math.trunc", kAny, importSymArithmetic},
    {"_operator.add", kAny, importSymArithmetic},
    {"_operator.and_", kAny, importSymArithmetic},
    {"_operator.eq", kAny, importSymArithmetic},
    {"_operator.floordiv", kAny, importSymArithmetic},
    {"_operator.ge", kAny, importSymArithmetic},
    {"_operator.gt", kAny, importSymArithmetic},
    {"_operator.le", kAny, importSymArithmetic},
    {"_operator.lt", kAny, importSymArithmetic},
    {"_operator.mod", kAny, importSymArithmetic},
    {"_operator.mul", kAny, importSymArithmetic},
    {"_operator.ne", kAny, importSymArithmetic},
    {"_operator.neg", kAny, importSymArithmetic},
    {"_operator.or_", kAny, importSymArithmetic},
    {"_operator.sub", kAny, importSymArithmetic},
    {"torch.sym_int", kAny, importSymArithmetic},
    {"torch.sym_max", kAny, importSymArithmetic},
    {"torch.sym_min", kAny, importSymArithmetic},
    {"torch.sym_not", kAny, importSymArithmetic},
};

bool hasOverload(const Handler& handler, llvm::StringRef overload) {
  if (handler.overloads == kAny) return true;
  llvm::SmallVector<llvm::StringRef> listed;
  handler.overloads.split(listed, ',');
  return llvm::is_contained(listed, overload);
}

}  // namespace

Target parseTarget(llvm::StringRef target) {
  Target result;
  if (!target.consume_front("torch.ops.")) {
    result.op = target.str();
    return result;
  }
  // "aten.add.Tensor": the overload is the third word.
  auto [space, rest] = target.split('.');
  auto [name, overload] = rest.split('.');
  result.in_place = name.ends_with("_") && !name.ends_with("__");
  if (result.in_place) name = name.drop_back();
  result.op = (space + "." + name).str();
  result.overload = overload.str();
  return result;
}

const Handler* findHandler(const Target& target) {
  for (const Handler& handler : kHandlers)
    if (handler.op == target.op && hasOverload(handler, target.overload))
      return &handler;
  return nullptr;
}

}  // namespace partita::torch
