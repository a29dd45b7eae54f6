// Ranges of numbers by their histogram: which part of them integers should
// cover.
#ifndef PARTITA_COMPILER_QUANTIZE_HISTOGRAM_H_
#define PARTITA_COMPILER_QUANTIZE_HISTOGRAM_H_

#include <vector>

namespace partita::quantize {

// Counts of numbers in equal bins from `low` to `high`.
struct Histogram {
  double low = 0, high = 0;
  std::vector<double> counts;
};

struct Span {
  double low = 0, high = 0;
};

// Leaves out (100 - percent) % of the numbers, half of them at each end.
Span spanOfPercentile(const Histogram& histogram, double percent);

// The span whose numbers, rounded to 255 steps, keep most of the distribution:
// the least Kullback-Leibler divergence (Migacz, "8-bit inference with
// TensorRT", 2017). Both ends shrink by the same share.
Span spanOfEntropy(const Histogram& histogram);

}  // namespace partita::quantize

#endif  // PARTITA_COMPILER_QUANTIZE_HISTOGRAM_H_
