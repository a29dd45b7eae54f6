// Kernels that compute rows and sum blocks of them in one pass: the backward
// passes of a layer norm and of an activation.
#include <gtest/gtest.h>

#include "compiler/kernels/codegen_fixture.h"
#include "compiler/kernels/ptxas.h"

namespace partita::kernels {
namespace {

struct Case {
  std::string name;
  int batch, rows, width, rows_of_block;
  std::string element = "f32";
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

std::string replaced(std::string text, const std::string& from,
                     const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// Sums of the gradient and of its product with the normalised rows, and the
// gradient of the rows plus that of a residual connection.
std::string textOf(const Case& test) {
  const std::string batch = std::to_string(test.batch),
                    rows = std::to_string(test.rows),
                    width = std::to_string(test.width);
  const bool narrow = test.element != "f32";
  std::string text = R"(
func.func @k(%x0: E, %g0: E, %r0: E, %w: tensor<Wxf32>) -> (SUMS, SUMS, E) {
  %n = arith.constant dense<WIDTH.0> : S
  %e = arith.constant dense<1.0e-5> : S
  WIDEN
  %gb = nn.reshape %g : T -> BLOCKS
  %beta = nn.reduce sum %gb dims = [2] {kernel.row_sums} : BLOCKS -> SUMS
  %sx = nn.reduce sum %x dims = [2] : T -> S
  %mx = arith.divf %sx, %n : S
  %bx = nn.broadcast %mx dims = [0, 1] : S -> T
  %c = arith.subf %x, %bx : T
  %c2 = arith.mulf %c, %c : T
  %sv = nn.reduce sum %c2 dims = [2] : T -> S
  %mv = arith.divf %sv, %n : S
  %ve = arith.addf %mv, %e : S
  %rs = math.rsqrt %ve : S
  %br = nn.broadcast %rs dims = [0, 1] : S -> T
  %nx = arith.mulf %c, %br : T
  %gn = arith.mulf %g, %nx : T
  %gnb = nn.reshape %gn : T -> BLOCKS
  %gamma = nn.reduce sum %gnb dims = [2] {kernel.row_sums} : BLOCKS -> SUMS
  %bw = nn.broadcast %w dims = [2] : tensor<Wxf32> -> T
  %s = arith.mulf %g, %bw : T
  %sn = arith.mulf %s, %nx : T
  %ssn = nn.reduce sum %sn dims = [2] : T -> S
  %msn = arith.divf %ssn, %n : S
  %bsn = nn.broadcast %msn dims = [0, 1] : S -> T
  %nsn = arith.mulf %nx, %bsn : T
  %d = arith.subf %s, %nsn : T
  %ss = nn.reduce sum %s dims = [2] : T -> S
  %ms = arith.divf %ss, %n : S
  %bs = nn.broadcast %ms dims = [0, 1] : S -> T
  %i = arith.subf %d, %bs : T
  %dx = arith.mulf %br, %i : T
  %all = arith.addf %dx, %r : T
  NARROW
  return %beta, %gamma, %result : SUMS, SUMS, E
})";
  const std::string f32 =
                        "tensor<" + batch + "x" + rows + "x" + width + "xf32>",
                    stored = replaced(f32, "f32", test.element);
  std::string widen, narrow_text;
  for (const std::string name : {"x", "g", "r"})
    widen += narrow ? "%" + name + " = arith.extf %" + name + "0 : E to T\n"
                    : "%" + name + " = arith.addf %" + name + "0, %" + name +
                          "0 : T\n";
  text = replaced(text, "WIDEN", widen);
  text = replaced(text, "NARROW",
                  narrow ? "%result = arith.truncf %all : T to E"
                         : "%result = arith.negf %all : T");
  const std::string blocks = std::to_string(test.rows / test.rows_of_block);
  text =
      replaced(text, "BLOCKS",
               "tensor<" + batch + "x" + blocks + "x" +
                   std::to_string(test.rows_of_block) + "x" + width + "xf32>");
  text = replaced(text, "SUMS",
                  "tensor<" + batch + "x" + blocks + "x" + width + "xf32>");
  text = replaced(text, "WIDTH", width);
  text = replaced(text, "tensor<Wxf32>", "tensor<" + width + "xf32>");
  text = replaced(text, " S", " tensor<" + batch + "x" + rows + "xf32>");
  text = replaced(text, " T", " " + f32);
  return replaced(replaced(text, " E", " " + stored), "tensor<E", stored);
}

class CodegenRowSums : public testing::TestWithParam<Case> {
 protected:
  void expectEqual(const CodegenOptions& options) {
    auto kernel = CompiledKernel::fromText(textOf(GetParam()), options);
    ASSERT_NE(kernel, nullptr) << textOf(GetParam());
    // The result is rounded to 16 bits; the sums are not.
    const double most = GetParam().element == "f32" ? 1e-4 : 1e-2;
    EXPECT_EQ(kernel->difference(most, most), "");
    EXPECT_EQ(kernel->code().range,
              GetParam().batch * GetParam().rows / GetParam().rows_of_block);
  }
};

TEST_P(CodegenRowSums, EqualsTheInterpreter) {
  expectEqual(hostCodegenOptions());
}

TEST_P(CodegenRowSums, EqualsTheInterpreterInTeams) {
  CodegenOptions options;
  options.vector_bytes = 16;
  options.team = 32;
  expectEqual(options);
}

TEST_P(CodegenRowSums, AssemblesForGpus) {
  if (!hasPtxas()) GTEST_SKIP() << kWithoutPtxas;
  for (const char* chip : {"sm_80", "sm_90a"}) {
    PtxKernel launch;
    const std::string ptx = ptxOf(textOf(GetParam()), chip, launch);
    ASSERT_NE(ptx, "");
    const Assembled assembled = assemble(ptx, chip);
    EXPECT_TRUE(assembled.ok) << assembled.report << ptx;
    EXPECT_EQ(assembled.kernels.at("k").spilled_bytes, 0) << assembled.report;
    EXPECT_LE(assembled.kernels.at("k").registers, 80) << assembled.report;
    // Scratch is shared memory.
    EXPECT_EQ(launch.scratch_bytes, 0);
    // Two blocks run at a time on either chip. The system takes 1 KB of each.
    EXPECT_LE(launch.shared_bytes, 164 * 1024 / 2 - 1024);
  }
}

// The gradient of an activation, the activation, and the sums of the gradient's
// columns.
std::string activationOf(int rows, int width, int rows_of_block) {
  const std::string text = R"(
func.func @k(%x0: ROWS, %g0: ROWS) -> (ROWS, ROWS, SUMS) {
  %x = arith.extf %x0 : ROWS to WIDE
  %g = arith.extf %g0 : ROWS to WIDE
  %t = math.tanh %x : WIDE
  %gt = arith.mulf %g, %t : WIDE
  %y = arith.truncf %t : WIDE to ROWS
  %dx = arith.truncf %gt : WIDE to ROWS
  %w = arith.extf %dx : ROWS to WIDE
  %b = nn.reshape %w : WIDE -> BLOCKS
  %sum = nn.reduce sum %b dims = [1] {kernel.column_sums} : BLOCKS -> SUMS
  return %y, %dx, %sum : ROWS, ROWS, SUMS
})";
  const std::string columns = "x" + std::to_string(width),
                    blocks = std::to_string(rows / rows_of_block),
                    all = std::to_string(rows) + columns;
  std::string result =
      replaced(text, "BLOCKS",
               "tensor<" + blocks + "x" + std::to_string(rows_of_block) +
                   columns + "xf32>");
  result = replaced(result, "SUMS", "tensor<" + blocks + columns + "xf32>");
  result = replaced(result, "WIDE", "tensor<" + all + "xf32>");
  return replaced(result, "ROWS", "tensor<" + all + "xbf16>");
}

TEST(CodegenColumnSums, EqualTheInterpreter) {
  for (const int width : {40, 256, 1536})
    for (const bool teams : {false, true}) {
      CodegenOptions options = hostCodegenOptions();
      if (teams) {
        options.vector_bytes = 16;
        options.team = 32;
      }
      const std::string text = activationOf(24, width, 6);
      auto kernel = CompiledKernel::fromText(text, options);
      ASSERT_NE(kernel, nullptr) << text;
      EXPECT_EQ(kernel->difference(1e-2, 1e-2), "") << width;
      // Parts of columns are items of their own.
      if (width == 1536) EXPECT_GT(kernel->code().range, 4);
      EXPECT_EQ(kernel->code().scratch_bytes, 0);
    }
}

TEST(CodegenColumnSums, AssembleForGpus) {
  if (!hasPtxas()) GTEST_SKIP() << kWithoutPtxas;
  for (const char* chip : {"sm_80", "sm_90a"}) {
    PtxKernel launch;
    const std::string ptx = ptxOf(activationOf(8192, 4096, 64), chip, launch);
    ASSERT_NE(ptx, "");
    const Assembled assembled = assemble(ptx, chip);
    ASSERT_TRUE(assembled.ok) << assembled.report << ptx;
    EXPECT_EQ(assembled.kernels.at("k").spilled_bytes, 0) << assembled.report;
    EXPECT_LE(assembled.kernels.at("k").registers, 80) << assembled.report;
    EXPECT_EQ(launch.shared_bytes, 0);
  }
}

// The last steps of sums of several sizes, with items of their own.
TEST(CodegenIndependentSums, EqualTheInterpreter) {
  const std::string text = R"(
func.func @k(%a: tensor<12x1024xf32>, %b: tensor<5x40xf32>, %c: tensor<12x1024xf32>)
    -> (tensor<1024xbf16>, tensor<40xf32>, tensor<1024xf32>) {
  %0 = nn.reduce sum %a dims = [0] {kernel.late_step = 0 : i64} : tensor<12x1024xf32> -> tensor<1024xf32>
  %1 = arith.truncf %0 : tensor<1024xf32> to tensor<1024xbf16>
  %2 = nn.reduce sum %b dims = [0] {kernel.late_step = 0 : i64} : tensor<5x40xf32> -> tensor<40xf32>
  %3 = nn.reduce sum %c dims = [0] {kernel.late_step = 0 : i64} : tensor<12x1024xf32> -> tensor<1024xf32>
  return %1, %2, %3 : tensor<1024xbf16>, tensor<40xf32>, tensor<1024xf32>
})";
  CodegenOptions teams;
  teams.vector_bytes = 16;
  teams.team = 32;
  for (const CodegenOptions& options : {teams, hostCodegenOptions()}) {
    auto kernel = CompiledKernel::fromText(text, options);
    ASSERT_NE(kernel, nullptr);
    EXPECT_EQ(kernel->difference(1e-2, 1e-2), "");
    if (options.team == 32) EXPECT_EQ(kernel->code().range, 8 + 1 + 8);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, CodegenRowSums,
    testing::Values(Case{"small", 2, 6, 128, 3}, Case{"odd_width", 3, 4, 40, 2},
                    Case{"bf16", 2, 8, 256, 4, "bf16"},
                    Case{"longest_rows", 2, 4, 1024, 2, "bf16"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace partita::kernels
