// All divisions that a request leaves open, without their cuts into stages.
#ifndef PARTITA_COMPILER_PLANNER_SEARCH_CANDIDATES_H_
#define PARTITA_COMPILER_PLANNER_SEARCH_CANDIDATES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "compiler/planner/search/search.h"

namespace partita::planner {

// Calls `visit` with every division over all devices of the request's cluster
// whose sizes go together (CheckDivision). Stages of a rank, and microbatches,
// are as many as divide what there is. States are on the host where it holds
// those of an even cut, and right behind the same division without. Until
// `visit` says false.
void ForEachDivision(const Request& request,
                     const std::function<bool(const Division&)>& visit);

// The fewest devices of which all numbers that the fixed sizes can have are
// multiples; 0 where the model, the batch or each other forbid those at once.
int64_t DevicesOfFixed(const Request& request);

// Refuses a fixed choice that no division of the request has, whatever the
// others are, with what it could be.
absl::Status CheckFixed(const Request& request);
// Of the timetables that evaluating a division makes: what that takes.
int64_t CellsOf(const Division& division);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_SEARCH_CANDIDATES_H_
