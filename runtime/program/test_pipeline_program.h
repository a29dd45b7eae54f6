// A training step over two stages, built by hand, without kernels.
#ifndef PARTITA_RUNTIME_PROGRAM_TEST_PIPELINE_PROGRAM_H_
#define PARTITA_RUNTIME_PROGRAM_TEST_PIPELINE_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "runtime/program/artifact.h"

namespace partita::program {

// Least squares by gradient descent through two layers, for x f32[batch,6] and
// t f32[batch,7] over a mesh data x pipe=2, batch a multiple of 2 * data:
//   entry 0:  g = f f once, h = x g u, u' = u + lr (x g)^T dh
//   entry 1:  y = h w, d = t - y, dh = d w^T, loss = sum d d, w' = w + lr h^T d
// h is sent forward and dh back in two halves each, h by a function that is
// called twice. Inputs: x, t, lr (learning_rate, of both entries), step.
// Outputs: loss f32[] of entry 1, at i64[] = step of entry 0, y of entry 1.
// Parameters: w f32[5,7] of entry 1 and u f32[6,5] of entry 0, drawn from seeds
// 1 and 2 (uniform); f f32[6,6] of entry 0, not updated, embedded. Rows of x, t
// and y are divided over data.
struct PipelineProgram {
  static constexpr int64_t kWidth = 6, kHidden = 5, kOut = 7;

  ProgramT program;
  DataSection data;

  PipelineProgram(int64_t batch, int64_t data_axis);
  // w and u as drawn from their seeds.
  static std::vector<float> StartOfW();
  static std::vector<float> StartOfU();
  // Element i of f.
  static float Frozen(int64_t i) { return static_cast<float>(i % 4) * 0.25f; }
  ArtifactParts Parts() const { return {SerializeProgram(program), "", data}; }

 private:
  void AddFirst(int64_t rows, int64_t data_axis);
  void AddSecond(int64_t rows, int64_t data_axis);
};

// Computes the same step directly: updates w and u, and returns y and the loss
// before the update.
struct PipelineResult {
  float loss = 0;
  std::vector<float> y;
};
PipelineResult PipelineStep(const std::vector<float>& x,
                            const std::vector<float>& t, float lr,
                            std::vector<float>& w, std::vector<float>& u);

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_TEST_PIPELINE_PROGRAM_H_
