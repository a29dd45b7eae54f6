// The record of a finished step.
#ifndef PARTITA_RUNTIME_TRAIN_RECORD_H_
#define PARTITA_RUNTIME_TRAIN_RECORD_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace partita::train {

struct StepRecord {
  int64_t step = 0;  // from 1 on, over all sessions of the run
  // NaN: not known yet (TrainerOptions::late_losses).
  double loss = 0;
  double rate = 0;       // learning rate
  double seconds = 0;    // of this step, including reading its batch
  int64_t examples = 0;  // rows of the batch
  int64_t tokens = 0;    // positions of the batch; 0: not text
  // Further outputs of one element.
  std::vector<std::pair<std::string, double>> scalars;
};

// Is called after every step, in the process that has the outputs.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual absl::Status OnStep(const StepRecord& record) = 0;
};

}  // namespace partita::train

#endif  // PARTITA_RUNTIME_TRAIN_RECORD_H_
