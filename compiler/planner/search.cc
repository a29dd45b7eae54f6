// Best first: every division gets a bound on its step; the timetables of those
// with the lowest are made until no bound is below what was found.
#include "compiler/planner/search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "compiler/planner/candidates.h"
#include "compiler/planner/least_memory.h"
#include "compiler/planner/stage_cut.h"

namespace partita::planner {
namespace {

using absl::StatusOr;

// Of two steps that differ by no more, neither is the shorter.
constexpr double kSame = 1e-9;
// To divide the sequence as well has to save more than this.
constexpr double kAsQuick = 1.001;
// How often a division is cut again, where what looked as if it fit does not.
constexpr int kCuttings = 4;
// Of pipelines that are cut layer by layer, where nothing else fits.
constexpr int kSqueezedStages = 16;
// What looks as if it fits and does not is squeezed into less.
constexpr int kSqueezes = 4;
constexpr double kTighterRoom = 0.98;

// A division on its way to a timetable. `least` is at most its step: first by
// its work alone, then, of one that may fit, by LeastStep.
struct Candidate {
  Division division;
  double least = 0;
  double rest = 0;        // of `least`, what is not the microbatches
  bool host_too = false;  // the same with states on the host is there, too
  bool bounded = false;
};

using Mesh = std::tuple<int, int, int, int>;
Mesh MeshOf(const Division& d) { return {d.tp, d.pp, d.dp, d.cp}; }

// The division of a request that takes the least memory, with its bytes: by
// bounds, the lowest first, until none is below what was found.
std::optional<std::pair<double, Division>> FindSmallest(
    const Request& request, LeastMemory& least_memory) {
  std::vector<Division> divisions;
  std::vector<std::pair<double, size_t>> bounds;  // and which
  ForEachDivision(request, [&](const Division& division) {
    bounds.emplace_back(least_memory.Of(division), divisions.size());
    divisions.push_back(division);
    return true;
  });
  std::sort(bounds.begin(), bounds.end());
  std::optional<std::pair<double, Division>> smallest;
  for (const auto& [least, which] : bounds) {
    if (smallest && least >= smallest->first) break;
    const double bytes = EvaluateMemory(request.architecture, divisions[which],
                                        *request.software)
                             .total();
    if (!smallest || bytes < smallest->first)
      smallest = {bytes, divisions[which]};
  }
  return smallest;
}

bool Better(const Choice& a, const Choice& b) {
  const double step = b.prediction.step;
  if (std::abs(a.prediction.step - step) > kSame * step)
    return a.prediction.step < step;
  return a.prediction.memory.total() < b.prediction.memory.total();
}

class SearchRun {
 public:
  explicit SearchRun(const Request& request)
      : request_(request),
        least_memory_(request.architecture, *request.software) {
    cluster_ = request.cluster;
    if (request.memory > 0) {
      cluster_.device.memory = request.memory;
      cluster_.device.context = 0;
    }
  }

  StatusOr<SearchResult> Run();

 private:
  Setting SettingOf(const Division& division) const {
    return {request_.architecture, division, cluster_, *request_.software};
  }
  std::vector<int64_t> LayersThatFit(const Division& division,
                                     LeastMemory::Dealt dealt) {
    return planner::LayersThatFit(SettingOf(division), least_memory_, dealt);
  }
  // Layers are alike in many divisions, and are asked for once.
  const ModelWork& FindWork(const Division& division);
  void Collect();
  bool HasOneCut(const Division& division) const {
    return division.pp == 1 || request_.fixed.even_cut;
  }
  // In some cut.
  bool MayFit(const Division& division);
  // The same with its states on the host is looked at, too.
  void AwaitOnHost(const Candidate& candidate);
  void Explore();
  // Whether one of them fits.
  bool EvaluateCuts(const Candidate& candidate);
  enum class Fit { kYes, kNo, kUnknown };
  Fit Take(const Division& division);
  bool Tighten(const Division& division, std::vector<int64_t>& most) const;
  bool Squeeze(Division division);
  void Rescue();
  // Whether a division that takes `least` or more can be the best of its mesh,
  // and that one of those that are asked for.
  bool IsOfUse(const Division& division, double least) const;
  // The worst of the meshes that are asked for.
  double Bar() const;
  absl::Status WhyNone();
  // " with tp=3, pp=2": the fixed choices, behind a word; without: nothing.
  std::string OfFixed(const char* before) const {
    const std::string fixed = Describe(request_.fixed);
    return fixed.empty() ? "" : std::string(before) + " " + fixed;
  }

