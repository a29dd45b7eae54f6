// Copies between a model's parameters and the tensors of a checkpoint.
#include "runtime/session/checkpoints.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/quantity.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/teacher_name.h"
#include "runtime/base/tensor_parts.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/folder.h"
#include "runtime/executor/nan_trace.h"
#include "runtime/program/types.h"

namespace partita::session {
namespace {

using executor::ParameterSpec;
using program::ParameterKind;

// Constants belong to the compiler, not to the model, and a teacher's weights
// are where the program took them from.
bool IsSaved(const ParameterSpec& parameter) {
  return parameter.kind != ParameterKind::constant &&
         !base::IsOfTeacher(parameter.whole.name);
}

// States of 1-bit optimizers that a checkpoint may lack: compression errors,
// one row per device, are missing after another optimizer or on other devices;
// the others exist only after the warm-up.
bool MayBeNew(const std::string& name) {
  return absl::EndsWith(name, "/worker_error") ||
         absl::EndsWith(name, "/server_error") ||
         absl::EndsWith(name, "/fresh_exp_avg_sq") ||
         absl::EndsWith(name, "/ratio_factor");
}

checkpoint::Entry EntryOf(executor::RankGroup& ranks,
                          const ParameterSpec& parameter) {
  const executor::RankGroup::Part part = ranks.PartOf(parameter);
  checkpoint::Entry entry;
  entry.spec = parameter.whole;
  entry.in_parts = parameter.in_parts;
  entry.group = parameter.kind == ParameterKind::state
                    ? checkpoint::Group::kOptimizer
                    : checkpoint::Group::kModel;
  for (const executor::RankGroup::Part::Run& run : part.runs)
    entry.runs.push_back({run.whole, run.part, run.count});
  entry.block_bytes = part.spec.bytes;
  entry.read = [&ranks, part](char* block) {
    return ranks.ReadPart(part, block);
  };
  return entry;
}

// Files that Hugging Face's loader expects beside the weights, found beside the
// weights that the model was compiled with.
std::vector<std::string> Companions(executor::RankGroup& ranks,
                                    const CheckpointOptions& options) {
  namespace fs = std::filesystem;
  const auto* parameters = ranks.program().parameters();
  for (int64_t i = 0; i < program::SizeOrZero(parameters); ++i) {
    const program::Parameter& parameter =
        *parameters->Get(static_cast<unsigned>(i));
    const program::FileSource* source = parameter.source_as_FileSource();
    if (const auto* parts = parameter.source_as_PartsSource())
      source = parts->parts()->Get(0);
    if (source == nullptr || base::IsOfTeacher(parameter.name()->str()))
      continue;
    const fs::path base = options.loaded.weights_dir.empty()
                              ? fs::path(options.loaded.model).parent_path()
                              : fs::path(options.loaded.weights_dir);
    const fs::path folder = (base / source->path()->str()).parent_path();
    std::vector<std::string> found;
    for (const char* name :
         {"config.json", "generation_config.json", "tokenizer.json",
          "tokenizer_config.json", "special_tokens_map.json", "vocab.json",
          "vocab.txt", "merges.txt", "preprocessor_config.json"}) {
      std::error_code error;
      if (fs::is_regular_file(folder / name, error))
        found.push_back((folder / name).string());
    }
    return found;
  }
  return {};
}

// The main process finds the newest checkpoint and verifies its checksums; the
// others open the same one. Empty if there is none.
absl::StatusOr<std::optional<checkpoint::Checkpoint>> OpenSame(
    executor::RankGroup& ranks, const std::string& folder, const Say& say) {
  std::optional<checkpoint::Checkpoint> saved;
  absl::Status status;
  if (ranks.IsMain()) {
    std::vector<std::string> skipped;
    auto latest = checkpoint::OpenLatest(folder, checkpoint::Verify::kChecksums,
                                         &skipped);
    for (const std::string& line : skipped) say(line);
    if (latest.ok()) {
      saved = *std::move(latest);
    } else if (!absl::IsNotFound(latest.status())) {
      status = latest.status();
    }
  }
  PARTITA_RETURN_IF_ERROR(ranks.Agree(status));
  std::vector<double> step = {saved ? static_cast<double>(saved->state().step)
                                    : -1};
  PARTITA_RETURN_IF_ERROR(ranks.Max(step));
  if (!ranks.IsMain() && step[0] >= 0) {
    auto same = checkpoint::Checkpoint::Open(
        checkpoint::StepPath(folder, static_cast<int64_t>(step[0])),
        checkpoint::Verify::kSizes);
    status = same.status();
    if (same.ok()) saved = *std::move(same);
  }
  PARTITA_RETURN_IF_ERROR(ranks.Agree(status));
  return saved;
}

// A step with a finite loss may still make non-finite parameters. Saving them
// would replace the last usable checkpoint.
absl::Status CheckFinite(executor::RankGroup& ranks, int64_t step) {
  for (const ParameterSpec& parameter : ranks.parameters()) {
    if (!parameter.updated || parameter.kind != ParameterKind::parameter ||
        !base::IsFloat(parameter.whole.dtype))
      continue;
    const executor::RankGroup::Part part = ranks.PartOf(parameter);
    if (part.runs.empty()) continue;
    std::vector<char> block(static_cast<size_t>(part.spec.bytes));
    PARTITA_RETURN_IF_ERROR(ranks.ReadPart(part, block.data()));
    const int64_t size = base::SizeOf(part.spec.dtype);
    for (const executor::RankGroup::Part::Run& run : part.runs)
      if (executor::NanTrace::At(part.spec.dtype, &block[run.part * size],
                                 run.count)
              .kind != executor::NumberKind::kFinite)
        return absl::FailedPreconditionError(absl::StrCat(
            "checkpoint of step ", step, ": parameter '", parameter.whole.name,
            "' is no longer finite, so nothing is saved"));
  }
  return absl::OkStatus();
}

absl::Status CheckSame(const checkpoint::Checkpoint& saved,
                       executor::RankGroup& ranks,
                       const CheckpointOptions& options) {
  std::vector<base::TensorSpec> wanted;
  for (const ParameterSpec& parameter : ranks.parameters()) {
    if (!IsSaved(parameter)) continue;
    if (!parameter.in_parts) {
      wanted.push_back(parameter.whole);
      continue;
    }
    for (base::TensorSpec& part : base::PartsOf(parameter.whole))
      wanted.push_back(std::move(part));
  }
  PARTITA_RETURN_IF_ERROR(saved.Match(wanted, MayBeNew));
  if (saved.state().seed == static_cast<uint64_t>(options.seed))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(saved.path(), ": expected seed ", saved.state().seed,
                   ", with which the run began, found seed ", options.seed));
}

// `anew`: number of tensors that keep their initial values.
absl::Status Restore(const checkpoint::Checkpoint& saved,
                     executor::RankGroup& ranks, int64_t& anew) {
  for (const ParameterSpec& parameter : ranks.parameters()) {
    // A state that is not updated now may have been updated before the save.
    if (!IsSaved(parameter) ||
        (!parameter.updated && parameter.kind != ParameterKind::state))
      continue;
    if (MayBeNew(parameter.whole.name) && !saved.Matches(parameter.whole)) {
      ++anew;
      continue;
    }
    PARTITA_ASSIGN_OR_RETURN(const base::ConstTensor tensor,
                             parameter.in_parts
                                 ? saved.FindParts(parameter.whole)
                                 : saved.Find(parameter.whole.name));
    PARTITA_RETURN_IF_ERROR(ranks.WriteParameter(parameter.whole.name, tensor));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Resumed> Resume(executor::RankGroup& ranks,
                               const CheckpointOptions& options,
                               const Say& say) {
  PARTITA_ASSIGN_OR_RETURN(const std::optional<checkpoint::Checkpoint> saved,
                           OpenSame(ranks, options.folder, say));
  if (!saved) {
    if (ranks.IsMain())
      say(absl::StrCat(options.folder,
                       ": no checkpoint yet; beginning at step 1"));
    return Resumed();
  }
  PARTITA_RETURN_IF_ERROR(ranks.Agree(CheckSame(*saved, ranks, options)));
  int64_t anew = 0;
  PARTITA_RETURN_IF_ERROR(ranks.Agree(Restore(*saved, ranks, anew)));
  if (ranks.IsMain())
    say(absl::StrCat("going on from ", saved->path(),
                     anew > 0
                         ? absl::StrCat("; ", anew,
                                        " states of 1-bit exchanges are not "
                                        "in it and begin at zero")
                         : ""));
  return Resumed{saved->state().step, saved->state().data};
}

absl::Status CheckWarmedUp(const executor::RankGroup& ranks,
                           int64_t last_step) {
  if (last_step > 0) return absl::OkStatus();
  for (const ParameterSpec& parameter : ranks.parameters())
    if (MayBeNew(parameter.whole.name))
      return absl::FailedPreconditionError(
          "expected a checkpoint of the 1-bit optimizer's warm-up to resume "
          "from, found none; first train the warm-up steps with --train adamw "
          "(for 1bit-lamb: without --onebit-warmup), then with --resume and "
          "its --checkpoint-dir");
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TrainCheckpoints>> TrainCheckpoints::Open(
    executor::RankGroup& ranks, const CheckpointOptions& options,
    int64_t start_step, const Say& say) {
  std::unique_ptr<TrainCheckpoints> checkpoints(
      new TrainCheckpoints(ranks, options, say));
  // The same on all processes, and different for every run.
  std::vector<double> run = {0, 0};
  if (ranks.IsMain()) {
    run = {static_cast<double>(
               std::chrono::duration_cast<std::chrono::milliseconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count()),
           static_cast<double>(getpid())};
  }
  PARTITA_RETURN_IF_ERROR(ranks.Max(run));
  checkpoint::WriterOptions writer;
  writer.folder = options.folder;
  writer.keep = options.keep;
  writer.until_confirmed = true;
  writer.start_step = start_step;
  // States that do not fit in memory do not fit there in a snapshot either.
  writer.snapshot_folder = StateStoreOf(options.loaded, ranks.program()).folder;
  writer.companions = Companions(ranks, options);
  writer.rank = ranks.rank();
  writer.ranks = ranks.processes();
  writer.run = absl::StrCat(static_cast<int64_t>(run[0]), "-",
                            static_cast<int64_t>(run[1]));
  auto opened = checkpoint::Writer::Open(std::move(writer));
  PARTITA_RETURN_IF_ERROR(ranks.Agree(opened.status()));
  checkpoints->writer_ = *std::move(opened);
  return checkpoints;
}

absl::Status TrainCheckpoints::Save(int64_t step,
                                    const std::string& data_state) {
  PARTITA_RETURN_IF_ERROR(ranks_.Agree(CheckFinite(ranks_, step)));
  checkpoint::State state;
  state.step = step;
  state.seed = static_cast<uint64_t>(options_.seed);
  state.data = data_state;
  std::vector<checkpoint::Entry> entries;
  for (const ParameterSpec& parameter : ranks_.parameters())
    if (IsSaved(parameter)) entries.push_back(EntryOf(ranks_, parameter));
  const absl::Status saved = writer_->Save(state, entries);
  Collect(/*finished=*/false);
  return ranks_.Agree(saved);
}

absl::Status TrainCheckpoints::OnStep(const train::StepRecord& record) {
  if (std::isfinite(record.loss)) writer_->Confirm();
  Collect(/*finished=*/false);
  return absl::OkStatus();
}

absl::Status TrainCheckpoints::Finish() {
  writer_->Confirm();
  writer_->Finish();
  Collect(/*finished=*/true);
  return ranks_.Agree(last_);
}

// After a failed step, a save may be in flight.
TrainCheckpoints::~TrainCheckpoints() {
  if (writer_ == nullptr) return;
  writer_->Finish();
  Collect(/*finished=*/false);
}

void TrainCheckpoints::Collect(bool finished) {
  for (const checkpoint::SaveResult& result : writer_->TakeResults()) {
    last_ = result.status.ok()
                ? absl::OkStatus()
                : absl::Status(result.status.code(),
                               absl::StrCat("checkpoint of step ", result.step,
                                            ": ", result.status.message(),
                                            "; those before are intact"));
    if (!ranks_.IsMain()) continue;
    if (!last_.ok() && !finished) {
      say_(absl::StrCat(last_.message(), ", training goes on"));
    } else if (last_.ok() && !options_.quiet) {
      say_(absl::StrFormat("saved %s: %s in %.1f s", result.path,
                           base::FormatBytes(result.bytes), result.seconds));
    }
  }
}

}  // namespace partita::session
