// Best-first search. Every division gets a lower bound on its step. Timetables
// are computed in order of the bounds, until no bound is below the best steps
// found.
#include "compiler/planner/search/search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "compiler/plan/text.h"
#include "compiler/planner/search/candidates.h"
#include "compiler/planner/transformer/layer_cost.h"

namespace partita::planner {
namespace {

using absl::StatusOr;

// Relative difference below which steps count as equal.
constexpr double kSame = 1e-9;
// Dividing the sequence must gain more than this factor.
constexpr double kSequenceGain = 1.001;
// A division that awaits its timetable. `least` is a lower bound on its step:
// at first from its work only, and from LeastStep once `bounded` (only if it
// fits).
struct Candidate {
  Division division;
  double least = 0;
  bool bounded = false;
};

using Mesh = std::tuple<int, int, int, int>;
Mesh MeshOf(const Division& d) { return {d.tp, d.pp, d.dp, d.cp}; }

// The division of a request with the least memory, and its bytes.
std::optional<std::pair<double, Division>> FindSmallest(
    const Request& request) {
  std::optional<std::pair<double, Division>> smallest;
  ForEachDivision(request, [&](const Division& division) {
    const double bytes =
        EvaluateMemory(request.architecture, division, *request.software)
            .total();
    if (!smallest || bytes < smallest->first) smallest = {bytes, division};
    return true;
  });
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
  explicit SearchRun(const Request& request) : request_(request) {
    cluster_ = request.cluster;
    if (request.memory > 0) {
      cluster_.device.memory = request.memory;
      cluster_.device.context = 0;
    }
  }

  StatusOr<SearchResult> Run();

 private:
  // Seconds of one microbatch in all layers, the embedding and the head. Many
  // divisions share the result.
  double WorkOf(const Division& division);
  void Collect();
  bool Fits(const Division& division) const;
  void Explore();
  void Take(const Division& division);
  // True if a division with a step of at least `least` seconds can be the best
  // of its mesh, and its mesh among the `meshes` best.
  bool CanImprove(const Division& division, double least) const;
  // Step of the slowest of the `meshes` best meshes. Infinite if fewer were
  // found.
  double SlowestWantedStep() const;
  absl::Status ExplainFailure();
  // The fixed choices after the word `before`, e.g. " with tp=3, pp=2". Empty
  // if there are none.
  std::string FixedChoicesText(const char* before) const {
    const std::string fixed = Describe(request_.fixed);
    return fixed.empty() ? "" : std::string(before) + " " + fixed;
  }

  const Request& request_;
  Cluster cluster_;
  using WorkKey = std::tuple<int, int, int64_t, bool, Recomputation, int,
                             int64_t, bool, int, int, int>;
  std::map<WorkKey, double> work_;
  using Entry = std::pair<double, size_t>;  // least, index into candidates_
  std::vector<Candidate> candidates_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue_;
  std::map<Mesh, Choice> best_;
  // Lower bound on the step of every division skipped for lack of effort.
  double least_skipped_ = std::numeric_limits<double>::infinity();
  int64_t spent_ = 0;
  SearchResult result_;
};

double SearchRun::WorkOf(const Division& d) {
  auto [place, added] = work_.try_emplace(
      {d.tp, d.cp, d.microbatch, d.sequence_parallel, d.recompute,
       d.zero >= 2 ? d.dp : 1, d.microbatches(), d.SameEnds(), d.ep, d.etp,
       d.zero >= 2 ? ExpertReplicas(d, *request_.software) : 1});
  if (!added) return place->second;
  const Setting setting = {request_.architecture, d, cluster_,
                           *request_.software};
  const auto seconds = [](const PartCost& part) {
    return part.forward.total() + part.backward.total();
  };
  const double layers = double(request_.architecture.layers);
  double work = layers * seconds(LayerCost(setting)) +
                seconds(EmbeddingCost(setting)) + seconds(HeadCost(setting));
  if (request_.architecture.kind == ModelKind::kT5)
    work += layers * seconds(DecoderLayerCost(setting));
  return place->second = work;
}

// Bounds each division by its work only. Explore checks the memory, because it
// does so for far fewer divisions.
void SearchRun::Collect() {
  std::vector<Entry> entries;
  ForEachDivision(request_, [&](const Division& division) {
    ++result_.considered;
    Candidate candidate{division};
    candidate.least =
        double(division.microbatches()) * WorkOf(division) / division.pp;
    entries.push_back({candidate.least, candidates_.size()});
    candidates_.push_back(std::move(candidate));
    return true;
  });
  queue_ = decltype(queue_)(std::greater<Entry>(), std::move(entries));
}

bool SearchRun::Fits(const Division& division) const {
  return EvaluateMemory(request_.architecture, division, *request_.software)
             .total() <= cluster_.device.room();
}

bool SearchRun::CanImprove(const Division& division, double least) const {
  const auto own = best_.find(MeshOf(division));
  if (own != best_.end() && least > own->second.prediction.step * (1 + kSame))
    return false;
  return least <= SlowestWantedStep() * (1 + kSame);
}

double SearchRun::SlowestWantedStep() const {
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
  const auto [best, is_new] = best_.try_emplace(MeshOf(division), choice);
  if (!is_new && Better(choice, best->second)) best->second = std::move(choice);
}

void SearchRun::Explore() {
  while (!queue_.empty()) {
    const auto [least, index] = queue_.top();
    queue_.pop();
    if (least > SlowestWantedStep() * (1 + kSame)) return;
    Candidate& candidate = candidates_[index];
    if (!CanImprove(candidate.division, least)) continue;
    if (!candidate.bounded && !Fits(candidate.division)) continue;
    if (spent_ >= request_.effort && !best_.empty()) {
      least_skipped_ = std::min(least_skipped_, least);
      return;
    }
    if (candidate.bounded) {
      Take(candidate.division);
      continue;
    }
    StatusOr<StepBound> bound =
        LeastStep(request_.architecture, candidate.division, cluster_,
                  *request_.software);
    if (!bound.ok()) continue;
    candidate.bounded = true;
    candidate.least = std::max(least, bound->step());
    queue_.push({candidate.least, index});
  }
}

absl::Status SearchRun::ExplainFailure() {
  const int devices = request_.cluster.devices;
  const auto smallest = FindSmallest(request_);
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
            " sequences, whose divisors give no such product: " +
            std::to_string(n) + " devices would do, or another batch" +
            FixedChoicesText(" or other choices than"));
    }
    return absl::InvalidArgumentError(
        "expected choices that go together, found none that " +
        std::to_string(devices) + " devices or fewer can have" +
        FixedChoicesText(" with") + ": fix fewer of them");
  }
  const double limit = cluster_.device.room();
  const std::string enough = plan::GigaBytesUp(smallest->first);
  std::string text = "expected a division within " + plan::GigaBytes(limit) +
                     " a device, found none: the least is " +
                     plan::GigaBytes(smallest->first) + ", " +
                     plan::GigaBytes(smallest->first - limit) + " more, of " +
                     Describe(smallest->second);
  Request more = request_;
  for (int times = 2; times <= 64; times *= 2) {
    more.cluster.devices = devices * times;
    const auto least = FindSmallest(more);
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
  if (best_.empty()) return ExplainFailure();
  for (auto& [mesh, choice] : best_) result_.choices.push_back(choice);
  std::sort(result_.choices.begin(), result_.choices.end(), Better);
  // Prefer a simpler division that is nearly as fast.
  auto simplest = result_.choices.begin();
  for (auto other = simplest; other != result_.choices.end(); ++other)
    if (other->prediction.step <=
            kSequenceGain * result_.choices.front().prediction.step &&
        other->division.cp < simplest->division.cp)
      simplest = other;
  std::rotate(result_.choices.begin(), simplest, simplest + 1);
  if (static_cast<int>(result_.choices.size()) > request_.meshes)
    result_.choices.resize(request_.meshes);
  const double step = result_.choices.front().prediction.step;
  result_.gap = std::max(0.0, 1 - least_skipped_ / step);
  return result_;
}

}  // namespace

StatusOr<SearchResult> Search(const Request& request) {
  if (request.batch < 1 || request.batch > kMostBatch)
    return absl::InvalidArgumentError("batch: expected 1 to " +
                                      std::to_string(kMostBatch) + ", found " +
                                      std::to_string(request.batch));
  // The check for one device names sizes that are invalid for every division.
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
  if (d.ep > 1) text += " x ep " + std::to_string(d.ep);
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
