// Tests which code runs on which GPU and driver.
#include "runtime/cuda/target.h"

#include <string>

#include "gtest/gtest.h"

namespace partita::cuda {
namespace {

std::string Refusal(const std::string& target, const std::string& features = "",
                    const Machine& machine = {"H200", 9, 0, 12040}) {
  return std::string(CheckTarget(machine, target, features).message());
}

TEST(TargetTest, LaterGpusRunEarlierCode) {
  EXPECT_EQ(Refusal("cuda:sm_90"), "");
  EXPECT_EQ(Refusal("cuda:sm_80"), "");
  EXPECT_EQ(Refusal("cuda:sm_100"),
            "the model was compiled for sm_100, this GPU (H200) is sm_90; "
            "compile the model with --target cuda:sm_90");
}

TEST(TargetTest, LettersNarrow) {
  EXPECT_EQ(Refusal("cuda:sm_90a"), "");
  EXPECT_NE(Refusal("cuda:sm_80a"), "");
  const Machine blackwell = {"B300", 10, 3, 13000};
  EXPECT_NE(Refusal("cuda:sm_90a", "", blackwell), "");
  EXPECT_EQ(Refusal("cuda:sm_100f", "", blackwell), "");
  EXPECT_NE(Refusal("cuda:sm_100a", "", blackwell), "");
  EXPECT_EQ(Refusal("cuda:sm_90", "", blackwell), "");
}

TEST(TargetTest, MachineCodeRunsWithinItsMajorVersion) {
  const Machine ampere = {"A10", 8, 6, 12040}, hopper = {"H200", 9, 0, 12040},
                blackwell = {"B300", 10, 3, 13000};
  EXPECT_TRUE(RunsMachineCode(ampere, "sm_80"));
  EXPECT_FALSE(RunsMachineCode(ampere, "sm_89"));
  EXPECT_FALSE(RunsMachineCode(hopper, "sm_80"));
  EXPECT_TRUE(RunsMachineCode(hopper, "sm_90a"));
  EXPECT_TRUE(RunsMachineCode(blackwell, "sm_100"));
  EXPECT_TRUE(RunsMachineCode(blackwell, "sm_100f"));
  EXPECT_FALSE(RunsMachineCode(blackwell, "sm_100a"));
  EXPECT_FALSE(RunsMachineCode(hopper, "ptx"));
}

TEST(TargetTest, OtherTargetsAreNamed) {
  for (const char* target :
       {"cpu", "", "cuda", "cuda:sm_", "cuda:sm_9", "cuda:sm_9x", "cuda:sm_90z",
        "cuda:sm_99999999999"}) {
    EXPECT_EQ(Refusal(target), "the model was compiled for target '" +
                                   std::string(target) +
                                   "', this device is 'cuda:sm_90' (H200)");
  }
}

TEST(TargetTest, DriversTakePtxUpToTheirVersion) {
  EXPECT_EQ(Refusal("cuda:sm_80", "+ptx70"), "");
  EXPECT_EQ(Refusal("cuda:sm_80", "+ptx84"), "");
  EXPECT_EQ(Refusal("cuda:sm_80", "+ptx86"),
            "the model's code is PTX 8.6, which needs a driver for CUDA 12.7 "
            "or newer, found one for CUDA 12.4; install a newer driver");
  EXPECT_EQ(Refusal("cuda:sm_80", "+ptx80", {"A100", 8, 0, 11080}),
            "the model's code is PTX 8.0, which needs a driver for CUDA 12.0 "
            "or newer, found one for CUDA 11.8; install a newer driver");
  EXPECT_EQ(Refusal("cuda:sm_80", "+avx2"),
            "expected the version of the PTX, as '+ptx80', found the feature "
            "'+avx2'; compile the model again");
}

}  // namespace
}  // namespace partita::cuda
