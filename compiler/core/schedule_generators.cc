// One function per schedule; each appends a rank's cells in order.
#include "compiler/core/schedule_generators.h"

#include <algorithm>

#include "absl/status/status.h"

namespace partita::core {
namespace {

// Appends cells to one rank.
class Rank {
 public:
  explicit Rank(std::vector<Cell>& cells) : cells_(cells) {}
  void F(int stage, int microbatch) {
    Append(Work::kForward, stage, microbatch);
  }
  void B(int stage, int microbatch) {
    Append(Work::kBackward, stage, microbatch);
  }
  void I(int stage, int microbatch) {
    Append(Work::kInputGrad, stage, microbatch);
  }
  void W(int stage, int microbatch) {
    Append(Work::kWeightGrad, stage, microbatch);
  }

 private:
  void Append(Work work, int stage, int microbatch) {
    cells_.push_back({work, stage, microbatch});
  }
  std::vector<Cell>& cells_;
};

Schedule Empty(int ranks, int stages, int microbatches) {
  Schedule schedule;
  schedule.stages = stages;
  schedule.microbatches = microbatches;
  for (int stage = 0; stage < stages; ++stage)
    schedule.rank_of_stage.push_back(stage % ranks);
  schedule.cells.resize(ranks);
  // Forwards, input gradients and weight gradients.
  for (std::vector<Cell>& cells : schedule.cells)
    cells.reserve(3 * static_cast<size_t>(stages / ranks) * microbatches);
  return schedule;
}

// Removes microbatches beyond `microbatches`. The rest keeps its order, so it
// stays free of cycles.
void KeepMicrobatches(Schedule& schedule, int microbatches) {
  schedule.microbatches = microbatches;
  for (std::vector<Cell>& cells : schedule.cells)
    cells.erase(std::remove_if(cells.begin(), cells.end(),
                               [&](const Cell& cell) {
                                 return cell.microbatch >= microbatches;
                               }),
                cells.end());
}

// No rank waits for the first stage's input gradient. Fuses it with the weight
// gradient into one cell, which needs less memory and time.
void FuseFirstStage(Schedule& schedule) {
  std::vector<Cell> fused;
  for (const Cell& cell : schedule.cells[0]) {
    if (!fused.empty() && fused.back().work == Work::kInputGrad &&
        cell.work == Work::kWeightGrad && fused.back().stage == 0 &&
        cell.stage == 0 && fused.back().microbatch == cell.microbatch)
      fused.back().work = Work::kBackward;
    else
      fused.push_back(cell);
  }
  schedule.cells[0] = fused;
}

int FloorDiv(int a, int b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

// Rank s runs S-s-1 forwards first, then alternates.
Schedule Periodic(int ranks, int microbatches) {
  Schedule schedule = Empty(ranks, ranks, microbatches);
  schedule.flushes = false;
  schedule.warm_up.resize(ranks);
  for (int s = 0; s < ranks; ++s) {
    const int ahead = ranks - s - 1;
    for (int k = 0; k < ahead; ++k) Rank(schedule.warm_up[s]).F(s, k);
    Rank rank(schedule.cells[s]);
    for (int k = 0; k < microbatches; ++k) {
      rank.F(s, k + ahead);
      rank.B(s, k);
    }
  }
  return schedule;
}

}  // namespace

Schedule GPipe(int ranks, int microbatches) {
  Schedule schedule = Empty(ranks, ranks, microbatches);
  for (int s = 0; s < ranks; ++s) {
    Rank rank(schedule.cells[s]);
    for (int k = 0; k < microbatches; ++k) rank.F(s, k);
    for (int k = 0; k < microbatches; ++k) rank.B(s, k);
  }
  return schedule;
}

Schedule OneForwardOneBackward(int ranks, int microbatches) {
  return Interleaved(ranks, 1, microbatches);
}

Schedule Interleaved(int ranks, int chunks, int microbatches) {
  // Use whole groups. 1F1B works with any group size, so use 1.
  const int group = chunks == 1 ? 1 : ranks;
  const int groups = (microbatches + group - 1) / group;
  const int total = groups * group * chunks;
  Schedule schedule = Empty(ranks, ranks * chunks, groups * group);
  for (int r = 0; r < ranks; ++r) {
    Rank rank(schedule.cells[r]);
    // Chunk of the rank's k-th forward or backward: groups in order; within a
    // group one chunk after the other, in reverse for backwards.
    auto chunk = [&](int k) { return k / group % chunks; };
    auto microbatch = [&](int k) {
      return k / (group * chunks) * group + k % group;
    };
    auto forward = [&](int k) { rank.F(chunk(k) * ranks + r, microbatch(k)); };
    auto backward = [&](int k) {
      rank.B((chunks - 1 - chunk(k)) * ranks + r, microbatch(k));
    };
    const int ahead = chunks == 1 ? ranks - r - 1
                                  : 2 * (ranks - r - 1) + (chunks - 1) * group;
    const int warm_up = std::min(ahead, total);
    for (int k = 0; k < warm_up; ++k) forward(k);
    for (int k = warm_up; k < total; ++k) {
      forward(k);
      backward(k - warm_up);
    }
    for (int k = total - warm_up; k < total; ++k) backward(k);
  }
  KeepMicrobatches(schedule, microbatches);
  return schedule;
}

Schedule ZeroBubbleH1(int ranks, int microbatches) {
  Schedule schedule = Empty(ranks, ranks, microbatches);
  for (int s = 0; s < ranks; ++s) {
    Rank rank(schedule.cells[s]);
    const int warm_up = std::min(ranks - s - 1, microbatches);
    for (int k = 0; k < warm_up; ++k) rank.F(s, k);
    // Rank s delays s weight gradients: it has s fewer microbatches in flight
    // than rank 0 and waits that long at the end.
    for (int k = 0; k < microbatches; ++k) {
      if (k + warm_up < microbatches) rank.F(s, k + warm_up);
      rank.I(s, k);
      if (k >= s) rank.W(s, k - s);
    }
    for (int k = std::max(0, microbatches - s); k < microbatches; ++k)
      rank.W(s, k);
  }
  FuseFirstStage(schedule);
  return schedule;
}

Schedule ZeroBubbleV(int ranks, int microbatches) {
  // The phases below need this many microbatches to fill the pipeline.
  const int count = std::max(microbatches, 2 * ranks - 1);
  Schedule schedule = Empty(ranks, 2 * ranks, count);
  for (int r = 0; r < ranks; ++r) {
    const int down = r;                // the stage on the way to the last rank
    const int up = 2 * ranks - 1 - r;  // the stage on the way back
    schedule.rank_of_stage[up] = r;
    Rank rank(schedule.cells[r]);
    int f_down = 0, f_up = 0, i_down = 0, i_up = 0;
    while (f_down < 2 * (ranks - r) - 1) rank.F(down, f_down++);
    while (f_up < r) {
      rank.F(up, f_up++);
      rank.F(down, f_down++);
    }
    while (i_up < ranks - r) {
      rank.F(up, f_up++);
      rank.I(up, i_up);
      rank.W(up, i_up++);
    }
    while (f_up < count) {
      if (f_down < count) rank.F(down, f_down++);
      rank.I(down, i_down);
      rank.W(down, i_down++);
      rank.F(up, f_up++);
      rank.I(up, i_up);
      rank.W(up, i_up++);
    }
    int w_down = i_down, w_up = i_up;
    while (i_up < count) {
      rank.I(down, i_down++);
      rank.I(up, i_up++);
    }
    while (i_down < count) {
      rank.I(down, i_down++);
      rank.W(down, w_down++);
    }
    while (w_up < count) rank.W(up, w_up++);
    while (w_down < count) rank.W(down, w_down++);
  }
  KeepMicrobatches(schedule, microbatches);
  FuseFirstStage(schedule);
  return schedule;
}

absl::StatusOr<Schedule> Async2bw(int ranks, int microbatches) {
  if (microbatches < ranks - 1)
    return absl::InvalidArgumentError(
        "schedule async-2bw: with two versions of the weights on " +
        std::to_string(ranks) + " stages expected at least " +
        std::to_string(ranks - 1) + " microbatches, found " +
        std::to_string(microbatches) +
        "; take more microbatches, fewer stages, or schedule: async, which "
        "keeps more versions");
  Schedule schedule = Periodic(ranks, microbatches);
  for (auto* part : {&schedule.warm_up, &schedule.cells})
    for (std::vector<Cell>& cells : *part)
      for (Cell& cell : cells)
        cell.version = cell.microbatch / microbatches - 1;
  return schedule;
}

Schedule Async(int ranks, int microbatches) {
  Schedule schedule = Periodic(ranks, microbatches);
  // The forward runs right before the backward of the microbatch that many
  // positions earlier, so this many updates after the period's start.
  for (auto* part : {&schedule.warm_up, &schedule.cells})
    for (std::vector<Cell>& cells : *part)
      for (Cell& cell : cells)
        cell.version =
            FloorDiv(cell.microbatch - (ranks - cell.stage - 1), microbatches);
  return schedule;
}

}  // namespace partita::core
