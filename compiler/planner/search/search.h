// Searches for the fastest division of a model and a batch on a cluster.
// Considers every division that a plan can express, judged by Evaluate.
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

// Choices that the user has made. The search keeps them.
struct FixedChoices {
  std::optional<int> tp, pp, dp, cp, ep, vpp, zero;
  std::optional<bool> sequence_parallel, offload;
  std::optional<Recomputation> recompute;
  std::optional<int64_t> microbatch;
  // The allowed schedules. GPipe is never better than 1F1B, so it is only tried
  // if requested.
  std::vector<PipelineSchedule> schedules = {
      PipelineSchedule::k1F1B, PipelineSchedule::kZbH1, PipelineSchedule::kZbV};
};

struct Request {
  Architecture architecture;
  Cluster cluster;    // the division uses all its devices
  int64_t batch = 1;  // sequences per step
  core::Precision precision = core::Precision::kBF16;
  double memory = 0;  // bytes per device; 0: what the device has
  FixedChoices fixed;
  const Software* software = &OwnSoftware();
  // Number of meshes to find the best division of, including the chosen one.
  int meshes = 6;
  // Upper bound on timetable cells to compute. It bounds the search time.
  int64_t effort = 24'000'000;
};

struct Choice {
  Division division;
  Prediction prediction;
};

struct SearchResult {
  // The best division of each mesh (tp, pp, dp, cp), fastest first. The first
  // one is the division to take. Equal times are ordered by memory. A division
  // with a smaller cp comes first if it is less than 0.1 % slower.
  std::vector<Choice> choices;
  // No division within the limit has a step below (1 - gap) times the first
  // one's. 0: the search is exact. This covers all divisions of ForEachDivision
  // (candidates.h), cut into stages evenly.
  double gap = 0;
  int64_t considered = 0;  // divisions with compatible sizes
  int64_t evaluated = 0;   // divisions with a timetable
};

// Refuses a request that the devices cannot divide, and says what they could.
// Refuses a limit that nothing fits in, and says by how much and what would
// fit.
absl::StatusOr<SearchResult> Search(const Request& request);

// The fixed choices, e.g. "tp=8, zero=1, schedule=1f1b". Empty if there are
// none.
std::string Describe(const FixedChoices& fixed);

// A readable text: "tp 8 x pp 4 x dp 6, 1f1b, microbatch 2, ...".
std::string Describe(const Division& division);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_SEARCH_SEARCH_H_
