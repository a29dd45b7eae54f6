// Why a division was chosen: what the others would cost, what binds it, what
// more of the machine would buy.
#ifndef PARTITA_COMPILER_PLANNER_RATIONALE_H_
#define PARTITA_COMPILER_PLANNER_RATIONALE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/planner/search.h"

namespace partita::planner {

// A part of a step, in seconds.
struct StepPart {
  std::string name;
  double seconds = 0;
};
// Those that are not 0; they add up to the step.
std::vector<StepPart> PartsOf(const Prediction& prediction);

struct Alternative {
  Choice choice;
  double slower = 0;  // of the chosen step: 0.05 is 5 % longer
  // The parts that differ most: what it loses, and what it wins.
  std::string why;
};

// A little more of something, and the seconds of a step that it saves.
struct Gain {
  std::string what;  // "1 GB/s more on nvlink"
  double saved = 0;
};

struct Rationale {
  std::string binds;  // "matrix products, 81 % of the step"
  std::vector<Alternative> alternatives;
  std::vector<Gain> gains;
};

// Of what Search found for that request. Links and memory bandwidth are changed
// under the chosen division; memory is a new search.
absl::StatusOr<Rationale> Rationalize(const Request& request,
                                      const SearchResult& result);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_RATIONALE_H_
