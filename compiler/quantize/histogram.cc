// Spans begin and end between bins.
#include "compiler/quantize/histogram.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace partita::quantize {
namespace {

constexpr size_t kSteps = 255;

double edge(const Histogram& histogram, size_t bin) {
  return histogram.low + (histogram.high - histogram.low) *
                             static_cast<double>(bin) /
                             static_cast<double>(histogram.counts.size());
}

// The divergence of bins [begin, end) from their copy in kSteps steps. Numbers
// outside are in the first and the last bin, as integers saturate.
double divergence(const std::vector<double>& counts, size_t begin, size_t end) {
  std::vector<double> kept(counts.begin() + static_cast<ptrdiff_t>(begin),
                           counts.begin() + static_cast<ptrdiff_t>(end));
  const std::vector<double> inside = kept;
  kept.front() += std::accumulate(
      counts.begin(), counts.begin() + static_cast<ptrdiff_t>(begin), 0.0);
  kept.back() += std::accumulate(counts.begin() + static_cast<ptrdiff_t>(end),
                                 counts.end(), 0.0);
  // Each step has the mean of its bins that are not empty.
  std::vector<double> rounded(kept.size(), 0);
  for (size_t step = 0; step < kSteps; ++step) {
    const size_t first = step * kept.size() / kSteps,
                 last = (step + 1) * kept.size() / kSteps;
    double sum = 0;
    size_t filled = 0;
    for (size_t i = first; i < last; ++i) {
      sum += inside[i];
      filled += kept[i] > 0 ? 1 : 0;
    }
    for (size_t i = first; i < last; ++i)
      if (kept[i] > 0) rounded[i] = sum / static_cast<double>(filled);
  }
  const double all = std::accumulate(kept.begin(), kept.end(), 0.0),
               all_rounded =
                   std::accumulate(rounded.begin(), rounded.end(), 0.0);
  double sum = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i] == 0) continue;
    if (rounded[i] == 0) return std::numeric_limits<double>::infinity();
    sum +=
        kept[i] / all * std::log((kept[i] / all) / (rounded[i] / all_rounded));
  }
  return sum;
}

}  // namespace

Span spanOfPercentile(const Histogram& histogram, double percent) {
  const std::vector<double>& counts = histogram.counts;
  const double outside = std::accumulate(counts.begin(), counts.end(), 0.0) *
                         (100 - percent) / 200;
  size_t begin = 0, end = counts.size();
  double below = 0, above = 0;
  while (begin + 1 < end && below + counts[begin] <= outside)
    below += counts[begin++];
  while (begin + 1 < end && above + counts[end - 1] <= outside)
    above += counts[--end];
  return {edge(histogram, begin), edge(histogram, end)};
}

Span spanOfEntropy(const Histogram& histogram) {
  const size_t bins = histogram.counts.size();
  Span best = {histogram.low, histogram.high};
  if (bins <= kSteps) return best;
  double least = std::numeric_limits<double>::infinity();
  // From the whole range down, so that equal divergences keep more.
  for (size_t shares = 128; shares >= 16; --shares) {
    const auto side = [&](double distance) {
      return static_cast<size_t>(distance * static_cast<double>(shares) / 128);
    };
    // Both ends move towards 0, or towards the end that is nearer to it.
    const double zero =
        std::clamp(-histogram.low / (histogram.high - histogram.low), 0.0, 1.0);
    const double centre = zero * static_cast<double>(bins);
    const size_t begin = static_cast<size_t>(centre) -
                         std::min(side(centre), static_cast<size_t>(centre));
    const size_t end =
        std::min(bins, static_cast<size_t>(std::ceil(centre)) +
                           side(static_cast<double>(bins) - centre));
    if (end <= begin || end - begin < kSteps) break;
    const double found = divergence(histogram.counts, begin, end);
    if (found < least) {
      least = found;
      best = {edge(histogram, begin), edge(histogram, end)};
    }
  }
  return best;
}

}  // namespace partita::quantize
