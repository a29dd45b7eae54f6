#include "compiler/planner/rationale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace partita::planner {
namespace {

using ::testing::HasSubstr;

Request Ask(double memory) {
  Request request;
  Architecture& a = request.architecture;
  a.layers = 24;
  a.hidden = 4096;
  a.heads = a.kv_heads = 32;
  a.ffn = 4 * a.hidden;
  a.seq = 2048;
  a.vocab = 51200;
  request.cluster = *BuiltInCluster("16x a100-80-sxm");
  request.batch = 64;
  request.memory = memory;
  return request;
}

TEST(Rationalize, ComparesTheRunnersUp) {
  const Request request = Ask(0);
  const SearchResult result = *Search(request);
  const absl::StatusOr<Rationale> why = Rationalize(request, result);
  ASSERT_TRUE(why.ok()) << why.status();
  EXPECT_THAT(why->binds, HasSubstr("matrix products, "));
  ASSERT_EQ(why->alternatives.size(), result.choices.size() - 1);
  for (size_t i = 0; i < why->alternatives.size(); ++i) {
    const Alternative& other = why->alternatives[i];
    EXPECT_NEAR(1 + other.slower,
                result.choices[i + 1].prediction.step /
                    result.choices[0].prediction.step,
                1e-12);
    EXPECT_FALSE(other.why.empty());
  }
  double sum = 0;
  for (const StepPart& part : PartsOf(result.choices[0].prediction))
    sum += part.seconds;
  EXPECT_NEAR(sum, result.choices[0].prediction.step, 1e-9 * sum);
}

TEST(Rationalize, SaysWhatMoreWouldBuy) {
  Request request = Ask(0);
  const Prediction free = Search(request)->choices[0].prediction;
  // A limit a little below what the best one takes.
  request = Ask(free.memory.total() - 0.5e9);
  const SearchResult tight = *Search(request);
  const absl::StatusOr<Rationale> why = Rationalize(request, tight);
  ASSERT_TRUE(why.ok()) << why.status();
  ASSERT_EQ(why->gains.size(), request.cluster.levels.size() + 2);
  for (const Gain& gain : why->gains) EXPECT_GE(gain.saved, 0) << gain.what;
  EXPECT_THAT(why->gains[0].what, HasSubstr("1 GB/s more on "));
  // With the gigabyte it is the free choice again.
  const Gain& memory = why->gains.back();
  EXPECT_THAT(memory.what, HasSubstr("1 GB more of memory"));
  EXPECT_NEAR(memory.saved, tight.choices[0].prediction.step - free.step,
              1e-9 * free.step);
  EXPECT_GT(memory.saved, 0);
}

}  // namespace
}  // namespace partita::planner
