// Compares the gradient of attention by warpgroups, which are emulated, with
// the interpreter. Checks the order of its sums, and registers and spills that
// ptxas reports.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/kernels/attention_grad_cases.h"
#include "compiler/kernels/ptxas.h"
#include "compiler/kernels/warpgroup_emulation.h"
#include "dialects/nn/interpreter.h"

namespace partita::kernels {
namespace {

CodegenOptions emulated() { return ptxCodegenOptions({.chip = "sm_90a"}); }

// A table that hides different blocks of 128 keys from each of 12 heads.
std::string tableOfHeads() {
  std::string text = "blocks = dense<[";
  for (int head = 0; head < 12; ++head)
    text += std::string(head > 0 ? ", " : "") +
            (head % 3 == 0   ? "[[1, 0], [1, 1]]"
             : head % 3 == 1 ? "[[0, 1], [1, 0]]"
                             : "[[1, 1], [0, 0]]");
  return text + "]> : tensor<12x2x2xi1> block_size = 128";
}

class WarpgroupGrad : public testing::TestWithParam<Case> {};

TEST_P(WarpgroupGrad, EqualsTheInterpreter) {
  const Case& test = GetParam();
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(textOf(test), emulated());
  ASSERT_NE(kernel, nullptr);
  const int64_t before = multipliedGroups();
  EXPECT_EQ(differenceOf(*kernel, test), "");
  EXPECT_GT(multipliedGroups(), before);
}

const Case kCases[] = {
    {"whole_tiles", 1, 2, 2, 64, 128, 64, 64, "", "", "bf16", 3e-2, "012",
     false, true},
    {"odd_sizes", 2, 1, 1, 150, 83, 64, 64, "", "", "bf16", 3e-2, "012", false,
     true},
    {"without_lse", 1, 1, 1, 70, 90, 64, 64, "", "", "bf16", 3e-2},
    {"large_heads", 1, 1, 1, 140, 140, 128, 128, "causal_offset = 0", "",
     "bf16", 4e-2, "012", false, true},
    {"larger_values", 1, 1, 1, 70, 75, 64, 128, "", "", "bf16", 4e-2, "012",
     false, true},
    {"smaller_values", 1, 1, 1, 70, 75, 128, 64, "", "", "bf16", 4e-2, "012",
     false, true},
    {"one_query", 1, 2, 2, 1, 80, 64, 64, "", "", "bf16", 3e-2, "012", false,
     true},
    {"one_key", 1, 1, 1, 70, 1, 64, 64, "", "", "bf16", 3e-2, "012", false,
     true},
    {"causal", 1, 1, 1, 330, 330, 64, 64, "causal_offset = 0", "", "bf16", 3e-2,
     "012", false, true},
    {"causal_past", 1, 1, 1, 70, 140, 64, 64, "causal_offset = 70", "", "bf16",
     3e-2, "012", false, true},
    {"causal_sees_nothing", 1, 1, 1, 200, 70, 64, 64, "causal_offset = -90", "",
     "bf16", 3e-2, "012", false, true},
    {"shared_keys", 2, 4, 2, 20, 70, 64, 64, "causal_offset = 50", "", "bf16",
     3e-2, "012", false, true},
    {"window", 1, 2, 1, 300, 300, 64, 64, "causal_offset = 0 window = 100", "",
     "bf16", 3e-2, "012", false, true},
    {"two_sided_window", 1, 1, 1, 200, 230, 64, 64,
     "causal_offset = 60 window = 121", "", "bf16", 3e-2, "012", false, true},
    {"blocks", 1, 2, 1, 300, 390, 64, 64,
     "blocks = dense<[[[1, 0, 1, 1], [0, 1, 0, 0], [0, 0, 0, 0]]]> : "
     "tensor<1x3x4xi1> block_size = 128",
     "", "bf16", 3e-2, "012", false, true},
    // No query sees the second block of keys.
    {"blocks_that_no_query_sees", 1, 4, 2, 140, 300, 64, 64,
     "blocks = dense<[[[1, 0, 1], [1, 0, 0]]]> : tensor<1x2x3xi1> "
     "block_size = 128",
     "", "bf16", 3e-2, "012", false, true},
    {"blocks_of_a_head", 1, 2, 2, 140, 140, 64, 64, tableOfHeads(), "", "bf16",
     3e-2, "012", false, true, true},
    // The last two blocks of keys are behind all queries.
    {"causal_hides_blocks", 1, 4, 2, 70, 200, 64, 64, "causal_offset = 0", "",
     "bf16", 3e-2, "012", false, true},
    {"causal_hides_all", 1, 2, 1, 70, 80, 64, 64, "causal_offset = -70", "",
     "bf16", 3e-2, "012", false, true},
    {"window_before_all_keys", 1, 1, 1, 150, 200, 64, 64,
     "causal_offset = -140 window = 3", "", "bf16", 3e-2, "012", false, true},
    {"window_behind_all_keys", 1, 1, 1, 150, 130, 128, 128,
     "causal_offset = 200 window = 90", "", "bf16", 3e-2, "012", false, true},
    {"queries_alone", 1, 1, 1, 70, 140, 64, 64, "", "", "bf16", 3e-2, "0",
     false, true},
    {"keys_alone", 1, 1, 1, 140, 70, 64, 64, "", "", "bf16", 3e-2, "1", false,
     true},
    {"values_alone", 1, 1, 1, 140, 70, 64, 64, "", "", "bf16", 3e-2, "2", false,
     true},
    {"joined", 1, 2, 2, 70, 70, 64, 64, "causal_offset = 0", "", "bf16", 3e-2,
     "012", true, true},
    {"f16", 1, 2, 2, 70, 90, 64, 64, "causal_offset = 20", "", "f16", 4e-3,
     "012", false, true},
    {"f16_large_heads", 1, 1, 1, 70, 90, 128, 128, "causal_offset = 20", "",
     "f16", 4e-3, "012", false, true},
};
INSTANTIATE_TEST_SUITE_P(Codegen, WarpgroupGrad, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// All threads copy tiles of computed queries.
class WarpgroupGradOfSums : public testing::TestWithParam<Case> {};

TEST_P(WarpgroupGradOfSums, EqualsTheInterpreter) {
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(textOfSums(GetParam()), emulated());
  ASSERT_NE(kernel, nullptr);
  ASSERT_EQ(kernel->code().before.size(), 2u);
  EXPECT_TRUE(kernel->code().before[1].maps.empty());
  const int64_t before = multipliedGroups();
  EXPECT_EQ(differenceOf(*kernel, GetParam()), "");
  EXPECT_GT(multipliedGroups(), before);
}

const Case kSumCases[] = {
    {"causal", 1, 2, 2, 140, 140, 64, 64, "causal_offset = 0", "", "bf16", 3e-2,
     "012", false, true},
    {"large_heads", 1, 1, 1, 140, 140, 128, 128, "causal_offset = 0", "",
     "bf16", 4e-2, "012", false, true},
    {"causal_hides_blocks", 1, 4, 2, 70, 200, 64, 64, "causal_offset = 0", "",
     "bf16", 3e-2, "012", false, true},
    {"window_before_all_keys", 1, 1, 1, 150, 200, 64, 64,
     "causal_offset = -140 window = 3", "", "bf16", 3e-2, "012", false, true},
    {"blocks_that_no_query_sees", 1, 4, 2, 140, 300, 64, 64,
     "blocks = dense<[[[1, 0, 1], [1, 0, 0]]]> : tensor<1x2x3xi1> "
     "block_size = 128",
     "", "bf16", 3e-2, "012", false, true},
};
INSTANTIATE_TEST_SUITE_P(Codegen, WarpgroupGradOfSums,
                         testing::ValuesIn(kSumCases),
                         [](const auto& info) { return info.param.name; });

// Queries and the result's gradient are usually parts of wider rows, of which
// boxes are copied.
TEST(WarpgroupGradTest, BoxesOfPackedRows) {
  const std::string text = R"(
    func.func @k(%x: tensor<2x75x584xbf16>, %k: tensor<2x3x80x64xbf16>,
                 %v: tensor<2x3x80x64xbf16>, %y: tensor<2x3x75x64xbf16>,
                 %z: tensor<2x75x192xbf16>, %e: tensor<2x3x75xf32>)
        -> (tensor<2x3x75x64xbf16>, tensor<2x3x80x64xbf16>,
            tensor<2x3x80x64xbf16>) {
      %a = nn.slice %x starts = [0, 0, 192] strides = [1, 1, 1] : tensor<2x75x584xbf16> -> tensor<2x75x192xbf16>
      %b = nn.reshape %a : tensor<2x75x192xbf16> -> tensor<2x75x3x64xbf16>
      %q = nn.transpose %b perm = [0, 2, 1, 3] : tensor<2x75x3x64xbf16> -> tensor<2x3x75x64xbf16>
      %c = nn.reshape %z : tensor<2x75x192xbf16> -> tensor<2x75x3x64xbf16>
      %g = nn.transpose %c perm = [0, 2, 1, 3] : tensor<2x75x3x64xbf16> -> tensor<2x3x75x64xbf16>
      %r:3 = nn.attention_grad %q, %k, %v, %y, %g lse(%e) scale = 3.0e-1 causal_offset = 5
          : (tensor<2x3x75x64xbf16>, tensor<2x3x80x64xbf16>, tensor<2x3x80x64xbf16>,
             tensor<2x3x75x64xbf16>, tensor<2x3x75x64xbf16>, tensor<2x3x75xf32>)
          -> (tensor<2x3x75x64xbf16>, tensor<2x3x80x64xbf16>, tensor<2x3x80x64xbf16>)
      return %r#0, %r#1, %r#2 : tensor<2x3x75x64xbf16>, tensor<2x3x80x64xbf16>, tensor<2x3x80x64xbf16>
    })";
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(text, emulated());
  ASSERT_NE(kernel, nullptr);
  ASSERT_EQ(kernel->code().before.size(), 2u);
  const llvm::ArrayRef<TensorMap> maps = kernel->code().before[1].maps;
  ASSERT_EQ(maps.size(), 2u);
  EXPECT_EQ(maps[0].argument, 0);
  EXPECT_EQ(maps[0].offset, 384);
  EXPECT_EQ(maps[0].shape, (std::vector<int64_t>{2, 3, 75, 64}));
  EXPECT_EQ(maps[0].strides, (std::vector<int64_t>{75 * 1168, 128, 1168}));
  EXPECT_EQ(maps[1].argument, 4);
  EXPECT_EQ(maps[1].offset, 0);
  EXPECT_EQ(maps[1].strides, (std::vector<int64_t>{75 * 384, 128, 384}));
  Case test;
  test.tolerance = 3e-2;
  test.lse = true;
  EXPECT_EQ(differenceOf(*kernel, test), "");
}

// --- Rounding ---

// A result computed in double from the rounded arguments, and the sum of the
// magnitudes of each element's terms.
struct Exact {
  explicit Exact(int64_t size) : values(size), magnitudes(size) {}
  void add(int64_t place, double factor, double other, double least) {
    values[place] += factor * other;
    magnitudes[place] += std::max(std::abs(factor), least) * std::abs(other);
  }
  std::vector<double> values, magnitudes;
};

constexpr int64_t kHeads = 2, kRows = 256, kSize = 128, kValueSize = 64;
constexpr double kScale = 0.3;  // as in textOf

// Causal, and head 1 has no second half of the keys.
bool sees(int64_t head, int64_t query, int64_t key) {
  return key <= query && (head == 0 || key < 128);
}
const char kSeen[] =
    "causal_offset = 0 blocks = dense<[[[1, 1], [1, 1]], [[1, 0], [1, 0]]]> "
    ": tensor<2x2x2xi1> block_size = 128";

double dotOf(const nn::Tensor& a, int64_t i, const nn::Tensor& b, int64_t j,
             int64_t size) {
  double sum = 0;
  for (int64_t c = 0; c < size; ++c)
    sum += a.getFloat(i * size + c) * b.getFloat(j * size + c);
  return sum;
}

// Factors below `least` are rounded as coarsely as `least`.
std::vector<Exact> exactGradient(const std::vector<nn::Tensor>& arguments,
                                 double least) {
  const nn::Tensor &q = arguments[0], &k = arguments[1], &v = arguments[2],
                   &y = arguments[3], &given = arguments[4],
                   &lse = arguments[5];
  Exact q_grad(q.size()), k_grad(k.size()), v_grad(v.size());
  for (int64_t i = 0; i < kHeads * kRows; ++i) {
    const int64_t head = i / kRows;
    for (int64_t j = head * kRows; j < (head + 1) * kRows; ++j) {
      if (!sees(head, i % kRows, j % kRows)) continue;
      const double score = kScale * dotOf(q, i, k, j, kSize),
                   weight = std::exp(score - lse.getFloat(i)),
                   grad = weight * (dotOf(given, i, v, j, kValueSize) -
                                    dotOf(given, i, y, i, kValueSize));
      for (int64_t c = 0; c < kSize; ++c) {
        q_grad.add(i * kSize + c, grad, kScale * k.getFloat(j * kSize + c),
                   least);
        k_grad.add(j * kSize + c, grad, kScale * q.getFloat(i * kSize + c),
                   least);
      }
      for (int64_t c = 0; c < kValueSize; ++c)
        v_grad.add(j * kValueSize + c, weight,
                   given.getFloat(i * kValueSize + c), least);
    }
  }
  return {std::move(q_grad), std::move(k_grad), std::move(v_grad)};
}

// The largest error of an element relative to the sum of the magnitudes of its
// terms. The result's own rounding may be as coarse as that of `least`.
double largestError(const nn::Tensor& found, const Exact& exact, double least) {
  double largest = 0;
  for (int64_t i = 0; i < found.size(); ++i) {
    const double error = std::abs(found.getFloat(i) - exact.values[i]);
    largest = std::max(
        largest, error == 0 ? 0 : error / std::max(exact.magnitudes[i], least));
  }
  return largest;
}

// Weights and their gradients are rounded to the type before they are
// multiplied, and the sums once more, so errors are at most two units of
// rounding of the sum of magnitudes. That holds for warps and for warpgroups.
// The interpreter rounds once.
TEST(WarpgroupGradTest, RoundsTermsAndSumsOnceEach) {
  for (const char* element : {"bf16", "f16"}) {
    const bool bf16 = element[0] == 'b';
    const double unit = std::ldexp(1, bf16 ? -8 : -11),
                 least = std::ldexp(1, bf16 ? -126 : -14);
    const Case test = {"",      1,     kHeads,     kHeads, kRows,
                       kRows,   kSize, kValueSize, kSeen,  "",
                       element, 0,     "012",      false,  true};
    for (bool warpgroups : {true, false}) {
      CodegenOptions options = emulated();
      options.warpgroups = warpgroups;
      std::unique_ptr<CompiledKernel> kernel =
          CompiledKernel::fromText(textOf(test), options);
      ASSERT_NE(kernel, nullptr);
      std::mt19937 generator(11);
      std::vector<nn::Tensor> arguments = kernel->randomArguments(generator);
      raiseLse(arguments);
      const std::vector<Exact> exact = exactGradient(arguments, least);
      const int64_t before = multipliedGroups();
      const std::vector<nn::Tensor> found = kernel->results(arguments, {1});
      EXPECT_EQ(multipliedGroups() > before, warpgroups);
      const auto interpreted = nn::interpret(kernel->function(), arguments);
      ASSERT_TRUE(mlir::succeeded(interpreted));
      for (size_t i = 0; i < exact.size(); ++i) {
        // Sums of f32 add less than a hundredth of a unit.
        EXPECT_LE(largestError(found[i], exact[i], least), 2.01 * unit)
            << element << (warpgroups ? " warpgroups " : " warps ") << i;
        EXPECT_LE(largestError((*interpreted)[i], exact[i], least), 1.01 * unit)
            << element << " interpreter " << i;
      }
    }
  }
}

// The products of warpgroups of a gradient. Its part for keys runs once for
// each of two comparisons.
int64_t productsOf(Case test, const std::string& attributes) {
  test.attributes = attributes;
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(textOf(test), emulated());
  const int64_t before = multipliedGroups();
  EXPECT_EQ(differenceOf(*kernel, test), "");
  return multipliedGroups() - before;
}

// Five products for each tile of 64 x 64 scores that is seen: with a causal
// mask 6 of 9, with a window of 64 keys 5, with the table 5.
TEST(WarpgroupGradTest, MultipliesEachSeenTileOnceForEachResult) {
  const Case test = {"", 1,  1,      1,    192,   192,   64,  64,
                     "", "", "bf16", 3e-2, "012", false, true};
  EXPECT_EQ(productsOf(test, ""), 2 * 5 * 9);
  EXPECT_EQ(productsOf(test, "causal_offset = 0"), 2 * 5 * 6);
  EXPECT_EQ(productsOf(test, "causal_offset = 0 window = 64"), 2 * 5 * 5);
  EXPECT_EQ(productsOf(test,
                       "blocks = dense<[[[1, 0], [0, 1]]]> : "
                       "tensor<1x2x2xi1> block_size = 128"),
            2 * 5 * 5);
}

// Warps compute other gradients.
TEST(WarpgroupGradTest, OthersHaveWarps) {
  for (const Case& test :
       {Case{"", 1, 1, 1, 20, 20, 32, 64, "", "", "bf16"},
        Case{"", 1, 1, 1, 20, 20, 64, 80, "", "", "bf16"},
        Case{"", 1, 1, 1, 20, 20, 64, 64, "", "1x1x20x20", "bf16", 0, "0123"},
        Case{"", 1, 1, 1, 20, 20, 64, 64, "", "", "f32"}}) {
    llvm::SmallVector<PtxKernel> launches;
    const std::string ptx = ptxOf(textOf(test), "sm_90a", launches);
    EXPECT_NE(ptx.find("mma.sync.aligned"), std::string::npos);
    EXPECT_EQ(ptx.find("wgmma"), std::string::npos);
  }
}

// So they do if a block has too little shared memory. All parts change then.
TEST(WarpgroupGradTest, TilesThatDoNotFitHaveWarps) {
  const Case test = {"", 1,  1,      1,    70,    70,    128, 128,
                     "", "", "bf16", 4e-2, "012", false, true};
  CodegenOptions options = emulated();
  options.shared_bytes = 64 * 1024;
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(textOf(test), options);
  ASSERT_NE(kernel, nullptr);
  const int64_t before = multipliedGroups();
  EXPECT_EQ(differenceOf(*kernel, test), "");
  EXPECT_EQ(multipliedGroups(), before);
}

struct GroupSize {
  std::string element;
  int64_t head;
  std::string attributes;
  // The part for keys has this number of registers per thread at most (the
  // count of ptxas 13.0 plus a margin of at most 8), and this number of its
  // blocks share a multiprocessor.
  int most_registers;
  int blocks;
};
void PrintTo(const GroupSize& size, std::ostream* out) {
  *out << size.element << "_" << size.head << " " << size.attributes;
}
class WarpgroupGradCode : public testing::TestWithParam<GroupSize> {};

TEST_P(WarpgroupGradCode, FitsIntoRegistersAndSharedMemory) {
  const GroupSize& size = GetParam();
  const Case test = {"",
                     8,
                     12,
                     12,
                     1024,
                     1024,
                     size.head,
                     size.head,
                     size.attributes,
                     "",
                     size.element,
                     0,
                     "012",
                     false,
                     true};
  llvm::SmallVector<PtxKernel> launches;
  const std::string ptx = ptxOf(textOf(test), "sm_90a", launches);
  ASSERT_EQ(launches.size(), 3u);
  EXPECT_NE(
      ptx.find("wgmma.mma_async.sync.aligned.m64n64k16.f32." + size.element),
      std::string::npos);
  EXPECT_NE(ptx.find("cp.async.bulk.tensor.4d"), std::string::npos);
  EXPECT_EQ(ptx.find(" mma.sync"), std::string::npos);
  EXPECT_EQ(ptx.find("__local_depot"), std::string::npos);
  // The only atomic operation takes the number of an item, so sums are the same
  // in every run.
  const size_t atomic = ptx.find("atom.");
  EXPECT_EQ(ptx.find("atom.add.relaxed.gpu.global.u32"), atomic);
  EXPECT_EQ(ptx.find("atom.", atomic + 1), std::string::npos);
  EXPECT_EQ(ptx.find("\tred."), std::string::npos);
  // Maps of the queries and of the result's gradient are parameters in front of
  // the memory that all parts share.
  const PtxKernel& keys = launches[1];
  ASSERT_EQ(keys.maps.size(), 2u);
  EXPECT_EQ(keys.maps[0].argument, 0);
  EXPECT_EQ(keys.maps[1].argument, 4);
  EXPECT_NE(ptx.find(".param .align 64 .b8 k_part_1_param_9[128]"),
            std::string::npos);
  EXPECT_EQ(ptx.find(".b8 k_part_1_param_11[128]"), std::string::npos);
  EXPECT_TRUE(launches[0].maps.empty());
  EXPECT_TRUE(launches[2].maps.empty());
  EXPECT_EQ(keys.scratch_bytes, launches[2].scratch_bytes);
  if (!hasPtxas()) GTEST_SKIP() << kWithoutPtxas;
  const Assembled assembled = assemble(ptx, "sm_90a");
  ASSERT_TRUE(assembled.ok) << assembled.report;
  EXPECT_EQ(assembled.report.find("serialized"), std::string::npos)
      << assembled.report;
  for (const auto& [name, kernel] : assembled.kernels)
    EXPECT_EQ(kernel.spilled_bytes, 0) << name << assembled.report;
  const Assembled::Kernel& kernel = assembled.kernels.at("k_part_1");
  EXPECT_LE(kernel.registers, size.most_registers);
  EXPECT_LE(size.blocks * kBlock * kernel.registers, 64 * 1024);
  EXPECT_LE(size.blocks * (kernel.shared_bytes + keys.shared_bytes + 1024),
            228 * 1024);
}
// 255 is the hardware's limit; there the check is that nothing is spilled.
const GroupSize kGroupSizes[] = {{"bf16", 64, "", 204, 2},
                                 {"bf16", 64, "causal_offset = 0", 204, 2},
                                 {"f16", 64, "causal_offset = 0", 204, 2},
                                 {"bf16", 128, "", 255, 2},
                                 {"bf16", 128, "causal_offset = 0", 255, 2}};
INSTANTIATE_TEST_SUITE_P(Codegen, WarpgroupGradCode,
                         testing::ValuesIn(kGroupSizes), [](const auto& info) {
                           return info.param.element + "Heads" +
                                  std::to_string(info.param.head) +
                                  (info.param.attributes.empty() ? ""
                                                                 : "Causal");
                         });

}  // namespace
}  // namespace partita::kernels
