// The artifact fuzz target on damage that needs no luck: every truncation and
// every changed byte of a real artifact.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

#include "runtime/program/artifact.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr char kReal[] = "tests/fuzz/sample.partita";

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

void Replay(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()),
                         bytes.size());
}

TEST(ArtifactReplay, TheRealFileIsGood) {
  ASSERT_TRUE(partita::program::Artifact::Open(kReal).ok());
  Replay(ReadFile(kReal));
}

TEST(ArtifactReplay, EveryTruncationIsSurvived) {
  const std::string file = ReadFile(kReal);
  for (size_t size = 0; size < file.size(); size += 8)
    Replay(file.substr(0, size));
}

TEST(ArtifactReplay, EveryChangedByteIsSurvived) {
  const std::string file = ReadFile(kReal);
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

}  // namespace
