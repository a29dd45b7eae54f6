// Marks on the calls of @main: what of a step a call is. A pipeline sorts calls
// by them.
#ifndef PARTITA_COMPILER_AUTODIFF_CALL_MARKS_H_
#define PARTITA_COMPILER_AUTODIFF_CALL_MARKS_H_

namespace partita::autodiff {

// An integer: the stage of the pipeline that an operation of @main belongs to.
// Set before gradients are there; they belong to the stages of what they are
// gradients of.
inline constexpr char kStageAttr[] = "nn.stage";

// An integer, where a step has several: the microbatch.
inline constexpr char kMicrobatchAttr[] = "nn.microbatch";

// On calls that compute gradients: a unit where they compute all, else which: a
// string, one of the two below.
inline constexpr char kBackwardAttr[] = "nn.backward";

// What other calls that compute gradients are waiting for.
inline constexpr char kInputGradients[] = "input";

// What none of them needs.
inline constexpr char kWeightGradients[] = "weight";

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_CALL_MARKS_H_
