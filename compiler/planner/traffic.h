// What the devices of a step of Partita's own programs send each other: what
// the compiler writes for a transformer and a plan, without compiling it
// (tests/e2e/two_routes_test.py compares them).
#ifndef PARTITA_COMPILER_PLANNER_TRAFFIC_H_
#define PARTITA_COMPILER_PLANNER_TRAFFIC_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/planner/architecture.h"

namespace partita::planner {

struct Traffic {
  std::string kind;  // "all_reduce", "all_gather", "reduce_scatter", "send"
  std::string axes;  // "data", "tensor", "data,tensor"; of a send ""
  double bytes = 0;  // of the larger of input and output, on one device
  double calls = 0;  // a step's, mean of all devices
  // Gradients and parameters: how many collectives carry these bytes is the
  // compiler's choice of buckets.
  bool bucketed = false;
};

// Scalars apart (of the loss). Of kGpt and kLlama; with cp and zero 3 there is
// no such description yet: an error that says so.
absl::StatusOr<std::vector<Traffic>> EvaluateTraffic(
    const Architecture& architecture, const Division& division);

// "all_reduce over tensor: 5 x 8192, 34 x 1048576; ...", buckets as "1 x".
std::string ToString(const std::vector<Traffic>& traffic);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_TRAFFIC_H_
