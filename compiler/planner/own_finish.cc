// How a pipeline's step ends: each rank goes on when its cells are done. A tied
// table goes to the last rank behind the first activations, and its gradient
// comes back when that one's cells are done.
#include <algorithm>
#include <vector>

#include "compiler/planner/cost.h"
#include "compiler/planner/own_step.h"

namespace partita::planner {
namespace {

class Finish {
 public:
  Finish(const Architecture& a, const Division& d, const Cluster& cluster,
         const OwnCells& cells, const std::vector<OwnRest>& rests)
      : a_(a), d_(d), cluster_(cluster), cells_(cells), rests_(rests) {}

  OwnFinish Run() const {
    const bool sends = a_.tied && d_.RankOfStage(d_.stages() - 1) != 0;
    const double element = BytesOf(d_.precision);
    OwnFinish finish;
    for (int r = 0; r < d_.pp; ++r) {
      const OwnRest& rest = rests_[r];
      double end = EndOf(r) + rest.packing + rest.exposed;
      if (r == 0 && sends) {
        const double sum = d_.microbatches() > 1 ? kSumBytes : element;
        end = std::max(end, EndOf(d_.pp - 1) + TableTime(sum)) + rest.table;
      }
      end += rest.update;
      if (end > finish.end) finish = {end, rest};
    }
    // The last rank waits for the table, and all for the last rank.
    if (sends)
      finish.end +=
          std::max(0.0, cells_.first_end + TableTime(element) - cells_.head);
    return finish;
  }

 private:
  // When a rank's cells are done: a stage sends before it sums the last layer's
  // gradients, so those of the stages behind are not waited for in the end, and
  // its own are computed as they are packed. What they wait for in their last
  // backward pass is.
  double EndOf(int rank) const {
    const double sum = rests_[rank].layer_sum;
    const double layers = double(a_.layers) / d_.stages();
    const double even = layers * sum / double(d_.microbatches());
    double end = cells_.ends[rank] - (d_.dp > 1 ? sum : 0);
    if (d_.vpp == 1) end -= (d_.pp - 1 - rank) * std::max(0.0, sum - even);
    for (int behind = rank + 1; behind < d_.pp; ++behind)
      end += rests_[behind].stall;
    return end;
  }

  // From one end of the pipeline to the other.
  double TableTime(double element) const {
    const double table =
        double((a_.vocab + d_.tp - 1) / d_.tp) * double(a_.hidden);
    return TransferTime(cluster_, 0, d_.devices - d_.devices / d_.pp,
                        element * table);
  }

  const Architecture& a_;
  const Division& d_;
  const Cluster& cluster_;
  const OwnCells& cells_;
  const std::vector<OwnRest>& rests_;
};

}  // namespace

OwnFinish FinishOwnStep(const Architecture& a, const Division& d,
                        const Cluster& cluster, const OwnCells& cells,
                        const std::vector<OwnRest>& rests) {
  return Finish(a, d, cluster, cells, rests).Run();
}

}  // namespace partita::planner