  const Request& request_;
  LeastMemory least_memory_;
  Cluster cluster_;
  using WorkKey =
      std::tuple<int, int, int64_t, bool, Recomputation, int, int64_t, bool>;
  std::map<WorkKey, ModelWork> work_;
  using Entry = std::pair<double, size_t>;  // least, index of a candidate
  std::vector<Candidate> candidates_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue_;
  std::map<Mesh, Choice> best_;
  // At most what any division takes that was left out for lack of time.
  double unseen_ = std::numeric_limits<double>::infinity();
  int64_t spent_ = 0;
  SearchResult result_;
};

const ModelWork& SearchRun::FindWork(const Division& d) {
  auto [place, added] = work_.try_emplace(
      {d.tp, d.cp, d.microbatch, d.sequence_parallel, d.recompute,
       d.zero >= 2 ? d.dp : 1, d.microbatches(), d.SameEnds()});
  if (added) place->second = WorkOf(SettingOf(d));
  return place->second;
}

// With bounds of their work alone: whether one fits is asked in Explore, where
// it is quick enough to matter.
void SearchRun::Collect() {
  std::vector<Entry> entries;
  ForEachDivision(request_, [&](const Division& division) {
    ++result_.considered;
    // States on the host only take time: what could be gained is another cut,
    // or that it fits at all, and it is looked at where the one before, which
    // has them on the device, is promising.
    if (division.offload && !request_.fixed.offload.has_value()) {
      candidates_.back().host_too = true;
      return true;
    }
    Candidate candidate{division};
    candidate.least = double(division.microbatches()) *
                      FindWork(division).total / division.pp;
    entries.push_back({candidate.least, candidates_.size()});
    candidates_.push_back(std::move(candidate));
    return true;
  });
  queue_ = decltype(queue_)(std::greater<Entry>(), std::move(entries));
}

bool SearchRun::MayFit(const Division& division) {
  return least_memory_.Of(division) <= cluster_.device.room() ||
         (!HasOneCut(division) &&
          !LayersThatFit(division, LeastMemory::Dealt::kQuickly).empty());
}

void SearchRun::AwaitOnHost(const Candidate& candidate) {
  Candidate host{candidate.division, candidate.least};
  host.division.offload = true;
  queue_.push({host.least, candidates_.size()});
  candidates_.push_back(std::move(host));
}

bool SearchRun::IsOfUse(const Division& division, double least) const {
  const auto own = best_.find(MeshOf(division));
  if (own != best_.end() && least > own->second.prediction.step * (1 + kSame))
    return false;
  return least <= Bar() * (1 + kSame);
}

double SearchRun::Bar() const {
  if (static_cast<int>(best_.size()) < request_.meshes)
    return std::numeric_limits<double>::infinity();
  std::vector<double> steps;
  for (const auto& [mesh, choice] : best_)
    steps.push_back(choice.prediction.step);
  std::nth_element(steps.begin(), steps.begin() + request_.meshes - 1,
                   steps.end());
  return steps[request_.meshes - 1];
}

// Memory is counted where the time is worth it.
SearchRun::Fit SearchRun::Take(const Division& division) {
  StatusOr<Prediction> prediction = EvaluateTime(
      request_.architecture, division, cluster_, *request_.software);
  ++result_.evaluated;
  spent_ += CellsOf(division);
  if (!prediction.ok()) return Fit::kNo;
  const auto own = best_.find(MeshOf(division));
  if (own != best_.end() &&
      prediction->step > own->second.prediction.step * (1 + kSame))
    return Fit::kUnknown;
  AddMemory(request_.architecture, division, cluster_, *request_.software,
            *prediction);
  if (!prediction->fits) return Fit::kNo;
  Choice choice{division, *std::move(prediction)};
  if (own == best_.end())
    best_.emplace(MeshOf(division), std::move(choice));
  else if (Better(choice, own->second))
    own->second = std::move(choice);
  return Fit::kYes;
}

// Takes layers from the ranks that have too many for their room: false where
// there are none.
bool SearchRun::Tighten(const Division& division,
                        std::vector<int64_t>& most) const {
  bool tighter = false;
  int64_t all = 0;
  for (int r = 0; r < division.pp; ++r) {
    int64_t layers = 0;
    for (int chunk = 0; chunk < division.vpp; ++chunk)
      layers += division.LayersOfStage(request_.architecture.layers,
                                       division.StageOfRank(r, chunk));
    if (layers <= most[r] && EvaluateRankMemory(request_.architecture, division,
                                                *request_.software, r)
                                     .total() > cluster_.device.room()) {
      most[r] = layers - 1;
      tighter = true;
    }
    if (most[r] < division.vpp) return false;
    all += most[r];
  }
  return tighter && all >= request_.architecture.layers;
}

bool SearchRun::EvaluateCuts(const Candidate& candidate) {
  using Dealt = LeastMemory::Dealt;
  const Setting setting = SettingOf(candidate.division);
  std::vector<int64_t> most = LayersThatFit(candidate.division, Dealt::kAnyhow);
  const bool one_cut = HasOneCut(candidate.division);
  std::set<std::vector<int64_t>> tried;
  bool any = false;
  double others = 0;
  const auto try_cut = [&](const Division& division) {
    if (least_memory_.Of(division) > cluster_.device.room()) return Fit::kNo;
    const Fit fit = Take(division);
    any = any || fit == Fit::kYes;
    return fit;
  };
  for (int cutting = 0; cutting < kCuttings && !any; ++cutting) {
    const StageCuts cuts =
        CutsWorthTrying(setting, FindWork(candidate.division), most);
    if (cutting == 0 || candidate.division.vpp == 1) others = cuts.others;
    std::optional<Division> too_large;  // the fastest
    for (const StageCut& cut : cuts.cuts) {
      Division division = candidate.division;
      division.cut = cut.layers;
      if (one_cut && !cut.layers.empty()) continue;
      if (!tried.insert(cut.layers).second) continue;
      if (!IsOfUse(division, cut.least + candidate.rest)) continue;
      if (try_cut(division) == Fit::kNo && !too_large && !cut.layers.empty())
        too_large = division;
    }
    if (one_cut || any || most.empty() || !too_large) break;
    if (cutting == 0 && candidate.division.vpp > 1)
      most = LayersThatFit(candidate.division, Dealt::kEvenly);
    else if (!Tighten(*too_large, most))
      break;
  }
  if (!request_.fixed.even_cut)
    unseen_ =
        std::min(unseen_, std::max(candidate.least, others + candidate.rest));
  return any;
}

void SearchRun::Explore() {
  while (!queue_.empty()) {
    const auto [least, index] = queue_.top();
    queue_.pop();
    if (least > Bar() * (1 + kSame)) return;
    Candidate& candidate = candidates_[index];
    if (!IsOfUse(candidate.division, least)) continue;
    if (!candidate.bounded && !MayFit(candidate.division)) {
      if (candidate.host_too) AwaitOnHost(candidate);
      continue;
    }
    if (spent_ >= request_.effort && !best_.empty()) {
      unseen_ = std::min(unseen_, least);
      return;
    }
    if (candidate.bounded) {
      const bool fits = EvaluateCuts(candidate);
      // In the same cut, it would only take longer.
      if (candidate.host_too && !(fits && HasOneCut(candidate.division)))
        AwaitOnHost(candidate);
      continue;
    }
    StatusOr<StepBound> bound =
        LeastStep(request_.architecture, candidate.division, cluster_,
                  *request_.software);
    if (!bound.ok()) continue;
    candidate.bounded = true;
    candidate.least = std::max(least, bound->step());
    candidate.rest = bound->rest;
    queue_.push({candidate.least, index});
  }
}

// From the even cut, layer by layer to where the fullest rank has less: for
// where no cut that is quick fits.
bool SearchRun::Squeeze(Division division) {
  const int stages = division.stages();
  std::vector<int64_t> even;
  for (int s = 0; s < stages; ++s)
    even.push_back(division.LayersOfStage(request_.architecture.layers, s));
  division.cut = std::move(even);
  // What all ranks have too much, where each may have `room`.
  double room = cluster_.device.room();
  const auto excess = [&](const Division& d) {
    double sum = 0;
    for (int r = 0; r < d.pp; ++r)
      sum += std::max(0.0, least_memory_.OfRank(d, r) - room);
    return sum;
  };
  for (int tries = 0; tries < kSqueezes; ++tries, room *= kTighterRoom) {
    for (double least = excess(division); least > 0;) {
      std::vector<int64_t> best;
      for (int from = 0; from < stages; ++from)
        for (int to = 0; to < stages; ++to) {
          if (from == to || division.cut[from] == 1) continue;
          Division moved = division;
          --moved.cut[from];
          ++moved.cut[to];
          if (const double bytes = excess(moved); bytes < least) {
            least = bytes;
            best = std::move(moved.cut);
          }
        }
      if (best.empty()) return false;
      division.cut = std::move(best);
    }
    if (Take(division) == Fit::kYes) return true;
  }
  return false;
}

void SearchRun::Rescue() {
  // Those that may fit have been bounded, as nothing was found.
  candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(),
                                   [](const Candidate& candidate) {
                                     return !candidate.bounded;
                                   }),
                    candidates_.end());
  std::stable_sort(
      candidates_.begin(), candidates_.end(),
      [](const Candidate& a, const Candidate& b) { return a.least < b.least; });
  for (const Candidate& candidate : candidates_) {
    unseen_ = std::min(unseen_, candidate.least);
    if (candidate.division.pp > 1 &&
        candidate.division.stages() <= kSqueezedStages &&
        Squeeze(candidate.division))
      return;
  }
}

