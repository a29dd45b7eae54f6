// Runs the sweep fuzz target on systematic damage: every truncation, every
// flipped bit, and every cell of a real file omitted or doubled.
#include <gtest/gtest.h>

#include <string>

#include "compiler/planner/published/sweep.h"
#include "tests/fuzz/replay.h"

namespace {

using partita::fuzz::ReadFile;
using partita::fuzz::Replay;

std::string Real() { return ReadFile("tests/fuzz/sweep.csv"); }

TEST(SweepReplay, TheRealFileIsGood) {
  const auto result =
      partita::planner::RunSweep(Real(), "sweep.csv", std::nullopt);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->predicted, 2);
}

TEST(SweepReplay, TruncationsAreSurvived) {
  const std::string file = Real();
  for (size_t size = 0; size <= file.size(); ++size)
    Replay(file.substr(0, size));
}

TEST(SweepReplay, FlippedBitsAreSurvived) {
  const std::string file = Real();
  for (size_t i = 0; i < file.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = file;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      Replay(bad);
    }
}

TEST(SweepReplay, FieldsLeftOutOrTwice) {
  const std::string file = Real();
  for (size_t from = 0; from < file.size();) {
    const size_t end = file.find_first_of(",\n", from);
    if (end == std::string::npos) break;
    const std::string field = file.substr(from, end + 1 - from);
    Replay(file.substr(0, from) + file.substr(end + 1));
    Replay(file.substr(0, from) + field + file.substr(from));
    from = end + 1;
  }
}

TEST(SweepReplay, NumbersOfAnySizeAreSurvived) {
  const std::string file = Real();
  for (size_t i = 0; i < file.size(); ++i)
    for (const char* digits : {"0", "00", "999", "9999999999", "1e308", "-"})
      Replay(file.substr(0, i) + digits + file.substr(i));
}

}  // namespace
