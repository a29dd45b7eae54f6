// --row and --fix: a model's sizes, and what the search may not choose.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_PARSE_CHOICES_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_PARSE_CHOICES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/planner/published/sweep.h"
#include "compiler/planner/search/search.h"

namespace partita::driver {

// "layers=96,hidden=12288,heads=96,seq_len=2048": a row of a sweep, without
// what is to be chosen: its architecture and its software.
absl::StatusOr<planner::SweepRow> parseRow(const std::string& text);

// "tp=8,zero=1,schedule=1f1b": what the search may not choose.
absl::StatusOr<planner::FixedChoices> parseFixed(
    const std::vector<std::string>& texts);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_PARSE_CHOICES_H_
