// The content of a partita_session: the ranks, their connections to other
// ranks, and the state of a training run.
#ifndef PARTITA_RUNTIME_API_LOADED_MODEL_H_
#define PARTITA_RUNTIME_API_LOADED_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/api/partita.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/world.h"
#include "runtime/data/batch_source.h"
#include "runtime/session/open_ranks.h"
#include "runtime/session/options.h"
#include "runtime/session/rank_stepper.h"

namespace partita::api {

class LoadedModel {
 public:
  // `joins`: this process is one rank of a job.
  static absl::StatusOr<std::unique_ptr<LoadedModel>> Open(
      const session::SessionOptions& options, bool joins, int64_t seed);
  // Waits for the other ranks of a job, within their timeout.
  ~LoadedModel();

  const executor::RankGroup& ranks() const { return *ranks_; }
  executor::RankGroup& ranks() { return *ranks_; }
  int64_t step() const { return step_; }

  // Implement the functions of partita.h.
  absl::Status Run(const partita_tensor* inputs, size_t input_count,
                   const partita_tensor* outputs, size_t output_count);
  absl::StatusOr<double> TrainStep(const partita_tensor* data, size_t count,
                                   double learning_rate);
  absl::Status ReadParameter(const std::string& name,
                             const partita_tensor& tensor);
  absl::Status WriteParameter(const std::string& name,
                              const partita_tensor& tensor);
  absl::Status SaveCheckpoint(const std::string& folder);
  absl::Status LoadCheckpoint(const std::string& folder);

 private:
  LoadedModel(session::SessionOptions options, int64_t seed)
      : options_(std::move(options)), seed_(seed) {}
  absl::Status PrepareTraining();
  absl::StatusOr<const base::TensorSpec*> FindParameter(
      const std::string& name) const;
  // Broadcasts rank 0's loss.
  absl::StatusOr<double> ShareLoss(double loss);

  const session::SessionOptions options_;
  const int64_t seed_;
  int64_t step_ = 0;                    // last step taken
  std::unique_ptr<comm::World> world_;  // of a job; null: none
  std::unique_ptr<comm::Communicator> communicator_;
  std::unique_ptr<executor::RankGroup> ranks_;

  // Created by the first training step.
  std::unique_ptr<session::RankStepper> stepper_;
  data::Batch results_;
  std::vector<base::MutableTensor> outputs_;
  size_t loss_ = 0;  // index of the output
};

}  // namespace partita::api

#endif  // PARTITA_RUNTIME_API_LOADED_MODEL_H_
