// Which cuts of equal layers into stages are worth a timetable.
#ifndef PARTITA_COMPILER_PLANNER_STAGE_CUT_H_
#define PARTITA_COMPILER_PLANNER_STAGE_CUT_H_

#include <cstdint>
#include <vector>

#include "compiler/planner/layer_cost.h"
#include "compiler/planner/least_memory.h"

namespace partita::planner {

// Seconds of one microbatch on one rank of a stage, both passes but where it is
// said.
struct ModelWork {
  double layer = 0, layer_forward = 0;
  double embedding = 0, embedding_forward = 0;
  double head = 0;
  double total = 0;  // of all layers, a t5's decoder too
};
// Does not depend on the division's cut; on pp, vpp and schedule only by
// SameEnds, on dp and zero only by its sums (SumsOf).
ModelWork WorkOf(const Setting& setting);

struct StageCut {
  std::vector<int64_t> layers;  // of each stage; empty: the even cut
  // What the microbatches of a step take at least: the longest rank's waiting
  // for its first, and its work.
  double least = 0;
};

struct StageCuts {
  std::vector<StageCut> cuts;  // the shortest `least` first
  // What any other cut within the memory takes at least, infinite if there is
  // none.
  double others = 0;
};

// Whether all cuts are tried.
bool HasFewCuts(int64_t layers, int stages);

// All cuts where those are few. Otherwise those that relieve the first and the
// last stages, which also have the embedding and the head, and wait longest;
// and one within the memory: the cut of the shortest `least` that there is, by
// dynamic programming, or where a rank has several stages, the one with the
// most even ranks. `most` is as LayersThatFit says.
StageCuts CutsWorthTrying(const Setting& setting, const ModelWork& work,
                          const std::vector<int64_t>& most);

// How many layers each rank has room for at the most, dealt to its stages in
// that way; empty where no cut fits.
std::vector<int64_t> LayersThatFit(const Setting& setting, LeastMemory& least,
                                   LeastMemory::Dealt dealt);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_STAGE_CUT_H_
