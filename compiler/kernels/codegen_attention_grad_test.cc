// Compares the gradient of attention with the interpreter: sizes that fill
// tiles and sizes that do not, each mask, each type, and gradients without
// tiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "compiler/kernels/attention_grad_cases.h"
#include "compiler/kernels/ptxas.h"

namespace partita::kernels {
namespace {

class AttentionGrad : public testing::TestWithParam<Case> {};

TEST_P(AttentionGrad, EqualsTheInterpreter) {
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(textOf(GetParam()));
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->difference(GetParam().tolerance, GetParam().tolerance, 1.0),
            "");
}

const Case kCases[] = {
    {"whole_tiles", 2, 2, 2, 16, 32, 16, 32, "", ""},
    {"odd_sizes", 2, 3, 3, 13, 21, 24, 40, "", ""},
    {"one_query", 1, 2, 2, 1, 50, 32, 32, "", ""},
    {"few_keys", 1, 2, 2, 9, 3, 7, 5, "", ""},
    {"many_keys", 1, 1, 1, 11, 700, 16, 16, "", ""},
    {"causal", 1, 2, 2, 37, 37, 16, 16, "causal_offset = 0", ""},
    {"causal_past", 1, 2, 2, 10, 40, 16, 16, "causal_offset = 30", ""},
    {"causal_sees_nothing", 1, 2, 2, 20, 18, 16, 16, "causal_offset = -12", ""},
    {"shared_keys", 2, 6, 2, 12, 19, 16, 16, "causal_offset = 7", ""},
    {"bias", 3, 2, 2, 13, 21, 16, 16, "", "1x2x13x21", "f32", 3e-5, "0123"},
    {"bias_alone", 2, 2, 2, 8, 16, 16, 16, "", "1x2x8x16", "f32", 3e-5, "3"},
    {"bias_of_shared_keys", 3, 4, 2, 13, 21, 16, 16, "causal_offset = 8",
     "1x4x13x21", "f32", 3e-5, "0123"},
    {"bias_of_one_group", 2, 3, 1, 11, 9, 8, 16, "", "1x3x11x9", "f32", 3e-5,
     "3"},
    {"bias_without_gradient", 2, 4, 2, 9, 17, 16, 16, "causal_offset = 8",
     "2x1x1x17"},
    // Stored one element at a time.
    {"one_key", 4, 8, 8, 1, 1, 16, 32, "", "1x8x1x1", "f32", 3e-5, "0123"},
    {"heads_of_1", 1, 2, 2, 9, 12, 1, 1, "", ""},
    {"keys_alone", 2, 2, 2, 9, 17, 16, 16, "", "", "f32", 3e-5, "1"},
    {"bf16", 1, 2, 2, 20, 20, 32, 32, "causal_offset = 0", "", "bf16", 2e-2},
    {"bf16_bias", 2, 2, 2, 20, 20, 32, 32, "", "1x2x20x20", "bf16", 2e-2,
     "0123"},
    {"f64", 1, 2, 2, 20, 21, 12, 12, "causal_offset = 1", "", "f64", 1e-12},
    {"joined", 2, 4, 2, 19, 19, 16, 24, "causal_offset = 0", "", "f32", 3e-5,
     "012", true},
    // Gradients that are decomposed.
    {"softcap", 1, 2, 2, 9, 12, 8, 8, "softcap = 2.0", ""},
    {"bias_of_all_heads", 2, 2, 2, 9, 12, 8, 8, "", "1x1x9x12", "f32", 3e-5,
     "0123"},
};
INSTANTIATE_TEST_SUITE_P(Codegen, AttentionGrad, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& info) {
                           return info.param.name;
                         });

// Emulated warps compute the gradient in several parts, like a GPU.
class MmaAttentionGrad : public testing::TestWithParam<Case> {};

TEST_P(MmaAttentionGrad, EqualsTheInterpreter) {
  const Case& test = GetParam();
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(textOf(test), ptxCodegenOptions());
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->code().team, kBlock);
  const llvm::StringRef results = test.results;
  // Statistics, blocks of keys, and the gradients of queries and of the bias.
  const bool has_keys = results.find_first_of("012") != llvm::StringRef::npos;
  EXPECT_EQ(kernel->code().before.size(),
            has_keys + results.contains('0') + results.contains('3'));
  // With a log-sum-exp around 0, weights would be large.
  const auto prepare = [&](std::vector<nn::Tensor>& arguments) {
    for (int64_t i = 0; test.lse && i < arguments.back().size(); ++i)
      arguments.back().setFloat(i, 10 + arguments.back().getFloat(i));
  };
  EXPECT_EQ(kernel->difference(test.tolerance, test.tolerance, 1, prepare), "");
}

