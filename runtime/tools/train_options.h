// The command line of partita-run train.
#ifndef PARTITA_RUNTIME_TOOLS_TRAIN_OPTIONS_H_
#define PARTITA_RUNTIME_TOOLS_TRAIN_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/open_source.h"
#include "runtime/session/pruner.h"
#include "runtime/tools/run_options.h"
#include "runtime/train/schedule.h"
#include "runtime/train/zero_one_schedule.h"

namespace partita::tools {

struct TrainOptions {
  RunOptions run;    // model, inputs, devices, threads, help, json ...
  std::string data;  // as in data::OpenSource; empty: --input gives all inputs
  data::SourceOptions source;
  int64_t seed = 0;  // of the data order and of the program
  train::Schedule schedule;
  // The schedule's rate applies to batches of lr_batch examples; lr_batch is at
  // least 1 if there is a rule.
  train::BatchRule lr_batch_rule = train::BatchRule::kNone;
  int64_t lr_batch = 0;
  train::ZeroOneSchedule zero_one;  // of a folder of 0/1 Adam's steps
  session::PruneOptions pruning;
  std::string log;
  std::string events;
  bool quiet = false;
  bool debug_nan = false;
  double peak_flops = 0;  // per second and device; 0: unknown
  std::string checkpoint_dir;
  int64_t checkpoint_every = 0;  // in steps; 0: only at the end
  int keep = 3;
  bool resume = false;
};

// `arguments` exclude the program's name and "train". InvalidArgument says
// which argument is wrong and what was expected.
absl::StatusOr<TrainOptions> ParseTrainOptions(
    const std::vector<std::string>& arguments);

// The text of --help.
std::string TrainHelp();

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_TRAIN_OPTIONS_H_
