// Distillation (Hinton et al., 2015): a student learns the outputs of a frozen
// teacher beside its targets, in one step of training.
#ifndef PARTITA_FRONTENDS_DISTILLATION_DISTILLATION_H_
#define PARTITA_FRONTENDS_DISTILLATION_DISTILLATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "frontends/distillation/distance.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::distillation {

// Values of the two models that are compared: an output, or the result of a
// layer or operation of this name.
struct Pair {
  std::string student, teacher;
};

// The meaning of --distill: with student's logits s and teacher's t, the loss
// is
//   kl * T^2 * KL(softmax(t / T) || softmax(s / T)), a mean over positions
//   + cross_entropy * the loss of the targets (--loss)
//   + hidden_weight * the sum of hidden losses.
struct Options {
  double temperature = 2, kl = 1, cross_entropy = 1, hidden_weight = 1;
  Pair logits;  // empty: the first outputs
  std::vector<Pair> hidden;
  HiddenLoss hidden_loss = HiddenLoss::kMse;
  // The teacher's parameters and activations: bf16 or f16; empty: the
  // student's.
  std::string teacher_precision;
};

// Parses "temperature=2; kl=1; cross_entropy=1; hidden_loss=cosine;
// hidden_weight=1; hidden=transformer.h.1:transformer.h.3". InvalidArgument
// says what was expected and found.
absl::StatusOr<Options> ParseOptions(const std::string& text);

// Adds `teacher` to the imported model `student`, and the distance between them
// as a result. The teacher reads the student's inputs; the names of its tensors
// and locations begin with "teacher.". Relative paths of the teacher's weights
// are relative to `folder`. Fails, after a diagnostic, if the models' inputs or
// the compared values do not fit.
mlir::LogicalResult addTeacher(mlir::ModuleOp student,
                               mlir::OwningOpRef<mlir::ModuleOp> teacher,
                               const Options& options,
                               const std::string& folder);

}  // namespace partita::distillation

#endif  // PARTITA_FRONTENDS_DISTILLATION_DISTILLATION_H_
