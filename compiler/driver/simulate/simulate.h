// Simulates a compiled program on the model of a cluster.
#ifndef PARTITA_COMPILER_DRIVER_SIMULATE_SIMULATE_H_
#define PARTITA_COMPILER_DRIVER_SIMULATE_SIMULATE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "llvm/Support/JSON.h"

namespace partita::driver {

struct SimulateArguments {
  std::string artifact;
  std::string cluster;  // a file or a name; see planner/cluster/cluster.h
  std::vector<std::string> faults;  // see simulator/faults.h
  std::string trace;                // a file to write; empty: none
  std::string html;                 // a report to write; empty: none
  std::string choice;               // a file for readChoice; empty: none
  int64_t operations = 10;          // most expensive operations to list
};

// Writes the files and returns "step_seconds", "bubble", "exposed", "ranks"
// (times and memory of each), "operations" and more. Refuses a cluster that has
// fewer devices than the program, or devices that do not support its precision.
absl::StatusOr<llvm::json::Value> simulateArtifact(
    const SimulateArguments& arguments);

void printSimulation(const llvm::json::Value& value, llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_SIMULATE_SIMULATE_H_
