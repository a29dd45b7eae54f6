// Cuts of a model into stages: all of a small one, the promising of a large.
#include "compiler/planner/stage_cut.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace partita::planner {
namespace {

using Cut = std::vector<int64_t>;

// Cuts that are all tried, at the most.
constexpr double kAll = 64;
// Layers that the first and the last stage may have fewer than the others.
constexpr int kRelief = 2;
// Of bytes computed in two ways.
constexpr double kRounding = 1 + 1e-9;

// Ways to cut `layers` into `stages` of a layer and more.
double CountCuts(int64_t layers, int stages) {
  double count = 1;
  for (int i = 1; i < stages; ++i) count *= double(layers - i) / i;
  return count;
}

void AddAll(int64_t layers, int stages, Cut& cut, std::vector<Cut>& cuts) {
  const int64_t left = stages - static_cast<int64_t>(cut.size());
  if (left == 1) {
    cuts.push_back(cut);
    cuts.back().push_back(layers);
    return;
  }
  for (int64_t own = 1; own <= layers - left + 1; ++own) {
    cut.push_back(own);
    AddAll(layers - own, stages, cut, cuts);
    cut.pop_back();
  }
}

// The first stage gets `first` fewer than its share, the last `last`; the rest
// is as even as can be, longer ones in the middle. Empty: cannot be.
Cut Relieved(int64_t layers, int stages, int first, int last) {
  const int64_t share = (layers + first + last) / stages;
  int64_t rest = (layers + first + last) % stages;
  Cut cut(stages, share);
  cut.front() -= first;
  cut.back() -= last;
  if (cut.front() < 1 || cut.back() < 1) return {};
  for (int s = 1; s + 1 < stages && rest > 0; ++s, --rest) ++cut[s];
  return rest == 0 ? cut : Cut();
}

// What comes before a rank's own first stage it waits for once, and where
// gradients of weights do not fill that time, once more on the way back.
class Ranks {
 public:
  Ranks(const Division& division, const ModelWork& work)
      : d_(division),
        work_(work),
        both_(d_.schedule == PipelineSchedule::k1F1B ||
              d_.schedule == PipelineSchedule::kGpipe) {}

  // With `before` layers in the stages before its first, and `own` of its own.
  double Time(int rank, double before, double own) const {
    double wait = before * (both_ ? work_.layer : work_.layer_forward);
    if (rank > 0) wait += both_ ? work_.embedding : work_.embedding_forward;
    double busy = own * work_.layer;
    if (rank == 0) busy += work_.embedding;
    if (rank == d_.RankOfStage(d_.stages() - 1)) busy += work_.head;
    return wait + double(d_.microbatches()) * busy;
  }

  double Longest(int64_t layers, const Cut& cut) const {
    std::vector<double> own(d_.pp);
    for (int s = 0; s < d_.stages(); ++s)
      own[d_.RankOfStage(s)] +=
          cut.empty() ? d_.LayersOfStage(layers, s) : cut[s];
    double longest = 0, before = 0;
    for (int r = 0; r < d_.pp; ++r) {
      longest = std::max(longest, Time(r, before, own[r]));
      before += cut.empty() ? d_.LayersOfStage(layers, r) : cut[r];
    }
    return longest;
  }

  // Layer by layer to the rank that then ends first: `least` is of any cut
  // within the memory, as if all stages before a rank's own had one layer.
  StageCut Levelled(int64_t layers, const std::vector<int64_t>& most) const;
  // One stage a rank.
  StageCut Shortest(int64_t layers, const std::vector<int64_t>& most) const;

