// Compares grouped products on tensor cores, run by emulated warps, with the
// interpreter. Checks the registers and spills that ptxas reports.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <ostream>
#include <sstream>

#include "compiler/kernels/codegen_fixture.h"
#include "compiler/kernels/ptxas.h"
#include "dialects/nn/interpreter.h"

namespace partita::kernels {
namespace {

enum class Kind { product, transposed, weight_grad };

struct Case {
  std::string name;
  Kind kind;
  // Matrices, rows, and the sizes of x (inner) and of the other matrix side.
  int64_t x, r, k, n;
  std::function<int64_t(int64_t)> id;  // of a row
  std::string element = "bf16";
  double tolerance = 2e-2;
  int64_t repeats = 1;  // times that a row of x stands one after the other
};
void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

std::string typeOf(const Case& test, std::initializer_list<int64_t> shape) {
  std::string text = "tensor<";
  for (int64_t dim : shape) text += std::to_string(dim) + "x";
  return text + test.element + ">";
}

std::string textOf(const Case& test) {
  const bool grad = test.kind == Kind::weight_grad;
  const std::string given = typeOf(test, {test.r / test.repeats, test.k}),
                    x = typeOf(test, {test.r, test.k}),
                    ids = "tensor<" + std::to_string(test.r) + "xi64>",
                    rows = typeOf(test, {test.r, test.n}),
                    w = test.kind == Kind::transposed
                            ? typeOf(test, {test.x, test.k, test.n})
                            : typeOf(test, {test.x, test.n, test.k});
  std::string text = "func.func @k(%x: " + given + ", %i: " + ids +
                     ", %o: " + (grad ? rows : w) + ") -> " +
                     (grad ? w : rows) + " {\n";
  if (test.repeats > 1) {
    const std::string wide =
        typeOf(test, {test.r / test.repeats, test.repeats, test.k});
    text += "%b = nn.broadcast %x dims = [0, 2] : " + given + " -> " + wide +
            "\n%s = nn.reshape %b : " + wide + " -> " + x + "\n";
  }
  const std::string s = test.repeats > 1 ? "%s" : "%x";
  if (grad)
    text += "%r = nn.grouped_dot_weight_grad " + s + "[%i], %o : " + x + ", " +
            ids + ", " + rows + " -> " + w + "\nreturn %r : " + w;
  else
    text += "%r = nn.grouped_dot " + s + "[%i], %o " +
            (test.kind == Kind::transposed ? "transposed " : "") + ": " + x +
            ", " + ids + ", " + w + " -> " + rows + "\nreturn %r : " + rows;
  return text + "\n}";
}

std::string differenceOf(CompiledKernel& kernel, const Case& test) {
  std::mt19937 generator(11);
  std::vector<nn::Tensor> arguments = kernel.randomArguments(generator, 0.5);
  for (int64_t row = 0; row < test.r; ++row)
    arguments[1].setInt(row, test.id(row));
  auto expected = nn::interpret(kernel.function(), arguments);
  if (mlir::failed(expected)) return "the interpreter fails";
  std::ostringstream text;
  for (const std::vector<double>& parts :
       {std::vector<double>{1}, std::vector<double>{0.3, 0.5, 1}}) {
    const nn::Tensor found = kernel.results(arguments, parts)[0];
    for (int64_t i = 0; i < found.size(); ++i) {
      const double f = found.getFloat(i), e = (*expected)[0].getFloat(i);
      if (!(std::abs(f - e) <= test.tolerance * (1 + std::abs(e))) &&
          text.tellp() < 500)
        text << "element " << i << ": expected " << e << ", found " << f
             << "\n";
    }
  }
  return text.str();
}

constexpr const char* kNames[] = {"Product", "Transposed", "WeightGrad"};

class Grouped : public testing::TestWithParam<Case> {};

TEST_P(Grouped, EqualsTheInterpreter) {
  const CodegenOptions options = ptxCodegenOptions({.chip = "sm_90"});
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(textOf(GetParam()), options);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->code().team, kBlock);
  ASSERT_EQ(kernel->code().before.size(), 1u);
  EXPECT_EQ(kernel->code().work->operations,
            2 * GetParam().r * GetParam().k * GetParam().n);
  EXPECT_EQ(differenceOf(*kernel, GetParam()), "");
}

int64_t uneven(int64_t row) { return row * row % 7 % 5; }
// Some of these have no matrix.
int64_t outside(int64_t row) { return row % 3 == 0 ? row % 4 : row - 40; }
int64_t three(int64_t) { return 3; }
int64_t none(int64_t) { return -1; }
int64_t oddOnes(int64_t row) { return row % 2 * 4 + 1; }

std::vector<Case> casesOf(Kind kind) {
  std::vector<Case> cases = {
      {"whole_tiles", kind, 5, 256, 128, 128, uneven},
      {"empty_groups", kind, 7, 150, 64, 136, oddOnes},
      {"one_group", kind, 5, 200, 72, 40, three},
      {"rows_without_matrix", kind, 4, 150, 64, 64, outside},
      {"no_row_has_a_matrix", kind, 3, 20, 32, 32, none},
      {"odd_sizes", kind, 5, 37, 23, 45, uneven},
      {"odd_inner", kind, 5, 70, 100, 64, uneven},
      {"one_row", kind, 6, 1, 64, 64, three},
      {"one_matrix", kind, 1, 130, 64, 64, outside},
      {"repeated_rows", kind, 5, 140, 64, 64, uneven, "bf16", 2e-2, 2},
      {"f16", kind, 5, 140, 72, 88, uneven, "f16", 3e-3},
      {"f32", kind, 5, 150, 72, 140, uneven, "f32", 3e-5},
      {"f32_odd", kind, 5, 37, 23, 45, outside, "f32", 3e-5},
      {"many_matrices", kind, 37, 100, 16, 16,
       [](int64_t row) { return row * 37 % 41; }}};
  return cases;
}
const auto name = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Product, Grouped,
                         testing::ValuesIn(casesOf(Kind::product)), name);
