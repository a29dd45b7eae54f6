// Compares products of ordered rows on tensor cores, run by emulated warps,
// with the interpreter. Checks the registers and spills that ptxas reports.
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
                    order = "tensor<" + std::to_string(test.x + 2 + test.r) +
                            "xi32>",
                    rows = typeOf(test, {test.r, test.n}),
                    w = test.kind == Kind::transposed
                            ? typeOf(test, {test.x, test.k, test.n})
                            : typeOf(test, {test.x, test.n, test.k});
  std::string text = "func.func @k(%x: " + given + ", %o: " + order +
                     ", %w: " + (grad ? rows : w) + ") -> " +
                     (grad ? w : rows) + " {\n";
  if (test.repeats > 1) {
    const std::string wide =
        typeOf(test, {test.r / test.repeats, test.repeats, test.k});
    text += "%b = nn.broadcast %x dims = [0, 2] : " + given + " -> " + wide +
            "\n%s = nn.reshape %b : " + wide + " -> " + x + "\n";
  }
  const std::string s = test.repeats > 1 ? "%s" : "%x";
  if (grad)
    text += "%r = nn.ordered_dot_weight_grad " + s + "[%o], %w : " + x + ", " +
            order + ", " + rows + " -> " + w + "\nreturn %r : " + w;
  else
    text += "%r = nn.ordered_dot " + s + "[%o], %w " +
            (test.kind == Kind::transposed ? "transposed " : "") + ": " + x +
            ", " + order + ", " + w + " -> " + rows + "\nreturn %r : " + rows;
  return text + "\n}";
}

// Describes the difference from the interpreter, run in one part and in three.
std::string differenceOf(CompiledKernel& kernel,
                         const std::vector<nn::Tensor>& arguments,
                         double tolerance) {
  auto expected = nn::interpret(kernel.function(), arguments);
  if (mlir::failed(expected)) return "the interpreter fails";
  std::ostringstream text;
  for (const std::vector<double>& parts :
       {std::vector<double>{1}, std::vector<double>{0.3, 0.5, 1}}) {
    const std::vector<nn::Tensor> results = kernel.results(arguments, parts);
    for (size_t r = 0; r < results.size(); ++r) {
      const nn::Tensor& found = results[r];
      const nn::Tensor& wanted = (*expected)[r];
      for (int64_t i = 0; i < found.size() && text.tellp() < 500; ++i) {
        const double f = wanted.isFloat()
                             ? found.getFloat(i)
                             : static_cast<double>(found.getInt(i)),
                     e = wanted.isFloat()
                             ? wanted.getFloat(i)
                             : static_cast<double>(wanted.getInt(i));
        if (!(std::abs(f - e) <= tolerance * (1 + std::abs(e))))
          text << "result " << r << ", element " << i << ": expected " << e
               << ", found " << f << "\n";
      }
    }
  }
  return text.str();
}

// The order of the rows of a case: positions of groups, the end, rows.
std::vector<int64_t> orderOf(const Case& test) {
  std::vector<std::vector<int64_t>> groups(test.x + 1);
  for (int64_t row = 0; row < test.r; ++row) {
    const int64_t id = test.id(row);
    groups[id >= 0 && id < test.x ? id : test.x].push_back(row);
  }
  std::vector<int64_t> order = {0}, rows;
  for (const std::vector<int64_t>& group : groups) {
    rows.insert(rows.end(), group.begin(), group.end());
    order.push_back(static_cast<int64_t>(rows.size()));
  }
  order.insert(order.end(), rows.begin(), rows.end());
  return order;
}

std::string differenceOf(CompiledKernel& kernel, const Case& test) {
  std::mt19937 generator(11);
  std::vector<nn::Tensor> arguments = kernel.randomArguments(generator, 0.5);
  const std::vector<int64_t> order = orderOf(test);
  for (size_t i = 0; i < order.size(); ++i)
    arguments[1].setInt(static_cast<int64_t>(i), order[i]);
  return differenceOf(kernel, arguments, test.tolerance);
}

constexpr const char* kNames[] = {"Product", "Transposed", "WeightGrad"};