 private:
  const Division& d_;
  const ModelWork& work_;
  const bool both_;
};

StageCut Ranks::Levelled(int64_t layers,
                         const std::vector<int64_t>& most) const {
  std::vector<int64_t> own(d_.pp, d_.vpp);
  const auto end = [&](int rank, int64_t more) {
    return Time(rank, rank, double(own[rank] + more));
  };
  for (int64_t left = layers - d_.stages(); left > 0; --left) {
    int first = -1;
    for (int r = 0; r < d_.pp; ++r)
      if (own[r] < most[r] && (first < 0 || end(r, 1) < end(first, 1)))
        first = r;
    ++own[first];
  }
  StageCut cut;
  for (int r = 0; r < d_.pp; ++r) cut.least = std::max(cut.least, end(r, 0));
  for (int s = 0; s < d_.stages(); ++s) {
    const int rank = d_.RankOfStage(s);
    const int chunk = s / d_.pp;
    cut.layers.push_back(own[rank] / d_.vpp +
                         (chunk < own[rank] % d_.vpp ? 1 : 0));
  }
  return cut;
}

StageCut Ranks::Shortest(int64_t layers,
                         const std::vector<int64_t>& most) const {
  const double never = std::numeric_limits<double>::infinity();
  const int ranks = d_.pp;
  std::vector<std::vector<double>> best(ranks + 1,
                                        std::vector<double>(layers + 1, never));
  std::vector<std::vector<int64_t>> from(ranks + 1,
                                         std::vector<int64_t>(layers + 1));
  best[0][0] = 0;
  for (int r = 1; r <= ranks; ++r)
    for (int64_t end = r; end <= layers - (ranks - r); ++end)
      for (int64_t begin = std::max<int64_t>(r - 1, end - most[r - 1]);
           begin < end; ++begin) {
        const double longest =
            std::max(best[r - 1][begin], Time(r - 1, begin, end - begin));
        if (longest >= best[r][end]) continue;
        best[r][end] = longest;
        from[r][end] = begin;
      }
  StageCut cut;
  cut.least = best[ranks][layers];
  cut.layers.resize(ranks);
  for (int64_t r = ranks, end = layers; r > 0; end = from[r][end], --r)
    cut.layers[r - 1] = end - from[r][end];
  return cut;
}

double Seconds(const PartCost& part) {
  return part.forward.total() + part.backward.total();
}

}  // namespace

bool HasFewCuts(int64_t layers, int stages) {
  return CountCuts(layers, stages) <= kAll;
}

ModelWork WorkOf(const Setting& setting) {
  const Architecture& a = setting.architecture;
  const PartCost layer = LayerCost(setting), embedding = EmbeddingCost(setting);
  ModelWork work;
  work.layer = Seconds(layer);
  work.layer_forward = layer.forward.total();
  work.embedding = Seconds(embedding);
  work.embedding_forward = embedding.forward.total();
  work.head = Seconds(HeadCost(setting));
  const Sums sums = SumsOf(setting);
  work.layer += sums.layer;
  work.embedding += sums.embedding;
  work.head += sums.head;
  work.total = a.layers * work.layer + work.embedding + work.head;
  if (a.kind == ModelKind::kT5)
    work.total +=
        a.layers * (Seconds(DecoderLayerCost(setting)) + sums.decoder);
  return work;
}

std::vector<int64_t> LayersThatFit(const Setting& setting, LeastMemory& least,
                                   LeastMemory::Dealt dealt) {
  const Division& d = setting.division;
  const int64_t layers = setting.architecture.layers;
  const double room = setting.cluster.device.room() * kRounding;
  std::vector<int64_t> most;
  int64_t all = 0;
  for (int r = 0; r < d.pp; ++r) {
    if (least.OfRank(d, r, d.vpp, dealt) > room) return {};
    int64_t fit = d.vpp, beyond = layers - d.stages() + d.vpp + 1;
    while (beyond - fit > 1) {
      const int64_t middle = (fit + beyond) / 2;
      (least.OfRank(d, r, middle, dealt) <= room ? fit : beyond) = middle;
    }
    most.push_back(fit);
    all += fit;
  }
  return all < layers ? std::vector<int64_t>() : most;
}

StageCuts CutsWorthTrying(const Setting& setting, const ModelWork& work,
                          const std::vector<int64_t>& most) {
  const Division& d = setting.division;
  const int64_t layers = setting.architecture.layers;
  const Ranks ranks(d, work);
  StageCuts found;
  found.others = std::numeric_limits<double>::infinity();
  found.cuts.push_back({{}, d.pp == 1 ? 0 : ranks.Longest(layers, {})});
  if (d.pp == 1 || most.empty()) return found;
  std::vector<Cut> cuts;
  if (HasFewCuts(layers, d.stages())) {
    Cut cut;
    AddAll(layers, d.stages(), cut, cuts);
  } else {
    for (int first = 0; first <= kRelief; ++first)
      for (int last = 0; last <= kRelief; ++last)
        if (first + last > 0 || layers % d.stages() != 0)
          cuts.push_back(Relieved(layers, d.stages(), first, last));
    StageCut shortest = d.vpp == 1 ? ranks.Shortest(layers, most)
                                   : ranks.Levelled(layers, most);
    found.others = shortest.least;
    cuts.push_back(std::move(shortest.layers));
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  for (Cut& cut : cuts) {
    if (cut.empty()) continue;
    const double least = ranks.Longest(layers, cut);
    found.cuts.push_back({std::move(cut), least});
  }
  std::sort(found.cuts.begin(), found.cuts.end(),
            [](const StageCut& a, const StageCut& b) {
              return std::tie(a.least, a.layers) < std::tie(b.least, b.layers);
            });
  return found;
}

}  // namespace partita::planner
