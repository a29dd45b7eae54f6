// Ranges of histograms whose best range is known.
#include "compiler/quantize/histogram.h"

#include <cmath>

#include "gtest/gtest.h"

namespace partita::quantize {
namespace {

// Counts of a bell of this width around 0, and `outliers` in the last bin.
Histogram Bell(double width, double outliers, size_t bins = 2048) {
  Histogram histogram{-10, 10, std::vector<double>(bins)};
  for (size_t i = 0; i < bins; ++i) {
    const double x =
        -10 + 20 * (static_cast<double>(i) + 0.5) / static_cast<double>(bins);
    histogram.counts[i] =
        std::floor(1e5 * std::exp(-x * x / (2 * width * width)));
  }
  histogram.counts.back() += outliers;
  return histogram;
}

TEST(HistogramTest, PercentilesLeaveOutBothEnds) {
  const Histogram even{0, 100, std::vector<double>(100, 1)};
  const Span most = spanOfPercentile(even, 90);
  EXPECT_NEAR(most.low, 5, 1e-9);
  EXPECT_NEAR(most.high, 95, 1e-9);
  const Span all = spanOfPercentile(even, 100);
  EXPECT_EQ(all.low, 0);
  EXPECT_EQ(all.high, 100);
}

TEST(HistogramTest, PercentilesKeepOneBin) {
  const Histogram one{-1, 3, {0, 0, 7, 0}};
  const Span span = spanOfPercentile(one, 50);
  EXPECT_EQ(span.low, 1);
  EXPECT_EQ(span.high, 2);
}

TEST(HistogramTest, EntropyLeavesOutRareNumbers) {
  const Span span = spanOfEntropy(Bell(0.5, 3));
  EXPECT_LT(span.high, 5);
  EXPECT_GT(span.high, 1);
  EXPECT_NEAR(span.low, -span.high, 0.1);
}

TEST(HistogramTest, EntropyKeepsNumbersThatFillTheRange) {
  const Histogram even{-10, 10, std::vector<double>(2048, 100)};
  const Span span = spanOfEntropy(even);
  EXPECT_EQ(span.low, -10);
  EXPECT_EQ(span.high, 10);
}

TEST(HistogramTest, EntropyOfOneSide) {
  Histogram side = Bell(1, 0);
  side.low = 0;
  const Span span = spanOfEntropy(side);
  EXPECT_EQ(span.low, 0);
  EXPECT_LE(span.high, 10);
}

TEST(HistogramTest, FewBinsKeepTheRange) {
  const Span span = spanOfEntropy({-1, 1, std::vector<double>(100, 1)});
  EXPECT_EQ(span.low, -1);
  EXPECT_EQ(span.high, 1);
}

}  // namespace
}  // namespace partita::quantize
