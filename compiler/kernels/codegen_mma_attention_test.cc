// Compares attention on tensor cores, run by emulated warps, with the
// interpreter. Checks the registers and spills that ptxas reports.
#include <gtest/gtest.h>

#include "compiler/kernels/attention_cases.h"
#include "compiler/kernels/ptxas.h"

namespace partita::kernels {
namespace {

class MmaAttention : public testing::TestWithParam<Case> {};

TEST_P(MmaAttention, EqualsTheInterpreter) {
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(textOf(GetParam()), emulated());
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->code().team, kBlock);
  EXPECT_EQ(kernel->difference(GetParam().tolerance, GetParam().tolerance), "");
}

const Case kCases[] = {
    {"whole_tiles", 2, 1, 1, 64, 64, 64, 64, "", ""},
    {"odd_sizes", 1, 2, 2, 37, 83, 32, 48, "", ""},
    {"two_bands", 1, 1, 1, 150, 130, 64, 64, "", ""},
    {"large_heads", 1, 1, 1, 70, 75, 128, 128, "", ""},
    {"small_heads", 1, 2, 2, 20, 200, 16, 16, "", ""},
    {"heads_of_80", 1, 1, 1, 33, 70, 80, 80, "", ""},
    {"one_query", 2, 2, 2, 1, 100, 32, 32, "", ""},
    {"one_key", 1, 2, 2, 9, 1, 32, 32, "", ""},
    {"causal", 1, 2, 2, 150, 150, 32, 32, "causal_offset = 0", ""},
    {"causal_past", 1, 1, 1, 70, 140, 64, 64, "causal_offset = 70", ""},
    {"causal_sees_nothing", 1, 1, 1, 100, 60, 16, 16, "causal_offset = -30",
     ""},
    {"shared_keys", 2, 4, 2, 20, 70, 32, 32, "causal_offset = 50", ""},
    {"bias", 2, 2, 2, 49, 49, 32, 32, "", "1x2x49x49"},
    {"bias_of_keys", 2, 2, 1, 20, 128, 32, 32, "", "2x1x1x128"},
    {"bias_of_whole_tiles", 1, 1, 1, 20, 128, 32, 32, "", "1x1x20x128"},
    {"softcap", 1, 1, 1, 20, 70, 32, 32, "causal_offset = 50 softcap = 2.0",
     ""},
    {"f16", 1, 2, 2, 70, 90, 64, 32, "causal_offset = 20", "", "f16", 2e-3},
    {"f32", 1, 2, 2, 70, 90, 64, 32, "causal_offset = 20", "", "f32", 3e-5},
    {"f32_large_heads", 1, 1, 1, 40, 50, 128, 128, "", "", "f32", 3e-5},
    {"f32_bias", 2, 2, 2, 49, 49, 32, 32, "", "1x2x49x49", "f32", 3e-5},
};
INSTANTIATE_TEST_SUITE_P(Codegen, MmaAttention, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// Heads in the middle of a packed matrix are copied without passing registers.
// Scaled queries pass registers. Operations on the result follow.
TEST(MmaAttentionTest, ReadsMatricesAndFollowsUp) {
  const std::string text = R"(
func.func @k(%x: tensor<2x45x192xbf16>, %s: tensor<bf16>, %r: tensor<2x45x64xbf16>) -> tensor<2x45x64xbf16> {
  %qs = nn.slice %x starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x45x192xbf16> -> tensor<2x45x64xbf16>
  %ks = nn.slice %x starts = [0, 0, 64] strides = [1, 1, 1] : tensor<2x45x192xbf16> -> tensor<2x45x64xbf16>
  %vs = nn.slice %x starts = [0, 0, 128] strides = [1, 1, 1] : tensor<2x45x192xbf16> -> tensor<2x45x64xbf16>
  %sb = nn.broadcast %s dims = [] : tensor<bf16> -> tensor<2x45x64xbf16>
  %qm = arith.mulf %qs, %sb : tensor<2x45x64xbf16>
  %qr = nn.reshape %qm : tensor<2x45x64xbf16> -> tensor<2x45x2x32xbf16>
  %kr = nn.reshape %ks : tensor<2x45x64xbf16> -> tensor<2x45x2x32xbf16>
  %vr = nn.reshape %vs : tensor<2x45x64xbf16> -> tensor<2x45x2x32xbf16>
  %q = nn.transpose %qr perm = [0, 2, 1, 3] : tensor<2x45x2x32xbf16> -> tensor<2x2x45x32xbf16>
  %k = nn.transpose %kr perm = [0, 2, 1, 3] : tensor<2x45x2x32xbf16> -> tensor<2x2x45x32xbf16>
  %v = nn.transpose %vr perm = [0, 2, 1, 3] : tensor<2x45x2x32xbf16> -> tensor<2x2x45x32xbf16>
  %a = nn.attention %q, %k, %v scale = 2.5e-1 causal_offset = 0 : (tensor<2x2x45x32xbf16>, tensor<2x2x45x32xbf16>, tensor<2x2x45x32xbf16>) -> tensor<2x2x45x32xbf16>
  %t = nn.transpose %a perm = [0, 2, 1, 3] : tensor<2x2x45x32xbf16> -> tensor<2x45x2x32xbf16>
  %m = nn.reshape %t : tensor<2x45x2x32xbf16> -> tensor<2x45x64xbf16>
  %y = arith.addf %m, %r : tensor<2x45x64xbf16>
  return %y : tensor<2x45x64xbf16> })";
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(text, emulated());
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->code().team, kBlock);
  EXPECT_EQ(kernel->difference(3e-2, 2e-2), "");
  PtxKernel launch;
  const std::string ptx = ptxOf(text, "sm_80", launch);
  EXPECT_NE(ptx.find("cp.async.cg.shared.global"), std::string::npos);
  EXPECT_NE(ptx.find("st.shared.v4"), std::string::npos);
}