INSTANTIATE_TEST_SUITE_P(Transposed, Grouped,
                         testing::ValuesIn(casesOf(Kind::transposed)), name);
INSTANTIATE_TEST_SUITE_P(WeightGrad, Grouped,
                         testing::ValuesIn(casesOf(Kind::weight_grad)), name);

// f64 is decomposed into products of all rows with all matrices.
TEST(GroupedTest, OthersAreDecomposed) {
  Case test = {"", Kind::product, 3, 20, 16, 16, uneven, "f64", 1e-12};
  std::unique_ptr<CompiledKernel> kernel = CompiledKernel::fromText(
      textOf(test), ptxCodegenOptions({.chip = "sm_90"}));
  ASSERT_NE(kernel, nullptr);
  EXPECT_TRUE(kernel->code().before.empty());
  EXPECT_EQ(differenceOf(*kernel, test), "");
}

struct Size {
  std::string element;
  Kind kind;
  int most_registers;  // the count of ptxas 13.0 plus a margin of at most 8
};
void PrintTo(const Size& size, std::ostream* out) { *out << size.element; }
class GroupedCode : public testing::TestWithParam<Size> {};

TEST_P(GroupedCode, FitsIntoRegistersAndSharedMemory) {
  Case test = {"", GetParam().kind, 8, 8192, 4096, 14336, uneven};
  test.element = GetParam().element;
  for (const std::string chip : {"sm_80", "sm_90", "sm_90a"}) {
    llvm::SmallVector<PtxKernel> launches;
    const std::string ptx = ptxOf(textOf(test), chip, launches);
    ASSERT_NE(ptx, "");
    ASSERT_EQ(launches.size(), 2u);
    EXPECT_NE(ptx.find("mma.sync.aligned.m16n8k"), std::string::npos);
    EXPECT_NE(ptx.find("cp.async.cg.shared.global"), std::string::npos);
    // The order of rows: where 9 groups begin, their end, and 8,192 rows.
    for (const PtxKernel& launch : launches)
      EXPECT_EQ(launch.scratch_bytes, 4 * (8 + 2 + 8192));
    EXPECT_EQ(launches[0].blocks, 9);
    // Two blocks fit on a multiprocessor of sm_80.
    EXPECT_LE(launches[1].shared_bytes, 81 * 1024);
    if (!hasPtxas()) continue;
    const Assembled assembled = assemble(ptx, chip);
    ASSERT_TRUE(assembled.ok) << assembled.report;
    for (const char* name : {"k_part_0", "k"}) {
      const Assembled::Kernel& kernel = assembled.kernels.at(name);
      std::printf("%s %s %s: %d registers\n", chip.c_str(), name,
                  GetParam().element.c_str(), kernel.registers);
      EXPECT_EQ(kernel.spilled_bytes, 0) << chip << " " << name;
      EXPECT_LE(kernel.registers, GetParam().most_registers)
          << chip << " " << name;
    }
  }
  if (!hasPtxas()) GTEST_SKIP() << kWithoutPtxas;
}
const Size kSizes[] = {
    {"bf16", Kind::product, 255},     {"bf16", Kind::transposed, 255},
    {"bf16", Kind::weight_grad, 255}, {"f16", Kind::product, 255},
    {"f32", Kind::product, 255},      {"f32", Kind::transposed, 255},
    {"f32", Kind::weight_grad, 255}};
INSTANTIATE_TEST_SUITE_P(Codegen, GroupedCode, testing::ValuesIn(kSizes),
                         [](const auto& info) {
                           return info.param.element +
                                  kNames[static_cast<int>(info.param.kind)];
                         });

}  // namespace
}  // namespace partita::kernels