class Ordered : public testing::TestWithParam<Case> {};

void expectEqual(const Case& test, const std::string& chip) {
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(textOf(test), ptxCodegenOptions({.chip = chip}));
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->code().team, kBlock);
  EXPECT_EQ(differenceOf(*kernel, test), "");
}

TEST_P(Ordered, EqualsTheInterpreter) { expectEqual(GetParam(), "sm_90"); }

TEST_P(Ordered, EqualsTheInterpreterWithWarpgroups) {
  if (GetParam().element == "f32") return;  // computed by warps
  expectEqual(GetParam(), "sm_90a");
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
INSTANTIATE_TEST_SUITE_P(Product, Ordered,
                         testing::ValuesIn(casesOf(Kind::product)), name);
INSTANTIATE_TEST_SUITE_P(Transposed, Ordered,
                         testing::ValuesIn(casesOf(Kind::transposed)), name);
INSTANTIATE_TEST_SUITE_P(WeightGrad, Ordered,
                         testing::ValuesIn(casesOf(Kind::weight_grad)), name);

// Gate and up, and elementwise operations on them, in one kernel. The second
// result is a product by a number of each row.
std::string textOfGated(const Case& test) {
  const std::string x = typeOf(test, {test.r, test.k}),
                    order = "tensor<" + std::to_string(test.x + 2 + test.r) +
                            "xi32>",
                    y = typeOf(test, {test.r, test.n}),
                    p = typeOf(test, {test.r}),
                    w = test.kind == Kind::transposed
                            ? typeOf(test, {test.x, test.k, test.n})
                            : typeOf(test, {test.x, test.n, test.k}),
                    form = std::string(test.kind == Kind::transposed
                                           ? " transposed : "
                                           : " : ") +
                           x + ", " + order + ", " + w + " -> " + y + "\n";
  return "func.func @k(%x: " + x + ", %o: " + order + ", %w: " + w +
         ", %v: " + w + ", %p: " + p + ") -> (" + y + ", " + y + ") {\n" +
         "%g = nn.ordered_dot %x[%o], %w" + form +
         "%u = nn.ordered_dot %x[%o], %v" + form +
         "%m = arith.mulf %g, %u : " + y +
         "\n%b = nn.broadcast %p dims = [0] : " + p + " -> " + y +
         "\n%t = arith.subf %g, %b : " + y + "\nreturn %m, %t : " + y + ", " +
         y + " }";
}

TEST_P(Ordered, GatedProductsEqualTheInterpreter) {
  const Case& test = GetParam();
  if (test.kind == Kind::weight_grad || test.repeats > 1) return;
  for (const char* chip : {"sm_90", "sm_90a"}) {
    std::unique_ptr<CompiledKernel> kernel = CompiledKernel::fromText(
        textOfGated(test), ptxCodegenOptions({.chip = chip}));
    ASSERT_NE(kernel, nullptr);
    EXPECT_EQ(differenceOf(*kernel, test), "") << chip;
  }
}

// The same cases: rows in order of their matrices.
class Rows : public testing::TestWithParam<Case> {};

std::string textOfOrder(const Case& test, const std::string& index) {
  const std::string ids =
                        "tensor<" + std::to_string(test.r) + "x" + index + ">",
                    order = "tensor<" + std::to_string(test.x + 2 + test.r) +
                            "xi32>";
  return "func.func @k(%i: " + ids + ") -> " + order +
         " { %o = nn.order_rows %i matrices = " + std::to_string(test.x) +
         " : " + ids + " -> " + order + " return %o : " + order + " }";
}

TEST_P(Rows, AreInOrderOfTheirMatrices) {
  for (const char* index : {"i32", "i64"}) {
    std::unique_ptr<CompiledKernel> kernel = CompiledKernel::fromText(
        textOfOrder(GetParam(), index), ptxCodegenOptions({.chip = "sm_90"}));
    ASSERT_NE(kernel, nullptr);
    EXPECT_EQ(kernel->code().team, kBlock);
    EXPECT_EQ(kernel->code().range, GetParam().x + 1);
    std::mt19937 generator;
    std::vector<nn::Tensor> arguments = kernel->randomArguments(generator);
    for (int64_t row = 0; row < GetParam().r; ++row)
      arguments[0].setInt(row, GetParam().id(row));
    EXPECT_EQ(differenceOf(*kernel, arguments, 0), "");
    const nn::Tensor order = kernel->results(arguments, {1})[0];
    const std::vector<int64_t> expected = orderOf(GetParam());
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(order.getInt(static_cast<int64_t>(i)), expected[i]) << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Codegen, Rows,
                         testing::ValuesIn(casesOf(Kind::product)), name);

TEST(OrderedTest, OrderNeedsFewRegisters) {
  const Case test = {"", Kind::product, 8, 8192, 0, 0, uneven};
  PtxKernel launch;
  const std::string ptx = ptxOf(textOfOrder(test, "i64"), "sm_90", launch);
  ASSERT_NE(ptx, "");
  EXPECT_EQ(launch.blocks, 9);
  if (!hasPtxas()) GTEST_SKIP() << kWithoutPtxas;
  const Assembled assembled = assemble(ptx, "sm_90");
  ASSERT_TRUE(assembled.ok) << assembled.report;
  EXPECT_EQ(assembled.kernels.at("k").spilled_bytes, 0);
  EXPECT_LE(assembled.kernels.at("k").registers, 64);
}

struct Size {
  std::string element;
  Kind kind;
  int most_registers;  // the count of ptxas 13.0 plus a margin of at most 8
};
void PrintTo(const Size& size, std::ostream* out) { *out << size.element; }
class OrderedCode : public testing::TestWithParam<Size> {};

TEST_P(OrderedCode, FitsIntoRegistersAndSharedMemory) {
  Case test = {"", GetParam().kind, 8, 8192, 4096, 14336, uneven};
  test.element = GetParam().element;
  for (const std::string chip : {"sm_80", "sm_90", "sm_90a"}) {
    PtxKernel launch;
    const std::string ptx = ptxOf(textOf(test), chip, launch);
    ASSERT_NE(ptx, "");
    const bool by_warpgroups = chip == "sm_90a" && GetParam().element != "f32";
    EXPECT_NE(ptx.find(by_warpgroups ? "wgmma.mma_async.sync.aligned.m64n128k16"
                                     : "mma.sync.aligned.m16n8k"),
              std::string::npos);
    EXPECT_NE(ptx.find("cp.async.cg.shared.global"), std::string::npos);
    EXPECT_EQ(launch.scratch_bytes, 0);
    // Two blocks fit on a multiprocessor of sm_80.
    EXPECT_LE(launch.shared_bytes, 81 * 1024);
    if (!hasPtxas()) continue;
    const Assembled assembled = assemble(ptx, chip);
    ASSERT_TRUE(assembled.ok) << assembled.report;
    const Assembled::Kernel& kernel = assembled.kernels.at("k");
    std::printf("%s %s: %d registers\n", chip.c_str(),
                GetParam().element.c_str(), kernel.registers);
    // To fit three blocks, ptxas lets two kinds of f32 store and load a few.
    EXPECT_LE(kernel.spilled_bytes, GetParam().element == "f32" ? 16 : 0)
        << chip;
    EXPECT_LE(kernel.registers, GetParam().most_registers) << chip;
  }
  if (!hasPtxas()) GTEST_SKIP() << kWithoutPtxas;
}
const Size kSizes[] = {
    {"bf16", Kind::product, 250},     {"bf16", Kind::transposed, 252},
    {"bf16", Kind::weight_grad, 246}, {"f16", Kind::product, 250},
    {"f32", Kind::product, 172},      {"f32", Kind::transposed, 172},
    {"f32", Kind::weight_grad, 162}};
INSTANTIATE_TEST_SUITE_P(Codegen, OrderedCode, testing::ValuesIn(kSizes),
                         [](const auto& info) {
                           return info.param.element +
                                  kNames[static_cast<int>(info.param.kind)];
                         });

}  // namespace
}  // namespace partita::kernels
