// Runs the tokenizer fuzz target on systematic damage: every truncation, every
// flipped bit, and values of every kind in the place of every value.
#include <gtest/gtest.h>

#include <string>

#include "runtime/tokenizer/tokenizer.h"
#include "tests/fuzz/replay.h"

namespace {

using partita::fuzz::ReadFile;
using partita::fuzz::Replay;

std::string Real() { return ReadFile("tests/fuzz/tokenizer.json"); }

TEST(TokenizerReplay, TheRealFileIsGood) {
  const auto tokenizer =
      partita::tokenizer::Tokenizer::Parse(Real(), "tokenizer.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_FALSE(tokenizer->Encode("the sea")->empty());
}

TEST(TokenizerReplay, TruncationsAreSurvived) {
  const std::string file = Real();
  for (size_t size = 0; size <= file.size(); ++size)
    Replay(file.substr(0, size));
}

TEST(TokenizerReplay, FlippedBitsAreSurvived) {
  const std::string file = Real();
  for (size_t i = 0; i < file.size(); ++i)
    for (int bit = 0; bit < 8; bit += 3) {
      std::string bad = file;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      Replay(bad);
    }
}

TEST(TokenizerReplay, OtherValuesAreSurvived) {
  const std::string file = Real();
  for (size_t i = 0; i < file.size(); ++i) {
    if (file[i] != ':') continue;
    const size_t end = file.find_first_of(",}]\n", i);
    for (const char* value :
         {"null", "-1", "1e300", "9223372036854775807", "\"\"", "\"(\"", "[]",
          "{}", "[[]]", "true", "\"Sequence\"", "\"Unigram\""})
      Replay(file.substr(0, i + 1) + value + file.substr(end));
  }
}

TEST(TokenizerReplay, CharsmapsAreSurvived) {
  // Tries that point outside, and at themselves.
  for (const char* table :
       {"BAAAAP////8A", "BAAAAAAAAAAA", "CAAAAAEEAAD/AQAAYQA="})
    Replay(
        std::string(
            R"({"normalizer": {"type": "Precompiled", "precompiled_charsmap": ")") +
        table + R"("}, "model": {"type": "WordLevel", "vocab": {"a": 0}}})");
}

}  // namespace
