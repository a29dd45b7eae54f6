#include "runtime/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/random_fill.h"
#include "runtime/checkpoint/checkpoint_testing.h"

namespace partita::checkpoint {
namespace {

using testing::HasSubstr;

Manifest Example() {
  Manifest manifest;
  manifest.state = TestState(41);
  manifest.state.seed = ~uint64_t{0};
  manifest.state.extra["odd"] = "\"\\\n\x01 \xc3\xa9";
  manifest.files["model-00001-of-00001.safetensors"] = {1234567890123, 77};
  manifest.files["config.json"] = {0, 0xffffffff};
  return manifest;
}

TEST(ManifestTest, SurvivesWritingAndReading) {
  const Manifest wanted = Example();
  const auto found = ParseManifest(WriteManifest(wanted), "state.json");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->state.step, 41);
  EXPECT_EQ(found->state.seed, ~uint64_t{0});
  EXPECT_EQ(found->state.data, wanted.state.data);
  EXPECT_EQ(found->state.extra, wanted.state.extra);
  ASSERT_EQ(found->files.size(), 2u);
  EXPECT_EQ(found->files.at("config.json").crc32, 0xffffffff);
  EXPECT_EQ(found->files.at("model-00001-of-00001.safetensors").bytes,
            1234567890123);
}

TEST(ManifestTest, RefusesEveryCut) {
  const std::string good = WriteManifest(Example());
  // The line break at the end is not part of the object.
  for (size_t size = 0; size + 1 < good.size(); ++size)
    EXPECT_FALSE(ParseManifest(good.substr(0, size), "s").ok()) << size;
}

// Alterations are refused, or change only white space.
TEST(ManifestTest, RefusesAlteredContent) {
  const std::string good = WriteManifest(Example());
  const auto same = ParseManifest(good, "s");
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (base::RandomWord(3, i) % 7)));
    const auto found = ParseManifest(bad, "s");
    if (found.ok()) EXPECT_EQ(WriteManifest(*found), good) << i;
  }
  ASSERT_TRUE(same.ok());
}

TEST(ManifestTest, SaysWhatIsWrong) {
  EXPECT_THAT(
      std::string(ParseManifest("[]", "a/state.json").status().message()),
      HasSubstr("a/state.json: the state of a checkpoint is damaged: "
                "expected a JSON object"));
  EXPECT_THAT(
      std::string(
          ParseManifest(R"({"format":"partita-checkpoint","version":2})", "s")
              .status()
              .message()),
      HasSubstr("expected a checkpoint of version 1, found 2; read it with"));
}

}  // namespace
}  // namespace partita::checkpoint
