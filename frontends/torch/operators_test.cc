// Single operators, against values of PyTorch.
#include <gtest/gtest.h>

#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "frontends/torch/importer.h"
#include "frontends/torch/test_archive.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::torch {
namespace {

using P = TestProgram;
using Arguments = std::vector<std::pair<std::string, P::Json>>;
using Sizes = std::vector<int64_t>;

std::vector<double> run(P& program, const Sizes& shape,
                        const std::vector<double>& values) {
  mlir::MLIRContext context;
  mlir::DialectRegistry registry;
  registry.insert<nn::NNDialect>();
  nn::registerExternalModels(registry);
  context.appendDialectRegistry(registry);
  auto module = importTorchBytes(program.bytes(), "model.pt2", {}, &context);
  EXPECT_TRUE(module);
  if (!module) return {};
  nn::Tensor input(
      mlir::RankedTensorType::get(shape, mlir::Float32Type::get(&context)));
  for (size_t i = 0; i < values.size(); ++i)
    input.setFloat(static_cast<int64_t>(i), values[i]);
  auto results =
      nn::interpret(module->lookupSymbol<mlir::func::FuncOp>("main"), {input});
  EXPECT_TRUE(mlir::succeeded(results));
  std::vector<double> output;
  if (mlir::failed(results)) return output;
  for (int64_t i = 0; i < results->front().size(); ++i)
    output.push_back(results->front().getFloat(i));
  return output;
}

void expectNear(const std::vector<double>& found,
                const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
}

// An operator of one tensor x and numbers.
struct Case {
  const char* target;
  Sizes shape;
  std::vector<double> x;
  Arguments arguments;
  Sizes result;
  std::vector<double> expected;
};

void PrintTo(const Case& which, std::ostream* out) { *out << which.target; }

class OperatorTest : public testing::TestWithParam<Case> {};

TEST_P(OperatorTest, EqualsPyTorch) {
  P program;
  program.input("x", GetParam().shape);
  program.node(GetParam().target, GetParam().arguments, "y", GetParam().result);
  program.output("y");
  expectNear(run(program, GetParam().shape, GetParam().x), GetParam().expected);
}

const P::Json kX = P::tensor("x");
const P::Json kTwice = {{"as_tensors", {{{"name", "x"}}, {{"name", "x"}}}}};

const Arguments kWindows2x2 = {{"self", kX},
                               {"kernel_size", P::integers({2, 2})},
                               {"dilation", P::integers({1, 1})},
                               {"padding", P::integers({0, 0})},
                               {"stride", P::integers({1, 1})}};

const Case kCases[] = {
    {"aten.repeat_interleave.self_int",
     {2, 2},
     {1, 2, 3, 4},
     {{"self", kX}, {"repeats", P::integer(2)}, {"dim", P::integer(1)}},
     {2, 4},
     {1, 1, 2, 2, 3, 3, 4, 4}},
    {"aten.repeat_interleave.self_int",
     {1, 2},
     {1, 2},
     {{"self", kX}, {"repeats", P::integer(2)}},
     {4},
     {1, 1, 2, 2}},
    {"aten.numpy_T.default",
     {2, 3},
     {0, 1, 2, 3, 4, 5},
     {{"self", kX}},
     {3, 2},
     {0, 3, 1, 4, 2, 5}},
    {"aten.histc.default",
     {6},
     {0, 1, 1, 3, 5, -1},
     {{"self", kX},
      {"bins", P::integer(4)},
      {"min", P::integer(0)},
      {"max", P::integer(3)}},
     {4},
     {1, 2, 0, 1}},
    {"aten.addcmul.default",
     {2},
     {1, 2},
     {{"self", kX}, {"tensor1", kX}, {"tensor2", kX}, {"value", P::integer(2)}},
     {2},
     {3, 10}},
    {"aten.addcdiv.default",
     {2},
     {1, 2},
     {{"self", kX}, {"tensor1", kX}, {"tensor2", kX}, {"value", P::integer(2)}},
     {2},
     {3, 4}},
    {"aten.stack.default",
     {2},
     {1, 2},
     {{"tensors", kTwice}, {"dim", P::integer(1)}},
     {2, 2},
     {1, 1, 2, 2}},
    {"aten.adaptive_avg_pool2d.default",
     {1, 1, 1, 3},
     {1, 2, 6},
     {{"self", kX}, {"output_size", P::integers({1, 2})}},
     {1, 1, 1, 2},
     {1.5, 4}},
    {"aten.im2col.default",
     {1, 1, 2, 3},
     {1, 2, 3, 4, 5, 6},
     kWindows2x2,
     {1, 4, 2},
     {1, 2, 2, 3, 4, 5, 5, 6}},
    {"aten.col2im.default",
     {1, 9, 4},
     std::vector<double>(36, 1),
     {{"self", kX},
      {"output_size", P::integers({3, 3})},
      {"kernel_size", P::integers({3, 3})},
      {"dilation", P::integers({1, 1})},
      {"padding", P::integers({1, 1})},
      {"stride", P::integers({2, 2})}},
     {1, 1, 3, 3},
     {1, 2, 1, 2, 4, 2, 1, 2, 1}},
    // Two windows of two tokens in one head.
    {"aten.scaled_dot_product_attention.default",
     {1, 1, 2, 2, 1},
     {0, 0, 1, 2},
     {{"query", kX}, {"key", kX}, {"value", kX}},
     {1, 1, 2, 2, 1},
     {0, 0, 1.7310586, 1.8807971}},
};

INSTANTIATE_TEST_SUITE_P(Cases, OperatorTest, testing::ValuesIn(kCases));

TEST(OperatorsTest, ColumnsAddUp) {
  P program;
  program.input("x", {1, 4, 2});
  Arguments arguments = kWindows2x2;
  arguments.emplace_back("output_size", P::integers({2, 3}));
  program.node("aten.col2im.default", arguments, "y", {1, 1, 2, 3});
  program.output("y");
  expectNear(run(program, {1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
             {1, 5, 4, 5, 13, 8});
}

TEST(OperatorsTest, ReshapesLikeAnotherTensor) {
  P program;
  program.input("x", {2, 3});
  program.node("aten.t.default", {{"self", kX}}, "t", {3, 2});
  program.node("aten.reshape_as.default",
               {{"self", kX}, {"other", P::tensor("t")}}, "y", {3, 2});
  program.output("y");
  expectNear(run(program, {2, 3}, {0, 1, 2, 3, 4, 5}), {0, 1, 2, 3, 4, 5});
}

// Row 0 by matrix 0, rows 1 and 2 by matrix 1, row 3 by none.
TEST(OperatorsTest, MultipliesGroupsOfRows) {
  P program;
  program.input("x", {4, 2});
  program.node("aten.view.default",
               {{"self", kX}, {"size", P::integers({2, 2, 2})}}, "w",
               {2, 2, 2});
  program.node("aten.arange.start_step",
               {{"start", P::integer(1)},
                {"end", P::integer(5)},
                {"step", P::integer(2)}},
               "ends", {2});
  program.json()["graph_module"]["graph"]["tensor_values"]["ends"]["dtype"] = 5;
  program.node(
      "transformers.grouped_mm_fallback.default",
      {{"input", kX}, {"weight", P::tensor("w")}, {"offs", P::tensor("ends")}},
      "y", {4, 2});
  program.output("y");
  expectNear(run(program, {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
             {7, 10, 43, 50, 67, 78, 0, 0});
}

}  // namespace
}  // namespace partita::torch