// One thread computes an item for other sizes and types, and if the kernel has
// another reduction.
TEST(MmaAttentionTest, OthersHaveOneThread) {
  for (const Case& test : {Case{"", 1, 1, 1, 20, 20, 24, 16, "", ""},
                           Case{"", 1, 1, 1, 20, 20, 16, 144, "", ""},
                           Case{"", 1, 1, 1, 20, 20, 16, 16, "", "", "f64"}}) {
    std::unique_ptr<CompiledKernel> kernel =
        CompiledKernel::fromText(textOf(test), emulated());
    ASSERT_NE(kernel, nullptr);
    EXPECT_EQ(kernel->code().team, 1);
  }
}

struct Size {
  std::string element;
  int64_t head;
  int64_t queries;  // of a block
  // Registers per thread: the count of ptxas 13.0 plus a margin of at most 8.
  // With 168, three blocks fit on a multiprocessor. 255 is the hardware's
  // limit; there the spilled bytes are the check.
  int most_registers;
  int most_spilled_80 = 0, most_spilled_90 = 0;
};
void PrintTo(const Size& size, std::ostream* out) {
  *out << size.element << "_" << size.head;
}
class MmaAttentionCode : public testing::TestWithParam<Size> {};

TEST_P(MmaAttentionCode, FitsIntoRegistersAndSharedMemory) {
  const Size& size = GetParam();
  PtxKernel launch;
  Case test = {"", 8, 12, 12, 1024, 1024, size.head, size.head};
  test.attributes = "causal_offset = 0";
  test.element = size.element;
  std::vector<std::string> chips = {"sm_80", "sm_90"};
  // sm_90a too, if warpgroups do not take this size.
  if (size.element == "f32" || size.head < 64) chips.push_back("sm_90a");
  for (const std::string& chip : chips) {
    const std::string ptx = ptxOf(textOf(test), chip, launch);
    ASSERT_NE(ptx, "");
    EXPECT_NE(ptx.find("mma.sync.aligned.m16n8k"), std::string::npos);
    EXPECT_NE(ptx.find("cp.async.cg.shared.global"), std::string::npos);
    EXPECT_EQ(launch.blocks, 8 * 12 * (1024 / size.queries));
    EXPECT_EQ(launch.scratch_bytes, 0);
    if (!hasPtxas()) continue;
    const Assembled assembled = assemble(ptx, chip);
    ASSERT_TRUE(assembled.ok) << assembled.report;
    const Assembled::Kernel& kernel = assembled.kernels.at("k");
    EXPECT_LE(kernel.spilled_bytes,
              chip == "sm_80" ? size.most_spilled_80 : size.most_spilled_90)
        << assembled.report;
    EXPECT_LE(kernel.registers, size.most_registers) << chip;
    EXPECT_LE(kernel.shared_bytes, 48 * 1024);
  }
  if (!hasPtxas()) GTEST_SKIP() << kWithoutPtxas;
}
// For f32, large queries need more registers than there are: each element is
// held as 11 bits and the remainder.
const Size kSizes[] = {
    {"bf16", 32, 128, 200}, {"bf16", 64, 128, 255},
    {"f16", 64, 128, 255},  {"bf16", 128, 64, 168},
    {"f32", 64, 64, 252},   {"f32", 128, 64, 255, 1200, 640}};
INSTANTIATE_TEST_SUITE_P(Codegen, MmaAttentionCode, testing::ValuesIn(kSizes),
                         [](const auto& info) {
                           return info.param.element + "Heads" +
                                  std::to_string(info.param.head);
                         });

}  // namespace
}  // namespace partita::kernels
