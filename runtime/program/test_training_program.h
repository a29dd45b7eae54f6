// A training step built by hand, without kernels.
#ifndef PARTITA_RUNTIME_PROGRAM_TEST_TRAINING_PROGRAM_H_
#define PARTITA_RUNTIME_PROGRAM_TEST_TRAINING_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "runtime/program/artifact.h"

namespace partita::program {

// Least squares by gradient descent, for x f32[batch,6] and t f32[batch,7] over
// a mesh data x tensor (none where both are 1):
//   h = x f, d = t - h w, loss = sum d d, w' = w + lr h^T d, count' = count + 1
// Inputs: x, t, lr (learning_rate), step. Outputs: loss f32[], and at i64[] =
// step. Parameters: w f32[6,7], drawn from seed 1 (uniform); count f32[], a
// state, zero at first; f f32[6,6], not updated, embedded. Rows of x and t are
// divided over data, columns of w and t over tensor.
struct TrainingProgram {
  static constexpr int64_t kWidth = 6, kOut = 7;

  ProgramT program;
  DataSection data;

  TrainingProgram(int64_t batch, int64_t data_axis, int64_t tensor_axis);
  // w as drawn from its seed.
  static std::vector<float> Start();
  // Element i of f.
  static float Frozen(int64_t i) { return static_cast<float>(i % 4) * 0.25f; }
  ArtifactParts Parts() const { return {SerializeProgram(program), "", data}; }
};

// Computes the same step directly: updates w, and returns the loss before the
// update.
float TrainingStep(const std::vector<float>& x, const std::vector<float>& t,
                   float lr, std::vector<float>& w);

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_TEST_TRAINING_PROGRAM_H_
