// What is not as it should be on a machine.
#ifndef PARTITA_COMPILER_SIMULATOR_FAULTS_H_
#define PARTITA_COMPILER_SIMULATOR_FAULTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace partita::simulator {

// Shares of the speed that there should be, greater than 0.
struct Faults {
  std::map<int64_t, double> devices;  // of computing, by rank
  // Of the bandwidth between two ranks, the lower one first; or between a rank
  // and all others, {rank, -1}: latency stays. A collective whose group has
  // such a link has no more than its bandwidth.
  std::map<std::pair<int64_t, int64_t>, double> links;

  // Of computing on `rank`: how many times longer it takes.
  double Slowness(int64_t rank) const;
  // How many times longer a byte takes between two ranks, or among those of a
  // group.
  double LinkSlowness(int64_t from, int64_t to) const;
  double GroupSlowness(const std::vector<int64_t>& ranks) const;
};

// "device=3:0.5", "link=0-1:0.1", "link=2:0.5". Refuses what is written
// otherwise, ranks of no device of `devices`, and what is said twice.
absl::StatusOr<Faults> ParseFaults(const std::vector<std::string>& texts,
                                   int64_t devices);

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_FAULTS_H_
