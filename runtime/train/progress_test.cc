// Checks the printed text.
#include "runtime/train/progress.h"

#include <limits>
#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace partita::train {
namespace {

StepRecord Record(int64_t step, double seconds) {
  StepRecord record;
  record.step = step;
  record.loss = 2.34567;
  record.rate = 0.001;
  record.seconds = seconds;
  record.examples = 8;
  record.tokens = 512;
  return record;
}

TEST(ProgressTest, Numbers) {
  EXPECT_EQ(FormatShort(832), "832");
  EXPECT_EQ(FormatShort(0.5), "0.50");
  EXPECT_EQ(FormatShort(25600), "25.6k");
  EXPECT_EQ(FormatShort(999499), "999k");
  EXPECT_EQ(FormatShort(999600), "1.00M");
  EXPECT_EQ(FormatShort(3.456e12), "3.46T");
  EXPECT_EQ(FormatDuration(42.4), "42 s");
  EXPECT_EQ(FormatDuration(200), "3 min 20 s");
  EXPECT_EQ(FormatDuration(7500), "2 h 5 min");
  EXPECT_EQ(FormatDuration(100 * 3600), "4 d 4 h");
}

TEST(ProgressTest, SparseLines) {
  std::ostringstream out;
  ProgressOptions options;
  options.steps = 40;
  options.flops_per_step = 3e9;
  options.peak_flops = 6e9;
  {
    Progress progress(out, options);
    ASSERT_TRUE(progress.OnStep(Record(1, 9)).ok());
    for (int64_t step = 2; step <= 40; ++step)
      ASSERT_TRUE(progress.OnStep(Record(step, 1)).ok());
  }
  EXPECT_EQ(out.str(),
            "step 1/40  loss 2.3457  lr 0.001  56.9 tokens/s  333 MFLOP/s "
            "(5.6 % of peak)  5 min 51 s left\n"
            "step 11/40  loss 2.3457  lr 0.001  512 tokens/s  3.00 GFLOP/s "
            "(50.0 % of peak)  29 s left\n"
            "step 21/40  loss 2.3457  lr 0.001  512 tokens/s  3.00 GFLOP/s "
            "(50.0 % of peak)  19 s left\n"
            "step 31/40  loss 2.3457  lr 0.001  512 tokens/s  3.00 GFLOP/s "
            "(50.0 % of peak)  9 s left\n"
            "step 40/40  loss 2.3457  lr 0.001  512 tokens/s  3.00 GFLOP/s "
            "(50.0 % of peak)  0 s left\n");
}

TEST(ProgressTest, ALossThatIsNotToldYet) {
  std::ostringstream out;
  ProgressOptions options;
  options.steps = 4;
  {
    Progress progress(out, options);
    StepRecord record = Record(1, 1);
    record.loss = std::numeric_limits<double>::quiet_NaN();
    ASSERT_TRUE(progress.OnStep(record).ok());
  }
  EXPECT_EQ(out.str(), "step 1/4  loss -  lr 0.001  512 tokens/s  3 s left\n");
}

TEST(ProgressTest, TerminalsHaveOneLine) {
  std::ostringstream out;
  ProgressOptions options;
  options.steps = 3;
  options.terminal = true;
  StepRecord record = Record(1, 0.5);
  record.tokens = 0;
  {
    Progress progress(out, options);
    ASSERT_TRUE(progress.OnStep(record).ok());
    progress.Say("saved");
    record.step = 2;
    ASSERT_TRUE(progress.OnStep(record).ok());
  }
  EXPECT_EQ(out.str(),
            "\rstep 1/3  loss 2.3457  lr 0.001  16 examples/s  1 s left\x1b[K"
            "\r\x1b[Ksaved\n"
            "\rstep 2/3  loss 2.3457  lr 0.001  16 examples/s  1 s left\x1b[K"
            "\n");
}

}  // namespace
}  // namespace partita::train
