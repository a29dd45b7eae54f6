// A pipeline schedule as data: which rank computes what, in which order.
#ifndef PARTITA_COMPILER_CORE_SCHEDULE_H_
#define PARTITA_COMPILER_CORE_SCHEDULE_H_

#include <string>
#include <vector>

namespace partita::core {

// What a rank does with one stage and one microbatch. A backward pass is either
// one cell, kBackward, or two: the gradient of the stage's input, which the
// stage before waits for, and that of its weights, which nobody waits for.
enum class Work { kForward, kBackward, kInputGrad, kWeightGrad };

struct Cell {
  Work work = Work::kForward;
  int stage = 0;       // of the model, 0 .. stages - 1
  int microbatch = 0;  // of the step; in a period (below) maybe of a later one
  // How many updates the weights have had that it computes with: 0 where every
  // step ends with a flush; in a period, relative to the period's step.
  int version = 0;
};
bool operator==(const Cell& a, const Cell& b);

// A stage runs on one rank, a rank may run several stages.
//
// A schedule that flushes is the whole of a step: every rank works through its
// cells; then all weights are updated. One that does not is a warm-up, done
// once, and a period, done once a step: in step p its microbatch k is number
// k + p * microbatches of the run and its version v means max(0, p + v) updates
// (in the warm-up: max(0, v)). What would be of a microbatch after the run's
// last is left out. A stage's weights are updated as soon as the gradients of
// one step's microbatches are complete there.
struct Schedule {
  int stages = 0;
  int microbatches = 0;            // of one step
  std::vector<int> rank_of_stage;  // [stages]
  bool trains = true;              // false: forwards alone; it flushes then
  bool flushes = true;
  std::vector<std::vector<Cell>> warm_up;  // [rank]; empty where it flushes
  std::vector<std::vector<Cell>> cells;    // [rank]: the step, or the period

  int ranks() const { return static_cast<int>(cells.size()); }
};

// "F0.3": the work's letter (F, B, I, W), stage and microbatch; "@-1" follows
// if the version is not 0.
std::string ToString(const Cell& cell);

// What must be computed before `cell`, named by what it yields: kForward an
// activation; kInputGrad a gradient, be it of an I or of a B. For a backward
// its own forward comes first.
std::vector<Cell> Needs(const Cell& cell, int stages);

// The run of `steps` steps as one flushing schedule: its microbatches are all
// of the run's, its versions count from the start of it.
Schedule Unroll(const Schedule& schedule, int steps);

// What is left of a schedule that flushes where nothing is trained.
Schedule ForwardOnly(Schedule schedule);

// How many steps later than its own period a cell's microbatch can be; 0 for a
// schedule that flushes. All cells' microbatches are 0 or more.
int StepsAhead(const Schedule& schedule);

// The schedule itself if it flushes, else a run of as many steps as show
// everything that happens in a longer one.
Schedule ShortRun(const Schedule& schedule);

// The most microbatches per stage whose forward is done and whose backward, the
// weight gradient included, is not: how many copies of what a forward saves
// there must be room for; 0 where nothing is trained. [stages]; the schedule
// must pass CheckSchedule.
std::vector<int> PeakInFlight(const Schedule& schedule);

// The most versions of its weights that a stage must keep at once: 1 where the
// schedule flushes. [stages]; the schedule must pass CheckSchedule.
std::vector<int> PeakVersions(const Schedule& schedule);

// Where each cell of a flushing schedule stands.
class CellMap {
 public:
  struct Place {
    int rank = -1;
    int position = -1;  // in the rank's cells
    bool found() const { return rank >= 0; }
  };

  CellMap(int stages, int microbatches);
  // All cells of a schedule that passes CheckSchedule.
  explicit CellMap(const Schedule& schedule);

  // Where that is computed which `cell` yields, as in Needs: for kInputGrad and
  // kWeightGrad the cell of that kind, or the kBackward that does both.
  const Place& Find(const Cell& cell) const;
  // Records a cell within range; returns where the same is already computed, or
  // a place not found.
  Place Add(const Cell& cell, Place place);

 private:
  int Index(Work work, const Cell& cell) const;

  int stages_;
  int microbatches_;
  std::vector<Place> places_;  // [forward, input, weight][stage][microbatch]
};

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_SCHEDULE_H_
