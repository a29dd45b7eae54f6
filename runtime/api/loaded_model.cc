// Checks every tensor before ranks begin to work: an error of one rank ends
// all.
#include "runtime/api/loaded_model.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/api/tensors.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/launch.h"
#include "runtime/data/check_indices.h"
#include "runtime/session/checkpoints.h"
#include "runtime/train/trainer.h"

namespace partita::api {
namespace {

using base::ConstTensor;
using base::MutableTensor;
using base::TensorSpec;

absl::Status CheckCount(size_t expected, size_t found, const char* what) {
  if (expected == found) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "expected ", expected, " ", what, expected == 1 ? "" : "s", ", found ",
      found, "; see partita_input and partita_output"));
}

// Token ids beyond the end of a table would read other memory.
absl::StatusOr<std::vector<ConstTensor>> InputsOf(
    const executor::RankGroup& ranks, const std::vector<TensorSpec>& specs,
    const partita_tensor* tensors, size_t count, const char* what) {
  PARTITA_RETURN_IF_ERROR(CheckCount(specs.size(), count, what));
  std::vector<ConstTensor> inputs;
  for (size_t i = 0; i < count; ++i) {
    PARTITA_ASSIGN_OR_RETURN(void* const data,
                             DataOf(tensors[i], specs[i], "input"));
    PARTITA_RETURN_IF_ERROR(
        data::CheckIndices(specs[i], data, ranks.LimitOf(specs[i].name)));
    inputs.push_back({specs[i].dtype, specs[i].shape, data});
  }
  return inputs;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedModel>> LoadedModel::Open(
    const session::SessionOptions& options, bool joins, int64_t seed) {
  std::unique_ptr<LoadedModel> model(new LoadedModel(options, seed));
  if (!joins) {
    PARTITA_ASSIGN_OR_RETURN(model->ranks_, session::OpenAllRanks(options));
    return model;
  }
  const std::optional<comm::Launch> launch = comm::DetectLaunch();
  if (!launch)
    return absl::FailedPreconditionError(
        "expected a process that mpirun, srun or torchrun started, found none "
        "of their variables in the environment; leave join_job at 0, or start "
        "the program with mpirun");
  const comm::CommOptions comm = session::CommOptionsOf(options);
  PARTITA_ASSIGN_OR_RETURN(model->world_, comm::StartWorld(*launch, comm));
  model->communicator_ = model->world_->MakeCommunicator(comm);
  PARTITA_ASSIGN_OR_RETURN(
      model->ranks_,
      session::OpenOneRank(options, *launch, *model->communicator_));
  return model;
}

LoadedModel::~LoadedModel() {
  stepper_.reset();
  ranks_.reset();
  communicator_.reset();
  if (world_ != nullptr)
    world_->Finish(session::CommOptionsOf(options_).timeout).IgnoreError();
}

absl::Status LoadedModel::Run(const partita_tensor* inputs, size_t input_count,
                              const partita_tensor* outputs,
                              size_t output_count) {
  PARTITA_ASSIGN_OR_RETURN(
      const std::vector<ConstTensor> given,
      InputsOf(*ranks_, ranks_->inputs(), inputs, input_count, "input"));
  const std::vector<TensorSpec>& specs = ranks_->outputs();
  PARTITA_RETURN_IF_ERROR(CheckCount(specs.size(), output_count, "output"));
  std::vector<MutableTensor> wanted;
  for (size_t i = 0; i < output_count; ++i) {
    void* data = nullptr;
    if (ranks_->IsMain()) {
      PARTITA_ASSIGN_OR_RETURN(data, DataOf(outputs[i], specs[i], "output"));
    }
    wanted.push_back({specs[i].dtype, specs[i].shape, data});
  }
  PARTITA_RETURN_IF_ERROR(ranks_->Run(given, wanted));
  std::vector<double> times;
  return ranks_->Complete(wanted, times);
}

absl::Status LoadedModel::PrepareTraining() {
  if (stepper_ != nullptr) return absl::OkStatus();
  PARTITA_RETURN_IF_ERROR(session::CheckTrains(*ranks_));
  PARTITA_RETURN_IF_ERROR(session::CheckWarmedUp(*ranks_, step_));
  PARTITA_ASSIGN_OR_RETURN(loss_, train::FindLoss(ranks_->outputs()));
  const bool is_main = ranks_->IsMain();
  PARTITA_ASSIGN_OR_RETURN(
      results_, data::Batch::Allocate(is_main ? ranks_->outputs()
                                              : std::vector<TensorSpec>()));
  for (size_t i = 0; i < ranks_->outputs().size(); ++i) {
    const TensorSpec& spec = ranks_->outputs()[i];
    outputs_.push_back(
        {spec.dtype, spec.shape, is_main ? results_.data(i) : nullptr});
  }
  stepper_ = std::make_unique<session::RankStepper>(*ranks_, /*traced=*/false,
                                                    [](const std::string&) {});
  return absl::OkStatus();
}

absl::StatusOr<double> LoadedModel::TrainStep(const partita_tensor* data,
                                              size_t count,
                                              double learning_rate) {
  PARTITA_RETURN_IF_ERROR(PrepareTraining());
  PARTITA_ASSIGN_OR_RETURN(const std::vector<ConstTensor> inputs,
                           InputsOf(*ranks_, train::DataInputs(*stepper_), data,
                                    count, "data input"));
  const train::StepValues values =
      train::ValuesOfStep(learning_rate, step_ + 1, seed_);
  PARTITA_RETURN_IF_ERROR(
      stepper_->Run(train::StepInputs(*stepper_, inputs, &values), outputs_));
  ++step_;
  double loss = std::numeric_limits<double>::quiet_NaN();
  if (ranks_->IsMain() && step_ > session::LateLosses(ranks_->program()))
    loss =
        base::ElementAsDouble(outputs_[loss_].dtype, outputs_[loss_].data, 0);
  return ShareLoss(loss);
}

// Max does not order NaN, so a flag says whether the loss is NaN.
absl::StatusOr<double> LoadedModel::ShareLoss(double loss) {
  if (ranks_->processes() == 1) return loss;
  const double lowest = -std::numeric_limits<double>::infinity();
  std::vector<double> values = {lowest, 0};
  if (ranks_->IsMain() && std::isnan(loss)) values[1] = 1;
  if (ranks_->IsMain() && !std::isnan(loss)) values[0] = loss;
  PARTITA_RETURN_IF_ERROR(ranks_->Max(values));
  return values[1] > 0 ? std::numeric_limits<double>::quiet_NaN() : values[0];
}

absl::StatusOr<const TensorSpec*> LoadedModel::FindParameter(
    const std::string& name) const {
  PARTITA_ASSIGN_OR_RETURN(const executor::ParameterSpec* found,
                           executor::FindParameter(ranks_->parameters(), name));
  return &found->whole;
}

absl::Status LoadedModel::ReadParameter(const std::string& name,
                                        const partita_tensor& tensor) {
  PARTITA_ASSIGN_OR_RETURN(const TensorSpec* spec, FindParameter(name));
  PARTITA_ASSIGN_OR_RETURN(void* const data,
                           DataOf(tensor, *spec, "parameter"));
  return ranks_->ReadParameter(name, {spec->dtype, spec->shape, data});
}

absl::Status LoadedModel::WriteParameter(const std::string& name,
                                         const partita_tensor& tensor) {
  PARTITA_ASSIGN_OR_RETURN(const TensorSpec* spec, FindParameter(name));
  PARTITA_ASSIGN_OR_RETURN(const void* const data,
                           DataOf(tensor, *spec, "parameter"));
  return ranks_->WriteParameter(name, {spec->dtype, spec->shape, data});
}

absl::Status LoadedModel::SaveCheckpoint(const std::string& folder) {
  if (step_ == 0)
    return absl::FailedPreconditionError(
        "expected a session that has taken a training step, found none to "
        "save; call partita_train_step first");
  session::CheckpointOptions options;
  options.folder = folder;
  options.seed = seed_;
  options.quiet = true;
  options.loaded = options_;
  PARTITA_ASSIGN_OR_RETURN(
      const std::unique_ptr<session::TrainCheckpoints> checkpoints,
      session::TrainCheckpoints::Open(*ranks_, options, step_,
                                      [](const std::string&) {}));
  PARTITA_RETURN_IF_ERROR(checkpoints->Save(step_, /*data_state=*/""));
  return checkpoints->Finish();
}

absl::Status LoadedModel::LoadCheckpoint(const std::string& folder) {
  PARTITA_RETURN_IF_ERROR(session::CheckTrains(*ranks_));
  session::CheckpointOptions options;
  options.folder = folder;
  options.seed = seed_;
  options.quiet = true;
  options.loaded = options_;
  PARTITA_ASSIGN_OR_RETURN(
      const session::Resumed resumed,
      session::Resume(*ranks_, options, [](const std::string&) {}));
  if (resumed.step == 0)
    return absl::NotFoundError(
        absl::StrCat(folder,
                     ": expected a checkpoint, found none; save one with "
                     "partita_save_checkpoint or partita train"));
  step_ = resumed.step;
  return absl::OkStatus();
}

}  // namespace partita::api
