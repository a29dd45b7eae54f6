// Every kernel that this processor can run, beside sums of the whole matrix.
#include "runtime/cpu/pruned_rows.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace partita::cpu {
namespace {

// A matrix with rows or columns contiguous; of each four weights of a column, 2
// at random places are not zero, or fewer.
class PrunedRowsTest : public ::testing::TestWithParam<bool> {
 protected:
  void Make(int64_t depth, int64_t columns) {
    weights_.assign(static_cast<size_t>(depth * columns), 0.0F);
    matrix_ = {weights_.data(), depth, columns, GetParam() ? columns : 1,
               GetParam() ? 1 : depth};
    std::uniform_int_distribution<int64_t> place(0, 3), some(0, 9);
    for (int64_t n = 0; n < columns; ++n)
      for (int64_t group = 0; group < depth; group += 4)
        for (int i = 0; i < 2; ++i) {
          const int64_t k = group + place(random_);
          if (k < depth && some(random_) > 0) At(k, n) = Number();
        }
  }
  float& At(int64_t k, int64_t n) {
    return weights_[static_cast<size_t>(k * matrix_.row_stride +
                                        n * matrix_.column_stride)];
  }
  float Number() {
    return std::uniform_real_distribution<float>(-1, 1)(random_);
  }

  // Compares columns [begin, end) of the sums of all kernels.
  void Check(const std::vector<float>& lhs, int64_t rows, int64_t begin,
             int64_t end) {
    const int64_t depth = matrix_.depth, pitch = (end - begin + 15) / 16 * 16;
    std::vector<char> packed(
        static_cast<size_t>(PackedPrunedBytes(depth, matrix_.columns)));
    PackPruned(matrix_, packed.data());
    for (const SparseKernel kernel : PrunedKernels()) {
      std::vector<float> sums(static_cast<size_t>(rows * pitch), 7.0F);
      kernel({lhs.data(), depth, packed.data(), depth, matrix_.columns,
              sums.data(), pitch, begin, end},
             rows);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t n = begin; n < end; ++n) {
          double expected = 0;
          for (int64_t k = 0; k < depth; ++k)
            expected += double{lhs[static_cast<size_t>(row * depth + k)]} *
                        double{At(k, n)};
          const float found =
              sums[static_cast<size_t>(row * pitch + n - begin)];
          if (std::isfinite(expected))
            ASSERT_NEAR(found, expected, 1e-5 * (1 + std::fabs(expected)))
                << "row " << row << ", column " << n;
          else if (std::isnan(expected))
            ASSERT_TRUE(std::isnan(found)) << "row " << row << ", column " << n;
          else
            ASSERT_EQ(found, expected) << "row " << row << ", column " << n;
        }
    }
  }
  std::vector<float> Rows(int64_t rows) {
    std::vector<float> lhs(static_cast<size_t>(rows * matrix_.depth));
    for (float& number : lhs) number = Number();
    return lhs;
  }

  std::mt19937 random_{1};
  std::vector<float> weights_;
  MatrixView matrix_ = {};
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
