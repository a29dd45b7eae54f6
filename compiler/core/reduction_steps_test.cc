#include "compiler/core/reduction_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace partita::core {
namespace {

using Sizes = std::vector<int64_t>;

int64_t Product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1},
                         std::multiplies<>());
}

// Each step takes the result of the previous one; the last gives the result.
TEST(ReductionSteps, FollowEachOther) {
  for (const Sizes& shape : {Sizes{8192, 768}, Sizes{8, 1024, 3072},
                             Sizes{64, 64, 56, 56}, Sizes{1, 4096, 1, 8}})
    for (const Sizes& dims : {Sizes{0}, Sizes{0, 1}, Sizes{1}}) {
      int64_t left = Product(shape);
      const auto steps = ReductionSteps(shape, dims);
      ASSERT_LE(steps.size(), 3);
      for (const ReductionStep& step : steps) {
        EXPECT_EQ(Product(step.shape), left);
        left = Product(step.left);
        int64_t reduced = 1;
        for (const int64_t dim : step.dims) reduced *= step.shape[dim];
        EXPECT_EQ(Product(step.shape), reduced * left);
      }
      Sizes kept;
      for (size_t dim = 0; dim < shape.size(); ++dim)
        if (std::find(dims.begin(), dims.end(), dim) == dims.end())
          kept.push_back(shape[dim]);
      EXPECT_EQ(steps.back().left, kept);
    }
}

TEST(ReductionSteps, AreSeveralWhereResultsAreFewAndRowsMany) {
  EXPECT_EQ(ReductionSteps({8192, 768}, {0}).size(), 3);
  EXPECT_EQ(ReductionSteps({8192, 768}, {1}).size(), 1);
  EXPECT_EQ(ReductionSteps({16, 768}, {0}).size(), 1);
  // A prime number cannot be split.
  EXPECT_EQ(ReductionSteps({8191, 768}, {0}).size(), 1);
}

}  // namespace
}  // namespace partita::core
