#include "runtime/data/token_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "runtime/data/source_testing.h"

namespace partita::data {
namespace {

using base::DType;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<uint16_t> Count(int size) {
  std::vector<uint16_t> tokens(static_cast<size_t>(size));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

std::vector<base::TensorSpec> InputAndTargets(int64_t batch, int64_t length) {
  return {Spec("input_ids", DType::kI64, {batch, length}),
          Spec("targets", DType::kI32, {batch, length})};
}

TokenOptions InOrder(TokenFormat format = TokenFormat::kU16) {
  TokenOptions options;
  options.format = format;
  options.order.shuffle = false;
  return options;
}

std::string Refusal(const std::string& path,
                    const std::vector<base::TensorSpec>& specs,
                    const TokenOptions& options) {
  const auto source = OpenTokens(path, specs, options);
  EXPECT_FALSE(source.ok());
  return std::string(source.status().message());
}

TEST(TokenSourceTest, GivesWindowsAndTheTokenAfterEach) {
  const std::string path = WriteTestFile("order.bin", BytesOf(Count(14)));
  auto source = OpenTokens(path, InputAndTargets(2, 3), InOrder());
  ASSERT_TRUE(source.ok()) << source.status();
  Batch batch = NewBatch(**source);
  ASSERT_TRUE((*source)->Next(batch).ok());
  EXPECT_THAT(Values(batch, 0), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(Values(batch, 1), ElementsAre(1, 2, 3, 4, 5, 6));
  ASSERT_TRUE((*source)->Next(batch).ok());
  EXPECT_THAT(Values(batch, 0), ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(Values(batch, 1), ElementsAre(7, 8, 9, 10, 11, 12));
}

TEST(TokenSourceTest, FillsTheOtherInputsOfATransformer) {
  const std::string path = WriteTestFile("roles.txt", "abcdefg");
  const std::vector<base::TensorSpec> specs = {
      Spec("attention_mask", DType::kF32, {1, 3}),
      Spec("input_ids", DType::kI64, {1, 3}),
      Spec("position_ids", DType::kI64, {1, 3}),
      Spec("token_type_ids", DType::kI32, {1, 3})};
  auto source = OpenTokens(path, specs, InOrder(TokenFormat::kBytes));
  ASSERT_TRUE(source.ok()) << source.status();
  Batch batch = NewBatch(**source);
  ASSERT_TRUE((*source)->Next(batch).ok());
  EXPECT_THAT(Values(batch, 0), ElementsAre(1, 1, 1));
  EXPECT_THAT(Values(batch, 1), ElementsAre('a', 'b', 'c'));
  EXPECT_THAT(Values(batch, 2), ElementsAre(0, 1, 2));
  EXPECT_THAT(Values(batch, 3), ElementsAre(0, 0, 0));
}

TEST(TokenSourceTest, ReadsWideTokens) {
  const std::string path =
      WriteTestFile("wide.bin", BytesOf<uint32_t>({70000, 4294967295u, 2, 3}));
  auto source = OpenTokens(path, {Spec("x", DType::kI64, {1, 2})},
                           InOrder(TokenFormat::kU32));
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT(Draw(**source, 1), ElementsAre(70000, 4294967295.0));
}

TEST(TokenSourceTest, ShuffledEpochsHaveEveryWindowOnceFromAnotherPlace) {
  // Each token equals its position.
  const std::string path = WriteTestFile("shuffle.bin", BytesOf(Count(1001)));
  TokenOptions options;
  auto source = OpenTokens(path, InputAndTargets(3, 10), options);
  ASSERT_TRUE(source.ok()) << source.status();
  std::map<int, int> phases;
  for (int epoch = 0; epoch < 8; ++epoch) {
    const std::vector<double> tokens = Draw(**source, 33);
    std::vector<int> starts;
    for (size_t i = 0; i < tokens.size(); i += 10) {
      starts.push_back(static_cast<int>(tokens[i]));
      for (size_t j = 0; j < 10; ++j)
        ASSERT_EQ(tokens[i + j], tokens[i] + static_cast<double>(j));
    }
    EXPECT_FALSE(std::is_sorted(starts.begin(), starts.end()));
    std::sort(starts.begin(), starts.end());
    ++phases[starts.front()];
    for (size_t i = 0; i < starts.size(); ++i)
      EXPECT_EQ(starts[i], starts[0] + 10 * static_cast<int>(i));
  }
  EXPECT_GT(phases.size(), 2u);
}

TEST(TokenSourceTest, RowsOfTheBatchAreTheSameForEveryDivision) {
  const std::string path = WriteTestFile("rows.bin", BytesOf(Count(500)));
  auto whole = OpenTokens(path, InputAndTargets(5, 4), {});
  TokenOptions options;
  options.rows = {3, 2};
  auto part = OpenTokens(path, InputAndTargets(5, 4), options);
  ASSERT_TRUE(whole.ok() && part.ok());
  Batch all = NewBatch(**whole), some = NewBatch(**part);
  for (int step = 0; step < 60; ++step) {
    ASSERT_TRUE((*whole)->Next(all).ok());
    ASSERT_TRUE((*part)->Next(some).ok());
    for (size_t i = 0; i < 2; ++i) {
      std::vector<double> wanted = Values(all, i);
      // Rows outside the range are not written.
      std::fill(wanted.begin(), wanted.begin() + 12, 0);
      EXPECT_EQ(Values(some, i), wanted);
    }
    EXPECT_EQ((*whole)->State(), (*part)->State());
  }
}

TEST(TokenSourceTest, GoesOnWhereItStood) {
  const std::string path = WriteTestFile("resume.bin", BytesOf(Count(101)));
  for (int steps = 0; steps < 25; ++steps) {
    auto source = OpenTokens(path, InputAndTargets(2, 5), {});
    auto other = OpenTokens(path, InputAndTargets(2, 5), {});
    ASSERT_TRUE(source.ok() && other.ok());
    Draw(**source, steps);
    ASSERT_TRUE((*other)->Restore((*source)->State()).ok());
    EXPECT_EQ(Draw(**source, 20, 1), Draw(**other, 20, 1)) << steps;
  }
}

TEST(TokenSourceTest, PartsOfAFileDoNotMeet) {
  const std::string path = WriteTestFile("parts.bin", BytesOf(Count(100)));
  TokenOptions train = InOrder(), evaluate = InOrder();
  train.order.epochs = evaluate.order.epochs = 1;
  train.to = evaluate.from = 0.8;
  auto first = OpenTokens(path, {Spec("x", DType::kI32, {1, 9})}, train);
  auto second = OpenTokens(path, {Spec("x", DType::kI32, {1, 9})}, evaluate);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(Draw(**first, 8).back(), 71);
  EXPECT_THAT(Draw(**second, 2).front(), 80);
  Batch batch = NewBatch(**second);
  EXPECT_EQ((*second)->Next(batch).code(), absl::StatusCode::kOutOfRange);
}

TEST(TokenSourceTest, RefusesIdsBeyondTheVocabulary) {
  const std::string path =
      WriteTestFile("vocabulary.bin", BytesOf<uint16_t>({1, 2, 3, 4, 50, 6}));
  TokenOptions options = InOrder();
  options.vocabulary = 50;
  auto source = OpenTokens(path, {Spec("x", DType::kI64, {1, 2})}, options);
  ASSERT_TRUE(source.ok());
  Batch batch = NewBatch(**source);
  ASSERT_TRUE((*source)->Next(batch).ok());
  const std::string before = (*source)->State();
  EXPECT_THAT(std::string((*source)->Next(batch).message()),
              HasSubstr("expected token ids below 50, found 50 at token 4 "
                        "(byte 8); was the file made with"));
  EXPECT_EQ((*source)->State(), before);
}

TEST(TokenSourceTest, RefusesIdsThatTheTypeDoesNotHold) {
  const std::string path = WriteTestFile("type.txt",
                                         "ab\xff"
                                         "d");
  auto source = OpenTokens(path, {Spec("x", DType::kI8, {1, 3})},
                           InOrder(TokenFormat::kBytes));
  ASSERT_TRUE(source.ok());
  Batch batch = NewBatch(**source);
  EXPECT_THAT(std::string((*source)->Next(batch).message()),
              HasSubstr("expected token ids below 128, found 255 at token 2"));
}

TEST(TokenSourceTest, RefusesShortFiles) {
  const auto specs = InputAndTargets(2, 5);
  EXPECT_THAT(
      Refusal(WriteTestFile("short.bin", BytesOf(Count(10))), specs, InOrder()),
      HasSubstr("short.bin: expected at least 11 tokens, a batch of 2 "
                "sequences of 5, found 10; give more data"));
  EXPECT_THAT(Refusal(WriteTestFile("empty.bin", ""), specs, {}),
              HasSubstr("expected at least 16 tokens"));
  EXPECT_TRUE(OpenTokens(WriteTestFile("enough.bin", BytesOf(Count(11))), specs,
                         InOrder())
                  .ok());
  EXPECT_TRUE(
      OpenTokens(WriteTestFile("more.bin", BytesOf(Count(16))), specs, {})
          .ok());
}

TEST(TokenSourceTest, RefusesFilesOfAnotherWidth) {
  const std::string path = WriteTestFile("odd.bin", std::string(101, 'x'));
  EXPECT_THAT(Refusal(path, InputAndTargets(1, 2), InOrder()),
              HasSubstr("odd.bin: expected token ids of 16 bits, a multiple of "
                        "2 bytes, found 101 bytes"));
}

TEST(TokenSourceTest, RefusesInputsThatAreNoTokens) {
  const std::string path = WriteTestFile("inputs.bin", BytesOf(Count(100)));
  EXPECT_THAT(Refusal(path, {Spec("x", DType::kF32, {1, 2})}, InOrder()),
              HasSubstr("tokens need an integer input [batch, length], found "
                        "'x': f32[1,2]"));
  EXPECT_THAT(Refusal(path, {}, InOrder()), HasSubstr("found none"));
  EXPECT_THAT(
      Refusal(path,
              {Spec("x", DType::kI32, {1, 2}), Spec("y", DType::kI32, {1, 2})},
              InOrder()),
      HasSubstr("found two, 'x' and 'y'"));
  EXPECT_THAT(Refusal(path,
                      {Spec("x", DType::kI32, {1, 2}),
                       Spec("targets", DType::kI32, {1, 3})},
                      InOrder()),
              HasSubstr("input 'targets': expected the shape of 'x', i32[1,2], "
                        "found i32[1,3]"));
  TokenOptions options = InOrder();
  options.rows = {0, 3};
  EXPECT_THAT(Refusal(path, InputAndTargets(2, 2), options),
              HasSubstr("within the batch of 2, found 3 rows from row 0"));
}

}  // namespace
}  // namespace partita::data
