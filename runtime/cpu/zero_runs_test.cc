// Every kernel that this processor can run, beside sums of the whole matrix.
#include "runtime/cpu/zero_runs.h"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/cpu/sparse_kernel_testing.h"

namespace partita::cpu {
namespace {

class ZeroRunsTest : public SparseKernelTest {
 protected:
  // Runs of 16 columns are zero, but for a share of `kept`.
  void Make(int64_t depth, int64_t columns, double kept) {
    MakeZeros(depth, columns);
    std::bernoulli_distribution keep(kept);
    runs_ = 0;
    for (int64_t n = 0; n < columns; n += 16)
      for (int64_t k = 0; k < depth; ++k) {
        if (!keep(random_)) continue;
        ++runs_;
        // One weight of a run is enough.
        const int64_t end = std::min(columns, n + 16);
        for (int64_t i = k % 2 == 0 ? n : end - 1; i < end; ++i)
          At(k, i) = Number(0.1F, 1);
      }
  }
  std::vector<float> Rows(int64_t rows) {
    std::vector<float> lhs(static_cast<size_t>(rows * matrix_.depth));
    for (float& number : lhs) number = Number(0.1F, 1) - 0.5F;
    return lhs;
  }
  void Check(const std::vector<float>& lhs, int64_t rows, int64_t begin,
             int64_t end) {
    ASSERT_EQ(CountRuns(matrix_, 1), runs_);
    std::vector<char> packed(static_cast<size_t>(
        PackedRunsBytes(matrix_.depth, matrix_.columns, runs_)));
    PackRuns(matrix_, packed.data());
    CheckSums(RunKernels(), packed, lhs, rows, begin, end);
  }

  int64_t runs_ = 0;
};

TEST_P(ZeroRunsTest, Sizes) {
  for (const int64_t depth : {1, 3, 16, 70})
    for (const int64_t columns : {1, 15, 16, 17, 50, 150})
      for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8}) {
        SCOPED_TRACE(::testing::Message()
                     << rows << "x" << columns << "x" << depth);
        Make(depth, columns, 0.3);
        Check(Rows(rows), rows, 0, columns);
      }
}

TEST_P(ZeroRunsTest, Parts) {
  Make(40, 70, 0.3);
  for (const int64_t begin : {0, 16, 48, 64})
    Check(Rows(3), 3, begin, begin + 6);
}

TEST_P(ZeroRunsTest, NoneAndAll) {
  for (const double kept : {0, 1}) {
    Make(30, 20, kept);
    Check(Rows(2), 2, 0, 20);
  }
}

// Zero times infinity is NaN, also if the zero is not stored.
TEST_P(ZeroRunsTest, InfinityAndNan) {
  Make(23, 37, 0.3);
  for (const int64_t k : {0, 13, 22})
    for (const float number : {std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> lhs = Rows(3);
      lhs[static_cast<size_t>(23 + k)] = number;
      Check(lhs, 3, 0, 37);
      Check(lhs, 3, 32, 37);
    }
}

TEST_P(ZeroRunsTest, ShareOfRuns) {
  Make(100, 160, 0.4);
  EXPECT_EQ(CountRuns(matrix_, 0.5), runs_);
  EXPECT_EQ(CountRuns(matrix_, 0.3), -1);
  Make(100, 160, 0.9);
  EXPECT_EQ(CountRuns(matrix_, 0.5), -1);
}

INSTANTIATE_TEST_SUITE_P(Layouts, ZeroRunsTest, ::testing::Bool(),
                         [](const auto& test) {
                           return test.param ? "Rows" : "Columns";
                         });

}  // namespace
}  // namespace partita::cpu
