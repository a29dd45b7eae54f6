// Runs the safetensors fuzz target on systematic damage: every truncation and
// every flipped bit of a real header.
#include <gtest/gtest.h>

#include <string>

#include "runtime/base/safetensors.h"
#include "tests/fuzz/replay.h"

namespace {

using partita::fuzz::ReadFile;
using partita::fuzz::Replay;

constexpr char kReal[] = "tests/data/onnx-tiny/vit/weights.safetensors";

size_t HeaderEnd(const std::string& file) {
  return 8 + static_cast<unsigned char>(file[0]) +
         256 * static_cast<unsigned char>(file[1]);
}

TEST(SafetensorsReplay, TheRealFileIsGood) {
  const std::string file = ReadFile(kReal);
  ASSERT_GT(file.size(), 1000u);
  EXPECT_TRUE(partita::base::ParseSafetensors(file, kReal).ok());
}

TEST(SafetensorsReplay, EveryTruncationIsRefused) {
  const std::string file = ReadFile(kReal);
  // Byte by byte inside the header, then in steps where only the length
  // matters.
  for (size_t size = 0; size < file.size();
       size += size < HeaderEnd(file) ? 1 : 97) {
    const std::string bytes = file.substr(0, size);
    EXPECT_FALSE(partita::base::ParseSafetensors(bytes, kReal).ok()) << size;
    Replay(bytes);
  }
}

TEST(SafetensorsReplay, EveryFlippedBitIsSurvived) {
  // A small file keeps each try fast.
  const std::string json =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]}})";
  std::string good;
  for (int i = 0; i < 8; ++i)
    good.push_back(static_cast<char>(json.size() >> (8 * i) & 0xff));
  good += json + std::string(14, '\0');
  ASSERT_TRUE(partita::base::ParseSafetensors(good, "good").ok());
  for (size_t i = 0; i < good.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      Replay(bad);
    }
  const std::string real = ReadFile(kReal);
  for (size_t i = 0; i < HeaderEnd(real); ++i) {
    std::string bad = real;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    Replay(bad);
  }
}

}  // namespace
