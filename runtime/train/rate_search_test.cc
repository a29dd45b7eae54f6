// Suggested rates of losses with known slopes.
#include "runtime/train/rate_search.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace partita::train {
namespace {

StepRecord Record(int64_t step, double loss) {
  StepRecord record;
  record.step = step;
  record.loss = loss;
  record.rate = static_cast<double>(step);
  return record;
}

// A constant loss has the smoothed losses 3, so that the moving average has no
// bias at its beginning; nothing falls, and the first rate is suggested.
TEST(RateSearchTest, ConstantLosses) {
  RateSearch test;
  for (int64_t step = 1; step <= 30; ++step)
    ASSERT_TRUE(test.OnStep(Record(step, 3)).ok());
  EXPECT_FALSE(test.Diverged());
  ASSERT_TRUE(test.SuggestRate());
  EXPECT_GE(*test.SuggestRate(), 11);
}

// Losses 5 - 2 / (1 + exp(-(s - 50) / 5)) + exp((s - 110) / 6). The suggested
// step is the one that numpy.gradient(smoothed[10:-1]).argmin() finds.
TEST(RateSearchTest, SteepestDescent) {
  RateSearch test;
  int64_t step = 1;
  for (; step <= 200 && !test.Diverged(); ++step) {
    const double s = static_cast<double>(step);
    ASSERT_TRUE(test.OnStep(Record(step, 5 - 2 / (1 + std::exp(-(s - 50) / 5)) +
                                             std::exp((s - 110) / 6)))
                    .ok());
  }
  EXPECT_EQ(step - 1, 137);
  ASSERT_TRUE(test.SuggestRate());
  EXPECT_EQ(*test.SuggestRate(), 59);
}

TEST(RateSearchTest, TooFewLosses) {
  RateSearch test;
  for (int64_t step = 1; step <= 12; ++step)
    ASSERT_TRUE(test.OnStep(Record(step, 3)).ok());
  ASSERT_TRUE(
      test.OnStep(Record(13, std::numeric_limits<double>::quiet_NaN())).ok());
  EXPECT_FALSE(test.SuggestRate());
  ASSERT_TRUE(test.OnStep(Record(14, 2)).ok());
  EXPECT_TRUE(test.SuggestRate());
}

}  // namespace
}  // namespace partita::train
