// A model whose next token is a function of the tokens in its cache.
#include "runtime/generate/generator.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::generate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kVocabulary = 11;

// The score of a token is its distance from the sum of the row's tokens.
class SumModel : public CachedModel {
 public:
  SumModel(int64_t rows, int64_t length, std::optional<int64_t> start = {})
      : length_(length), start_(start), cache_(static_cast<size_t>(rows)) {}

  int64_t rows() const override { return static_cast<int64_t>(cache_.size()); }
  int64_t length() const override { return length_; }
  int64_t vocabulary() const override { return kVocabulary; }
  std::optional<int64_t> start() const override { return start_; }

  absl::StatusOr<const float*> ReadPrompt(
      int64_t row, const std::vector<int64_t>& prompt) override {
    std::vector<int64_t>& tokens = cache_[static_cast<size_t>(row)];
    tokens = start_ ? std::vector<int64_t>() : prompt;
    source_[row] =
        start_ ? std::accumulate(prompt.begin(), prompt.end(), int64_t{0}) : 0;
    scores_.assign(kVocabulary, 0);
    Score(row, scores_.data());
    return scores_.data();
  }

  absl::StatusOr<const float*> AddTokens(
      const std::vector<int64_t>& tokens,
      const std::vector<int64_t>& positions) override {
    ++steps;
    scores_.assign(static_cast<size_t>(rows() * kVocabulary), 0);
    for (int64_t row = 0; row < rows(); ++row) {
      const size_t i = static_cast<size_t>(row);
      if (positions[i] < length_) {
        EXPECT_EQ(positions[i], static_cast<int64_t>(cache_[i].size()));
        cache_[i].push_back(tokens[i]);
      }
      Score(row, scores_.data() + row * kVocabulary);
    }
    return scores_.data();
  }

  int64_t steps = 0;

 private:
  void Score(int64_t row, float* scores) {
    const std::vector<int64_t>& tokens = cache_[static_cast<size_t>(row)];
    const int64_t sum =
        std::accumulate(tokens.begin(), tokens.end(), source_[row]) +
        static_cast<int64_t>(tokens.size());
    for (int64_t token = 0; token < kVocabulary; ++token)
      scores[token] = static_cast<float>(-std::abs(token - sum % kVocabulary) -
                                         0.25 * (token < 3));
  }

  const int64_t length_;
  const std::optional<int64_t> start_;
  std::vector<std::vector<int64_t>> cache_;
  std::map<int64_t, int64_t> source_;
  std::vector<float> scores_;
};

const std::vector<std::vector<int64_t>> kPrompts = {
    {1}, {4, 2, 9}, {10, 10}, {3, 1, 4, 1, 5}, {7}};

