// Moments of a step that there are in every order of things: what lives then is
// the least that a rank takes.
#include <algorithm>

#include "compiler/planner/own_step.h"

namespace partita::planner {
namespace {

// Of one of a rank's stages: the microbatches whose activations are there when
// the rank has most of them for the first time; `summed`: when all gradients
// have been summed of two microbatches.
int64_t InFlight(const Division& d, int rank, int chunk, bool summed) {
  const int64_t m = d.microbatches(), pp = d.pp, group = pp * d.vpp;
  const auto of_plain = [&](int64_t most) {
    return std::max<int64_t>(std::min(most, summed ? m - 2 : m), 0);
  };
  if (pp == 1) return of_plain(1);
  switch (d.schedule) {
    case PipelineSchedule::kGpipe:
      return of_plain(m);
    case PipelineSchedule::kZbH1:
      return of_plain(pp);
    case PipelineSchedule::kZbV:
      if (summed) return 0;  // MomentsOfV
      return std::min<int64_t>(chunk == 0 ? 2 * pp - 1 - rank : rank + 1, m);
    case PipelineSchedule::k1F1B:
      break;
  }
  if (d.vpp == 1) return of_plain(pp - rank);
  // Interleaved: so many forwards, and then one for each backward.
  int64_t forwards = 2 * (pp - rank - 1) + (d.vpp - 1) * pp + 1;
  if (summed) forwards += (d.vpp - 1) * pp + 2;
  const int64_t of_chunk = std::min(
      m, forwards / group * pp +
             std::clamp<int64_t>(forwards % group - chunk * pp, 0, pp));
  if (!summed) return of_chunk;
  return std::max<int64_t>(of_chunk - std::min(m, chunk == 0 ? 2 : pp), 0);
}

// Bytes of an element of the gradients, of all layers, when `before` other
// microbatches have gone back.
double GradientBytes(const Division& d, int64_t before) {
  const bool scattered = d.zero >= 2 && d.dp > 1;
  // What is on its way is summed later.
  if (scattered) return 0;
  if (before >= 2) return kSumBytes;
  return before == 1 ? BytesOf(d.precision) : 0;
}

// Whether it has no more of anything.
bool IsWithin(const Moment& a, const Moment& b) {
  for (int c : {0, 1})
    if (a.kept[c] > b.kept[c] || a.pending[c] > b.pending[c] ||
        a.summed[c] > b.summed[c])
      return false;
  return true;
}

void Note(const Moment& moment, std::vector<Moment>& moments) {
  for (const Moment& other : moments)
    if (IsWithin(moment, other)) return;
  moments.erase(std::remove_if(moments.begin(), moments.end(),
                               [&](const Moment& other) {
                                 return IsWithin(other, moment);
                               }),
                moments.end());
  moments.push_back(moment);
}

}  // namespace

std::vector<std::vector<Moment>> MomentsOfV(const Division& d) {
  const int shown = ShownOf(d);
  const core::Schedule schedule = ScheduleOf(d, shown);
  std::vector<std::vector<Moment>> ranks(d.pp);
  for (int r = 0; r < d.pp; ++r) {
    Moment now;
    std::array<int, 2> done{};
    for (const core::Cell& cell : schedule.cells[r]) {
      const int c = cell.stage < d.pp ? 0 : 1;
      if (cell.work == core::Work::kForward) {
        ++now.kept[c];
        continue;
      }
      Note(now, ranks[r]);
      if (cell.work == core::Work::kInputGrad) {
        ++now.pending[c];
        continue;
      }
      --now.kept[c];
      if (cell.work == core::Work::kWeightGrad) --now.pending[c];
      // What is complete may be on its way to others.
      now.summed[c] = ++done[c] == shown ? 0 : std::min(done[c], 2);
    }
  }
  return ranks;
}

double LeastOwnMemoryOfV(const OwnSizes& sizes, const Architecture& a,
                         const Division& d, int rank,
                         const std::array<double, 2>& layers,
                         const std::vector<Moment>& moments) {
  // Each is one where a layer goes back.
  const double back = sizes.layer.backward + sizes.layer.output;
  double most = 0;
  for (const Moment& moment : moments) {
    double bytes = 0;
    for (int c : {0, 1})
      bytes += layers[c] *
               (moment.kept[c] * (sizes.layer.saved + sizes.layer.output) +
                moment.pending[c] * sizes.pending +
                GradientBytes(d, moment.summed[c]) * sizes.totals.layer);
    most = std::max(most, bytes + back);
  }
  const MemoryUse states =
      OwnStates(sizes.totals, a, d, rank, layers[0] + layers[1]);
  return states.parameters + states.optimizer + states.activations + most;
}

double LeastInFlight(const Architecture& a, const Division& d, int rank,
                     bool summed) {
  double layers = 0;
  for (int chunk = 0; chunk < d.vpp; ++chunk)
    layers += double(InFlight(d, rank, chunk, summed)) *
              d.LayersOfStage(a.layers, d.StageOfRank(rank, chunk));
  return layers;
}

double LeastInFlight(const Division& d, int rank, int64_t layers, bool evenly,
                     bool summed) {
  if (evenly) {
    double all = 0;
    for (int chunk = 0; chunk < d.vpp; ++chunk)
      all += double(InFlight(d, rank, chunk, summed)) *
             (layers / d.vpp + (chunk < layers % d.vpp ? 1 : 0));
    return all;
  }
  int64_t least = InFlight(d, rank, 0, summed);
  for (int chunk = 1; chunk < d.vpp; ++chunk)
    least = std::min(least, InFlight(d, rank, chunk, summed));
  return double(least) * double(layers);
}

double LeastOwnMemory(const OwnSizes& sizes, const Architecture& a,
                      const Division& d, int rank, double layers,
                      double in_flight, double in_flight_summed) {
  const MemoryUse states = OwnStates(sizes.totals, a, d, rank, layers);
  const double held = states.parameters + states.optimizer + states.activations;
  const double element = BytesOf(d.precision);
  const bool first = d.RankOfStage(0) == rank;
  const bool last = d.RankOfStage(d.stages() - 1) == rank;
  const int64_t m = d.microbatches();
  double parameters = layers * sizes.totals.layer;
  if (first) parameters += sizes.totals.embedding;
  if (last) parameters += sizes.totals.head;
  const double kept = sizes.layer.saved + sizes.layer.output;
  const auto sums = [&](int64_t before) {
    return GradientBytes(d, before) * parameters;
  };
  // The last layer of a stage goes back, while most microbatches are there.
  const double back = sizes.layer.backward + 2 * sizes.layer.output;
  double most = in_flight * kept + back;
  // Not where other stages' sums are complete by then, and on their way.
  const bool together = d.vpp == 1 || m > d.pp;
  if (m > 2 && together && d.schedule != PipelineSchedule::kZbV)
    most = std::max(most, in_flight_summed * kept + back + sums(2));
  if (d.schedule == PipelineSchedule::kZbH1 && d.pp > 1 && m > d.pp)
    most = std::max(most, in_flight * kept +
                              double(rank) * layers * sizes.pending +
                              sums(std::min<int64_t>(m - d.pp, 2)));
  // The loss, and the way back through the embedding, behind the last but one.
  if (last && d.vpp == 1)
    most = std::max(most, layers * kept + sizes.head.saved +
                              sizes.head.backward + sums(m - 2));
  if (first && d.vpp == 1)
    most = std::max(most, sizes.embedding.backward + sums(m - 2));
  // Behind the last one, before the update.
  if (d.dp == 1 || d.zero == 0)
    most = std::max(most, (m > 1 ? kSumBytes : element) * parameters);
  return held + most;
}

}  // namespace partita::planner
