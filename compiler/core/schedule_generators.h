// Generators of the known pipeline schedules.
//
// All compute a stage's gradients in the order of the microbatches, so that
// their sums are bitwise equal under every schedule. `ranks`, `microbatches`
// and `chunks` are at least 1. Every result passes CheckSchedule. S is the
// number of ranks, m of microbatches.
#ifndef PARTITA_COMPILER_CORE_SCHEDULE_GENERATORS_H_
#define PARTITA_COMPILER_CORE_SCHEDULE_GENERATORS_H_

#include "absl/status/statusor.h"
#include "compiler/core/schedule.h"

namespace partita::core {

// All forwards, then all backwards (Huang et al., 2019). One stage per rank;
// all m microbatches in flight. Bubble: (S-1)/(m+S-1).
Schedule GPipe(int ranks, int microbatches);

// One forward, one backward (DAPPLE, Fan et al., 2021; PipeDream-flush). Same
// bubble as GPipe; at most S - s microbatches in flight on stage s.
Schedule OneForwardOneBackward(int ranks, int microbatches);

// Stage s runs on rank s mod S, with `chunks` (v) stages per rank and
// microbatches in groups of S (Narayanan et al., 2021). Bubble: (S-1)/(v*m+S-1)
// if S divides m; other m have a larger bubble.
Schedule Interleaved(int ranks, int chunks, int microbatches);

// Weight gradients fill the bubble. No stage has more microbatches in flight
// than the first stage of 1F1B (ZB-H1 of Qi et al., 2023). If forward, input
// gradient and weight gradient have equal costs, the bubble is (S-1)/(3m+S-1)
// for m >= S.
Schedule ZeroBubbleH1(int ranks, int microbatches);

// Two stages per rank: s and 2S-1-s, so that the first and the last stage share
// a rank (ZB-V of Qi et al., 2023). For m >= 2S-1 and equal costs, no rank
// waits between its first and its last cell.
Schedule ZeroBubbleV(int ranks, int microbatches);

// 1F1B without flushes. The microbatches of step t use weights with t-1
// updates, in both passes and on every stage; each stage holds two versions
// (PipeDream-2BW, Narayanan et al., 2021). Requires m >= S-1, so that updates
// complete in time; returns an error otherwise.
absl::StatusOr<Schedule> Async2bw(int ranks, int microbatches);

// 1F1B without flushes. A forward uses the newest weights; its backward uses
// the same version, which is kept until then (PipeDream, Narayanan et al.,
// 2019).
Schedule Async(int ranks, int microbatches);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_SCHEDULE_GENERATORS_H_
