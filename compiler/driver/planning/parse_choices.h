// Parses --row (sizes of a model) and --fix (choices that the search must
// keep).
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_PARSE_CHOICES_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_PARSE_CHOICES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/planner/published/sweep.h"
#include "compiler/planner/search/search.h"

namespace partita::driver {

// "layers=96,hidden=12288,heads=96,seq_len=2048": a row of a sweep without the
// columns that the planner chooses. Returns its architecture and software.
absl::StatusOr<planner::SweepRow> parseRow(const std::string& text);

// "tp=8,zero=1,schedule=1f1b": choices that the search must keep.
absl::StatusOr<planner::FixedChoices> parseFixed(
    const std::vector<std::string>& texts);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_PARSE_CHOICES_H_
