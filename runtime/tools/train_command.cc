// Connects the ranks, a source of data, logs and checkpoints.
#include "runtime/tools/train_command.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/data/check_indices.h"
#include "runtime/data/prefetch.h"
#include "runtime/session/checkpoints.h"
#include "runtime/session/open_ranks.h"
#include "runtime/session/pruner.h"
#include "runtime/session/rank_stepper.h"
#include "runtime/session/zero_one.h"
#include "runtime/tools/fixed_inputs.h"
#include "runtime/tools/host_tensor.h"
#include "runtime/tools/run_ranks.h"
#include "runtime/tools/train_options.h"
#include "runtime/tools/train_report.h"
#include "runtime/train/event_file.h"
#include "runtime/train/log.h"
#include "runtime/train/noise_scale.h"
#include "runtime/train/progress.h"
#include "runtime/train/rate_search.h"
#include "runtime/train/schedule.h"
#include "runtime/train/stop_signal.h"
#include "runtime/train/trainer.h"

namespace partita::tools {
namespace {

using data::BatchSource;
using executor::RankGroup;

// Reads ahead if there are data inputs to read.
absl::StatusOr<std::unique_ptr<BatchSource>> MakeBatches(
    RankGroup& ranks, const TrainOptions& options,
    const std::vector<base::TensorSpec>& specs) {
  data::SourceOptions source = options.source;
  const program::Rows rows = ranks.InputRows();
  if (rows.end > 0) source.rows = {rows.begin, rows.end - rows.begin};
  PARTITA_ASSIGN_OR_RETURN(
      std::unique_ptr<BatchSource> batches,
      FixInputs(specs, options.run.inputs,
                [&](const std::vector<base::TensorSpec>& rest)
                    -> absl::StatusOr<std::unique_ptr<BatchSource>> {
                  if (options.data.empty())
                    return MakeInputs(rest, InputSources()).status();
                  return data::OpenSource(options.data, rest, source);
                }));
  std::vector<int64_t> limits;
  for (const base::TensorSpec& spec : specs)
    limits.push_back(ranks.LimitOf(spec.name));
  batches = data::CheckedSource(std::move(batches), limits, source.rows);
  if (options.data.empty()) return batches;
  return data::Prefetch(std::move(batches), 2);
}

// One run, from a loaded model to its report.
class TrainingRun {
 public:
  // `others`: none, or the ranks of 0/1 Adam's variance and local steps.
  TrainingRun(RankGroup& ranks, const std::vector<RankGroup*>& others,
              const TrainOptions& options, const train::StopSignal& signal,
              std::ostream& out, std::ostream& error)
      : ranks_(ranks),
        others_(others),
        options_(options),
        signal_(signal),
        out_(out),
        error_(error) {}

  absl::Status Run() {
    PARTITA_RETURN_IF_ERROR(MakeStepper());
    absl::StatusOr<std::unique_ptr<BatchSource>> source =
        MakeBatches(ranks_, options_, train::DataInputs(*stepper_));
    PARTITA_RETURN_IF_ERROR(ranks_.Agree(source.status()));
    MakeProgress();
    PARTITA_RETURN_IF_ERROR(OpenCheckpoints(**source));
    PARTITA_RETURN_IF_ERROR(ranks_.Agree(
        others_.empty() ? session::CheckWarmedUp(ranks_, trainer_.last_step)
                        : session::CheckResumedSchedule(
                              ranks_, options_.zero_one, trainer_.last_step)));
    if (ranks_.IsMain()) {
      PARTITA_RETURN_IF_ERROR(ranks_.Agree(OpenLogs()));
    } else {
      PARTITA_RETURN_IF_ERROR(ranks_.Agree(absl::OkStatus()));
    }
    PARTITA_RETURN_IF_ERROR(ranks_.Agree(OpenPruner()));
    trainer_.steps = options_.schedule.steps;
    trainer_.schedule = options_.schedule;
    PARTITA_RETURN_IF_ERROR(ranks_.Agree(ScaleRate()));
    trainer_.seed = options_.seed;
    trainer_.late_losses = session::LateLosses(ranks_.program());
    if (const int64_t late = trainer_.late_losses;
        late > 0 && trainer_.last_step == 0 && !options_.quiet)
      Tell(absl::StrCat("a pipeline without a flush: losses are reported ",
                        late, late == 1 ? " step" : " steps",
                        " late; the first steps have none (-)"));
    trainer_.checkpoint_every = options_.checkpoint_every;
    trainer_.stop = [this] {
      return signal_.Caught() || rate_search_.Diverged();
    };
    if (train::IsRangeTest(options_.schedule.kind))
      trainer_.observers.push_back(&rate_search_);
    trainer_.observers.push_back(&noise_scale_);
    trainer_.say = [this](const std::string& text) { Tell(text); };
    absl::StatusOr<train::TrainResult> result =
        train::Train(*stepper_, **source, trainer_);
    progress_.reset();
    PARTITA_RETURN_IF_ERROR(result.status());
    return ranks_.Agree(Report(*std::move(result)));
  }

