// Compares scatters, divided as on CPUs and on GPUs, with the interpreter. They
// are equal bit for bit, since each element's updates keep their order.
#include <gtest/gtest.h>

#include "compiler/kernels/codegen_fixture.h"
#include "compiler/kernels/ptxas.h"
#include "dialects/nn/interpreter.h"

namespace partita::kernels {
namespace {

struct Case {
  std::string name;
  // T: the input and the result, I: the indices, U: the updates.
  std::string t, i, u;
  std::string attributes;
  int64_t most;  // indices are from -2 to this
  // The expected range for teams.
  int64_t range;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

std::string textOf(const Case& test) {
  const std::string t = "tensor<" + test.t + ">", i = "tensor<" + test.i + ">",
                    u = "tensor<" + test.u + ">";
  return "func.func @k(%t: " + t + ", %i: " + i + ", %u: " + u + ") -> " + t +
         " { %r = nn.scatter %t[%i], %u axes = " + test.attributes + " : " + t +
         ", " + i + ", " + u + " -> " + t + " return %r : " + t + " }";
}

class Scatter : public testing::TestWithParam<Case> {
 protected:
  // Describes the difference from the interpreter, bit for bit.
  static std::string difference(CompiledKernel& kernel) {
    std::mt19937 generator(5);
    std::vector<nn::Tensor> arguments = kernel.randomArguments(generator);
    nn::Tensor& indices = arguments[1];
    for (int64_t i = 0; i < indices.size(); ++i)
      indices.setInt(
          i, static_cast<int64_t>(generator() % (GetParam().most + 3)) - 2);
    mlir::FailureOr<llvm::SmallVector<nn::Tensor>> expected =
        nn::interpret(kernel.function(), arguments);
    if (mlir::failed(expected)) return "the interpreter fails";
    for (const std::vector<double>& parts :
         {std::vector<double>{1}, std::vector<double>{0.3, 0.5, 1}})
      if (kernel.results(arguments, parts)[0].toBytes() !=
          (*expected)[0].toBytes())
        return "run in " + std::to_string(parts.size()) + " parts";
    return "";
  }
};

TEST_P(Scatter, OfOneThread) {
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(textOf(GetParam()));
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(difference(*kernel), "");
}

TEST_P(Scatter, OfTeams) {
  CodegenOptions options;
  options.vector_bytes = 16;
  options.team = kWarp;
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(textOf(GetParam()), options);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->code().range, GetParam().range);
  EXPECT_EQ(difference(*kernel), "");
}

TEST_P(Scatter, AssemblesWithoutSpills) {
  if (!hasPtxas()) GTEST_SKIP() << kWithoutPtxas;
  for (const char* chip : {"sm_80", "sm_90"}) {
    PtxKernel launch;
    const std::string ptx = ptxOf(textOf(GetParam()), chip, launch);
    ASSERT_NE(ptx, "");
    const Assembled assembled = assemble(ptx, chip);
    ASSERT_TRUE(assembled.ok) << assembled.report << ptx;
    EXPECT_EQ(assembled.kernels.at("k").spilled_bytes, 0) << assembled.report;
    EXPECT_LE(assembled.kernels.at("k").registers, 80) << assembled.report;
    EXPECT_EQ(launch.scratch_bytes, 0);
    EXPECT_EQ(launch.blocks, (GetParam().range + 3) / 4);
  }
}

std::string nameOf(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

// clang-format off
const Case kCases[] = {
  // Rows of three chunks, the last with two columns.
  {"rows", "37x258xf32", "300x1xi64", "300x258xf32", "[0] kind = add", 38, 37 * 3},
  {"rows_odd", "37x131xf32", "3x50x1xi32", "3x50x131xf32", "[0] kind = add", 38, 37 * 2},
  {"rows_bf16", "20x136xbf16", "2x40x1xi32", "2x40x136xbf16", "[0] kind = add", 20, 20 * 2},
  {"rows_f64", "9x20xf64", "70x1xi64", "70x20xf64", "[0] kind = mul", 9, 3},
  {"one_row", "1x300xf32", "129x1xi64", "129x300xf32", "[0] kind = add", 1, 3},
  {"one_update", "40x33xf32", "1x1xi64", "1x33xf32", "[0] kind = set", 40, 10},
  {"no_update", "40x33xf32", "0x1xi64", "0x33xf32", "[0] kind = add", 40, 10},
  // Blocks of several rows: 9,000 of them, of one chunk and of two.
  {"many_rows", "9001x5xf32", "257x1xi32", "257x5xf32", "[0] kind = max", 9003, 2251},
  {"many_rows_of_chunks", "6001x129xf32", "400x1xi64", "400x129xf32", "[0] kind = add", 6002, 2 * 2001},
  {"elements", "100x90xf32", "500x2xi32", "500xf32", "[1, 0] kind = set", 101, 2250},
  {"elements_i64", "70xi64", "400x1xi64", "400xi64", "[0] kind = add", 71, 18},
  {"truth", "70xi1", "400x1xi64", "400xi1", "[0] kind = set", 71, 18},
  {"columns", "3x9x5xi32", "3x4x1xi64", "3x4x9xi32", "[2] batch_dims = 1 kind = max", 5, 3 * 5},
  {"between", "2x7x6x10xf32", "2x40x2xi32", "2x40x6xf32", "[3, 1] batch_dims = 1 kind = add", 10, 2 * 70},
  {"many_batches", "5000x6xf32", "5000x2x1xi64", "5000x2xf32", "[1] batch_dims = 1 kind = add", 6, 5000},
  {"whole", "4x5xf32", "3x0xi64", "3x4x5xf32", "[] kind = add", 0, 1},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(Cases, Scatter, testing::ValuesIn(kCases), nameOf);

// The gradient of GPT-2's embedding: 50,257 rows of 768, 8,192 tokens.
TEST(ScatterTest, OfAnEmbeddingFillsAGpu) {
  PtxKernel launch;
  const std::string ptx = ptxOf(R"(
func.func @k(%i: tensor<8x1024x1xi32>, %u: tensor<8x1024x768xf32>) -> tensor<50257x768xf32> {
  %z = arith.constant dense<0.0> : tensor<50257x768xf32>
  %r = nn.scatter %z[%i], %u axes = [0] kind = add : tensor<50257x768xf32>, tensor<8x1024x1xi32>, tensor<8x1024x768xf32> -> tensor<50257x768xf32>
  return %r : tensor<50257x768xf32> })",
                                "sm_80", launch);
  // 680 blocks of 74 rows in 6 chunks; four teams in each block of the GPU.
  EXPECT_EQ(launch.blocks, 680 * 6 / 4);
  EXPECT_EQ(launch.scratch_bytes, 0);
  if (!hasPtxas()) GTEST_SKIP() << kWithoutPtxas;
  const Assembled assembled = assemble(ptx, "sm_80");
  ASSERT_TRUE(assembled.ok) << assembled.report;
  EXPECT_EQ(assembled.kernels.at("k").spilled_bytes, 0) << assembled.report;
  EXPECT_LE(assembled.kernels.at("k").registers, 64) << assembled.report;
}

}  // namespace
}  // namespace partita::kernels
