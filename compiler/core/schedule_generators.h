// The known pipeline schedules, each the generator of a table.
//
// All give a stage's gradients in the order of the microbatches, so that sums
// of them have the same bits under every schedule. `ranks`, `microbatches` and
// `chunks` are at least 1; every result passes CheckSchedule.
#ifndef PARTITA_COMPILER_CORE_SCHEDULE_GENERATORS_H_
#define PARTITA_COMPILER_CORE_SCHEDULE_GENERATORS_H_

#include "absl/status/statusor.h"
#include "compiler/core/schedule.h"

namespace partita::core {

// All forwards, then all backwards (Huang et al., 2019). One stage a rank; all
// m microbatches in flight. Bubble: (S-1)/(m+S-1).
Schedule GPipe(int ranks, int microbatches);

// One forward, one backward (DAPPLE, Fan et al., 2021; PipeDream-flush). The
// same bubble; stage s keeps at most S - s microbatches in flight.
Schedule OneForwardOneBackward(int ranks, int microbatches);

// Stage s on rank s mod S, `chunks` (v) stages a rank, microbatches in groups
// of S (Narayanan et al., 2021). Bubble: (S-1)/(v*m+S-1) where S divides m;
// other m run, with more of it.
Schedule Interleaved(int ranks, int chunks, int microbatches);

// Weight gradients fill the bubble, with no more in flight anywhere than 1F1B's
// first stage has (ZB-H1 of Qi et al., 2023). Where forward, input gradient and
// weight gradient cost the same: (S-1)/(3m+S-1) for m >= S.
Schedule ZeroBubbleH1(int ranks, int microbatches);

// Two stages a rank: s and 2S-1-s, so that the last stage is beside the first
// (ZB-V of the same). For m >= 2S-1 and equal costs no rank waits between its
// first cell and its last.
Schedule ZeroBubbleV(int ranks, int microbatches);

// 1F1B without a flush: the microbatches of step t compute with the weights of
// t-1 updates, in both passes and on every stage, of which two are kept
// (PipeDream-2BW, Narayanan et al., 2021). Those are complete in time only if
// m >= S-1: fewer are refused.
absl::StatusOr<Schedule> Async2bw(int ranks, int microbatches);

// 1F1B without a flush: a forward computes with the newest weights, its
// backward with the same, kept until then (PipeDream, Narayanan et al., 2019).
Schedule Async(int ranks, int microbatches);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_SCHEDULE_GENERATORS_H_