 private:
  absl::Status MakeStepper() {
    const auto say = [this](const std::string& text) { TellHere(text); };
    if (others_.empty()) {
      PARTITA_RETURN_IF_ERROR(ranks_.Agree(session::CheckTrains(ranks_)));
      stepper_ = std::make_unique<session::RankStepper>(
          ranks_, options_.debug_nan, say);
    } else {
      auto made = session::ZeroOneStepper::Make(ranks_, *others_[0],
                                                *others_[1], options_.zero_one,
                                                options_.debug_nan, say);
      PARTITA_RETURN_IF_ERROR(ranks_.Agree(made.status()));
      stepper_ = *std::move(made);
    }
    if (!options_.debug_nan) return absl::OkStatus();
    for (RankGroup* other : others_)
      PARTITA_RETURN_IF_ERROR(ranks_.Agree(other->EnableNanTrace()));
    return ranks_.Agree(ranks_.EnableNanTrace());
  }

  // Scales the rate to the batch that the model was compiled for.
  absl::Status ScaleRate() {
    if (options_.lr_batch_rule == train::BatchRule::kNone)
      return absl::OkStatus();
    const int64_t examples =
        train::CountBatch(train::DataInputs(*stepper_)).examples;
    if (examples == 0)
      return absl::FailedPreconditionError(
          "--lr-batch-rule: expected a model with a batch of examples, found "
          "no input with rows; leave it out");
    const double factor =
        train::BatchFactor(options_.lr_batch_rule, options_.lr_batch, examples);
    trainer_.schedule.rate *= factor;
    if (!options_.quiet)
      Tell(absl::StrCat("learning rate ", trainer_.schedule.rate, ": ",
                        options_.schedule.rate, " for batches of ",
                        options_.lr_batch, ", here of ", examples));
    return absl::OkStatus();
  }

  void MakeProgress() {
    if (!ranks_.IsMain() || options_.quiet) return;
    train::ProgressOptions progress;
    progress.steps = options_.schedule.steps;
    progress.terminal = &error_ == &std::cerr && isatty(STDERR_FILENO) != 0;
    progress.flops_per_step = ranks_.FlopsPerRun();
    progress.peak_flops = options_.peak_flops * ranks_.devices();
    progress_ = std::make_unique<train::Progress>(error_, progress);
    trainer_.observers.push_back(progress_.get());
  }

  // Prints important messages even with --quiet, on the main process.
  void Tell(const std::string& text) {
    if (ranks_.IsMain()) TellHere(text);
  }
  // Prints in any process.
  void TellHere(const std::string& text) {
    if (progress_ != nullptr) {
      progress_->Say(text);
    } else {
      error_ << text << std::endl;
    }
  }

  absl::Status OpenCheckpoints(BatchSource& source) {
    if (options_.checkpoint_dir.empty()) return absl::OkStatus();
    const session::Say say = [this](const std::string& text) { Tell(text); };
    const session::CheckpointOptions kept = {options_.checkpoint_dir,
                                             options_.keep, options_.seed,
                                             options_.quiet, options_.run};
    if (options_.resume) {
      PARTITA_ASSIGN_OR_RETURN(const session::Resumed resumed,
                               session::Resume(ranks_, kept, say));
      trainer_.last_step = resumed.step;
      if (!resumed.data.empty()) {
        PARTITA_RETURN_IF_ERROR(ranks_.Agree(source.Restore(resumed.data)));
      } else if (resumed.step > 0 && !source.State().empty()) {
        Tell(
            "the checkpoint has no position in the data, as a program saved "
            "it; the data begins anew");
      }
    }
    PARTITA_ASSIGN_OR_RETURN(
        checkpoints_,
        session::TrainCheckpoints::Open(ranks_, kept, trainer_.last_step, say));
    trainer_.checkpoints = checkpoints_.get();
    trainer_.observers.push_back(checkpoints_.get());
    return absl::OkStatus();
  }

  absl::Status OpenPruner() {
    if (options_.pruning.weights.empty()) return absl::OkStatus();
    PARTITA_ASSIGN_OR_RETURN(session::Pruner pruner,
                             session::Pruner::Make(ranks_, options_.pruning));
    pruner_ = std::make_unique<session::Pruner>(std::move(pruner));
    trainer_.after_step = [this](int64_t step) {
      return pruner_->AfterStep(step);
    };
    return trainer_.last_step == 0 ? pruner_->AfterStep(0) : absl::OkStatus();
  }

