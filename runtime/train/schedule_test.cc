// Rates at the boundaries of every kind.
#include "runtime/train/schedule.h"

#include <cmath>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace partita::train {
namespace {

using Kind = Schedule::Kind;

double Rate(Kind kind, int64_t step) {
  return LearningRate({kind, 2.0, /*steps=*/110, /*warmup=*/10, 0.1}, step);
}

TEST(ScheduleTest, WarmUpIsTheSameForAll) {
  for (const Kind kind :
       {Kind::kConstant, Kind::kLinear, Kind::kCosine, Kind::kInverseSqrt}) {
    EXPECT_DOUBLE_EQ(Rate(kind, 1), 0.2);
    EXPECT_DOUBLE_EQ(Rate(kind, 5), 1.0);
    EXPECT_DOUBLE_EQ(Rate(kind, 10), 2.0);
  }
}

TEST(ScheduleTest, AfterWarmUp) {
  EXPECT_DOUBLE_EQ(Rate(Kind::kConstant, 11), 2.0);
  EXPECT_DOUBLE_EQ(Rate(Kind::kConstant, 110), 2.0);
  EXPECT_DOUBLE_EQ(Rate(Kind::kLinear, 11), 2.0);
  EXPECT_DOUBLE_EQ(Rate(Kind::kCosine, 11), 2.0);
  // Half way: p = 1/2.
  EXPECT_DOUBLE_EQ(Rate(Kind::kLinear, 61), 2.0 * 0.55);
  EXPECT_DOUBLE_EQ(Rate(Kind::kCosine, 61), 2.0 * 0.55);
  // A quarter: p = 1/4.
  EXPECT_DOUBLE_EQ(Rate(Kind::kLinear, 36), 2.0 * 0.775);
  EXPECT_NEAR(Rate(Kind::kCosine, 36),
              2.0 * (0.1 + 0.9 * (2 + std::sqrt(2.0)) / 4), 1e-12);
  EXPECT_DOUBLE_EQ(Rate(Kind::kInverseSqrt, 40), 1.0);
  EXPECT_DOUBLE_EQ(Rate(Kind::kInverseSqrt, 90), 2.0 / 3);
}

// Rates of transformers' get_linear_schedule_with_warmup and
// get_cosine_schedule_with_warmup in steps 1 to 5 of 5, without warm-up, and of
// torch's CosineAnnealingLR with T_max=5 and eta_min=0.1.
TEST(ScheduleTest, AsOthersHaveThem) {
  const double linear[] = {1, 0.8, 0.6, 0.4, 0.2},
               cosine[] = {1, 0.9045084971874737, 0.6545084971874737,
                           0.34549150281252633, 0.09549150281252633},
               annealed[] = {1, 0.9140576474687263, 0.6890576474687263,
                             0.41094235253127375, 0.18594235253127375};
  for (int64_t step = 1; step <= 5; ++step) {
    EXPECT_NEAR(LearningRate({Kind::kLinear, 1.0, 5, 0, 0}, step),
                linear[step - 1], 1e-12);
    EXPECT_NEAR(LearningRate({Kind::kCosine, 1.0, 5, 0, 0}, step),
                cosine[step - 1], 1e-12);
    EXPECT_NEAR(LearningRate({Kind::kCosine, 1.0, 5, 0, 0.1}, step),
                annealed[step - 1], 1e-12);
  }
}

// The learning rates that torch.optim.lr_scheduler.OneCycleLR gives, with
// max_lr=2: the defaults over 10 steps; three of eight steps rising,
// div_factor=10, final_div_factor=100; the same linearly.
TEST(ScheduleTest, OneCycle) {
  const double defaults[] = {0.08000000000000007,
                             1.04,
                             2.0,
                             1.9009692640269473,
                             1.6234913078995261,
                             1.2225240438725786,
                             0.7774839561274215,
                             0.37651669210047395,
                             0.09903873597305257,
                             8e-06};
  const double cosine[] = {0.19999999999999996,
                           1.1,
                           2.0,
                           1.8092079773805725,
                           1.3097079773805724,
                           0.6922920226194276,
                           0.1927920226194276,
                           0.002};
  const double line[] = {0.2,
                         1.1,
                         2.0,
                         1.6004,
                         1.2008,
                         0.8012000000000001,
                         0.40159999999999996,
                         0.0020000000000000018};
  for (int64_t step = 1; step <= 10; ++step)
    EXPECT_NEAR(LearningRate({Kind::kOneCycle, 2.0, 10, 0, 0.04e-4}, step),
                defaults[step - 1], 1e-9)
        << step;
  for (int64_t step = 1; step <= 8; ++step) {
    EXPECT_NEAR(LearningRate({Kind::kOneCycle, 2.0, 8, 3, 1e-3, 0.1}, step),
                cosine[step - 1], 1e-12)
        << step;
    EXPECT_NEAR(
        LearningRate({Kind::kOneCycleLinear, 2.0, 8, 3, 1e-3, 0.1}, step),
        line[step - 1], 1e-12)
        << step;
  }
  EXPECT_NEAR(LearningRate({Kind::kOneCycle, 2.0, 8, 3, 1e-3, 0.1}, 100), 2e-3,
              1e-12);
}

TEST(ScheduleTest, OneCycleOfFewSteps) {
  EXPECT_DOUBLE_EQ(LearningRate({Kind::kOneCycle, 2.0, 1, 0, 0}, 1), 0);
  EXPECT_DOUBLE_EQ(LearningRate({Kind::kOneCycle, 2.0, 1, 1, 0}, 1), 2);
  EXPECT_DOUBLE_EQ(LearningRate({Kind::kOneCycle, 2.0, 4, 4, 0}, 4), 2);
  EXPECT_DOUBLE_EQ(LearningRate({Kind::kOneCycle, 2.0, 4, 4, 0.25}, 5), 0.5);
}

TEST(ScheduleTest, RangeTest) {
  // From 1e-4 of the rate by factors of ten, and DeepSpeed's LRRangeTest with
  // lr_range_test_min_lr 0.2, step_rate 2.25 and step_size 1.
  const double factors[] = {2e-4, 2e-3, 2e-2, 0.2, 2},
               line[] = {0.2, 0.65, 1.1, 1.55, 2};
  for (int64_t step = 1; step <= 5; ++step) {
    EXPECT_NEAR(LearningRate({Kind::kRangeTest, 2.0, 5, 0, 0, 1e-4}, step),
                factors[step - 1], 1e-12);
    EXPECT_NEAR(LearningRate({Kind::kRangeTestLinear, 2.0, 5, 0, 0, 0.1}, step),
                line[step - 1], 1e-12);
  }
  EXPECT_NEAR(LearningRate({Kind::kRangeTest, 2.0, 5}, 1), 2e-6, 1e-18);
  EXPECT_DOUBLE_EQ(LearningRate({Kind::kRangeTest, 2.0, 1}, 1), 2);
  EXPECT_TRUE(IsRangeTest(Kind::kRangeTestLinear));
  EXPECT_FALSE(IsRangeTest(Kind::kOneCycle));
}

TEST(ScheduleTest, BeyondTheEnd) {
  EXPECT_NEAR(Rate(Kind::kLinear, 500), 0.2, 1e-12);
  EXPECT_NEAR(Rate(Kind::kCosine, 500), 0.2, 1e-12);
  EXPECT_DOUBLE_EQ(Rate(Kind::kInverseSqrt, 1000000), 0.2);
}

TEST(ScheduleTest, WithoutWarmUp) {
  EXPECT_DOUBLE_EQ(LearningRate({Kind::kLinear, 1.0, 4, 0, 0}, 1), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate({Kind::kLinear, 1.0, 4, 0, 0}, 4), 0.25);
  EXPECT_DOUBLE_EQ(LearningRate({Kind::kInverseSqrt, 1.0, 4, 0, 0}, 1), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate({Kind::kInverseSqrt, 1.0, 4, 0, 0}, 4), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate({Kind::kCosine, 1.0, 3, 3, 0}, 3), 1.0);
}

std::string Error(const Schedule& schedule) {
  return std::string(CheckSchedule(schedule).message());
}

TEST(ScheduleTest, Refusals) {
  EXPECT_EQ(Error({Kind::kLinear, 1.0, 4, 4, 1}), "");
  EXPECT_EQ(Error({Kind::kLinear, -1, 4, 0, 0}),
            "expected a positive learning rate, found -1");
  EXPECT_EQ(
      Error({Kind::kLinear, std::numeric_limits<double>::infinity(), 4, 0, 0}),
      "expected a positive learning rate, found inf");
  EXPECT_EQ(Error({Kind::kLinear, 1, 4, 5, 0}),
            "expected at most as many steps of warm-up as there are (4), found "
            "5");
  EXPECT_EQ(Error({Kind::kLinear, 1, 0, 0, 0}),
            "expected at least one step, found 0");
  EXPECT_EQ(Error({Kind::kLinear, 1, 4, 0, 1.5}),
            "expected a share of the learning rate from 0 to 1, found 1.5");
  EXPECT_EQ(ParseScheduleKind("cosine").value(), Kind::kCosine);
  EXPECT_EQ(ParseScheduleKind("sine").status().message(),
            "expected constant, linear, cosine, inverse_sqrt, one_cycle, "
            "one_cycle_linear, range_test or range_test_linear, found 'sine'");
  EXPECT_EQ(Error({Kind::kOneCycle, 1, 4, 0, 0, 2}),
            "expected a share of the learning rate from 0 to 1, found 2");
  EXPECT_EQ(Error({Kind::kRangeTest, 1, 4, 2, 0, 0}),
            "expected none with a range test, whose rates rise anyway, found "
            "2");
}

TEST(ScheduleTest, LargerBatchesTakeLongerSteps) {
  EXPECT_EQ(BatchFactor(ParseBatchRule("none").value(), 256, 1024), 1);
  EXPECT_EQ(BatchFactor(ParseBatchRule("linear").value(), 256, 1024), 4);
  EXPECT_EQ(BatchFactor(ParseBatchRule("sqrt").value(), 256, 1024), 2);
  EXPECT_EQ(BatchFactor(BatchRule::kLinear, 256, 64), 0.25);
  EXPECT_EQ(BatchFactor(BatchRule::kSqrt, 256, 64), 0.5);
  EXPECT_EQ(ParseBatchRule("cube").status().message(),
            "expected none, linear or sqrt, found 'cube'");
}

}  // namespace
}  // namespace partita::train
