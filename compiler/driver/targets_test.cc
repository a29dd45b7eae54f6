// Tests the list of targets, and which texts it accepts.
#include "compiler/driver/targets.h"

#include <set>
#include <string>

#include "compiler/kernels/chips.h"
#include "gtest/gtest.h"
#include "runtime/program/target.h"

namespace partita::driver {
namespace {

TEST(TargetsTest, NamesAreUniqueAndParse) {
  std::set<std::string> names;
  for (const TargetKind& kind : targetKinds()) {
    EXPECT_TRUE(names.insert(kind.name.str()).second) << kind.name.str();
    EXPECT_EQ(kind.architectures == nullptr, kind.example.empty());
    const std::string text =
        program::TargetText({kind.name.str(), kind.example.str()});
    const auto found = findTarget(text);
    ASSERT_TRUE(found) << text;
    EXPECT_EQ(found->kind, &kind);
    EXPECT_EQ(checkTarget(text), "");
  }
}

TEST(TargetsTest, EveryChipIsATarget) {
  for (const kernels::Chip& chip : kernels::chips()) {
    const auto found = findTarget("cuda:" + chip.name.str());
    ASSERT_TRUE(found) << chip.name.str();
    EXPECT_EQ(found->kind->name.str(), "cuda");
    EXPECT_EQ(found->architecture, chip.name.str());
  }
}

TEST(TargetsTest, OtherTextsAreRefusedWithAllTargets) {
  for (const char* text :
       {"tpu", "", "cuda", "cuda:", "cuda:sm_9", "cuda:sm_90b", "cuda:sm_90 ",
        "CUDA:sm_90", "cpu:", "cpu:sm_90", "cpux", "sm_90"})
    EXPECT_EQ(checkTarget(text),
              std::string("--target: expected cpu, or cuda: with one of sm_80, "
                          "sm_86, sm_87, sm_89, sm_90, sm_90a, as in "
                          "cuda:sm_90, found ") +
                  text);
}

// From sm_89 on, tensor cores multiply floats of 8 bits.
TEST(TargetsTest, SomeArchitecturesMultiplyFloatsOfEightBits) {
  const auto multiplies = [](const char* text) {
    const auto found = findTarget(text);
    return found->kind->float8(found->architecture);
  };
  for (const char* text : {"cpu", "cuda:sm_80", "cuda:sm_86", "cuda:sm_87"})
    EXPECT_FALSE(multiplies(text)) << text;
  for (const char* text : {"cuda:sm_89", "cuda:sm_90", "cuda:sm_90a"})
    EXPECT_TRUE(multiplies(text)) << text;
}

TEST(TargetsTest, ArchitecturesHaveAClusterToBePricedOn) {
  const auto cluster = [](const char* text) {
    const auto found = findTarget(text);
    return found->kind->cluster(found->architecture).str();
  };
  EXPECT_EQ(cluster("cpu"), "cpu");
  EXPECT_EQ(cluster("cuda:sm_80"), "a100-80-sxm");
  EXPECT_EQ(cluster("cuda:sm_90"), "h100-sxm");
  EXPECT_EQ(cluster("cuda:sm_90a"), "h100-sxm");
}

}  // namespace
}  // namespace partita::driver
