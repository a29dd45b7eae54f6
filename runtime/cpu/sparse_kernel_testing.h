// Test fixture of kernels that multiply rows by a packed sparse matrix.
#ifndef PARTITA_RUNTIME_CPU_SPARSE_KERNEL_TESTING_H_
#define PARTITA_RUNTIME_CPU_SPARSE_KERNEL_TESTING_H_

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/cpu/sparse_part.h"

namespace partita::cpu {

// The parameter: rows of the matrix are contiguous, not columns.
class SparseKernelTest : public ::testing::TestWithParam<bool> {
 protected:
  void MakeZeros(int64_t depth, int64_t columns) {
    weights_.assign(static_cast<size_t>(depth * columns), 0.0F);
    matrix_ = {weights_.data(), depth, columns, GetParam() ? columns : 1,
               GetParam() ? 1 : depth};
  }
  float& At(int64_t k, int64_t n) {
    return weights_[static_cast<size_t>(k * matrix_.row_stride +
                                        n * matrix_.column_stride)];
  }
  float Number(float least, float most) {
    return std::uniform_real_distribution<float>(least, most)(random_);
  }

  // Compares columns [begin, end) of the sums of each kernel with sums of the
  // whole matrix. `packed` is the matrix as the kernels read it.
  void CheckSums(const std::vector<SparseKernel>& kernels,
                 const std::vector<char>& packed, const std::vector<float>& lhs,
                 int64_t rows, int64_t begin, int64_t end) {
    const int64_t depth = matrix_.depth, pitch = (end - begin + 15) / 16 * 16;
    for (const SparseKernel kernel : kernels) {
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

  std::mt19937 random_{1};
  std::vector<float> weights_;
  MatrixView matrix_ = {};
};

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_SPARSE_KERNEL_TESTING_H_
