// PyTorch's training runs of the golden models of tests/data/onnx-tiny: AdamW,
// in f32.
#ifndef PARTITA_TESTS_E2E_GOLDEN_TRAINING_H_
#define PARTITA_TESTS_E2E_GOLDEN_TRAINING_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/executor/executor.h"
#include "tests/e2e/golden.h"

namespace partita::e2e {

inline constexpr double kLearningRate = 1e-3;

struct GoldenTraining {
  // The batch of all steps; gradients of the first step; parameters after it.
  std::map<std::string, HostTensor> inputs, gradients, stepped;
  HostTensor losses, targets;  // losses: f32, one a step

  // What step `step`, the first being 1, of a compiled program is given.
  std::map<std::string, HostTensor> InputsOf(
      const std::vector<executor::TensorSpec>& specs, int64_t step) const;

  // The batch `times` times, one after the other: means stay as they are.
  // Buffers, which follow the batches one by one, are expected no more.
  void Repeat(int64_t times);
};

// Of the model in `folder`, which ends with a slash. `run` begins the names of
// what another run than the first one gave.
absl::StatusOr<GoldenTraining> ReadGoldenTraining(const std::string& folder,
                                                  const std::string& run = "");

}  // namespace partita::e2e

#endif  // PARTITA_TESTS_E2E_GOLDEN_TRAINING_H_
