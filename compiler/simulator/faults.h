// Slow devices and links of a machine.
#ifndef PARTITA_COMPILER_SIMULATOR_FAULTS_H_
#define PARTITA_COMPILER_SIMULATOR_FAULTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace partita::simulator {

// Remaining shares of normal speed, greater than 0.
struct Faults {
  std::map<int64_t, double> devices;  // computing speed, by rank
  // Bandwidth between two ranks, lower rank first, or {rank, -1} for a rank and
  // all others. Latency is unchanged. A collective is limited by the slowest
  // such link in its group.
  std::map<std::pair<int64_t, int64_t>, double> links;

  // Factor by which computing on `rank` takes longer.
  double Slowness(int64_t rank) const;
  // Factor by which a byte takes longer between two ranks, or within a group.
  double LinkSlowness(int64_t from, int64_t to) const;
  double GroupSlowness(const std::vector<int64_t>& ranks) const;
};

// Parses "device=3:0.5", "link=0-1:0.1" and "link=2:0.5". Refuses other texts,
// ranks outside 0 .. devices - 1, and repeated faults.
absl::StatusOr<Faults> ParseFaults(const std::vector<std::string>& texts,
                                   int64_t devices);

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_FAULTS_H_
