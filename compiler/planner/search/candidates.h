// Enumerates all divisions that a request leaves open, without cuts into
// stages.
#ifndef PARTITA_COMPILER_PLANNER_SEARCH_CANDIDATES_H_
#define PARTITA_COMPILER_PLANNER_SEARCH_CANDIDATES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "compiler/planner/search/search.h"

namespace partita::planner {

// Calls `visit` with every division over all devices of the request's cluster
// whose sizes are compatible (CheckDivision), until `visit` returns false. The
// microbatch divides the sequences per data-parallel rank. More than one stage
// per rank must divide the layers evenly, except in models of few layers. A
// division with states on the host follows the same division without, if the
// host has room for the states of an even cut.
void ForEachDivision(const Request& request,
                     const std::function<bool(const Division&)>& visit);

// The smallest number of devices that the fixed sizes allow. All allowed
// numbers are multiples of it. 0 if the fixed sizes contradict the model, the
// batch or each other.
int64_t DevicesOfFixed(const Request& request);

// Refuses a fixed choice that no division of the request can have, whatever the
// other choices are, and says which values are possible.
absl::Status CheckFixed(const Request& request);
// Cells of the timetables needed to evaluate a division: the effort of
// evaluating it.
int64_t CellsOf(const Division& division);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_SEARCH_CANDIDATES_H_