const Case kMmaCases[] = {
    {"whole_tiles", 1, 2, 2, 64, 128, 64, 64, "", "", "bf16", 3e-2},
    {"odd_sizes", 2, 1, 1, 37, 83, 32, 48, "", "", "bf16", 3e-2},
    {"large_heads", 1, 1, 1, 70, 70, 128, 128, "causal_offset = 0", "", "bf16",
     4e-2},
    {"heads_of_80", 1, 1, 1, 70, 66, 80, 96, "", "", "bf16", 4e-2},
    {"one_query", 1, 2, 2, 1, 50, 32, 32, "", "", "bf16", 3e-2},
    {"causal", 1, 2, 2, 150, 150, 32, 32, "causal_offset = 0", "", "bf16",
     3e-2},
    {"causal_past", 1, 1, 1, 40, 140, 16, 32, "causal_offset = 100", "", "bf16",
     3e-2},
    {"causal_sees_nothing", 1, 1, 1, 100, 70, 16, 16, "causal_offset = -50", "",
     "bf16", 3e-2},
    {"shared_keys", 2, 4, 2, 20, 70, 32, 32, "causal_offset = 50", "", "bf16",
     3e-2},
    {"bias", 2, 2, 2, 49, 49, 32, 32, "", "1x2x49x49", "bf16", 3e-2, "0123"},
    {"causal_bias", 2, 1, 1, 70, 70, 16, 16, "causal_offset = 0", "1x1x70x70",
     "bf16", 3e-2, "0123"},
    {"bias_of_shared_keys", 2, 4, 2, 49, 70, 32, 32, "causal_offset = 21",
     "1x4x49x70", "bf16", 3e-2, "0123"},
    {"bias_of_one_group", 2, 3, 1, 30, 20, 16, 16, "", "1x3x30x20", "f32", 1e-4,
     "0123"},
    {"bias_alone", 2, 1, 1, 20, 90, 16, 16, "", "1x1x20x90", "bf16", 3e-2, "3"},
    {"bias_without_gradient", 2, 2, 1, 20, 40, 16, 16, "", "2x1x1x40", "bf16",
     3e-2},
    {"queries_alone", 1, 1, 1, 70, 70, 32, 32, "", "", "bf16", 3e-2, "0"},
    {"keys_alone", 1, 1, 1, 70, 70, 32, 32, "", "", "bf16", 3e-2, "1"},
    {"joined", 2, 4, 2, 70, 70, 32, 48, "causal_offset = 0", "", "bf16", 3e-2,
     "012", true},
    {"f16", 1, 2, 2, 70, 90, 64, 32, "causal_offset = 20", "", "f16", 4e-3},
    {"f32", 1, 2, 2, 70, 90, 64, 32, "causal_offset = 20", "", "f32", 1e-4},
    {"f32_bias", 2, 2, 2, 49, 49, 32, 32, "", "1x2x49x49", "f32", 1e-4, "0123"},
    {"f32_shared_keys", 2, 4, 2, 20, 70, 48, 48, "causal_offset = 50", "",
     "f32", 1e-4},
    {"lse", 1, 2, 2, 100, 140, 64, 64, "causal_offset = 20", "", "bf16", 3e-2,
     "012", false, true},
    {"lse_and_bias", 2, 2, 2, 49, 49, 32, 32, "", "1x2x49x49", "f32", 1e-4,
     "0123", false, true},
    {"lse_of_shared_keys", 2, 4, 2, 50, 70, 48, 80, "", "", "f16", 4e-3, "012",
     false, true},
    {"lse_of_queries_alone", 1, 1, 1, 70, 150, 32, 32, "causal_offset = 80", "",
     "f32", 1e-4, "0", false, true},
};
INSTANTIATE_TEST_SUITE_P(Codegen, MmaAttentionGrad,
                         testing::ValuesIn(kMmaCases),
                         [](const testing::TestParamInfo<Case>& info) {
                           return info.param.name;
                         });

