// A pipeline schedule as a table: the cells of each rank, in order.
#ifndef PARTITA_COMPILER_CORE_SCHEDULE_H_
#define PARTITA_COMPILER_CORE_SCHEDULE_H_

#include <string>
#include <vector>

namespace partita::core {

// The kind of work in a cell. A backward pass is one cell, kBackward, or two:
// kInputGrad, the gradient of the stage's input, which the previous stage waits
// for; and kWeightGrad, which no stage waits for.
enum class Work { kForward, kBackward, kInputGrad, kWeightGrad };

struct Cell {
  Work work = Work::kForward;
  int stage = 0;       // of the model, 0 .. stages - 1
  int microbatch = 0;  // of the step; in a period possibly of a later step
  // Number of weight updates that the cell's weights contain. With flushes: 0.
  // In a period: relative to the period's step.
  int version = 0;
};
bool operator==(const Cell& a, const Cell& b);

// Each stage runs on one rank; a rank may run several stages.
//
// A schedule with flushes is one step: every rank runs its cells, and then all
// weights are updated. A schedule without flushes has a warm-up, run once, and
// a period, run once per step. In step p, microbatch k is number k + p *
// microbatches of the run, and version v means max(0, p + v) updates (max(0, v)
// in the warm-up). Cells beyond the run's last microbatch are omitted. Each
// stage updates its weights as soon as its gradients of one step's microbatches
// are complete.
struct Schedule {
  int stages = 0;
  int microbatches = 0;            // per step
  std::vector<int> rank_of_stage;  // [stages]
  bool trains = true;              // false: forwards only, and it flushes
  bool flushes = true;
  std::vector<std::vector<Cell>> warm_up;  // [rank]; empty if it flushes
  std::vector<std::vector<Cell>> cells;    // [rank]: the step, or the period

  int ranks() const { return static_cast<int>(cells.size()); }
};

// Formats a cell as "F0.3": kind (F, B, I, W), stage and microbatch, then "@-1"
// if the version is not 0.
std::string ToString(const Cell& cell);

// At most two cells. Timetables ask for the needs of millions of cells, so this
// does not allocate.
class NeededCells {
 public:
  void push_back(const Cell& cell) { cells_[size_++] = cell; }
  const Cell* begin() const { return cells_; }
  const Cell* end() const { return cells_ + size_; }

 private:
  Cell cells_[2];
  int size_ = 0;
};

// Returns the cells that must run before `cell`, named by their results:
// kForward for an activation, kInputGrad for a gradient, from an I or a B. A
// backward also needs the forward of its own stage.
NeededCells Needs(const Cell& cell, int stages);

// Returns a run of `steps` steps as one schedule with flushes. Its microbatches
// and versions count from the start of the run.
Schedule Unroll(const Schedule& schedule, int steps);

// Returns the forwards of a schedule with flushes, for runs without training.
Schedule ForwardOnly(Schedule schedule);

// Returns the largest number of steps by which a cell's microbatch is ahead of
// its period; 0 with flushes. All microbatches must be at least 0.
int StepsAhead(const Schedule& schedule);

// Returns the schedule itself if it flushes, else a run that is long enough to
// show every situation of a longer run.
Schedule ShortRun(const Schedule& schedule);

// Returns the peak number of microbatches in flight per stage. A microbatch is
// in flight from its forward until its weight gradient: this is the number of
// saved activation sets that need memory. 0 without training. [stages]; the
// schedule must pass CheckSchedule.
std::vector<int> PeakInFlight(const Schedule& schedule);

// Returns the peak number of weight versions that each stage holds; 1 with
// flushes. [stages]; the schedule must pass CheckSchedule.
std::vector<int> PeakVersions(const Schedule& schedule);

// Maps each result of a schedule with flushes to its cell's place.
class CellMap {
 public:
  struct Place {
    int rank = -1;
    int position = -1;  // in the rank's cells
    bool found() const { return rank >= 0; }
  };

  CellMap(int stages, int microbatches);
  // Contains all cells of a schedule that passes CheckSchedule.
  explicit CellMap(const Schedule& schedule);

  // Returns the place of the cell that computes `cell`. For kInputGrad and
  // kWeightGrad this may be a kBackward, which computes both.
  const Place& Find(const Cell& cell) const;
  // Records a cell whose indices are in range. Returns the existing place if
  // the result is already computed, else a place with found() == false.
  Place Add(const Cell& cell, Place place);

 private:
  int Index(Work work, const Cell& cell) const;

  int stages_;
  int microbatches_;
  std::vector<Place> places_;  // [forward, input, weight][stage][microbatch]
};

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_SCHEDULE_H_
