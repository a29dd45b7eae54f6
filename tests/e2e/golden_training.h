// PyTorch's training runs of the golden models of tests/data/onnx-tiny: AdamW
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
  // The batch for all steps; the gradients of the first step; the parameters
  // after it.
  std::map<std::string, HostTensor> inputs, gradients, stepped;
  HostTensor losses, targets;  // losses: f32, one per step

  // The inputs of a compiled program for step `step`; the first step is 1.
  std::map<std::string, HostTensor> InputsOf(
      const std::vector<executor::TensorSpec>& specs, int64_t step) const;

  // Repeats the batch `times` times; means do not change. Buffers, which are
  // updated once per batch, are no longer expected.
  void Repeat(int64_t times);
};

// Reads the runs of the model in `folder`, which ends with a slash. `run` is
// the prefix of the names of results from a run other than the first.
absl::StatusOr<GoldenTraining> ReadGoldenTraining(const std::string& folder,
                                                  const std::string& run = "");

}  // namespace partita::e2e

#endif  // PARTITA_TESTS_E2E_GOLDEN_TRAINING_H_
