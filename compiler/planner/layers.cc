// A chain of layers: each mapping's own time and memory, and what lies between
// two of them. Partial divisions that are slower and larger than another with
// the same last mapping go no further.
#include "compiler/planner/layers.h"

#include <algorithm>
#include <limits>

#include "compiler/planner/candidates.h"
#include "compiler/planner/cost.h"

namespace partita::planner {
namespace {

using absl::InvalidArgumentError;
using absl::StatusOr;
using core::CollectiveKind;

// Backward computes gradients of inputs and of weights.
constexpr double kPasses = 3;
// Passes over activations, both ways, in terms of forward's.
constexpr double kTrafficPasses = 2.6;
// Bytes of a parameter with its gradient and Adam's states; of updating one.
constexpr double kStateBytes = 16, kUpdateBytes = 42;

class Costs {
 public:
  Costs(const LayerProblem& problem, int data, int inner)
      : problem_(problem),
        device_(problem.cluster.device),
        inner_(inner),
        samples_(double(problem.batch) / data),
        element_(BytesOf(problem.precision)),
        inner_group_(ShapeOfStride(problem.cluster, 1, inner)),
        data_group_(ShapeOfStride(problem.cluster, inner, data)),
        all_(ShapeOfStride(problem.cluster, 1, data * inner)) {}

  bool Allows(const LayerSpec& layer, Mapping mapping) const {
    if (mapping == Mapping::kWhole || inner_ == 1)
      return mapping == (inner_ == 1 ? Mapping::kBatch : Mapping::kWhole);
    if (mapping == Mapping::kBatch)
      return problem_.batch % (int64_t(problem_.cluster.devices)) == 0;
    return (mapping == Mapping::kSpatial ? layer.rows : layer.heads) >= inner_;
  }

  // Rows and heads that do not divide are those of the device with the most.
  double Share(const LayerSpec& layer, Mapping mapping) const {
    if (mapping == Mapping::kWhole) return 1;
    if (mapping == Mapping::kBatch) return 1.0 / inner_;
    const double parts =
        double(mapping == Mapping::kSpatial ? layer.rows : layer.heads);
    return double(int64_t(parts + inner_ - 1) / inner_) / parts;
  }

  double Compute(const LayerSpec& layer, Mapping mapping) const {
    const double share = Share(layer, mapping) * samples_;
    const double rate =
        device_.peak[static_cast<int>(problem_.precision)] * device_.matmul;
    return kPasses * layer.flops * share / rate +
           MemoryBoundTime(device_,
                           kTrafficPasses * layer.traffic * share * element_) +
           MemoryBoundTime(device_,
                           kUpdateBytes * OwnParameters(layer, mapping));
  }

  double Collectives(const LayerSpec& layer, Mapping mapping) const {
    const double gradients = OwnParameters(layer, mapping) * element_;
    double time =
        CollectiveTime(problem_.cluster, CollectiveKind::kAllReduce, gradients,
                       IsWhole(mapping) ? data_group_ : all_);
    if (inner_ == 1) return time;
    // Forward and back.
    if (mapping == Mapping::kSpatial)
      time += 2 * Inner(CollectiveKind::kExchange, layer.halo);
    if (mapping == Mapping::kTensor)
      time += 2 * Inner(CollectiveKind::kAllReduce, layer.reduced);
    return time;
  }

  // What `layer` takes in, as the one before it leaves it; and its gradient.
  double Boundary(const LayerSpec& layer, Mapping from, Mapping to) const {
    if (from == to || inner_ == 1 || (IsWhole(from) && IsWhole(to))) return 0;
    if (!IsWhole(from) && !IsWhole(to))
      return 2 * Inner(CollectiveKind::kAllToAll, layer.input / inner_);
    const double gather = Inner(CollectiveKind::kAllGather, layer.input);
    // From whole tensors a part is taken for nothing; behind a layer that every
    // device computes, gradients are whole.
    if (IsWhole(from) || to == Mapping::kWhole) return gather;
    return gather + Inner(CollectiveKind::kReduceScatter, layer.input);
  }

