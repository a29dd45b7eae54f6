// Dynamic programming over prefixes: best[s][j] is the best cost of cutting the
// first j pieces into s stages.
#include "compiler/core/stages.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace partita::core {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double MemoryOf(const StageLimits& limits, int stage, double weights,
                double saved) {
  const int in_flight = limits.in_flight.empty() ? 1 : limits.in_flight[stage];
  return weights + in_flight * saved;
}

// A stage under construction: pieces are prepended one by one.
struct Open {
  int stage = 0;
  int first = 0;  // its first piece
  double time = 0;
  double memory = 0;
  double sent = 0;  // by the previous stage
};

// The cost of a cut: the maximum or the sum of `stage_cost`. The cost is
// infinite for stages that are not allowed, and stays infinite as the stage
// grows.
struct Objective {
  std::function<double(const Open&)> stage_cost;
  bool sum = false;
};

// Returns the first piece of each stage; nullopt if every cut is infinite.
std::optional<std::vector<int>> Cut(const std::vector<Piece>& pieces,
                                    const StageLimits& limits,
                                    const Objective& objective) {
  const int n = static_cast<int>(pieces.size());
  std::vector<std::vector<double>> best(limits.stages + 1,
                                        std::vector<double>(n + 1, kInfinity));
  std::vector<std::vector<int>> first(limits.stages + 1,
                                      std::vector<int>(n + 1, -1));
  best[0][0] = 0;
  for (int s = 1; s <= limits.stages; ++s) {
    for (int j = s; j <= n; ++j) {
      Open open;
      open.stage = s - 1;
      double weights = 0, saved = 0;
      for (int i = j - 1; i >= s - 1; --i) {
        open.first = i;
        open.time += pieces[i].time;
        weights += pieces[i].weights;
        saved += pieces[i].saved;
        open.memory = MemoryOf(limits, s - 1, weights, saved);
        open.sent = i == 0 ? 0 : pieces[i - 1].output;
        const double cost = objective.stage_cost(open);
        if (cost == kInfinity) break;
        // A maximum only grows with the stage, so stop here.
        if (!objective.sum && cost >= best[s][j]) break;
        const double before = best[s - 1][i];
        const double whole =
            objective.sum ? before + cost : std::max(before, cost);
        if (whole < best[s][j]) {
          best[s][j] = whole;
          first[s][j] = i;
        }
      }
    }
  }
  if (best[limits.stages][n] == kInfinity) return std::nullopt;
  std::vector<int> cut(limits.stages);
  for (int s = limits.stages, j = n; s > 0; --s) j = cut[s - 1] = first[s][j];
  return cut;
}

StageCut Describe(const std::vector<Piece>& pieces, const StageLimits& limits,
                  const std::vector<int>& first) {
  StageCut cut;
  cut.first = first;
  for (int s = 0; s < limits.stages; ++s) {
    const int end =
        s + 1 < limits.stages ? first[s + 1] : static_cast<int>(pieces.size());
    double time = 0, weights = 0, saved = 0;
    // Add backwards, as Cut does, so that comparisons see the same bits.
    for (int i = end - 1; i >= first[s]; --i) {
      time += pieces[i].time;
      weights += pieces[i].weights;
      saved += pieces[i].saved;
    }
    cut.time.push_back(time);
    cut.memory.push_back(MemoryOf(limits, s, weights, saved));
    if (s > 0) cut.sent += pieces[first[s] - 1].output;
  }
  return cut;
}

absl::Status Check(const std::vector<Piece>& pieces,
                   const StageLimits& limits) {
  if (limits.stages < 1 || static_cast<int>(pieces.size()) < limits.stages)
    return absl::InvalidArgumentError(
        "stages: expected at least one stage and a piece of the model for "
        "each, found " +
        std::to_string(limits.stages) + " stages and " +
        std::to_string(pieces.size()) +
        " pieces; divide D over fewer devices, or let each have fewer stages");
  if (!limits.in_flight.empty() &&
      static_cast<int>(limits.in_flight.size()) != limits.stages)
    return absl::InvalidArgumentError(
        "stages: expected the microbatches in flight on each of " +
        std::to_string(limits.stages) + " stages, found " +
        std::to_string(limits.in_flight.size()));
  return absl::OkStatus();
}

std::string Bytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.0f", bytes);
  return text;
}

absl::Status TooLarge(const std::vector<Piece>& pieces,
                      const StageLimits& limits) {
  const Objective least{[](const Open& open) { return open.memory; }};
  const StageCut cut =
      Describe(pieces, limits, Cut(pieces, limits, least).value());
  const auto largest = std::max_element(cut.memory.begin(), cut.memory.end());
  return absl::ResourceExhaustedError(
      "stages: expected a cut into " + std::to_string(limits.stages) +
      " with at most " + Bytes(limits.memory) +
      " bytes each, found that the smallest cut takes " + Bytes(*largest) +
      " bytes on stage " + std::to_string(largest - cut.memory.begin()) +
      "; take more stages, a schedule with fewer microbatches in flight, "
      "recomputation, or shard the weights");
}

}  // namespace

absl::StatusOr<StageCut> BalanceStages(const std::vector<Piece>& pieces,
                                       const StageLimits& limits) {
  if (absl::Status status = Check(pieces, limits); !status.ok()) return status;
  const Objective fastest{[&](const Open& open) {
    return open.memory <= limits.memory ? open.time : kInfinity;
  }};
  const std::optional<std::vector<int>> fast = Cut(pieces, limits, fastest);
  if (!fast.has_value()) return TooLarge(pieces, limits);
  const std::vector<double> times = Describe(pieces, limits, *fast).time;
  const double slowest = *std::max_element(times.begin(), times.end());
  // Squared times break ties between cuts that send the same bytes. Together
  // they stay below one byte.
  const double byte = 2.0 * limits.stages * std::max(slowest * slowest, 1e-300);
  const Objective leanest{
      [&](const Open& open) {
        return open.memory <= limits.memory && open.time <= slowest
                   ? open.sent + open.time * open.time / byte
                   : kInfinity;
      },
      /*sum=*/true};
  return Describe(pieces, limits, Cut(pieces, limits, leanest).value());
}

}  // namespace partita::core