absl::Status SearchRun::WhyNone() {
  const int devices = request_.cluster.devices;
  const auto smallest = FindSmallest(request_, least_memory_);
  if (!smallest) {
    Request fewer = request_;
    const int each =
        static_cast<int>(std::min<int64_t>(DevicesOfFixed(request_), devices));
    for (int n = each > 0 ? (devices - 1) / each * each : 0; n > 0; n -= each) {
      fewer.cluster.devices = n;
      bool any = false;
      ForEachDivision(fewer, [&](const Division&) {
        any = true;
        return false;
      });
      if (any)
        return absl::InvalidArgumentError(
            "expected a model and a batch that " + std::to_string(devices) +
            " devices can divide, found " +
            std::to_string(request_.architecture.layers) + " layers, " +
            std::to_string(request_.architecture.heads) + " heads and " +
            std::to_string(request_.batch) +
            " sequences, of which no product of parts is that: " +
            std::to_string(n) + " devices would do, or another batch" +
            OfFixed(" or other choices than"));
    }
    return absl::InvalidArgumentError(
        "expected choices that go together, found none that " +
        std::to_string(devices) + " devices or fewer can have" +
        OfFixed(" with") + ": fix fewer of them");
  }
  const double limit = cluster_.device.room();
  const std::string enough = GigaBytesUp(smallest->first);
  std::string text = "expected a division within " + GigaBytes(limit) +
                     " a device, found none: the least is " +
                     GigaBytes(smallest->first) + ", " +
                     GigaBytes(smallest->first - limit) + " more, of " +
                     Describe(smallest->second);
  Request more = request_;
  for (int times = 2; times <= 64; times *= 2) {
    more.cluster.devices = devices * times;
    const auto least = FindSmallest(more, least_memory_);
    if (least && least->first <= limit)
      return absl::ResourceExhaustedError(
          text + "; it fits with a limit of " + enough + ", or on " +
          std::to_string(devices * times) + " devices");
  }
  return absl::ResourceExhaustedError(text + "; it fits with a limit of " +
                                      enough);
}

