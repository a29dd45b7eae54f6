// Marks on the calls of @main that give a call's place in a training step.
// Pipelines sort calls by them.
#ifndef PARTITA_COMPILER_AUTODIFF_CALL_MARKS_H_
#define PARTITA_COMPILER_AUTODIFF_CALL_MARKS_H_

namespace partita::autodiff {

// Integer: the pipeline stage of an operation of @main. Set before gradients
// exist; gradients belong to the stages of their values.
inline constexpr char kStageAttr[] = "nn.stage";

// Integer: the microbatch, if a step has several.
inline constexpr char kMicrobatchAttr[] = "nn.microbatch";

// On calls that compute gradients: a unit attribute if they compute all, else
// one of the two strings below.
inline constexpr char kBackwardAttr[] = "nn.backward";

// Gradients that other backward calls wait for.
inline constexpr char kInputGradients[] = "input";

// Gradients that no backward call needs.
inline constexpr char kWeightGradients[] = "weight";

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_CALL_MARKS_H_
