// Every flag, and errors in command lines.
#include "runtime/tools/train_options.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::tools {
namespace {

using ::testing::HasSubstr;

TEST(TrainOptionsTest, Defaults) {
  const TrainOptions options =
      ParseTrainOptions({"m.partita", "--data", "a.bin", "--steps=5"}).value();
  EXPECT_EQ(options.run.model, "m.partita");
  EXPECT_EQ(options.data, "a.bin");
  EXPECT_EQ(options.schedule.steps, 5);
  EXPECT_EQ(options.schedule.rate, 1e-3);
  EXPECT_EQ(options.schedule.kind, train::Schedule::Kind::kConstant);
  EXPECT_EQ(options.keep, 3);
  EXPECT_EQ(options.checkpoint_every, 0);
  EXPECT_TRUE(options.source.order.shuffle);
  EXPECT_EQ(options.source.order.epochs, 0);
  EXPECT_EQ(options.source.to, 1);
  EXPECT_FALSE(options.resume || options.quiet || options.debug_nan ||
               options.run.json || options.run.share_gpu);
  EXPECT_EQ(options.run.device, "");
}

TEST(TrainOptionsTest, EveryFlag) {
  const TrainOptions options = ParseTrainOptions({"--data",
                                                  "x.txt",
                                                  "m.partita",
                                                  "--input",
                                                  "mask=ones",
                                                  "--data-range",
                                                  "0.1:0.9",
                                                  "--vocabulary",
                                                  "256",
                                                  "--pixel-mean=0.5",
                                                  "--pixel-deviation",
                                                  "0.25",
                                                  "--epochs",
                                                  "2",
                                                  "--seed=7",
                                                  "--steps",
                                                  "5000000000",
                                                  "--lr",
                                                  "3e-4",
                                                  "--schedule",
                                                  "cosine",
                                                  "--warmup",
                                                  "100",
                                                  "--min-lr",
                                                  "0.1",
                                                  "--log",
                                                  "run.jsonl",
                                                  "--events=ev",
                                                  "--peak-flops",
                                                  "1e12",
                                                  "--checkpoint-dir",
                                                  "ckpt",
                                                  "--checkpoint-every",
                                                  "50",
                                                  "--keep",
                                                  "2",
                                                  "--threads",
                                                  "3",
                                                  "--devices",
                                                  "4",
                                                  "--timeout",
                                                  "2",
                                                  "--weights-dir",
                                                  "w",
                                                  "--offload-dir",
                                                  "states",
                                                  "--offload-buffers=5000",
                                                  "--device",
                                                  "cuda",
                                                  "--share-gpu",
                                                  "--no-shuffle",
                                                  "--resume",
                                                  "--quiet",
                                                  "--debug-nan",
                                                  "--json"})
                                   .value();
  EXPECT_EQ(options.run.inputs[0].second, "ones");
  EXPECT_EQ(options.source.from, 0.1);
  EXPECT_EQ(options.source.to, 0.9);
  EXPECT_EQ(options.source.vocabulary, 256);
  EXPECT_EQ(options.source.mean, 0.5);
  EXPECT_EQ(options.source.deviation, 0.25);
  EXPECT_EQ(options.source.order.epochs, 2);
  EXPECT_EQ(options.source.order.seed, 7u);
  EXPECT_FALSE(options.source.order.shuffle);
  EXPECT_EQ(options.seed, 7);
  EXPECT_EQ(options.schedule.steps, 5000000000);
  EXPECT_EQ(options.schedule.rate, 3e-4);
  EXPECT_EQ(options.schedule.kind, train::Schedule::Kind::kCosine);
  EXPECT_EQ(options.schedule.warmup, 100);
  EXPECT_EQ(options.schedule.minimum, 0.1);
  EXPECT_EQ(options.log, "run.jsonl");
  EXPECT_EQ(options.events, "ev");
  EXPECT_EQ(options.peak_flops, 1e12);
  EXPECT_EQ(options.checkpoint_dir, "ckpt");
  EXPECT_EQ(options.checkpoint_every, 50);
  EXPECT_EQ(options.keep, 2);
  EXPECT_EQ(options.run.threads, 3);
  EXPECT_EQ(options.run.devices, 4);
  EXPECT_EQ(options.run.timeout, 2);
  EXPECT_EQ(options.run.weights_dir, "w");
  EXPECT_EQ(options.run.offload_dir, "states");
  EXPECT_EQ(options.run.offload_buffers, 5000);
  EXPECT_EQ(options.run.device, "cuda");
  EXPECT_TRUE(options.run.share_gpu);
  EXPECT_TRUE(options.resume && options.quiet && options.debug_nan &&
              options.run.json);
}

std::string Error(std::vector<std::string> more,
                  const std::vector<std::string>& start = {
                      "m", "--data", "d.bin", "--steps", "5"}) {
  more.insert(more.begin(), start.begin(), start.end());
  return std::string(ParseTrainOptions(more).status().message());
}

TEST(TrainOptionsTest, Refusals) {
  EXPECT_EQ(Error({}, {"--steps", "1", "--data", "d"}),
            "expected a model, found none");
  EXPECT_EQ(Error({}, {"m", "--data", "d"}),
            "expected --steps N, how many steps the run has");
  EXPECT_EQ(Error({}, {"m", "--steps", "1"}),
            "expected --data, or --input for each input of the model, found "
            "neither");
  EXPECT_EQ(Error({"--steps", "0"}),
            "--steps: expected a whole number of at least 1, found '0'");
  EXPECT_EQ(Error({"--lr", "0"}),
            "--lr: expected a positive number, found '0'");
  EXPECT_EQ(Error({"--lr", "nan"}),
            "--lr: expected a positive number, found 'nan'");
  EXPECT_EQ(Error({"--min-lr", "2"}),
            "--min-lr: expected a share of --lr from 0 to 1, found '2'");
  EXPECT_EQ(Error({"--schedule", "sine"}),
            "--schedule: expected constant, linear, cosine, inverse_sqrt, "
            "one_cycle, one_cycle_linear, range_test or range_test_linear, "
            "found 'sine'");
  EXPECT_EQ(Error({"--schedule", "range_test", "--warmup", "1"}),
            "--warmup: expected none with a range test, whose rates rise "
            "anyway, found 1");
  EXPECT_EQ(Error({"--first-lr", "1.5"}),
            "--first-lr: expected a share of --lr above 0 and up to 1, found "
            "'1.5'");
  EXPECT_EQ(Error({"--warmup", "6"}),
            "--warmup: expected at most as many steps of warm-up as there are "
            "(5), found 6");
  EXPECT_EQ(Error({"--resume"}),
            "--resume: expected --checkpoint-dir DIR as well");
  EXPECT_EQ(Error({"--checkpoint-every", "5"}),
            "--checkpoint-every: expected --checkpoint-dir DIR as well");
  EXPECT_THAT(Error({"--data-range", "0.9:0.1"}),
              HasSubstr("--data-range: expected two shares from 0 to 1, the "
                        "smaller first, as 0:0.9, found '0.1'"));
  EXPECT_THAT(Error({"--data-range", "half"}), HasSubstr("found 'half'"));
  EXPECT_EQ(Error({"--device", "tpu"}),
            "--device: expected cpu or cuda, found 'tpu'");
  EXPECT_EQ(Error({"--device", "null"}),
            "--device: expected cpu or cuda, found 'null', which executes "
            "nothing and so cannot train; partita-run MODEL --device null "
            "plans and counts");
  EXPECT_EQ(Error({"--device", "cpu", "--share-gpu"}),
            "--share-gpu: expected devices that are GPUs, found --device cpu; "
            "leave out one of the two");
  EXPECT_EQ(Error({"--repeat", "3"}), "unknown option '--repeat'");
  EXPECT_EQ(Error({"--keep"}), "--keep: expected a value, found nothing");
}

TEST(TrainOptionsTest, OptionsOfOtherSchedules) {
  EXPECT_EQ(Error({"--schedule", "one_cycle", "--first-lr", "0"}),
            "--first-lr: expected a share of --lr above 0 and up to 1, found "
            "'0'");
  for (const char* kind : {"constant", "linear", "cosine", "inverse_sqrt"})
    EXPECT_EQ(Error({"--schedule", kind, "--first-lr", "0.1"}),
              std::string("--first-lr: expected --schedule one_cycle, "
                          "one_cycle_linear, range_test or range_test_linear, "
                          "found ") +
                  kind);
  for (const char* kind : {"constant", "range_test", "range_test_linear"})
    EXPECT_EQ(
        Error({"--schedule", kind, "--min-lr", "0.1"}),
        std::string("--min-lr: expected a --schedule whose rates fall: linear, "
                    "cosine, inverse_sqrt, one_cycle or one_cycle_linear, "
                    "found ") +
            kind);
  EXPECT_EQ(Error({"--schedule", "one_cycle", "--steps", "1"}),
            "--steps: expected at least 2 with --schedule one_cycle, which "
            "rises and falls, found 1");
  for (const char* kind : {"one_cycle", "one_cycle_linear"})
    EXPECT_EQ(
        Error({"--schedule", kind, "--first-lr", "0.1", "--min-lr", "0.01"}),
        "");
  EXPECT_EQ(Error({"--schedule", "inverse_sqrt", "--min-lr", "0.1"}), "");
  EXPECT_EQ(Error({"--schedule", "range_test", "--first-lr", "0.1"}), "");
}

TEST(TrainOptionsTest, Help) {
  EXPECT_TRUE(ParseTrainOptions({"--help"}).value().run.help);
  const std::string help = TrainHelp();
  for (const char* flag : {"--data ",
                           "--input",
                           "--data-range",
                           "--vocabulary",
                           "--pixel-mean",
                           "--pixel-deviation",
                           "--epochs",
                           "--no-shuffle",
                           "--seed",
                           "--steps",
                           "--lr",
                           "--schedule",
                           "--warmup",
                           "--min-lr",
                           "--log",
                           "--events",
                           "--peak-flops",
                           "--quiet",
                           "--json",
                           "--checkpoint-dir",
                           "--checkpoint-every",
                           "--keep",
                           "--resume",
                           "--threads",
                           "--devices",
                           "--timeout",
                           "--weights-dir",
                           "--device ",
                           "--share-gpu"})
    EXPECT_THAT(help, HasSubstr(flag));
  EXPECT_THAT(help, HasSubstr("To check a divided model"));
  EXPECT_THAT(help,
              HasSubstr("\n  --device cpu|cuda        Run on this kind of "
                        "device; default: the target that the model was "
                        "compiled for\n  --share-gpu"));
}

TEST(TrainOptionsTest, RulesForBatches) {
  const TrainOptions options =
      ParseTrainOptions({"m.partita", "--data", "a.bin", "--steps=5",
                         "--lr-batch-rule", "sqrt", "--lr-batch=256"})
          .value();
  EXPECT_EQ(options.lr_batch_rule, train::BatchRule::kSqrt);
  EXPECT_EQ(options.lr_batch, 256);
  EXPECT_THAT(ParseTrainOptions({"m.partita", "--data", "a.bin", "--steps=5",
                                 "--lr-batch-rule", "linear"})
                  .status()
                  .message(),
              HasSubstr("--lr-batch-rule: expected --lr-batch N as well"));
  EXPECT_THAT(ParseTrainOptions({"m.partita", "--data", "a.bin", "--steps=5",
                                 "--lr-batch", "8"})
                  .status()
                  .message(),
              HasSubstr("--lr-batch: expected --lr-batch-rule"));
}

}  // namespace
}  // namespace partita::tools
