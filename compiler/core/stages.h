// Divides a model into pipeline stages.
#ifndef PARTITA_COMPILER_CORE_STAGES_H_
#define PARTITA_COMPILER_CORE_STAGES_H_

#include <limits>
#include <vector>

#include "absl/status/statusor.h"

namespace partita::core {

// An indivisible part of the model: an operation or a layer. No field is
// negative.
struct Piece {
  double time = 0;     // forward and backward of one microbatch
  double weights = 0;  // bytes held throughout: parameters, optimizer state ...
  double saved = 0;    // bytes held per microbatch in flight
  double output = 0;   // bytes sent if the next piece is in another stage
};

struct StageLimits {
  int stages = 1;
  // Microbatches in flight per stage, see PeakInFlight; empty: 1 each.
  std::vector<int> in_flight;
  // Upper bound in bytes for the weights and saved values of a stage. If a rank
  // runs several stages, the caller divides the rank's memory among them.
  double memory = std::numeric_limits<double>::infinity();
};

struct StageCut {
  std::vector<int> first;      // [stages] the first piece of each stage
  std::vector<double> time;    // [stages]
  std::vector<double> memory;  // [stages]
  double sent = 0;             // total output bytes at all cuts
};

// Cuts the pieces, given in execution order, into stages of at least one piece.
// Minimises the time of the slowest stage, then the bytes sent, then the
// imbalance between stages. The result is optimal; the run time is about
// pieces^2. Returns an error if no cut fits the memory limit, with the smallest
// memory that any cut needs.
absl::StatusOr<StageCut> BalanceStages(const std::vector<Piece>& pieces,
                                       const StageLimits& limits);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_STAGES_H_
