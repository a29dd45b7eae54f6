// The handlers, by file. One function builds one operation, or several that
// differ in little; OpContext::name tells them apart.
#ifndef PARTITA_FRONTENDS_STABLEHLO_OPS_OPS_H_
#define PARTITA_FRONTENDS_STABLEHLO_OPS_OPS_H_

#include <optional>

#include "frontends/stablehlo/op_context.h"

namespace partita::stablehlo {

// elementwise.cc
Val importUnary(OpContext& n);
Val importRounding(OpContext& n);
Val importNot(OpContext& n);
Val importIsFinite(OpContext& n);
Val importBinary(OpContext& n);
Val importPower(OpContext& n);
Val importShift(OpContext& n);
Val importCompare(OpContext& n);
Val importSelect(OpContext& n);
Val importClamp(OpContext& n);

// conversion.cc
Val importConstant(OpContext& n);
Val importConvert(OpContext& n);
Val importBitcast(OpContext& n);
Val importReducePrecision(OpContext& n);

// movement.cc
Val importBroadcast(OpContext& n);
Val importReshape(OpContext& n);
Val importTranspose(OpContext& n);
Val importSlice(OpContext& n);
Val importPad(OpContext& n);
Val importConcatenate(OpContext& n);
Val importReverse(OpContext& n);
Val importIota(OpContext& n);

// dynamic.cc
Val importDimensionSize(OpContext& n);
Val importRealDynamicSlice(OpContext& n);
Val importDynamicPad(OpContext& n);

// True for padding that sums of a few cannot overflow with.
inline bool isBelow31Bits(int64_t size) {
  constexpr int64_t kMost = int64_t{1} << 31;
  return -kMost < size && size < kMost;
}

// contraction.cc
Val importDotGeneral(OpContext& n);
// The composite chlo.ragged_dot of rows [R, K], a matrix per group, and sizes
// of the groups. Null without an error for its other forms.
Val importRaggedDot(OpContext& n);
Val importConvolution(OpContext& n);
Val importEinsum(OpContext& n);

// reduction.cc and reduce_window.cc
Val importReduce(OpContext& n);
Val importReduceWindow(OpContext& n);
Val importMap(OpContext& n);

// The kind that a region's only operation gives, for operands like `x`.
// Booleans are reduced as integers 0 and 1.
std::optional<nn::ReduceKind> reduceKindOf(llvm::StringRef operation, Val x);

class ScalarFunction;
// Operands 0..k-1 are reduced; k..2k-1 are their initial values. False after an
// error.
bool takeReduced(OpContext& n, Values& inputs, Values& inits);
// True if the constant `init` changes no result.
bool isNeutral(Emitter& e, nn::ReduceKind kind, Val init);
Val combine(Emitter& e, nn::ReduceKind kind, Val a, Val b);
// The function of region 0, and its results for two entries per operand.
ScalarFunction reducerOf(OpContext& n, const Values& inputs);
Values reduceTwo(const ScalarFunction& reducer, const Values& a,
                 const Values& b);

// select_and_scatter.cc
Val importSelectAndScatter(OpContext& n);

// batch_norm.cc
Val importBatchNorm(OpContext& n);
Val importBatchNormGrad(OpContext& n);

// order.cc
Val importSort(OpContext& n);
Val importTopK(OpContext& n);
// The position of the largest or smallest element: a reduction of two operands.
// Null, without an error, if it is something else.
bool importArgReduction(OpContext& n, int64_t dim);

// indexing.cc and scatter.cc
Val importGather(OpContext& n);
Val importScatter(OpContext& n);
Val importDynamicSlice(OpContext& n);
Val importDynamicUpdateSlice(OpContext& n);
Val importIndexSelect(OpContext& n);

// random.cc
Val importRngBitGenerator(OpContext& n);

// collectives.cc
Val importAllReduce(OpContext& n);
Val importAllGather(OpContext& n);
Val importReduceScatter(OpContext& n);
Val importAllToAll(OpContext& n);
Val importCollectivePermute(OpContext& n);
Val importPartitionId(OpContext& n);
Val importReplicaId(OpContext& n);
Val importManualComputation(OpContext& n);

// control.cc
Val importCall(OpContext& n);
Val importComposite(OpContext& n);
Val importWhile(OpContext& n);
Val importCase(OpContext& n);
Val importBarrier(OpContext& n);
Val importConstraint(OpContext& n);
Val importNamedComputation(OpContext& n);
Val importShardingGroup(OpContext& n);
Val importCustomCall(OpContext& n);

}  // namespace partita::stablehlo

#endif  // PARTITA_FRONTENDS_STABLEHLO_OPS_OPS_H_
