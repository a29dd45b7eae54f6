// Runs the cluster fuzz target on systematic damage: every truncation, every
// flipped bit, and every field of a real file omitted or doubled.
#include <gtest/gtest.h>

#include <string>

#include "compiler/planner/cluster/cluster.h"
#include "tests/fuzz/replay.h"

namespace {

using partita::fuzz::ReadFile;
using partita::fuzz::Replay;

std::string Real() { return ReadFile("tests/fuzz/cluster.yaml"); }

TEST(ClusterReplay, TheRealFileIsGood) {
  const auto cluster = partita::planner::ReadCluster(Real(), "cluster.yaml");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->devices, 64);
}

TEST(ClusterReplay, TruncationsAreSurvived) {
  const std::string file = Real();
  for (size_t size = 0; size <= file.size(); ++size)
    Replay(file.substr(0, size));
}

TEST(ClusterReplay, FlippedBitsAreSurvived) {
  const std::string file = Real();
  for (size_t i = 0; i < file.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = file;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      Replay(bad);
    }
}

TEST(ClusterReplay, FieldsLeftOutOrTwice) {
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

TEST(ClusterReplay, NumbersOfAnySizeAreSurvived) {
  const std::string file = Real();
  for (size_t i = 0; i < file.size(); ++i)
    for (const char* digits : {"0", "00", "999", "9999999999", "1e308", "-"})
      Replay(file.substr(0, i) + digits + file.substr(i));
}

}  // namespace
