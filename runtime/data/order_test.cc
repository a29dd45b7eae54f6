#include "runtime/data/order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace partita::data {
namespace {

using testing::HasSubstr;

std::vector<int64_t> Epoch(Order& order, int64_t count, int64_t batch) {
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < count / batch; ++i) {
    EXPECT_TRUE(order.Begin(batch).ok());
    for (int64_t row = 0; row < batch; ++row)
      samples.push_back(order.Sample(row));
    order.Finish(batch);
  }
  return samples;
}

TEST(PermutationTest, HasEveryNumberOnce) {
  for (int64_t count : {1, 2, 3, 4, 5, 16, 17, 1000, 4097}) {
    const Permutation permutation(count, 7);
    std::vector<bool> seen(static_cast<size_t>(count), false);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t value = permutation(i);
      ASSERT_GE(value, 0);
      ASSERT_LT(value, count);
      ASSERT_FALSE(seen[static_cast<size_t>(value)]) << count << " " << i;
      seen[static_cast<size_t>(value)] = true;
    }
  }
}

TEST(PermutationTest, WorksFarBeyondWhatATableWouldHold) {
  const int64_t count = (int64_t{1} << 40) + 12345;
  const Permutation permutation(count, 3);
  for (int64_t i : {int64_t{0}, int64_t{1}, count - 1}) {
    EXPECT_GE(permutation(i), 0);
    EXPECT_LT(permutation(i), count);
  }
  EXPECT_NE(permutation(0), permutation(1));
}

// Images of the first of 1000 over many keys: each tenth of the range gets
// about a tenth (3.5 standard deviations of a fair draw are 33 in 100).
TEST(PermutationTest, IsSpreadEvenly) {
  std::vector<int> tenths(10, 0);
  for (uint64_t key = 0; key < 1000; ++key)
    ++tenths[static_cast<size_t>(Permutation(1000, key)(0) / 100)];
  for (int count : tenths) {
    EXPECT_GT(count, 67);
    EXPECT_LT(count, 133);
  }
}

TEST(OrderTest, EveryEpochHasEverySampleOnceInAnotherOrder) {
  Order order("k", "d", 12, {});
  std::vector<int64_t> first = Epoch(order, 12, 3);
  std::vector<int64_t> second = Epoch(order, 12, 3);
  EXPECT_NE(first, second);
  std::vector<int64_t> all(12);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_NE(first, all);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  EXPECT_EQ(first, all);
  EXPECT_EQ(second, all);
}

TEST(OrderTest, TheSeedDecides) {
  const auto draw = [](uint64_t seed) {
    OrderOptions options;
    options.seed = seed;
    Order order("k", "d", 100, options);
    return Epoch(order, 100, 10);
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(OrderTest, LeavesOutWhatFillsNoBatch) {
  OrderOptions options;
  options.shuffle = false;
  options.epochs = 2;
  Order order("k", "data.bin", 7, options);
  EXPECT_THAT(Epoch(order, 12, 3),
              testing::ElementsAre(0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5));
  const absl::Status end = order.Begin(3);
  EXPECT_EQ(end.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(end.message()),
              HasSubstr("data.bin: all 2 epochs of 7 samples are used up"));
}

TEST(OrderTest, GoesOnWhereItStood) {
  for (int batches = 0; batches < 10; ++batches) {
    Order order("k", "d", 10, {}), other("k", "elsewhere", 10, {});
    Epoch(order, 3 * batches, 3);
    ASSERT_TRUE(other.Restore(order.State()).ok());
    // A different batch size continues at the same sample.
    EXPECT_EQ(other.State(), order.State());
    EXPECT_EQ(Epoch(order, 30, 3), Epoch(other, 30, 3)) << batches;
  }
}

TEST(OrderTest, RefusesStatesOfOtherData) {
  Order order("tokens", "d", 10, {});
  OrderOptions options;
  options.seed = 9;
  EXPECT_THAT(
      std::string(
          order.Restore(Order("tokens", "d", 11, {}).State()).message()),
      HasSubstr("expected samples 10, found 11; resume with the data"));
  EXPECT_THAT(
      std::string(
          order.Restore(Order("tokens", "d", 10, options).State()).message()),
      HasSubstr("expected seed 0, found 9"));
  EXPECT_THAT(
      std::string(
          order.Restore(Order("images", "d", 10, {}).State()).message()),
      HasSubstr("expected kind \"tokens\", found \"images\""));
}

TEST(OrderTest, RefusesDamagedStates) {
  Order order("k", "d", 10, {});
  Epoch(order, 6, 3);
  const std::string good = order.State();
  for (const char* bad : {"", "x", "[]", "{}", "{\"version\":1}", "null"})
    EXPECT_FALSE(order.Restore(bad).ok()) << bad;
  for (const char* bad :
       {"-1", "11", "1.5", "\"3\"", "null", "1e30", "18446744073709551615"}) {
    std::string text = good;
    text.replace(text.find("\"position\":6") + 11, 1, bad);
    EXPECT_FALSE(order.Restore(text).ok()) << text;
  }
  // The state cut at any place.
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(order.Restore(good.substr(0, size)).ok()) << size;
  EXPECT_EQ(order.State(), good);
}

}  // namespace
}  // namespace partita::data
