// Best first: every division gets a bound on its step; the timetables of those
// with the lowest are made until no bound is below what was found.
#include "compiler/planner/search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <tuple>

#include "compiler/planner/candidates.h"
#include "compiler/planner/stage_cut.h"

namespace partita::planner {
namespace {

using absl::StatusOr;

// Of two steps that differ by no more, neither is the shorter.
constexpr double kSame = 1e-9;
// To divide the sequence as well has to save more than this.
constexpr double kAsQuick = 1.001;

// A division on its way to a timetable. `least` is at most its step: first by
// its work alone, then, once `bounded`, by LeastStep.
struct Candidate {
  Division division;
  double least = 0;
  double rest = 0;  // of `least`, what is not the microbatches
  bool bounded = false;
  bool host_too = false;  // the same with states on the host is there, too
};

using Mesh = std::tuple<int, int, int, int>;
Mesh MeshOf(const Division& d) { return {d.tp, d.pp, d.dp, d.cp}; }

bool Better(const Choice& a, const Choice& b) {
  const double step = b.prediction.step;
  if (std::abs(a.prediction.step - step) > kSame * step)
    return a.prediction.step < step;
  return a.prediction.memory.total() < b.prediction.memory.total();
}

class SearchRun {
 public:
  explicit SearchRun(const Request& request) : request_(request) {
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
  double BytesOf(const Division& division) const {
    return EvaluateMemory(request_.architecture, division, *request_.software)
        .total();
  }
  // Layers are alike in many divisions, and are asked for once.
  const ModelWork& FindWork(const Division& division);
  void Collect();
  void Explore();
  void EvaluateCuts(const Candidate& candidate);
  void Take(const Division& division);
  // Whether a division that takes `least` or more can be the best of its mesh,
  // and that one of those that are asked for.
  bool IsOfUse(const Division& division, double least) const;
  // The worst of the meshes that are asked for.
  double Bar() const;
  absl::Status WhyNone() const;

  const Request& request_;
  Cluster cluster_;
  std::map<std::tuple<int, int, int64_t, bool, Recomputation>, ModelWork> work_;
  std::vector<Candidate> candidates_;
  std::optional<Division> smallest_;  // takes the least memory of all
  double smallest_bytes_ = 0;
  std::map<Mesh, Choice> best_;
  // At most what any division takes that was left out for lack of time.
  double unseen_ = std::numeric_limits<double>::infinity();
  int64_t spent_ = 0;
  SearchResult result_;
};

const ModelWork& SearchRun::FindWork(const Division& d) {
  auto [place, added] = work_.try_emplace(
      {d.tp, d.cp, d.microbatch, d.sequence_parallel, d.recompute});
  if (added) place->second = WorkOf(SettingOf(d));
  return place->second;
}

void SearchRun::Collect() {
  bool on_device = false;  // the last one fits, with its states on the device
  ForEachDivision(request_, [&](const Division& division) {
    ++result_.considered;
    const double bytes = BytesOf(division);
    if (!smallest_ || bytes < smallest_bytes_) {
      smallest_ = division;
      smallest_bytes_ = bytes;
    }
    const bool one_cut = division.pp == 1 || request_.fixed.even_cut;
    const double room = cluster_.device.room();
    // In the same cut, states on the host only take time: what could be gained
    // is another cut, and it is looked at where this one is promising.
    if (division.offload && on_device) {
      ++result_.fitting;
      candidates_.back().host_too = !one_cut;
      return true;
    }
    const bool fits = bytes <= room ||
                      (!one_cut && !LayersThatFit(SettingOf(division)).empty());
    on_device = fits && !division.offload;
    if (!fits) return true;
    ++result_.fitting;
    Candidate candidate{division};
    candidate.least = double(division.microbatches()) *
                      FindWork(division).total / division.pp;
    candidates_.push_back(candidate);
    return true;
  });
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

void SearchRun::Take(const Division& division) {
  StatusOr<Prediction> prediction =
      Evaluate(request_.architecture, division, cluster_, *request_.software);
  ++result_.evaluated;
  spent_ += CellsOf(division);
  if (!prediction.ok() || !prediction->fits) return;
  Choice choice{division, *std::move(prediction)};
  auto [place, added] = best_.try_emplace(MeshOf(division), choice);
  if (!added && Better(choice, place->second)) place->second = choice;
}

void SearchRun::EvaluateCuts(const Candidate& candidate) {
  const Setting setting = SettingOf(candidate.division);
  const StageCuts cuts = CutsWorthTrying(setting, FindWork(candidate.division),
                                         LayersThatFit(setting));
  Division division = candidate.division;
  for (const StageCut& cut : cuts.cuts) {
    if (request_.fixed.even_cut && !cut.layers.empty()) continue;
    if (!IsOfUse(division, cut.least + candidate.rest)) continue;
    division.cut = cut.layers;
    if (BytesOf(division) <= cluster_.device.room()) Take(division);
  }
  if (!request_.fixed.even_cut)
    unseen_ = std::min(unseen_,
                       std::max(candidate.least, cuts.others + candidate.rest));
}

void SearchRun::Explore() {
  using Entry = std::pair<double, size_t>;  // least, index
  std::vector<Entry> entries;
  for (size_t i = 0; i < candidates_.size(); ++i)
    entries.push_back({candidates_[i].least, i});
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue(
      std::greater<Entry>(), std::move(entries));
  while (!queue.empty()) {
    const auto [least, index] = queue.top();
    queue.pop();
    if (least > Bar() * (1 + kSame)) return;
    Candidate& candidate = candidates_[index];
    if (!IsOfUse(candidate.division, least)) continue;
    if (spent_ >= request_.effort && !best_.empty()) {
      unseen_ = std::min(unseen_, least);
      return;
    }
    if (candidate.bounded) {
      EvaluateCuts(candidate);
      if (!candidate.host_too) continue;
      Candidate host{candidate.division, least};
      host.division.offload = true;
      queue.push({least, candidates_.size()});
      candidates_.push_back(std::move(host));
      continue;
    }
    StatusOr<StepBound> bound =
        LeastStep(request_.architecture, candidate.division, cluster_,
                  *request_.software);
    if (!bound.ok()) continue;
    candidate.bounded = true;
    candidate.least = std::max(least, bound->step());
    candidate.rest = bound->rest;
    queue.push({candidate.least, index});
  }
}

absl::Status SearchRun::WhyNone() const {
  const int devices = request_.cluster.devices;
  if (!smallest_) {
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
            std::to_string(n) +
            " devices would do, or another batch or other fixed choices");
    }
    return absl::InvalidArgumentError(
        "expected choices that go together, found none that " +
        std::to_string(devices) +
        " devices or fewer can have: fix fewer of them");
  }
  const double limit = cluster_.device.room();
  std::string text = "expected a division within " + GigaBytes(limit) +
                     " a device, found none: the least is " +
                     GigaBytes(smallest_bytes_) + ", " +
                     GigaBytes(smallest_bytes_ - limit) + " more, of " +
                     Describe(*smallest_);
  Request more = request_;
  for (int times = 2; times <= 64; times *= 2) {
    more.cluster.devices = devices * times;
    double least = std::numeric_limits<double>::infinity();
    ForEachDivision(more, [&](const Division& division) {
      least = std::min(least, EvaluateMemory(request_.architecture, division,
                                             *request_.software)
                                  .total());
      return least > limit;
    });
    if (least <= limit)
      return absl::ResourceExhaustedError(
          text + "; it fits with a limit of " + GigaBytes(smallest_bytes_) +
          ", or on " + std::to_string(devices * times) + " devices");
  }
  return absl::ResourceExhaustedError(text + "; it fits with a limit of " +
                                      GigaBytes(smallest_bytes_));
}

StatusOr<SearchResult> SearchRun::Run() {
  Collect();
  Explore();
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
  if (request.batch < 1)
    return absl::InvalidArgumentError("batch: expected 1 or more, found " +
                                      std::to_string(request.batch));
  // Of sizes that no division has, one device's check says which.
  Division one;
  one.batch = one.microbatch = 1;
  one.precision = request.precision;
  if (absl::StatusOr<Prediction> checked = Evaluate(
          request.architecture, one, request.cluster, *request.software);
      !checked.ok())
    return checked.status();
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
