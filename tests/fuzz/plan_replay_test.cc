// Runs the plan fuzz target on systematic damage: every truncation, every
// flipped bit, and every line of a real plan omitted or doubled.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "tests/fuzz/replay.h"

namespace {

using partita::fuzz::ReadFile;
using partita::fuzz::Replay;

std::string Real() { return ReadFile("tests/fuzz/plan.yaml"); }

TEST(PlanReplay, TheRealPlanIsGood) {
  const auto plan = partita::plan::ParsePlan(Real(), "plan.yaml");
  EXPECT_TRUE(plan.ok()) << plan.status().message();
}

TEST(PlanReplay, TruncationsAreSurvived) {
  const std::string file = Real();
  for (size_t size = 0; size <= file.size(); ++size)
    Replay(file.substr(0, size));
}

TEST(PlanReplay, FlippedBitsAreSurvived) {
  const std::string file = Real();
  for (size_t i = 0; i < file.size(); ++i)
    for (int bit = 0; bit < 8; bit += 3) {
      std::string bad = file;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      Replay(bad);
    }
}

TEST(PlanReplay, LinesLeftOutOrTwice) {
  std::vector<std::string> lines;
  std::istringstream stream(Real());
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  for (size_t damaged = 0; damaged < lines.size(); ++damaged)
    for (int times : {0, 2}) {
      std::string text;
      for (size_t i = 0; i < lines.size(); ++i)
        for (int j = 0; j < (i == damaged ? times : 1); ++j)
          text += lines[i] + "\n";
      Replay(text);
    }
}

TEST(PlanReplay, NestingIsBounded) {
  for (const char* open : {"[", "{a: ", "- ", "? "})
    for (int depth : {31, 33, 1000, 20000}) {
      std::string text = "mesh: ";
      if (open[0] == '-' || open[0] == '?') text = "";
      for (int i = 0; i < depth; ++i) text += open;
      Replay(text);
    }
}

}  // namespace
