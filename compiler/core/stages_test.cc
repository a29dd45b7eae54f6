// Known cuts, and random models compared with all their cuts.
#include "compiler/core/stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace partita::core {
namespace {

using testing::ElementsAre;

std::vector<Piece> OfTimes(const std::vector<double>& times) {
  std::vector<Piece> pieces;
  for (double time : times) pieces.push_back({time, 1, 0, 1});
  return pieces;
}

StageLimits Limits(int stages, double memory = 1e300) {
  StageLimits limits;
  limits.stages = stages;
  limits.memory = memory;
  return limits;
}

TEST(StagesTest, UnevenLayers) {
  // A small embedding, four layers, and a loss as costly as two layers.
  const absl::StatusOr<StageCut> cut =
      BalanceStages(OfTimes({1, 4, 4, 4, 4, 8}), Limits(3));
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_THAT(cut->first, ElementsAre(0, 3, 5));
  EXPECT_THAT(cut->time, ElementsAre(9, 8, 8));
  EXPECT_THAT(cut->memory, ElementsAre(3, 2, 1));
  EXPECT_EQ(cut->sent, 2);
}

TEST(StagesTest, MemoryMovesTheCut) {
  std::vector<Piece> pieces = OfTimes({2, 2, 2, 2});
  pieces[0].weights = 10;  // an embedding
  EXPECT_THAT(BalanceStages(pieces, Limits(2))->first, ElementsAre(0, 2));
  EXPECT_THAT(BalanceStages(pieces, Limits(2, 10))->first, ElementsAre(0, 1));
}

TEST(StagesTest, EarlierStagesKeepMoreInFlight) {
  std::vector<Piece> pieces = OfTimes({1, 1, 1, 1, 1, 1});
  for (Piece& piece : pieces) piece.saved = 10;
  StageLimits limits = Limits(2, 44);
  limits.in_flight = {2, 1};
  const absl::StatusOr<StageCut> cut = BalanceStages(pieces, limits);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_THAT(cut->first, ElementsAre(0, 2));
  EXPECT_THAT(cut->memory, ElementsAre(42, 44));
}

TEST(StagesTest, OfEqualCutsTheOneThatSendsLess) {
  std::vector<Piece> pieces = OfTimes({3, 0, 0, 0, 3});
  pieces[0].output = 8;
  pieces[1].output = 4;
  pieces[2].output = 2;
  pieces[3].output = 8;
  const absl::StatusOr<StageCut> cut = BalanceStages(pieces, Limits(2));
  EXPECT_THAT(cut->first, ElementsAre(0, 3));
  EXPECT_EQ(cut->sent, 2);
}

TEST(StagesTest, Refusals) {
  EXPECT_EQ(BalanceStages(OfTimes({1, 1}), Limits(3)).status().message(),
            "stages: expected at least one stage and a piece of the model for "
            "each, found 3 stages and 2 pieces; divide D over fewer "
            "devices, or let each have fewer stages");
  std::vector<Piece> pieces = OfTimes({1, 1, 1});
  pieces[2].weights = 3;
  EXPECT_EQ(
      std::string(BalanceStages(pieces, Limits(2, 2)).status().message()),
      "stages: expected a cut into 2 with at most 2 bytes each, found "
      "that the smallest cut takes 3 bytes on stage 1; take more stages, a "
      "schedule with fewer microbatches in flight, recomputation, or "
      "shard the weights");
  StageLimits limits = Limits(2);
  limits.in_flight = {1};
  EXPECT_EQ(BalanceStages(OfTimes({1, 1}), limits).status().message(),
            "stages: expected the microbatches in flight on each of 2 stages, "
            "found 1");
}

// The best (slowest stage, sent) of all cuts; {-1, -1} if none fits.
std::pair<double, double> BestOfAll(const std::vector<Piece>& pieces,
                                    const StageLimits& limits) {
  std::pair<double, double> best = {-1, -1};
  std::function<void(int, int, double, double)> extend =
      [&](int stage, int from, double slowest, double sent) {
        const int n = static_cast<int>(pieces.size());
        if (stage == limits.stages) {
          const std::pair<double, double> found = {slowest, sent};
          if (from == n && (best.first < 0 || found < best)) best = found;
          return;
        }
        for (int end = from + 1; end <= n; ++end) {
          double time = 0, memory = 0;
          for (int i = from; i < end; ++i) {
            time += pieces[i].time;
            memory +=
                pieces[i].weights + pieces[i].saved * limits.in_flight[stage];
          }
          if (memory <= limits.memory)
            extend(stage + 1, end, std::max(slowest, time),
                   sent + (end < n ? pieces[end - 1].output : 0));
        }
      };
  extend(0, 0, 0, 0);
  return best;
}

TEST(StagesTest, AsGoodAsTheBestOfAllCuts) {
  std::mt19937 random(5);
  auto below = [&](int n) {
    return std::uniform_int_distribution<int>(0, n - 1)(random);
  };
  int fits = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<Piece> pieces(1 + below(10));
    for (Piece& piece : pieces)
      piece = {1.0 * below(6), 1.0 * below(8), 1.0 * below(5), 1.0 * below(9)};
    StageLimits limits = Limits(1 + below(5), 10 + below(60));
    for (int s = 0; s < limits.stages; ++s)
      limits.in_flight.push_back(limits.stages - s);
    const std::pair<double, double> best = BestOfAll(pieces, limits);
    const absl::StatusOr<StageCut> cut = BalanceStages(pieces, limits);
    ASSERT_EQ(cut.ok(), best.first >= 0) << cut.status();
    if (!cut.ok()) {
      ++refused;
      continue;
    }
    ++fits;
    EXPECT_EQ(*std::max_element(cut->time.begin(), cut->time.end()),
              best.first);
    EXPECT_EQ(cut->sent, best.second);
    EXPECT_LE(*std::max_element(cut->memory.begin(), cut->memory.end()),
              limits.memory);
  }
  EXPECT_GE(fits, 500);
  EXPECT_GE(refused, 500);
}

TEST(StagesTest, LargeModels) {
  const absl::StatusOr<StageCut> cut =
      BalanceStages(OfTimes(std::vector<double>(4096, 1)), Limits(32));
  ASSERT_TRUE(cut.ok());
  for (double time : cut->time) EXPECT_EQ(time, 128);
}

}  // namespace
}  // namespace partita::core