// The work of each part of a gradient, and the bytes that it does not access. A
// launch has the sums.
TEST(MmaAttentionGradWork, EachPartSaysItsOwn) {
  // Bytes of q, k, v, the result and the bias. Their gradients have as many.
  const int64_t q = 2 * 2 * 2 * 48 * 32, k = 2 * 2 * 2 * 40 * 32,
                v = 2 * 2 * 2 * 40 * 16, y = 2 * 2 * 2 * 48 * 16,
                bias = 2 * 2 * 48 * 40;
  const auto partsOf = [](const std::string& results) {
    const Case test = {"", 2,  2,           2,      48, 40,     32,
                       16, "", "1x2x48x40", "bf16", 0,  results};
    std::unique_ptr<CompiledKernel> kernel =
        CompiledKernel::fromText(textOf(test), ptxCodegenOptions());
    std::vector<std::vector<int64_t>> work;
    std::vector<KernelCode> parts = kernel->code().before;
    parts.push_back(kernel->code());
    for (const KernelCode& part : parts)
      work.push_back({part.work->of_keys, part.work->of_values,
                      part.work->untouched_bytes});
    return work;
  };
  using testing::ElementsAre;
  // Statistics are f32, of 64 queries in each of four heads. So are the sums of
  // q_grad, with a turn for each tile of 64, and one ticket.
  const int64_t statistics = 4 * 2 * 4 * 64,
                sums = 4 * (4 * 64 * 32 + 4 * 1 + 1);
  EXPECT_THAT(
      partsOf("0123"),
      ElementsAre(ElementsAre(1, 0, q + k + 2 * v + bias - statistics),
                  ElementsAre(3, 2, y + q + bias - statistics - sums),
                  ElementsAre(0, 0, q + 2 * (k + v + y) + 2 * bias - sums),
                  ElementsAre(1, 1, y + q + k + v - statistics)));
  // Each part writes its own part of a joint result.
  const int64_t own = q / 48 * 40, given = y / 48 * 40;
  const Case joined = {"", 2,  2,  2,      40, 40,    32,
                       16, "", "", "bf16", 0,  "012", true};
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(textOf(joined), ptxCodegenOptions());
  ASSERT_NE(kernel, nullptr);
  ASSERT_EQ(kernel->code().before.size(), 2u);
  EXPECT_EQ(kernel->code().before[1].work->untouched_bytes,
            own + given - statistics - sums);
  EXPECT_EQ(kernel->code().work->untouched_bytes,
            own + 2 * (k + v + given) - sums);
  EXPECT_THAT(partsOf("0"),
              ElementsAre(ElementsAre(1, 0, v + q - statistics),
                          ElementsAre(2, 1, q + y - statistics - sums),
                          ElementsAre(0, 0, q + k + v + 2 * y + bias - sums)));
  EXPECT_THAT(partsOf("1"), ElementsAre(ElementsAre(1, 0, v + k - statistics),
                                        ElementsAre(2, 1, y - statistics)));
}

// Composites are decomposed before the parts are determined. With stored
// statistics a normalisation becomes elementwise, which tensor cores allow.
TEST(MmaAttentionGradWork, IsThatOfWhatIsGenerated) {
  const std::string text = R"(
    func.func @k(%x: tensor<1x2x48x32xbf16>, %s: tensor<2xbf16>,
                 %k: tensor<1x2x40x32xbf16>, %y: tensor<1x2x48x32xbf16>)
        -> (tensor<1x2x48x32xbf16>, tensor<1x2x40x32xbf16>) {
      %q = nn.batch_norm %x, %s, %s, %s, %s feature = 1 epsilon = 1.0e-5
          : (tensor<1x2x48x32xbf16>, tensor<2xbf16>, tensor<2xbf16>,
             tensor<2xbf16>, tensor<2xbf16>) -> tensor<1x2x48x32xbf16>
      %r:3 = nn.attention_grad %q, %k, %k, %y, %y scale = 3.0e-1
          : (tensor<1x2x48x32xbf16>, tensor<1x2x40x32xbf16>,
             tensor<1x2x40x32xbf16>, tensor<1x2x48x32xbf16>,
             tensor<1x2x48x32xbf16>)
          -> (tensor<1x2x48x32xbf16>, tensor<1x2x40x32xbf16>,
              tensor<1x2x40x32xbf16>)
      return %r#0, %r#1 : tensor<1x2x48x32xbf16>, tensor<1x2x40x32xbf16>
    })";
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(text, ptxCodegenOptions());
  ASSERT_NE(kernel, nullptr);
  std::vector<KernelCode> parts = kernel->code().before;
  parts.push_back(kernel->code());
  ASSERT_EQ(parts.size(), 3u);
  const auto works = partWorkOf(kernel->function(), ptxCodegenOptions());
  ASSERT_TRUE(mlir::succeeded(works));
  ASSERT_EQ(works->size(), parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    ASSERT_TRUE(parts[i].work.has_value());
    EXPECT_EQ((*works)[i].of_keys, parts[i].work->of_keys);
    EXPECT_EQ((*works)[i].of_values, parts[i].work->of_values);
    EXPECT_EQ((*works)[i].untouched_bytes, parts[i].work->untouched_bytes);
  }
}