  double Memory(const LayerSpec& layer, Mapping mapping) const {
    return kStateBytes * OwnParameters(layer, mapping) +
           layer.kept * Share(layer, mapping) * samples_ * element_;
  }

 private:
  // Whether its activations are whole along the inner axis, in and out.
  static bool IsWhole(Mapping mapping) {
    return mapping == Mapping::kTensor || mapping == Mapping::kWhole;
  }
  double OwnParameters(const LayerSpec& layer, Mapping mapping) const {
    return mapping == Mapping::kTensor
               ? layer.parameters * Share(layer, mapping)
               : layer.parameters;
  }
  double Inner(CollectiveKind kind, double elements) const {
    return CollectiveTime(problem_.cluster, kind,
                          elements * samples_ * element_, inner_group_);
  }

  const LayerProblem& problem_;
  const Device& device_;
  const int inner_;
  const double samples_;  // of all devices along the inner axis
  const double element_;
  const GroupShape inner_group_, data_group_, all_;
};

double LimitOf(const LayerProblem& problem) {
  return problem.memory > 0 ? problem.memory : problem.cluster.device.room();
}

// A division of the first layers.
struct Partial {
  double time = 0, memory = 0;
  int before = -1;  // among the partial divisions of one layer less
  Mapping last = Mapping::kBatch;
};

// Keeps those that nothing beats in both; by time.
void Prune(std::vector<Partial>& partials) {
  std::sort(partials.begin(), partials.end(),
            [](const Partial& a, const Partial& b) {
              return a.time != b.time ? a.time < b.time : a.memory < b.memory;
            });
  double least[kMappings];
  std::fill(least, least + kMappings, std::numeric_limits<double>::infinity());
  std::vector<Partial> kept;
  for (const Partial& partial : partials) {
    double& bar = least[static_cast<int>(partial.last)];
    if (partial.memory >= bar) continue;
    bar = partial.memory;
    kept.push_back(partial);
  }
  partials = std::move(kept);
}

// The mappings of the fastest chain within the limit; empty: none is.
std::vector<Mapping> ShortestChain(const LayerProblem& problem,
                                   const Costs& costs) {
  const double limit = LimitOf(problem);
  std::vector<std::vector<Partial>> reached = {{Partial()}};
  for (size_t i = 0; i < problem.layers.size(); ++i) {
    const LayerSpec& layer = problem.layers[i];
    std::vector<Partial> next;
    for (int m = 0; m < kMappings; ++m) {
      const Mapping mapping = static_cast<Mapping>(m);
      if (!costs.Allows(layer, mapping)) continue;
      const double own =
          costs.Compute(layer, mapping) + costs.Collectives(layer, mapping);
      const double memory = costs.Memory(layer, mapping);
      for (size_t b = 0; b < reached.back().size(); ++b) {
        const Partial& before = reached.back()[b];
        Partial partial;
        partial.time = before.time + own;
        if (i > 0) partial.time += costs.Boundary(layer, before.last, mapping);
        partial.memory = before.memory + memory;
        partial.before = static_cast<int>(b);
        partial.last = mapping;
        if (partial.memory <= limit) next.push_back(partial);
      }
    }
    Prune(next);
    reached.push_back(std::move(next));
  }
  if (reached.back().empty()) return {};
  std::vector<Mapping> chain(problem.layers.size());
  int at = 0;
  for (size_t i = chain.size(); i > 0; --i) {
    const Partial& partial = reached[i][at];
    chain[i - 1] = partial.last;
    at = partial.before;
  }
  return chain;
}

absl::Status CheckProblem(const LayerProblem& problem) {
  if (problem.layers.empty())
    return InvalidArgumentError("expected layers, found none");
  if (problem.batch < 1)
    return InvalidArgumentError("batch: expected 1 or more, found " +
                                std::to_string(problem.batch));
  if (problem.cluster.device.peak[static_cast<int>(problem.precision)] <= 0)
    return InvalidArgumentError(problem.cluster.device.name + " has no " +
                                ToString(problem.precision) +
                                " matrix products");
  return absl::OkStatus();
}

void TakeFaster(const LayerProblem& problem, LayerDivision division,
                LayerChoice& best) {
  const StatusOr<LayerPrediction> found = EvaluateLayers(problem, division);
  if (!found.ok() || !found->fits) return;
  if (best.prediction.step > 0 && best.prediction.step <= found->step) return;
  best = {std::move(division), *found};
}

// The least that any division takes, which says what a limit lacks.
double LeastMemory(const LayerProblem& problem) {
  double least = std::numeric_limits<double>::infinity();
  const int devices = problem.cluster.devices;
  for (int inner = 1; inner <= devices; ++inner) {
    if (devices % inner != 0 || problem.batch % (devices / inner) != 0)
      continue;
    const Costs costs(problem, devices / inner, inner);
    double sum = 0;
    for (const LayerSpec& layer : problem.layers) {
      double own = std::numeric_limits<double>::infinity();
      for (int m = 0; m < kMappings; ++m)
        if (costs.Allows(layer, static_cast<Mapping>(m)))
          own = std::min(own, costs.Memory(layer, static_cast<Mapping>(m)));
      sum += own;
    }
    least = std::min(least, sum);
  }
  return least;
}

}  // namespace

std::string ToString(Mapping mapping) {
  const char* names[] = {"B", "H", "M N", "-"};
  return names[static_cast<int>(mapping)];
}

StatusOr<LayerPrediction> EvaluateLayers(const LayerProblem& problem,
                                         const LayerDivision& division) {
  if (absl::Status status = CheckProblem(problem); !status.ok()) return status;
  if (division.data < 1 || division.inner < 1 ||
      int64_t{division.data} * division.inner != problem.cluster.devices ||
      division.mappings.size() != problem.layers.size())
    return InvalidArgumentError(
        "expected data x inner of " + std::to_string(problem.cluster.devices) +
        " devices and " + std::to_string(problem.layers.size()) +
        " mappings, found " + std::to_string(division.data) + " x " +
        std::to_string(division.inner) + " and " +
        std::to_string(division.mappings.size()));
  if (problem.batch % division.data != 0)
    return InvalidArgumentError("batch of " + std::to_string(problem.batch) +
                                " does not divide by " +
                                std::to_string(division.data));
  const Costs costs(problem, division.data, division.inner);
  LayerPrediction prediction;
  for (size_t i = 0; i < problem.layers.size(); ++i) {
    const LayerSpec& layer = problem.layers[i];
    const Mapping mapping = division.mappings[i];
    if (!costs.Allows(layer, mapping))
      return InvalidArgumentError(layer.name + ": " + ToString(mapping) +
                                  " does not divide by " +
                                  std::to_string(division.inner));
    prediction.compute += costs.Compute(layer, mapping);
    prediction.collectives += costs.Collectives(layer, mapping);
    prediction.memory += costs.Memory(layer, mapping);
    if (i > 0)
      prediction.boundaries +=
          costs.Boundary(layer, division.mappings[i - 1], mapping);
  }
  prediction.step =
      prediction.compute + prediction.collectives + prediction.boundaries;
  prediction.fits = prediction.memory <= LimitOf(problem);
  return prediction;
}

StatusOr<LayerResult> SearchLayers(const LayerProblem& problem) {
  if (absl::Status status = CheckProblem(problem); !status.ok()) return status;
  LayerResult result;
  const int devices = problem.cluster.devices;
  for (int inner = 1; inner <= devices; ++inner) {
    LayerDivision division;
    division.data = devices / inner;
    division.inner = inner;
    if (devices % inner != 0 || problem.batch % division.data != 0) continue;
    const Costs costs(problem, division.data, inner);
    division.mappings = ShortestChain(problem, costs);
    if (!division.mappings.empty()) TakeFaster(problem, division, result.best);
    for (int m = 0; m < kMappings; ++m) {
      division.mappings.assign(problem.layers.size(), static_cast<Mapping>(m));
      TakeFaster(problem, division, result.uniform);
    }
  }
  if (result.best.prediction.step > 0) return result;
  const double least = LeastMemory(problem), limit = LimitOf(problem);
  return absl::ResourceExhaustedError(
      "expected a division within " + GigaBytes(limit) +
      " a device, found none: the least is " + GigaBytes(least) + ", " +
      GigaBytes(least - limit) + " more");
}

}  // namespace partita::planner