GenerateReport TextsOf(CachedModel& model, const GenerateOptions& options) {
  const auto report = Generate(model, kPrompts, options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *report : GenerateReport();
}

TEST(Generator, FollowsTheCache) {
  SumModel model(1, 32);
  GenerateOptions options;
  options.max_new_tokens = 3;
  // 1 and one token: 2; 1, 2 and two tokens: 5; 1, 2, 5 and three tokens: 0.
  EXPECT_THAT(TextsOf(model, options).tokens[0], ElementsAre(2, 5, 0));
}

TEST(Generator, RowsDoNotChangeTexts) {
  for (const double temperature : {0.0, 1.5}) {
    GenerateOptions options;
    options.max_new_tokens = 9;
    options.end = {7};
    options.sampling.temperature = temperature;
    options.sampling.seed = 5;
    SumModel one(1, 32);
    const GenerateReport alone = TextsOf(one, options);
    for (const int64_t rows : {2, 3, 8}) {
      SumModel many(rows, 32);
      EXPECT_EQ(TextsOf(many, options).tokens, alone.tokens) << rows;
      EXPECT_LT(many.steps, one.steps);
    }
  }
}

TEST(Generator, EndsAtEndTokensAndStops) {
  SumModel model(2, 32);
  GenerateOptions options;
  options.max_new_tokens = 3;
  options.end = {5};
  EXPECT_THAT(TextsOf(model, options).tokens[0], ElementsAre(2, 5));
  options.end = {};
  options.stops = [](size_t text, const std::vector<int64_t>& tokens) {
    return text == 0 && tokens.back() == 2;
  };
  const GenerateReport report = TextsOf(model, options);
  EXPECT_THAT(report.tokens[0], ElementsAre(2));
  EXPECT_EQ(report.tokens[1].size(), 3);
}

TEST(Generator, NoNewTokensReadNothing) {
  SumModel model(2, 32);
  GenerateOptions options;
  options.max_new_tokens = 0;
  const GenerateReport report = TextsOf(model, options);
  EXPECT_EQ(report.new_tokens, 0);
  EXPECT_EQ(report.prompt_tokens, 0);
}

TEST(Generator, AnEncoderReadsThePrompt) {
  SumModel model(2, 4, /*start=*/3);
  GenerateOptions options;
  options.max_new_tokens = 4;
  const auto report = Generate(model, {{1, 2}, {5}}, options);
  ASSERT_TRUE(report.ok()) << report.status();
  // 3 of the source, 3 of the start, one token: 7.
  EXPECT_EQ(report->tokens[0].front(), 7);
  EXPECT_EQ(report->tokens[0].size(), 4);
}

TEST(Generator, RefusesPromptsThatDoNotFit) {
  SumModel model(1, 6);
  GenerateOptions options;
  options.max_new_tokens = 4;
  EXPECT_TRUE(CheckPrompts(model, {{1, 2, 3}}, options).ok());
  const auto message = [&](const std::vector<int64_t>& prompt) {
    return std::string(CheckPrompts(model, {{1}, prompt}, options).message());
  };
  EXPECT_THAT(message({1, 2, 3, 4}),
              HasSubstr("prompt 2: expected a prompt and new tokens that fit a "
                        "cache of 6 tokens, found 4 and 4"));
  EXPECT_THAT(message({}), HasSubstr("expected at least one token"));
  GenerateOptions endless;
  endless.max_new_tokens = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE(CheckPrompts(model, {{1, 2, 3}}, endless).ok());
  SumModel encoding(1, 6, /*start=*/0);
  EXPECT_FALSE(CheckPrompts(encoding, {{1}}, endless).ok());
  GenerateOptions none;
  none.max_new_tokens = 0;
  EXPECT_TRUE(CheckPrompts(model, {{1, 2, 3, 4, 5, 6}}, none).ok());
  EXPECT_THAT(message({kVocabulary}),
              HasSubstr("expected tokens from 0 to 10"));
  EXPECT_THAT(message({-1}), HasSubstr("found -1"));
}

// Draws many times from given scores.
std::map<int64_t, int> Draws(SamplingOptions options,
                             const std::vector<float>& scores, int count) {
  std::map<int64_t, int> drawn;
  for (int seed = 0; seed < count; ++seed) {
    options.seed = static_cast<uint64_t>(seed);
    std::vector<float> copy = scores;
    ++drawn[Sampler(options).Choose(0, {1}, copy)];
  }
  return drawn;
}

TEST(Sampler, DrawsInProportion) {
  SamplingOptions options;
  options.temperature = 2;
  // Weights 1, 2 and 4 at this temperature.
  const std::vector<float> scores = {0, 2 * std::log(2.0F), 2 * std::log(4.0F)};
  std::map<int64_t, int> drawn = Draws(options, scores, 7000);
  EXPECT_NEAR(drawn[0], 1000, 150);
  EXPECT_NEAR(drawn[1], 2000, 200);
  EXPECT_NEAR(drawn[2], 4000, 200);
  options.top_k = 2;
  drawn = Draws(options, scores, 600);
  EXPECT_EQ(drawn[0], 0);
  EXPECT_NEAR(drawn[1], 200, 60);
  options.top_k = 0;
  options.top_p = 4.0 / 7 - 1e-6;
  EXPECT_EQ(Draws(options, scores, 100)[2], 100);
  options.top_p = 4.0 / 7 + 1e-6;
  EXPECT_NEAR(Draws(options, scores, 600)[1], 200, 60);
}

TEST(Sampler, TheLowestOfEqualScoresIsBest) {
  std::vector<float> scores = {1, 3, 3, NAN};
  EXPECT_EQ(Sampler({}).Choose(0, {}, scores), 1);
}

TEST(Sampler, PenalizesTokensOnce) {
  SamplingOptions options;
  options.repetition_penalty = 2;
  std::vector<float> scores = {3, 4, -1, -1.5};
  EXPECT_EQ(Sampler(options).Choose(0, {1, 1, 2, 99}, scores), 0);
  EXPECT_THAT(scores, ElementsAre(3, 2, -2, -1.5));
}

}  // namespace
}  // namespace partita::generate