StatusOr<SearchResult> SearchRun::Run() {
  Collect();
  Explore();
  if (best_.empty() && !request_.fixed.even_cut) Rescue();
  if (best_.empty()) return WhyNone();
  for (auto& [mesh, choice] : best_) result_.choices.push_back(choice);
  std::sort(result_.choices.begin(), result_.choices.end(), Better);
  // As quick as the first, and simpler to one who has to read it.
  auto simplest = result_.choices.begin();
  for (auto other = simplest; other != result_.choices.end(); ++other)
    if (other->prediction.step <=
            kAsQuick * result_.choices.front().prediction.step &&
        other->division.cp < simplest->division.cp)
      simplest = other;
  std::rotate(result_.choices.begin(), simplest, simplest + 1);
  if (static_cast<int>(result_.choices.size()) > request_.meshes)
    result_.choices.resize(request_.meshes);
  const double step = result_.choices.front().prediction.step;
  result_.gap = std::max(0.0, 1 - unseen_ / step);
  return result_;
}

}  // namespace

StatusOr<SearchResult> Search(const Request& request) {
  if (request.batch < 1 || request.batch > kMostBatch)
    return absl::InvalidArgumentError("batch: expected 1 to " +
                                      std::to_string(kMostBatch) + ", found " +
                                      std::to_string(request.batch));
  // Of sizes that no division has, one device's check says which.
  Division one;
  one.batch = one.microbatch = 1;
  one.precision = request.precision;
  if (absl::StatusOr<Prediction> checked = Evaluate(
          request.architecture, one, request.cluster, *request.software);
      !checked.ok())
    return checked.status();
  if (absl::Status status = CheckFixed(request); !status.ok()) return status;
  return SearchRun(request).Run();
}

std::string Describe(const Division& d) {
  std::string text = "tp " + std::to_string(d.tp) + " x pp " +
                     std::to_string(d.pp) + " x dp " + std::to_string(d.dp);
  if (d.cp > 1) text += " x cp " + std::to_string(d.cp);
  if (d.pp > 1) {
    text += ", " + (d.schedule == PipelineSchedule::k1F1B && d.vpp > 1
                        ? "interleaved(" + std::to_string(d.vpp) + ")"
                        : ToString(d.schedule));
  }
  text += ", microbatch " + std::to_string(d.microbatch);
  if (d.zero > 0) text += ", zero " + std::to_string(d.zero);
  if (d.offload) text += ", optimizer states on the host";
  if (d.sequence_parallel) text += ", sequence parallel";
  return text + ", recompute " + ToString(d.recompute);
}

}  // namespace partita::planner
