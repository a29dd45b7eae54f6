// A compiled program on the model of a cluster, for people and for programs.
#ifndef PARTITA_COMPILER_DRIVER_SIMULATE_SIMULATE_H_
#define PARTITA_COMPILER_DRIVER_SIMULATE_SIMULATE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "llvm/Support/JSON.h"

namespace partita::driver {

struct SimulateArguments {
  std::string artifact;
  std::string cluster;  // a file or a name, as planner/cluster/cluster.h
  std::vector<std::string> faults;  // as simulator/faults.h
  std::string trace;                // a file to write; empty: none
  std::string html;                 // the same, of a report
  std::string choice;               // a file to read, as readChoice; or empty
  int64_t operations = 10;          // how many of the most expensive
};

// Writes the files and returns "step_seconds", "bubble", "exposed", "ranks"
// (where the time of each went, and its memory), "operations" ... Refuses a
// cluster that has fewer devices than the program, or devices that do not
// compute in its precision.
absl::StatusOr<llvm::json::Value> simulateArtifact(
    const SimulateArguments& arguments);

void printSimulation(const llvm::json::Value& value, llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_SIMULATE_SIMULATE_H_
