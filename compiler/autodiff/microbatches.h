// Names shared by --partita-attach-loss and --partita-accumulate for steps of
// several microbatches.
#ifndef PARTITA_COMPILER_AUTODIFF_MICROBATCHES_H_
#define PARTITA_COMPILER_AUTODIFF_MICROBATCHES_H_

namespace partita::autodiff {

// Scalars i64 of @main: the number of counted targets in all microbatches, by
// which the loss is divided; and the number in this microbatch, returned by a
// call.
inline constexpr char kLossDivisorInput[] = "loss_divisor";
inline constexpr char kTargetCountResult[] = "target_count";

// Prefix of the names of gradient results; the parameter's name follows.
inline constexpr char kGradientPrefix[] = "grad.";

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_MICROBATCHES_H_
