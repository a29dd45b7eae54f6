// The runtime's own kernels, which copy, fill, multiply and convolve where
// libraries do not, assemble for all supported GPUs and spill no registers.
#include "runtime/cuda/own_kernels.h"

#include <gtest/gtest.h>

#include <string>

#include "compiler/kernels/ptxas.h"

namespace partita::cuda {

extern const char kOwnKernelsPtx[];

namespace {

class OwnKernelsTest : public testing::TestWithParam<const char*> {};

TEST_P(OwnKernelsTest, Assembles) {
  const std::string ptx = kOwnKernelsPtx;
  EXPECT_EQ(ptx.find(".extern"), std::string::npos);
  if (!kernels::hasPtxas()) GTEST_SKIP() << kernels::kWithoutPtxas;
  const kernels::Assembled assembled = kernels::assemble(ptx, GetParam());
  ASSERT_TRUE(assembled.ok) << assembled.report;
#define PARTITA_EXPECT_KERNEL(symbol, Args, Body)          \
  {                                                        \
    const auto found = assembled.kernels.find(#symbol);    \
    ASSERT_NE(found, assembled.kernels.end()) << #symbol;  \
    EXPECT_EQ(found->second.spilled_bytes, 0) << #symbol;  \
    EXPECT_EQ(found->second.shared_bytes, 0) << #symbol;   \
    /* Three blocks of 256 threads on a multiprocessor. */ \
    EXPECT_LE(found->second.registers, 80) << #symbol;     \
    EXPECT_GT(found->second.registers, 0) << #symbol;      \
  }
  PARTITA_OWN_KERNELS(PARTITA_EXPECT_KERNEL)
#undef PARTITA_EXPECT_KERNEL
}

INSTANTIATE_TEST_SUITE_P(Chips, OwnKernelsTest,
                         testing::Values("sm_80", "sm_90", "sm_90a"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace partita::cuda
