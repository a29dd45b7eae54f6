// The flags of partita-run train.
#include "runtime/tools/train_options.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "runtime/session/zero_one.h"

namespace partita::tools {
namespace {

constexpr double kMost = std::numeric_limits<double>::max();

absl::Status Wrong(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

FlagSetter SetNumber(double& target, double low, double high,
                     std::string expected) {
  return [&target, low, high,
          expected = std::move(expected)](const std::string& value) {
    const absl::StatusOr<double> number =
        ParseNumber(value, low, high, expected);
    if (number.ok()) target = *number;
    return number.status();
  };
}

FlagSetter SetKind(train::Schedule& schedule) {
  return [&schedule](const std::string& value) {
    const absl::StatusOr<train::Schedule::Kind> kind =
        train::ParseScheduleKind(value);
    if (kind.ok()) schedule.kind = *kind;
    return kind.status();
  };
}

FlagSetter SetRule(train::BatchRule& rule) {
  return [&rule](const std::string& value) {
    const absl::StatusOr<train::BatchRule> parsed =
        train::ParseBatchRule(value);
    if (parsed.ok()) rule = *parsed;
    return parsed.status();
  };
}

// "0:0.9"
FlagSetter SetRange(data::SourceOptions& source) {
  return [&source](const std::string& value) {
    const std::string expected =
        "two shares from 0 to 1, the smaller first, as 0:0.9";
    const size_t colon = value.find(':');
    if (colon == std::string::npos)
      return Wrong(
          absl::StrCat("expected ", expected, ", found '", value, "'"));
    PARTITA_ASSIGN_OR_RETURN(
        source.from, ParseNumber(value.substr(0, colon), 0, 1, expected));
    PARTITA_ASSIGN_OR_RETURN(source.to, ParseNumber(value.substr(colon + 1),
                                                    source.from, 1, expected));
    return absl::OkStatus();
  };
}

// "100:1000:100"
FlagSetter SetPruneSteps(train::PruneSchedule& schedule) {
  return [&schedule](const std::string& value) {
    const std::vector<std::string> parts = absl::StrSplit(value, ':');
    if (parts.size() != 3)
      return Wrong(absl::StrCat(
          "expected three numbers of steps BEGIN:END:EVERY, as 100:1000:100, "
          "found '",
          value, "'"));
    PARTITA_RETURN_IF_ERROR(SetCount(schedule.begin, 0)(parts[0]));
    PARTITA_RETURN_IF_ERROR(SetCount(schedule.end, 0)(parts[1]));
    return SetCount(schedule.every, 1)(parts[2]);
  };
}

// "0.8" or "0.2:0.8"
FlagSetter SetSparsity(train::PruneSchedule& schedule) {
  return [&schedule](const std::string& value) {
    const std::string expected =
        "a share of zeros above 0 and up to 1, as 0.8, or two of them, as "
        "0.2:0.8";
    const size_t colon = value.find(':');
    if (colon != std::string::npos) {
      PARTITA_ASSIGN_OR_RETURN(
          schedule.first, ParseNumber(value.substr(0, colon), 0, 1, expected));
    }
    const std::string last =
        colon == std::string::npos ? value : value.substr(colon + 1);
    PARTITA_ASSIGN_OR_RETURN(schedule.last,
                             ParseNumber(last, 1e-30, 1, expected));
    return absl::OkStatus();
  };
}

std::map<std::string, FlagSetter> ValueFlags(TrainOptions& options) {
  const std::string positive = "a positive number";
  return {
      {"--data", SetString(options.data)},
      {"--input", SetInput(options.run)},
      {"--data-range", SetRange(options.source)},
      {"--vocabulary", SetCount(options.source.vocabulary, 1)},
      {"--pixel-mean",
       SetNumber(options.source.mean, -kMost, kMost, "a number")},
      {"--pixel-deviation",
       SetNumber(options.source.deviation, 1e-30, kMost, positive)},
      {"--epochs", SetCount(options.source.order.epochs, 1)},
      {"--seed", SetCount(options.seed, 0)},
      {"--steps", SetCount(options.schedule.steps, 1)},
      {"--lr", SetNumber(options.schedule.rate, 1e-30, 1e30, positive)},
      {"--lr-batch-rule", SetRule(options.lr_batch_rule)},
      {"--lr-batch", SetCount(options.lr_batch, 1)},
      {"--schedule", SetKind(options.schedule)},
      {"--warmup", SetCount(options.schedule.warmup, 0)},
      {"--min-lr", SetNumber(options.schedule.minimum, 0, 1,
                             "a share of --lr from 0 to 1")},
      {"--first-lr", SetNumber(options.schedule.first, 1e-30, 1,
                               "a share of --lr above 0 and up to 1")},
      {"--variance-until", SetCount(options.zero_one.variance_until, 1)},
      {"--variance-doubling", SetCount(options.zero_one.variance_doubling, 1)},
      {"--local-limit", SetCount(options.zero_one.local_limit, 1)},
      {"--local-doubling", SetCount(options.zero_one.local_doubling, 1)},
      {"--prune-schedule", SetPruneSteps(options.pruning.schedule)},
      {"--prune-sparsity", SetSparsity(options.pruning.schedule)},
      {"--prune-weights", SetString(options.pruning.weights)},
      {"--log", SetString(options.log)},
      {"--events", SetString(options.events)},
      {"--peak-flops", SetNumber(options.peak_flops, 1, kMost, positive)},
      {"--checkpoint-dir", SetString(options.checkpoint_dir)},
      {"--checkpoint-every", SetCount(options.checkpoint_every, 1)},
      {"--keep", SetCount(options.keep, 1)},
      {"--threads", SetCount(options.run.threads, 1)},
      {"--devices", SetCount(options.run.devices, 1)},
      {"--timeout", SetTimeout(options.run)},
      {"--weights-dir", SetString(options.run.weights_dir)},
      {"--offload-dir", SetString(options.run.offload_dir)},
      {"--offload-buffers", SetCount(options.run.offload_buffers, 1)},
      {"--device", SetDevice(options.run, /*trains=*/true)}};
}

// Options of schedules that the chosen one does not read.
absl::Status CheckScheduleOptions(const train::Schedule& schedule) {
  const std::string name = train::ScheduleName(schedule.kind);
  const bool is_one_cycle = train::IsOneCycle(schedule.kind);
  if (schedule.first > 0 && !is_one_cycle && !train::IsRangeTest(schedule.kind))
    return Wrong(absl::StrCat(
        "--first-lr: expected --schedule one_cycle, one_cycle_linear, "
        "range_test or range_test_linear, found ",
        name));
  if (schedule.minimum > 0 && !train::HasMinimum(schedule.kind))
    return Wrong(absl::StrCat(
        "--min-lr: expected a --schedule whose rates fall: linear, cosine, "
        "inverse_sqrt, one_cycle or one_cycle_linear, found ",
        name));
  // Without a step that rises, the only rate is the last one.
  if (is_one_cycle && schedule.steps == 1 && schedule.warmup == 0)
    return Wrong(absl::StrCat("--steps: expected at least 2 with --schedule ",
                              name, ", which rises and falls, found 1"));
  return absl::OkStatus();
}

absl::Status CheckPruning(const session::PruneOptions& pruning,
                          const std::string& model) {
  const bool has_steps = pruning.schedule.every > 0,
             has_share = pruning.schedule.last > 0,
             has_weights = !pruning.weights.empty();
  if (!has_steps && !has_share && !has_weights && !pruning.is_global)
    return absl::OkStatus();
  if (!has_steps || !has_share || !has_weights)
    return Wrong(absl::StrCat(
        "expected --prune-schedule BEGIN:END:EVERY, --prune-sparsity SHARE and "
        "--prune-weights GLOBS together, found no ",
        !has_steps   ? "--prune-schedule"
        : !has_share ? "--prune-sparsity"
                     : "--prune-weights"));
  if (session::IsZeroOne(model))
    return Wrong(
        "--prune-schedule: expected a model of one program, found the folder "
        "of 0/1 Adam's three; train with another optimizer");
  const absl::Status schedule = train::CheckPruneSchedule(pruning.schedule);
  return schedule.ok()
             ? schedule
             : Wrong(absl::StrCat("--prune-schedule: ", schedule.message()));
}

absl::Status Check(const TrainOptions& options) {
  if (options.run.model.empty()) return Wrong("expected a model, found none");
  if (options.schedule.steps == 0)
    return Wrong("expected --steps N, how many steps the run has");
  if (options.data.empty() && options.run.inputs.empty())
    return Wrong(
        "expected --data, or --input for each input of the model, found "
        "neither");
  if (options.checkpoint_dir.empty() &&
      (options.resume || options.checkpoint_every > 0))
    return Wrong(
        absl::StrCat(options.resume ? "--resume" : "--checkpoint-every",
                     ": expected --checkpoint-dir DIR as well"));
  const bool ruled = options.lr_batch_rule != train::BatchRule::kNone;
  if (ruled != (options.lr_batch > 0))
    return Wrong(
        ruled ? "--lr-batch-rule: expected --lr-batch N as well, the examples "
                "in a batch that --lr is for"
              : "--lr-batch: expected --lr-batch-rule linear or sqrt as well");
  PARTITA_RETURN_IF_ERROR(CheckDeviceOptions(options.run));
  PARTITA_RETURN_IF_ERROR(CheckScheduleOptions(options.schedule));
  PARTITA_RETURN_IF_ERROR(CheckPruning(options.pruning, options.run.model));
  const absl::Status schedule = train::CheckSchedule(options.schedule);
  return schedule.ok() ? schedule
                       : Wrong(absl::StrCat("--warmup: ", schedule.message()));
}

// Chooses what is not given of the steps of 0/1 Adam.
absl::StatusOr<TrainOptions> Completed(TrainOptions options) {
  train::ZeroOneSchedule& kinds = options.zero_one;
  const bool is_zero_one = session::IsZeroOne(options.run.model);
  if (!is_zero_one &&
      (kinds.variance_until > 0 || kinds.variance_doubling > 0 ||
       kinds.local_limit > 0 || kinds.local_doubling > 0))
    return Wrong(
        "--variance-until, --variance-doubling, --local-limit and "
        "--local-doubling: expected a folder that partita compile --train "
        "0/1-adam wrote, found another model; leave them out");
  const int64_t steps = options.schedule.steps;
  kinds.steps = steps;
  if (kinds.variance_until == 0)
    kinds.variance_until = std::max<int64_t>(
        options.schedule.warmup > 0 ? options.schedule.warmup : steps / 10, 1);
  if (kinds.variance_doubling == 0) kinds.variance_doubling = 16;
  if (kinds.local_limit == 0) kinds.local_limit = 16;
  if (kinds.local_doubling == 0)
    kinds.local_doubling =
        std::max<int64_t>((steps - kinds.variance_until) / 8, 1);
  return options;
}

}  // namespace

absl::StatusOr<TrainOptions> ParseTrainOptions(
    const std::vector<std::string>& arguments) {
  TrainOptions options;
  options.schedule.steps = 0;
  // 0: not given.
  options.zero_one = {0, 0, 0, 0, 0};
  options.pruning.schedule.every = 0;
  bool in_order = false;
  const Flags flags = {ValueFlags(options),
                       {{"--no-shuffle", &in_order},
                        {"--resume", &options.resume},
                        {"--prune-global", &options.pruning.is_global},
                        {"--quiet", &options.quiet},
                        {"--debug-nan", &options.debug_nan},
                        {"--json", &options.run.json},
                        {"--share-gpu", &options.run.share_gpu},
                        {"--help", &options.run.help},
                        {"-h", &options.run.help}}};
  PARTITA_RETURN_IF_ERROR(ParseFlags(arguments, flags, options.run.model));
  options.source.order.shuffle = !in_order;
  options.source.order.seed = static_cast<uint64_t>(options.seed);
  if (options.run.help) return options;
  PARTITA_RETURN_IF_ERROR(Check(options));
  return Completed(std::move(options));
}

std::string TrainHelp() {
  return absl::StrCat(
      R"(usage: partita-run train MODEL.partita [options]

Trains a model that was compiled with --train: runs its step on one batch after another.

  partita-run train gpt.partita --data text.bin --steps 1000 --lr 3e-4 --schedule cosine --warmup 100 \
    --log run.jsonl --checkpoint-dir ckpt --checkpoint-every 100 --resume

Data
  --data SOURCE            Read batches from one of
)",
      data::SourceHelp(),
      R"(  --input NAME=FILE.npy    Use this input in every step, as for partita-run; may be repeated
  --data-range FROM:TO     Draw from this part of a token file, as shares of it; default 0:1
  --vocabulary N           Refuse token ids and labels of N and more
  --pixel-mean X           Scale image bytes to (byte / 255 - mean) / deviation; default: mean 0
  --pixel-deviation X        and deviation 1
  --epochs N               End after N passes over the data; default: end with --steps
  --no-shuffle             Read samples in the order of the data
  --seed N                 Set the seed of the data order and of dropout; default 0
Steps
  --steps N                End the run after step N
  --lr RATE                Set the learning rate; default 1e-3
  --lr-batch-rule RULE     Scale RATE from batches of --lr-batch examples to the model's batch: linear by the ratio
  --lr-batch N               of the sizes, sqrt by its square root; default: do not scale
  --schedule KIND          Change the rate over the steps: constant, linear, cosine, inverse_sqrt, one_cycle (up and down,
                           along half cosines), one_cycle_linear, range_test (up, by equal factors) or
                           range_test_linear; default constant. A range test ends when the loss diverges or is
                           not a number, and suggests the rate at which it fell fastest
  --warmup N               Raise the rate to RATE over the first N steps; default 0, with one_cycle 0.3 of the steps
  --min-lr SHARE           End at this share of RATE: one_cycle in the last step, linear and cosine one step later;
                           inverse_sqrt goes no lower. Default 0
  --first-lr SHARE         Begin one_cycle (default 0.04) or range_test (default 1e-6) with this share of RATE
Gradual pruning, for a model that partita compile --keep-zeros wrote
  --prune-schedule B:E:N   Set the smallest weights to zero after step B (0: before the first) and after every N steps up
                           to step E, which N must reach
  --prune-sparsity [F:]L   Zeros are this share of the weights: F after step B, L after step E, in between
                           L + (F - L) (1 - (step - B) / (E - B))^3; default F: 0
  --prune-weights GLOBS    Prune these matrices, separated by ';', as given to --keep-zeros; !GLOB leaves some alone
  --prune-global           Choose the smallest of all these weights together, not of each one
Steps of 0/1 Adam, for a folder that partita compile --train 0/1-adam wrote
  --variance-until N       Update the variance in some of the first N steps, and exchange something in each of them;
                           default: the warm-up of the rate, or a tenth of the steps
  --variance-doubling N    Double the interval between these updates after N of them; default 16
  --local-doubling N       Then double the interval between exchanges every N steps; default: an eighth of the rest
  --local-limit N          Let this interval grow to N steps; default 16
Reports
  --log FILE.jsonl         Write a JSON object per step; --resume continues the file
  --events DIR             Write event files for TensorBoard
  --peak-flops X           Report the share of this peak FLOP/s per device
  --quiet                  Print no progress
  --debug-nan              Check all numbers of all steps (slower): if the loss or a parameter is not finite, name the
                           operation that made the first such number, and stop
  --json                   Print one JSON object at the end instead of tables
Checkpoints
  --checkpoint-dir DIR     Save checkpoints in DIR; the last step is always saved
  --checkpoint-every N     Save a checkpoint every N steps; default: only the last step
  --keep N                 Keep the newest N checkpoints; default 3
  --resume                 Continue from the newest checkpoint, or from the beginning if there is none
Execution
  --threads N              Use N threads over all devices of this process; default: one per processor
  --devices N              Run N devices as threads of this process; must equal the number that the model was
                           compiled for, which is the default. Under mpirun, srun and torchrun each process is one
  --timeout SECONDS        Fail if a device makes no progress for this long; default 60
  --offload-dir DIR        Keep optimizer states in files in DIR, which must exist, one per device: read them before their
                           update and write them behind it. The files are removed at the end. On CPUs. Default: as the
                           plan says (offload)
  --offload-buffers BYTES  Limit a device's buffers for these states; default: three times the states of the largest
                           tensor, at least 3 MiB
  --weights-dir DIR        Resolve relative weight paths in DIR; default: the model's folder
)",
      DeviceHelp(/*trains=*/true),
      R"(  --share-gpu              Run all devices of this machine on GPU 0, in turns, each with its own streams and memory.
                           Threads of one process exchange in its memory, several processes through host memory.
                           To check a divided model with one GPU, whose memory must hold all devices
  --help                   Print this text

Ctrl-C, SIGTERM and SIGUSR1 finish the step, save a checkpoint and end the run; the second one ends it at once.
Exit code: 0 success, 1 invalid files or inputs, 2 wrong command line, 70 a bug in Partita.
)");
}

}  // namespace partita::tools
