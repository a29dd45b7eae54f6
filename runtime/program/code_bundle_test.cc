// Code sections survive writing and reading; damaged ones are refused.
#include "runtime/program/code_bundle.h"

#include <cstring>
#include <string>

#include "gtest/gtest.h"

namespace partita::program {
namespace {

std::string Section() {
  return WriteCodeBundle({"ptx", {{"sm_80", "eighty"}, {"sm_90a", ""}}});
}

TEST(CodeBundleTest, PiecesComeBack) {
  const std::string section = Section();
  const auto bundle = ReadCodeBundle(section);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ(bundle->portable, "ptx");
  ASSERT_EQ(bundle->machine.size(), 2u);
  EXPECT_EQ(bundle->machine[0].architecture, "sm_80");
  EXPECT_EQ(bundle->machine[0].code, "eighty");
  EXPECT_EQ((bundle->machine[0].code.data() - section.data()) % 64, 0);
  EXPECT_EQ(bundle->machine[1].architecture, "sm_90a");
  EXPECT_EQ(bundle->machine[1].code, "");
}

TEST(CodeBundleTest, PortableCodeAloneIsTheSection) {
  EXPECT_EQ(WriteCodeBundle({"ptx", {}}), "ptx");
  const auto bundle = ReadCodeBundle("ptx");
  ASSERT_TRUE(bundle.ok());
  EXPECT_EQ(bundle->portable, "ptx");
  EXPECT_TRUE(bundle->machine.empty());
}

TEST(CodeBundleTest, PiecesOutsideTheSectionAreRefused) {
  const std::string section = Section();
  // The magic makes a section a bundle; shorter ones are portable code.
  for (size_t bytes = 16; bytes < 16 + 3 * 32; ++bytes)
    EXPECT_TRUE(
        absl::IsDataLoss(ReadCodeBundle(section.substr(0, bytes)).status()))
        << bytes;
  // The numbers of the second piece: its offset and its bytes.
  for (const size_t at : {size_t{16 + 32 + 16}, size_t{16 + 32 + 24}}) {
    std::string damaged = section;
    std::memset(&damaged[at], 0xff, 8);
    EXPECT_TRUE(absl::IsDataLoss(ReadCodeBundle(damaged).status())) << at;
  }
  std::string many = section;
  many[8] = 65;
  EXPECT_TRUE(absl::IsDataLoss(ReadCodeBundle(many).status()));
  // An architecture without an end keeps its 16 characters.
  std::string endless = section;
  std::memset(&endless[16 + 32], 'x', 16);
  const auto read = ReadCodeBundle(endless);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->machine[0].architecture, std::string(16, 'x'));
}

}  // namespace
}  // namespace partita::program