struct GradSize {
  std::string element;
  int64_t head;
  // The usual case: with lse and without a bias. Else the other way round.
  bool lse;
  // Registers per thread and kernel: the count of ptxas 13.0 plus a margin of
  // at most 8. With 168, three blocks fit on a multiprocessor; with 128, four.
  std::map<std::string, int> most_registers;
  // Bytes that a kernel may store and load, to fit more warps at a time. The
  // count of ptxas 13.0; others spill nothing.
  std::map<std::string, int> most_spilled = {};
};
void PrintTo(const GradSize& size, std::ostream* out) {
  *out << size.element << "_" << size.head;
}
// No result may depend on an order that hardware chooses, parts must follow
// each other, and registers and shared memory must suffice.
class MmaAttentionGradCode : public testing::TestWithParam<GradSize> {};

TEST_P(MmaAttentionGradCode, FitsIntoRegistersAndSharedMemory) {
  const GradSize& size = GetParam();
  Case test = {
      "", 8, 12, 12, 1024, 1024, size.head, size.head, "causal_offset = 0"};
  test.element = size.element;
  test.lse = size.lse;
  if (!size.lse) {
    test.bias = "1x12x1024x1024";
    test.results = "0123";
  }
  const int64_t statistics = 8 * 12 * 1024;
  for (const char* chip : {"sm_80", "sm_90", "sm_90a"}) {
    llvm::SmallVector<PtxKernel> launches;
    const std::string ptx = ptxOf(textOf(test), chip, launches);
    ASSERT_NE(ptx, "");
    // The only atomic operation takes the number of an item.
    const size_t atomic = ptx.find("atom.");
    ASSERT_NE(atomic, std::string::npos);
    EXPECT_EQ(ptx.find("atom.add.relaxed.gpu.global.u32"), atomic);
    EXPECT_EQ(ptx.find("atom.", atomic + 1), std::string::npos);
    EXPECT_EQ(ptx.find("\tred."), std::string::npos);
    ASSERT_EQ(launches.size(), size.lse ? 3u : 4u);
    EXPECT_EQ(launches.back().symbol, "k");
    for (const PtxKernel& launch : launches) {
      EXPECT_GE(launch.scratch_bytes, 4 * statistics * (2 + size.head));
      EXPECT_LE(launch.scratch_bytes,
                4 * (statistics * (2 + size.head) + statistics / 16 + 1));
    }
    if (!hasPtxas()) continue;
    const Assembled assembled = assemble(ptx, chip);
    ASSERT_TRUE(assembled.ok) << assembled.report;
    const bool warpgroups = llvm::StringRef(ptx).contains("wgmma");
    for (const auto& [name, kernel] : assembled.kernels) {
      // codegen_warpgroup_grad_test.cc has the limits of warpgroups.
      if (warpgroups && name == "k_part_1") continue;
      const auto spills = size.most_spilled.find(name);
      EXPECT_LE(kernel.spilled_bytes,
                spills == size.most_spilled.end() ? 0 : spills->second)
          << name << assembled.report;
      EXPECT_LE(kernel.registers, size.most_registers.at(name))
          << name << " " << chip;
      EXPECT_LE(kernel.shared_bytes, 48 * 1024) << name;
    }
  }
  if (!hasPtxas()) GTEST_SKIP() << kWithoutPtxas;
}
using Registers = std::map<std::string, int>;
Registers registersOf(int statistics, int keys, int queries) {
  return {{"k_part_0", statistics}, {"k_part_1", keys}, {"k", queries}};
}
Registers withBias(int statistics, int keys, int queries, int bias) {
  return {{"k_part_0", statistics},
          {"k_part_1", keys},
          {"k_part_2", queries},
          {"k", bias}};
}
const GradSize kSizes[] = {
    {"bf16", 32, true, registersOf(40, 192, 40)},
    {"bf16", 64, true, registersOf(40, 176, 40)},
    {"f16", 64, true, registersOf(40, 176, 40)},
    {"bf16", 128, true, registersOf(40, 250, 64)},
    {"f32", 64, true, registersOf(40, 168, 56)},
    {"bf16", 64, false, withBias(126, 186, 40, 168), {{"k_part_1", 16}}},
    {"bf16", 128, false, withBias(125, 248, 64, 128), {{"k", 48}}},
    {"f32", 64, false, withBias(128, 188, 56, 168)}};
INSTANTIATE_TEST_SUITE_P(Codegen, MmaAttentionGradCode,
                         testing::ValuesIn(kSizes), [](const auto& info) {
                           return info.param.element + "Heads" +
                                  std::to_string(info.param.head) +
                                  (info.param.lse ? "" : "WithBias");
                         });

}  // namespace
}  // namespace partita::kernels
