// The report that a training run prints when it ends.
#ifndef PARTITA_RUNTIME_TOOLS_TRAIN_REPORT_H_
#define PARTITA_RUNTIME_TOOLS_TRAIN_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/executor/executor.h"
#include "runtime/train/trainer.h"

namespace partita::tools {

struct TrainReport {
  std::string model;
  int devices = 1;
  int64_t first_step = 1;  // of this session
  int64_t steps = 1;       // of the whole run
  train::TrainResult result;
  // Of a range test: the rate at which the loss fell fastest, and true if the
  // loss diverged, which ended the run.
  bool is_range_test = false, diverged = false;
  std::optional<double> suggested_rate;
  // Examples in a batch beyond which larger ones hardly save steps; none if it
  // is not known yet. Only if the program measures the noise of gradients.
  bool measures_noise = false;
  std::optional<double> noise_scale;
  std::string signal;                // signal that ended the run; empty: none
  int64_t examples = 0, tokens = 0;  // per batch; 0: unknown, or not text
  double flops_per_step = 0;
  std::string checkpoint_dir;
  executor::MemoryUse memory;
  std::vector<executor::RankUse> ranks;  // of a pipeline; else empty
  int64_t peak_process_bytes = 0;
  std::vector<std::string> warnings;  // RankGroup::Warnings
};

// Tables of losses, speed and memory. Losses have 6 significant digits: all of
// a short run, else the first, the last and some between at equal distances.
std::string ToTables(const TrainReport& report);

// One JSON object with all losses.
std::string ToJson(const TrainReport& report);

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_TRAIN_REPORT_H_
