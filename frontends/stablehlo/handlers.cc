// The table of operations, by family.
#include "frontends/stablehlo/handlers.h"

#include "frontends/stablehlo/ops/ops.h"
#include "llvm/ADT/StringMap.h"

namespace partita::stablehlo {
namespace {

struct Entry {
  llvm::StringLiteral name;
  Handler import;
};

constexpr Entry kHandlers[] = {
    // Element by element.
    {"abs", importUnary},
    {"add", importBinary},
    {"and", importBinary},
    {"atan2", importBinary},
    {"cbrt", importUnary},
    {"ceil", importRounding},
    {"clamp", importClamp},
    {"compare", importCompare},
    {"cosine", importUnary},
    {"count_leading_zeros", importUnary},
    {"divide", importBinary},
    {"exponential", importUnary},
    {"exponential_minus_one", importUnary},
    {"floor", importRounding},
    {"is_finite", importIsFinite},
    {"log", importUnary},
    {"log_plus_one", importUnary},
    {"logistic", importUnary},
    {"maximum", importBinary},
    {"minimum", importBinary},
    {"multiply", importBinary},
    {"negate", importUnary},
    {"not", importNot},
    {"or", importBinary},
    {"popcnt", importUnary},
    {"power", importPower},
    {"remainder", importBinary},
    {"round_nearest_afz", importRounding},
    {"round_nearest_even", importRounding},
    {"rsqrt", importUnary},
    {"select", importSelect},
    {"shift_left", importShift},
    {"shift_right_arithmetic", importShift},
    {"shift_right_logical", importShift},
    {"sign", importUnary},
    {"sine", importUnary},
    {"sqrt", importUnary},
    {"subtract", importBinary},
    {"tan", importUnary},
    {"tanh", importUnary},
    {"xor", importBinary},

    // Constants and conversions.
    {"bitcast_convert", importBitcast},
    {"constant", importConstant},
    {"convert", importConvert},
    {"reduce_precision", importReducePrecision},

    // Movement.
    {"broadcast", importBroadcast},
    {"broadcast_in_dim", importBroadcast},
    {"concatenate", importConcatenate},
    {"dynamic_broadcast_in_dim", importBroadcast},
    {"dynamic_iota", importIota},
    {"dynamic_pad", importDynamicPad},
    {"dynamic_reshape", importReshape},
    {"get_dimension_size", importDimensionSize},
    {"iota", importIota},
    {"pad", importPad},
    {"real_dynamic_slice", importRealDynamicSlice},
    {"reshape", importReshape},
    {"reverse", importReverse},
    {"slice", importSlice},
    {"transpose", importTranspose},

    // Contractions, reductions, order.
    {"batch_norm_grad", importBatchNormGrad},
    {"batch_norm_inference", importBatchNorm},
    {"batch_norm_training", importBatchNorm},
    {"convolution", importConvolution},
    {"dot", importDotGeneral},
    {"dot_general", importDotGeneral},
    {"einsum", importEinsum},
    {"map", importMap},
    {"reduce", importReduce},
    {"reduce_window", importReduceWindow},
    {"select_and_scatter", importSelectAndScatter},
    {"sort", importSort},
    {"unary_einsum", importEinsum},

    // Indices.
    {"dynamic_slice", importDynamicSlice},
    {"dynamic_update_slice", importDynamicUpdateSlice},
    {"gather", importGather},
    {"scatter", importScatter},
    {"torch_index_select", importIndexSelect},

    // Manual computations and their collectives.
    {"all_gather", importAllGather},
    {"all_reduce", importAllReduce},
    {"all_to_all", importAllToAll},
    {"collective_permute", importCollectivePermute},
    {"partition_id", importPartitionId},
    {"reduce_scatter", importReduceScatter},
    {"replica_id", importReplicaId},
    {"sdy.manual_computation", importManualComputation},

    // Random bits.
    {"rng_bit_generator", importRngBitGenerator},

    // Control.
    // A cast between vhlo's and sdy's types, which are equal here.
    {"builtin.unrealized_conversion_cast", importBarrier},
    {"call", importCall},
    {"case", importCase},
    {"composite", importComposite},
    {"custom_call", importCustomCall},
    {"if", importCase},
    {"optimization_barrier", importBarrier},
    {"sdy.named_computation", importNamedComputation},
    {"sdy.propagation_barrier", importBarrier},
    {"sdy.reshard", importConstraint},
    {"sdy.sharding_constraint", importConstraint},
    {"sdy.sharding_group", importShardingGroup},
    {"while", importWhile},
};

}  // namespace

Handler findHandler(llvm::StringRef name) {
  static const auto* const table = [] {
    auto* map = new llvm::StringMap<Handler>;
    for (const Entry& entry : kHandlers)
      map->try_emplace(entry.name, entry.import);
    return map;
  }();
  return table->lookup(name);
}

}  // namespace partita::stablehlo
