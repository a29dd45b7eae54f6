// What --partita-attach-loss and --partita-accumulate agree on where several
// microbatches make a step.
#ifndef PARTITA_COMPILER_AUTODIFF_MICROBATCHES_H_
#define PARTITA_COMPILER_AUTODIFF_MICROBATCHES_H_

namespace partita::autodiff {

// Scalars i64 of @main: how many targets of all microbatches count, which the
// loss is divided by; how many of this one count, which a call returns.
inline constexpr char kLossDivisorInput[] = "loss_divisor";
inline constexpr char kTargetCountResult[] = "target_count";

// Begins the names of results that are gradients; the parameter's follows.
inline constexpr char kGradientPrefix[] = "grad.";

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_MICROBATCHES_H_
