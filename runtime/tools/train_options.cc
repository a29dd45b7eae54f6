// The flags of partita-run train.
#include "runtime/tools/train_options.h"

#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

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

std::map<std::string, FlagSetter> ValueFlags(TrainOptions& options) {
  const std::string positive = "a positive number";
  return {{"--data", SetString(options.data)},
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
          {"--device", SetDevice(options.run, /*trains=*/true)}};
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
  const absl::Status schedule = train::CheckSchedule(options.schedule);
  return schedule.ok() ? schedule
                       : Wrong(absl::StrCat("--warmup: ", schedule.message()));
}

}  // namespace

absl::StatusOr<TrainOptions> ParseTrainOptions(
    const std::vector<std::string>& arguments) {
  TrainOptions options;
  options.schedule.steps = 0;
  bool in_order = false;
  const Flags flags = {ValueFlags(options),
                       {{"--no-shuffle", &in_order},
                        {"--resume", &options.resume},
                        {"--quiet", &options.quiet},
                        {"--debug-nan", &options.debug_nan},
                        {"--json", &options.run.json},
                        {"--share-gpu", &options.run.share_gpu},
                        {"--help", &options.run.help},
                        {"-h", &options.run.help}}};
  PARTITA_RETURN_IF_ERROR(ParseFlags(arguments, flags, options.run.model));
  options.source.order.shuffle = !in_order;
  options.source.order.seed = static_cast<uint64_t>(options.seed);
  if (!options.run.help) PARTITA_RETURN_IF_ERROR(Check(options));
  return options;
}

std::string TrainHelp() {
  return absl::StrCat(
      R"(usage: partita-run train MODEL.partita [options]

Trains a model that was compiled with --train: runs its step on one batch after another.

  partita-run train gpt.partita --data text.bin --steps 1000 --lr 3e-4 --schedule cosine --warmup 100 \
    --log run.jsonl --checkpoint-dir ckpt --checkpoint-every 100 --resume

Data
  --data SOURCE            where batches come from, one of
)",
      data::SourceHelp(),
      R"(  --input NAME=FILE.npy    an input that is the same in every step, as for partita-run; may be repeated
  --data-range FROM:TO     the part of a token file to draw from, as shares of it; default 0:1
  --vocabulary N           refuses tokens and labels of N and more
  --pixel-mean X           bytes of images become (byte / 255 - mean) / deviation; default 0
  --pixel-deviation X        and 1
  --epochs N               ends when the data was seen N times; default: with --steps
  --no-shuffle             in the order of the data
  --seed N                 of the order of the data, and of dropout; default 0
Steps
  --steps N                the run ends after this step
  --lr RATE                learning rate; default 1e-3
  --lr-batch-rule RULE     linear or sqrt: RATE is for batches of --lr-batch examples, and grows with the model's
  --lr-batch N               as their ratio or its square root
  --schedule KIND          constant, linear, cosine or inverse_sqrt; default constant
  --warmup N               steps in which the rate rises to RATE; default 0
  --min-lr SHARE           of RATE, that linear and cosine come down to after the last step; default 0
Reports
  --log FILE.jsonl         a JSON object per step; --resume continues it
  --events DIR             event files for TensorBoard
  --peak-flops X           FLOP/s that a device can reach, for the share of peak
  --quiet                  no progress
  --debug-nan              looks at all numbers of all steps, slower: where the loss or a parameter is no finite
                           number, says which operation made the first that is not, and stops
  --json                   prints one JSON object at the end in place of tables
Checkpoints
  --checkpoint-dir DIR     where checkpoints lie; the last step is always saved
  --checkpoint-every N     steps between checkpoints; default: only the last step
  --keep N                 how many are kept; default 3
  --resume                 goes on from the newest one, from the beginning where there is none
Execution
  --threads N              shared by the devices of this process; default: one per processor
  --devices N              how many devices, as threads of this process; must be as many as the model was
                           compiled for, which is the default. Under mpirun, srun and torchrun each process is one
  --timeout SECONDS        how long devices wait for one that makes no progress; default 60
  --weights-dir DIR        where relative paths of weights begin; default: the model's folder
  --device cpu|cuda        default: what the model was compiled for
  --share-gpu              all devices of this machine stand on GPU 0, each with its own streams and memory; they
                           exchange in its memory, as several processes through the host's. To check a divided model
                           where there is one GPU: it must hold what all devices need, and they take turns on it
  --help

Ctrl-C, SIGTERM and SIGUSR1 finish the step, save a checkpoint and end the run; the second one ends it at once.
Exit code: 0 success, 1 something is wrong with the files or inputs, 2 wrong command line, 70 a bug of ours.
)");
}

}  // namespace partita::tools