  absl::Status OpenLogs() {
    if (!options_.log.empty()) {
      PARTITA_ASSIGN_OR_RETURN(
          log_, train::JsonLog::Open(options_.log, trainer_.last_step));
      trainer_.observers.push_back(log_.get());
    }
    if (!options_.events.empty()) {
      PARTITA_ASSIGN_OR_RETURN(
          events_,
          train::EventFile::Create(options_.events, trainer_.last_step));
      trainer_.observers.push_back(events_.get());
    }
    return absl::OkStatus();
  }

  absl::Status Report(train::TrainResult result) {
    PARTITA_ASSIGN_OR_RETURN(std::vector<executor::RankUse> uses,
                             ranks_.Uses());
    for (RankGroup* other : others_) {
      PARTITA_ASSIGN_OR_RETURN(const std::vector<executor::RankUse> more,
                               other->Uses());
      for (size_t i = 0; i < uses.size() && i < more.size(); ++i) {
        executor::MemoryUse& memory = uses[i].memory;
        memory.arena += more[i].memory.arena;
        memory.globals += more[i].memory.globals;
        memory.packed += more[i].memory.packed;
        memory.scratch += more[i].memory.scratch;
        memory.staging += more[i].memory.staging;
        memory.mapped += more[i].memory.mapped;
      }
    }
    TrainReport report;
    PARTITA_ASSIGN_OR_RETURN(report.warnings, ranks_.Warnings());
    if (!ranks_.IsMain()) return absl::OkStatus();
    report.model = options_.run.model;
    report.devices = ranks_.devices();
    report.first_step = trainer_.last_step + 1;
    report.steps = trainer_.steps;
    report.result = std::move(result);
    report.signal = signal_.Name();
    report.is_range_test = train::IsRangeTest(options_.schedule.kind);
    report.suggested_rate = rate_search_.SuggestRate();
    report.diverged = rate_search_.Diverged();
    report.measures_noise = noise_scale_.Measured();
    report.noise_scale = noise_scale_.Examples();
    const train::StepRecord counts =
        train::CountBatch(train::DataInputs(*stepper_));
    report.examples = counts.examples;
    report.tokens = counts.tokens;
    report.flops_per_step = ranks_.FlopsPerRun();
    report.checkpoint_dir = options_.checkpoint_dir;
    report.memory = executor::FullestOf(uses);
    if (ranks_.program().entries()->size() > 1) report.ranks = std::move(uses);
    report.peak_process_bytes = PeakProcessBytes();
    out_ << (options_.run.json ? ToJson(report) : ToTables(report));
    return Flush(out_);
  }

  RankGroup& ranks_;
  const std::vector<RankGroup*> others_;
  const TrainOptions& options_;
  const train::StopSignal& signal_;
  std::ostream& out_;
  std::ostream& error_;
  std::unique_ptr<train::Stepper> stepper_;
  train::TrainerOptions trainer_;
  std::unique_ptr<session::Pruner> pruner_;
  train::RateSearch rate_search_;
  train::NoiseScale noise_scale_;
  std::unique_ptr<train::Progress> progress_;
  std::unique_ptr<train::JsonLog> log_;
  std::unique_ptr<train::EventFile> events_;
  std::unique_ptr<session::TrainCheckpoints> checkpoints_;
};

}  // namespace

int TrainCommand(const std::vector<std::string>& arguments, std::ostream& out,
                 std::ostream& error) {
  const absl::StatusOr<TrainOptions> options = ParseTrainOptions(arguments);
  if (!options.ok()) {
    if (Speaks()) {
      error << "partita-run train: " << options.status().message()
            << "\nTry partita-run train --help.\n";
    }
    return 2;
  }
  if (options->run.help) {
    if (Speaks()) out << TrainHelp();
    return Tell(Flush(out), error);
  }
  // Reaching a file size limit must fail the write, not end the run.
  std::signal(SIGXFSZ, SIG_IGN);
  session::SessionOptions first = options->run;
  std::vector<std::string> others;
  if (session::IsZeroOne(first.model)) {
    if (!first.offload_dir.empty()) {
      if (Speaks())
        error << "partita-run train: --offload-dir: expected a model of one "
                 "program, found the folder of 0/1 Adam's three, which share "
                 "their states in memory; leave it out\n";
      return 2;
    }
    for (const auto step :
         {train::ZeroOneStep::kVariance, train::ZeroOneStep::kLocal})
      others.push_back(session::ZeroOnePath(first.model, step));
    first.model =
        session::ZeroOnePath(first.model, train::ZeroOneStep::kExchange);
  }
  return RunWithRanks(
      first, others,
      [&](RankGroup& ranks, const std::vector<RankGroup*>& opened) {
        // Before this, while ranks wait for each other or load, a signal ends
        // the process at once: there is nothing to save.
        const train::StopSignal signal;
        return TrainingRun(ranks, opened, *options, signal, out, error).Run();
      },
      error);
}

}  // namespace partita::tools
