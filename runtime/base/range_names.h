// Names of the ranges of activations that quantization-aware training records.
#ifndef PARTITA_RUNTIME_BASE_RANGE_NAMES_H_
#define PARTITA_RUNTIME_BASE_RANGE_NAMES_H_

namespace partita::base {

// The ends of these names, behind the name of the weight that multiplies the
// activation. Models that round nothing ignore such tensors of a checkpoint.
inline constexpr char kRangeLowSuffix[] = "_input_low";
inline constexpr char kRangeHighSuffix[] = "_input_high";

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_RANGE_NAMES_H_
