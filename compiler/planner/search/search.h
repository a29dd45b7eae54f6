// The division that a model, a cluster and a batch ask for: everything that
// could be written, judged by Evaluate.
#ifndef PARTITA_COMPILER_PLANNER_SEARCH_SEARCH_H_
#define PARTITA_COMPILER_PLANNER_SEARCH_SEARCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/core/precision.h"
#include "compiler/planner/cluster/cluster.h"
#include "compiler/planner/transformer/architecture.h"
#include "compiler/planner/transformer/evaluate.h"
#include "compiler/planner/transformer/software.h"

namespace partita::planner {

// What the search may not choose.
struct FixedChoices {
  std::optional<int> tp, pp, dp, cp, vpp, zero;
  std::optional<bool> sequence_parallel, offload;
  std::optional<Recomputation> recompute;
  std::optional<int64_t> microbatch;
  // Which there are; GPipe is never better than 1F1B, and is not tried unless
  // asked for.
  std::vector<PipelineSchedule> schedules = {
      PipelineSchedule::k1F1B, PipelineSchedule::kZbH1, PipelineSchedule::kZbV};
};

struct Request {
  Architecture architecture;
  Cluster cluster;    // all its devices are used
  int64_t batch = 1;  // sequences of a step
  core::Precision precision = core::Precision::kBF16;
  double memory = 0;  // bytes per device; 0: what the device has
  FixedChoices fixed;
  const Software* software = &OwnSoftware();
  // How many different meshes to find the best of, the chosen one included.
  int meshes = 6;
  // Cells of timetables to make at the most: what bounds the time of a search.
  int64_t effort = 24'000'000;
};

struct Choice {
  Division division;
  Prediction prediction;
};

struct SearchResult {
  // The best of each mesh (tp, pp, dp, cp), the fastest first: the first one is
  // the division to take. Between equal times less memory decides; one with a
  // smaller cp comes first if it is less than 0.1 % slower.
  std::vector<Choice> choices;
  // No division within the limit takes less than (1 - gap) of the first one's
  // step: 0 where the search is exact. Of all that ForEachDivision has
  // (candidates.h), each cut into stages evenly.
  double gap = 0;
  int64_t considered = 0;  // divisions whose sizes go together
  int64_t evaluated = 0;   // divisions whose timetable was made
};

// Refuses what cannot be divided over the devices, with what could; and a
// limit that nothing fits in, with by how much and what would.
absl::StatusOr<SearchResult> Search(const Request& request);

// "tp=8, zero=1, schedule=1f1b"; empty where nothing is fixed.
std::string Describe(const FixedChoices& fixed);

// "tp 8 x pp 4 x dp 6, 1f1b, microbatch 2, ...": for people.
std::string Describe(const Division& division);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_SEARCH_SEARCH_H_
