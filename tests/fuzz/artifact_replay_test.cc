// Runs the artifact fuzz target on systematic damage: every truncation and
// every changed byte of a real artifact.
#include <gtest/gtest.h>

#include <string>

#include "runtime/program/artifact.h"
#include "tests/fuzz/replay.h"

namespace {

using partita::fuzz::ReadFile;
using partita::fuzz::Replay;

class ArtifactReplay : public ::testing::TestWithParam<const char*> {};

TEST_P(ArtifactReplay, TheRealFileIsGood) {
  ASSERT_TRUE(partita::program::Artifact::Open(GetParam()).ok());
  Replay(ReadFile(GetParam()));
}

TEST_P(ArtifactReplay, EveryTruncationIsSurvived) {
  const std::string file = ReadFile(GetParam());
  for (size_t size = 0; size < file.size(); size += 8)
    Replay(file.substr(0, size));
}

TEST_P(ArtifactReplay, EveryChangedByteIsSurvived) {
  const std::string file = ReadFile(GetParam());
  // The header and the program; nothing is read from the data section.
  for (size_t i = 0; i < 8192 && i < file.size(); ++i) {
    if (i >= 128 && i < 4096) continue;
    for (const char flip : {'\x01', '\x10', '\x80', '\xff'}) {
      std::string bad = file;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      Replay(bad);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, ArtifactReplay,
                         ::testing::Values("tests/fuzz/sample.partita",
                                           "tests/fuzz/divided.partita",
                                           "tests/fuzz/loop.partita",
                                           "tests/fuzz/pipeline.partita"));

}  // namespace
