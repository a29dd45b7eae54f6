// Small tokenizers in JSON. tests/peers compares larger ones with the
// tokenizers wheel.
#include "runtime/tokenizer/tokenizer.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::tokenizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tokenizer Make(const std::string& text) {
  auto made = Tokenizer::Parse(text, "t.json");
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

std::vector<int64_t> Encode(const Tokenizer& tokenizer,
                            const std::string& text) {
  const auto tokens = tokenizer.Encode(text);
  EXPECT_TRUE(tokens.ok()) << tokens.status();
  return tokens.value_or(std::vector<int64_t>());
}

std::string ErrorOf(const std::string& text) {
  return std::string(Tokenizer::Parse(text, "t.json").status().message());
}

constexpr char kBpe[] = R"({
  "added_tokens": [{"id": 9, "content": "<end>", "special": true}],
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
  "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE",
    "vocab": {"a": 0, "b": 1, "c": 2, "Ġ": 3, "ab": 4, "bc": 5, "Ġab": 6, "Ã": 7, "©": 8},
    "merges": ["a b", "b c", "Ġ ab"]}})";

TEST(Tokenizer, JoinsTheLowestRankFirst) {
  const Tokenizer bpe = Make(kBpe);
  EXPECT_THAT(Encode(bpe, "abc"), ElementsAre(4, 2));
  EXPECT_THAT(Encode(bpe, "bc ab"), ElementsAre(5, 6));
  EXPECT_THAT(Encode(bpe, "é"), ElementsAre(7, 8));
  EXPECT_THAT(Encode(bpe, "a<end>b"), ElementsAre(0, 9, 1));
  EXPECT_THAT(Encode(bpe, ""), ElementsAre());
  EXPECT_EQ(bpe.size(), 10);
}

TEST(Tokenizer, DecodesBytes) {
  const Tokenizer bpe = Make(kBpe);
  EXPECT_EQ(*bpe.Decode({6, 7, 8, 9, 5, 77, -1}), " abébc");
  EXPECT_EQ(*bpe.Decode({0, 9}, /*skips_special=*/false), "a<end>");
  EXPECT_EQ(*bpe.Decode({7}), "\uFFFD");
}

TEST(Tokenizer, TakesTheLongestWordPiece) {
  const Tokenizer words = Make(R"({
    "normalizer": {"type": "BertNormalizer", "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "decoder": {"type": "WordPiece"},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [5], "tokens": ["[CLS]"]}}},
    "model": {"type": "WordPiece", "unk_token": "[UNK]",
      "vocab": {"[UNK]": 0, "un": 1, "##able": 2, "##a": 3, ".": 4, "[CLS]": 5}}})");
  EXPECT_THAT(Encode(words, "Ünable."), ElementsAre(5, 1, 2, 4));
  EXPECT_THAT(Encode(words, "unax un"), ElementsAre(5, 0, 1));
  EXPECT_EQ(*words.Decode({1, 2, 4, 1}), "unable. un");
}

TEST(Tokenizer, TakesTheBestPathOfUnigrams) {
  const Tokenizer unigram = Make(R"({
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
    "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
    "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["▁", -3], ["a", -2], ["▁a", -4], ["aa", -5]]}})");
  EXPECT_THAT(Encode(unigram, "aa a"), ElementsAre(3, 2, 3));
  // Unknown neighbours are one token.
  EXPECT_THAT(Encode(unigram, "a xyz"), ElementsAre(3, 1, 0));
  EXPECT_EQ(*unigram.Decode({3, 2, 3}), "aa a");
}

// Tokens of a tokenizer of whole words that has this step.
std::vector<int64_t> WordsOf(const std::string& step, const std::string& text) {
  const std::string model = R"x("model": {"type": "WordLevel", "unk_token": "?",
    "vocab": {"?": 0, "a": 1, "b": 2, "ab": 3, "ba": 4, "-ab": 5, "-a-b-": 6,
      "-b-": 7, "a\n-b": 8, "a\n-b-": 9}})x";
  return Encode(Make("{" + step + ", " + model + "}"), text);
}

TEST(Tokenizer, EmptyMatchesSplit) {
  const auto split = [](const std::string& pattern, const std::string& behavior,
                        const std::string& text) {
    return WordsOf(R"x("pre_tokenizer": {"type": "Split", "pattern": )x" +
                       pattern + R"x(, "behavior": ")x" + behavior + R"x("})x",
                   text);
  };
  for (const char* behavior : {"Removed", "Isolated", "MergedWithPrevious",
                               "MergedWithNext", "Contiguous"}) {
    EXPECT_THAT(split(R"x({"Regex": "(?=b)"})x", behavior, "abab"),
                ElementsAre(1, 4, 2))
        << behavior;
    EXPECT_THAT(split(R"x({"String": ""})x", behavior, "aba"),
                ElementsAre(1, 2, 1))
        << behavior;
  }
  EXPECT_THAT(split(R"x({"Regex": "a*"})x", "Removed", "aab"), ElementsAre(2));
}

TEST(Tokenizer, EmptyMatchesAreReplaced) {
  const auto replaced = [](const std::string& pattern,
                           const std::string& text) {
    return WordsOf(R"x("normalizer": {"type": "Replace", "pattern": )x" +
                       pattern + R"x(, "content": "-"})x",
                   text);
  };
  EXPECT_THAT(replaced(R"x({"Regex": "^"})x", "ab"), ElementsAre(5));
  EXPECT_THAT(replaced(R"x({"String": ""})x", "ab"), ElementsAre(6));
  // No empty match is at the end of the match before.
  EXPECT_THAT(replaced(R"x({"Regex": "a*"})x", "ab"), ElementsAre(7));
  EXPECT_THAT(replaced(R"x({"Regex": "(?<=\\n)^"})x", "a\nb"), ElementsAre(8));
  EXPECT_THAT(replaced(R"x({"String": ""})x", ""), ElementsAre());
  // Only the b begins a line: none begins after the last line.
  EXPECT_THAT(replaced(R"x({"Regex": "(?<=\\n)^|\\n\\Z"})x", "a\nb\n"),
              ElementsAre(9));
}

TEST(Tokenizer, DamagedTextIsReplaced) {
  EXPECT_TRUE(Make(kBpe).Encode("a\xff\xc3").ok());
}

TEST(Tokenizer, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(ErrorOf("{"), HasSubstr("t.json: expected JSON, found"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("model: expected an object"));
  EXPECT_THAT(ErrorOf(R"({"model": {"type": "Neural"}})"),
              HasSubstr("model.type: expected one of BPE, WordPiece, Unigram, "
                        "WordLevel; found 'Neural'"));
  EXPECT_THAT(ErrorOf(R"({"normalizer": {"type": "X"}, "model": {}})"),
              HasSubstr("normalizer.type: expected one of Sequence, NFC"));
  EXPECT_THAT(
      ErrorOf(
          R"({"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}})"),
      HasSubstr("model.vocab: expected ids from 0"));
  EXPECT_THAT(
      ErrorOf(
          R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})"),
      HasSubstr("model.merges: expected tokens of the vocabulary, found 'a' "
                "and 'b'"));
  EXPECT_THAT(
      ErrorOf(
          R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"}, "model": {}})"),
      HasSubstr("expected a regular expression, found '('"));
  EXPECT_THAT(
      ErrorOf(
          R"({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}, "model": {}})"),
      HasSubstr("expected a table of SentencePiece"));
}

TEST(Tokenizer, AMissingFileIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(Tokenizer::Open("/nowhere.json").status()));
}

}  // namespace
}  // namespace partita::tokenizer
