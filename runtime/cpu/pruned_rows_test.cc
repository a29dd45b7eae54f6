// Every kernel that this processor can run, beside sums of the whole matrix.
#include "runtime/cpu/pruned_rows.h"

#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/cpu/sparse_kernel_testing.h"

namespace partita::cpu {
namespace {

// Matrices with 0 to 2 weights, at random places, in each four of a column.
class PrunedRowsTest : public SparseKernelTest {
 protected:
  void Make(int64_t depth, int64_t columns) {
    MakeZeros(depth, columns);
    std::uniform_int_distribution<int64_t> place(0, 3), some(0, 9);
    for (int64_t n = 0; n < columns; ++n)
      for (int64_t group = 0; group < depth; group += 4)
        for (int i = 0; i < 2; ++i) {
          const int64_t k = group + place(random_);
          if (k < depth && some(random_) > 0) At(k, n) = Number(-1, 1);
        }
  }
  std::vector<float> Rows(int64_t rows) {
    std::vector<float> lhs(static_cast<size_t>(rows * matrix_.depth));
    for (float& number : lhs) number = Number(-1, 1);
    return lhs;
  }
  void Check(const std::vector<float>& lhs, int64_t rows, int64_t begin,
             int64_t end) {
    std::vector<char> packed(
        static_cast<size_t>(PackedPrunedBytes(matrix_.depth, matrix_.columns)));
    PackPruned(matrix_, packed.data());
    CheckSums(PrunedKernels(), packed, lhs, rows, begin, end);
  }
};

TEST_P(PrunedRowsTest, Sizes) {
  for (const int64_t depth : {1, 2, 3, 4, 5, 64, 131})
    for (const int64_t columns : {1, 15, 16, 17, 32, 50})
      for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8}) {
        SCOPED_TRACE(::testing::Message()
                     << rows << "x" << columns << "x" << depth);
        Make(depth, columns);
        ASSERT_TRUE(IsPrunedTwoOfFour(matrix_));
        Check(Rows(rows), rows, 0, columns);
      }
}

TEST_P(PrunedRowsTest, Parts) {
  Make(40, 70);
  for (const int64_t begin : {0, 16, 48, 64})
    for (const int64_t end : {begin + 1, begin + 6})
      Check(Rows(3), 3, begin, end);
}

TEST_P(PrunedRowsTest, NoWeightAtAll) {
  Make(30, 20);
  weights_.assign(weights_.size(), -0.0F);
  ASSERT_TRUE(IsPrunedTwoOfFour(matrix_));
  Check(Rows(2), 2, 0, 20);
}

// Zero times infinity is NaN, also if the zero is not stored.
TEST_P(PrunedRowsTest, InfinityAndNan) {
  Make(23, 37);
  for (const int64_t k : {0, 2, 13, 21, 22})
    for (const float number : {std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> lhs = Rows(3);
      lhs[static_cast<size_t>(23 + k)] = number;
      Check(lhs, 3, 0, 37);
      Check(lhs, 3, 32, 37);
    }
}

TEST_P(PrunedRowsTest, ThreeOfFour) {
  for (const int64_t group : {0, 4, 16})
    for (const int64_t column : {0, 12}) {
      Make(19, 13);
      for (int64_t k = group; k < group + 3; ++k) At(k, column) = 1;
      EXPECT_FALSE(IsPrunedTwoOfFour(matrix_)) << group << " " << column;
    }
}

INSTANTIATE_TEST_SUITE_P(Layouts, PrunedRowsTest, ::testing::Bool(),
                         [](const auto& test) {
                           return test.param ? "Rows" : "Columns";
                         });

}  // namespace
}  // namespace partita::cpu
