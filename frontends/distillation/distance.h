// Losses that measure how far a student is from its teacher.
#ifndef PARTITA_FRONTENDS_DISTILLATION_DISTANCE_H_
#define PARTITA_FRONTENDS_DISTILLATION_DISTANCE_H_

#include "dialects/nn/math_builder.h"

namespace partita::distillation {

enum class HiddenLoss {
  kMse,    // the mean of squared differences
  kCosine  // the mean of 1 - cos over positions, as in DistilBERT
};

// T^2 * KL(softmax(teacher / T) || softmax(student / T)) along the last
// dimension, as the mean over positions: a scalar f32. Both have the same
// shape, and floats of 16 or 32 bits.
mlir::Value divergence(mlir::OpBuilder& builder, mlir::Location loc,
                       mlir::Value student, mlir::Value teacher,
                       double temperature);

// The hidden loss of two values of the same shape: a scalar f32.
mlir::Value hiddenDistance(mlir::OpBuilder& builder, mlir::Location loc,
                           mlir::Value student, mlir::Value teacher,
                           HiddenLoss loss);

}  // namespace partita::distillation

#endif  // PARTITA_FRONTENDS_DISTILLATION_DISTANCE_H_
