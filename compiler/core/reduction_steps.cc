#include "compiler/core/reduction_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace partita::core {
namespace {

using Sizes = std::vector<int64_t>;

bool Contains(const Sizes& dims, int64_t dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

// Elements that a warp of generated code reads at once: 4 per thread. (Some
// 16-bit kernels read 8, and then have half as many warps in their first step
// as counted here.)
constexpr int64_t kWarpElements = 128;
// Warps that a large GPU runs at once: 132 multiprocessors of an H100 with 32
// warps each, the limit above 64 registers per thread.
constexpr int64_t kWarps = 4096;
// Cost of one more launch, in reads of a warp. Kernel start and first read take
// about 5 us; a read takes 0.1 us with eight in flight
// (compiler/kernels/unroll_reads.h).
constexpr double kLaunch = 50;
constexpr int kMaxExtraSteps = 2;

// Returns the time of a reduction, in sequential reads of a warp. A warp
// computes neighbouring results if the last dimension is kept, else one result.
double TimeOf(const Sizes& shape, const Sizes& dims) {
  const int64_t last = static_cast<int64_t>(shape.size()) - 1;
  double warps = 1, reads = 1;
  for (int64_t i = 0; i <= last; ++i) {
    double& count = Contains(dims, i) ? reads : warps;
    count *= static_cast<double>(
        i == last ? (shape[i] + kWarpElements - 1) / kWarpElements : shape[i]);
  }
  return reads * std::max(1.0, std::ceil(warps / kWarps)) + kLaunch;
}

// Two steps: a reduction of `shape`, with some dimensions split in two, along
// `first`; then of the result `left` along `second`.
struct Cut {
  Sizes shape, first, left, second;
  double time = 0;  // total, with further steps of the second
};

// Leaves reduced dimensions before `cut`, and `parts` of dimension `cut`, to
// the second step.
Cut CutOf(const Sizes& shape, const Sizes& dims, int64_t cut, int64_t parts) {
  Cut steps;
  Sizes left;  // shape between the steps
  const auto keep = [&](int64_t size, bool reduced) {
    if (reduced) steps.second.push_back(static_cast<int64_t>(left.size()));
    left.push_back(size);
    steps.shape.push_back(size);
  };
  const auto drop = [&](int64_t size) {
    steps.first.push_back(static_cast<int64_t>(steps.shape.size()));
    steps.shape.push_back(size);
  };
  for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim) {
    const int64_t size = shape[dim];
    if (!Contains(dims, dim)) {
      keep(size, false);
    } else if (dim == cut && parts < size) {
      keep(parts, true);
      drop(size / parts);
    } else if (dim <= cut) {
      keep(size, true);
    } else {
      drop(size);
    }
  }
  steps.time = TimeOf(steps.shape, steps.first);
  steps.left = std::move(left);
  return steps;
}

// Returns the fastest plan with at most `more` additional steps. The time is
// infinite if there is none.
Cut BestCut(const Sizes& shape, const Sizes& dims, int more) {
  Cut best;
  best.time = std::numeric_limits<double>::infinity();
  if (more == 0) return best;
  for (int64_t cut : dims) {
    const int64_t size = shape[cut];
    const auto attempt = [&](int64_t parts) {
      Cut steps = CutOf(shape, dims, cut, parts);
      if (steps.first.empty() || steps.time >= best.time) return;
      steps.time += std::min(TimeOf(steps.left, steps.second),
                             BestCut(steps.left, steps.second, more - 1).time);
      if (steps.time < best.time) best = std::move(steps);
    };
    for (int64_t divisor = 1; divisor * divisor <= size; ++divisor)
      if (size % divisor == 0)
        for (int64_t parts : {divisor, size / divisor})
          if (parts > 1) attempt(parts);
  }
  return best;
}

}  // namespace

std::vector<ReductionStep> ReductionSteps(const Sizes& shape,
                                          const Sizes& dims) {
  std::vector<ReductionStep> steps;
  Sizes now = shape, along = dims;
  for (int added = 0; added < kMaxExtraSteps; ++added) {
    Cut cut = BestCut(now, along, kMaxExtraSteps - added);
    if (cut.time >= TimeOf(now, along)) break;
    now = cut.left, along = cut.second;
    steps.push_back({std::move(cut.shape), std::move(cut.first), now});
  }
  Sizes left;
  for (int64_t dim = 0; dim < static_cast<int64_t>(now.size()); ++dim)
    if (!Contains(along, dim)) left.push_back(now[dim]);
  steps.push_back({std::move(now), std::move(along), std::move(left)});
  return steps;
}

}  // namespace partita::core
