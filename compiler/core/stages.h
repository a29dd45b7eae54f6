// Where to cut a model into pipeline stages.
#ifndef PARTITA_COMPILER_CORE_STAGES_H_
#define PARTITA_COMPILER_CORE_STAGES_H_

#include <limits>
#include <vector>

#include "absl/status/statusor.h"

namespace partita::core {

// What is not cut: an operation or a layer. Nothing is negative.
struct Piece {
  double time = 0;     // of forward and backward of one microbatch
  double weights = 0;  // bytes kept throughout: parameters, optimizer state ...
  double saved = 0;    // bytes kept for each microbatch in flight
  double output = 0;   // bytes that would be sent if a cut came after it
};

struct StageLimits {
  int stages = 1;
  // Microbatches in flight per stage, PeakInFlight's; empty: 1 everywhere.
  std::vector<int> in_flight;
  // Bytes that a stage's weights and saved values may take. Where a rank runs
  // several stages, the caller says how much of it each may have.
  double memory = std::numeric_limits<double>::infinity();
};

struct StageCut {
  std::vector<int> first;      // [stages] the first piece of each
  std::vector<double> time;    // [stages]
  std::vector<double> memory;  // [stages]
  double sent = 0;             // output of all that a cut comes after
};

// Cuts the pieces, which are in the order of computation, into stages of at
// least one piece, so that the slowest stage is as fast as can be and, of all
// such cuts, the least is sent, and then stages are as even as can be. Exact,
// in time about pieces^2. Refuses what no cut fits into, and says how much
// memory the thriftiest would take.
absl::StatusOr<StageCut> BalanceStages(const std::vector<Piece>& pieces,
                                       const StageLimits& limits);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_STAGES_H_
