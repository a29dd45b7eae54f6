// Tests names of targets, good and damaged.
#include "runtime/program/target.h"

#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace partita::program {
namespace {

using namespace std::string_view_literals;

// "KIND,ARCHITECTURE", or "none" if `text` does not parse.
std::string Parsed(std::string_view text) {
  const auto target = ParseTarget(text);
  return target ? target->kind + "," + target->architecture : "none";
}

TEST(TargetTest, KindsMayHaveAnArchitecture) {
  EXPECT_EQ(Parsed("cpu"), "cpu,");
  EXPECT_EQ(Parsed("cuda:sm_90a"), "cuda,sm_90a");
  EXPECT_EQ(Parsed("cuda"), "cuda,");
  EXPECT_EQ(Parsed("rocm_6:gfx942"), "rocm_6,gfx942");
  EXPECT_EQ(Parsed("tpu:v5-lite.1+x"), "tpu,v5-lite.1+x");
}

TEST(TargetTest, DamagedTextsDoNotParse) {
  for (const std::string_view text : {""sv,
                                      ":"sv,
                                      "cuda:"sv,
                                      ":sm_90"sv,
                                      "cuda::sm_90"sv,
                                      "cuda:sm_90:"sv,
                                      "cuda:sm_90:a"sv,
                                      "CUDA:sm_90"sv,
                                      "Cpu"sv,
                                      " cpu"sv,
                                      "cpu "sv,
                                      "cuda: sm_90"sv,
                                      "cuda:sm 90"sv,
                                      "cuda:sm_90\n"sv,
                                      "cpu\0"sv,
                                      "cuda:sm\0_90"sv,
                                      "9cuda:sm_90"sv,
                                      "_cpu"sv,
                                      "cu-da"sv,
                                      "cuda:sm_\xc3\xa9"sv,
                                      "\xff"sv,
                                      "cuda,sm_90"sv})
    EXPECT_EQ(Parsed(text), "none") << text;
}

TEST(TargetTest, TextsComeBack) {
  for (const char* text : {"cpu", "cuda", "cuda:sm_80", "cuda:sm_90a"})
    EXPECT_EQ(TargetText(*ParseTarget(text)), text);
  EXPECT_EQ(TargetText({kCudaTarget, "sm_90"}), "cuda:sm_90");
}

TEST(TargetTest, OnlyKnownKindsAreGpus) {
  for (const char* text : {"cuda:sm_80", "cuda:sm_90a", "cuda"})
    EXPECT_TRUE(IsGpuTarget(text)) << text;
  for (const char* text : {"cpu", "cpu:sm_90", "cudax:sm_90", "cud:sm_90",
                           "tpu:v4", "cuda:", "cuda:sm_90:a", ""})
    EXPECT_FALSE(IsGpuTarget(text)) << text;
}

}  // namespace
}  // namespace partita::program
