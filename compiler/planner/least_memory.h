// Bounds on what divisions take, for a search through very many.
#ifndef PARTITA_COMPILER_PLANNER_LEAST_MEMORY_H_
#define PARTITA_COMPILER_PLANNER_LEAST_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/planner/architecture.h"
#include "compiler/planner/software.h"

namespace partita::planner {

struct Moment;
struct OwnSizes;

// Of one model. Keeps what many divisions have in common; without own_memory
// (software.h) it is EvaluateMemory's bytes themselves.
class LeastMemory {
 public:
  LeastMemory(const Architecture& architecture, const Software& software);
  ~LeastMemory();

  // How a rank's layers are dealt to its stages: kAnyhow looks at all ways for
  // a V, kQuickly at none.
  enum class Dealt { kAnyhow, kQuickly, kEvenly };

  // At most the total of EvaluateRankMemory of a cut that gives the rank so
  // many layers in that way; `cut` is not read.
  double OfRank(const Division& division, int rank, int64_t layers,
                Dealt dealt);
  // At most that of EvaluateMemory, of the division's own cut; and of one rank.
  double Of(const Division& division);
  double OfRank(const Division& division, int rank);

 private:
  using SizesMap =
      std::map<std::tuple<int, int, int64_t, bool, Recomputation, Precision>,
               std::unique_ptr<OwnSizes>>;
  const OwnSizes& SizesOf(const Division& division);
  double OwnBytes(const OwnSizes& sizes, const Division& division, int rank,
                  double layers, double own) const;
  const std::vector<std::vector<Moment>>& MomentsOf(const Division& division);

  const Architecture& a_;
  const Software& software_;
  SizesMap sizes_;
  SizesMap::iterator last_;  // asked for: ranks share it
  // Of a V, by pp and microbatches.
  std::map<std::pair<int, int>, std::vector<std::vector<Moment>>> moments_;
};

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_LEAST_MEMORY_H_
