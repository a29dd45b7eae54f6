// Saves and restores checkpoints of a group of ranks.
#ifndef PARTITA_RUNTIME_SESSION_CHECKPOINTS_H_
#define PARTITA_RUNTIME_SESSION_CHECKPOINTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/writer.h"
#include "runtime/session/open_ranks.h"
#include "runtime/session/options.h"
#include "runtime/train/trainer.h"

namespace partita::session {

using Say = std::function<void(const std::string&)>;

struct CheckpointOptions {
  std::string folder;
  int keep = 3;           // number of newest checkpoints to keep
  int64_t seed = 0;       // of the run
  bool quiet = false;     // do not report saved checkpoints
  SessionOptions loaded;  // how the model was opened
};

// Position at which an earlier session of the run stopped.
struct Resumed {
  int64_t step = 0;  // 0: there is no checkpoint
  std::string data;  // BatchSource::State
};

// Loads the newest complete checkpoint of the folder into the ranks:
// parameters and states that steps update. Reports skipped checkpoints through
// `say`. InvalidArgument if the checkpoint is from another model or seed.
absl::StatusOr<Resumed> Resume(executor::RankGroup& ranks,
                               const CheckpointOptions& options,
                               const Say& say);

// FailedPrecondition if a 1-bit optimizer would begin at the first step: it
// divides by variances that only a warm-up gathers.
absl::Status CheckWarmedUp(const executor::RankGroup& ranks, int64_t last_step);

// Saves the model's parameters and buffers, and the optimizer's states. The
// result of a background save is reported after the next step; Finish returns
// the error of the last save. The previous checkpoint is kept until a step
// after the newest one has a finite loss, or the run ends in order. Non-finite
// parameters are not saved.
class TrainCheckpoints : public train::Checkpoints, public train::Observer {
 public:
  // `start_step` is the step of Resume. The ranks must outlive the result.
  static absl::StatusOr<std::unique_ptr<TrainCheckpoints>> Open(
      executor::RankGroup& ranks, const CheckpointOptions& options,
      int64_t start_step, const Say& say);
  ~TrainCheckpoints() override;

  absl::Status OnStep(const train::StepRecord& record) override;
  absl::Status Save(int64_t step, const std::string& data_state) override;
  absl::Status Finish() override;

 private:
  TrainCheckpoints(executor::RankGroup& ranks, const CheckpointOptions& options,
                   Say say)
      : ranks_(ranks), options_(options), say_(std::move(say)) {}
  // Reports saves that ended since the last call.
  void Collect(bool finished);

  executor::RankGroup& ranks_;
  const CheckpointOptions options_;
  const Say say_;
  std::unique_ptr<checkpoint::Writer> writer_;
  absl::Status last_;  // result of the newest checkpoint that has ended
};

}  // namespace partita::session

#endif  // PARTITA_RUNTIME_SESSION_CHECKPOINTS_H_
