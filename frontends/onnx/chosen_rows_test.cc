// Tests of rows that a model chooses by NonZero, and of experts: what is
// computed, and every refusal.
#include "frontends/onnx/chosen_rows.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dialects/nn/interpreter.h"
#include "frontends/onnx/importer_fixture.h"
#include "frontends/onnx/test_model.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::onnx {
namespace {

class ChosenRowsTest : public ImporterTest {
 protected:
  // The first result of @main for float arguments.
  std::vector<double> run(const Message& model,
                          const std::vector<std::vector<double>>& inputs) {
    auto module = import(model);
    if (!module) {
      ADD_FAILURE() << errors_;
      return {};
    }
    auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
    std::vector<nn::Tensor> arguments;
    for (auto [i, type] : llvm::enumerate(main.getArgumentTypes())) {
      nn::Tensor tensor(mlir::cast<mlir::RankedTensorType>(type));
      for (auto [at, number] : llvm::enumerate(inputs[i]))
        tensor.setFloat(at, number);
      arguments.push_back(tensor);
    }
    auto results = nn::interpret(main, arguments);
    if (mlir::failed(results)) {
      ADD_FAILURE() << errors_;
      return {};
    }
    std::vector<double> values;
    for (int64_t i = 0; i < results->front().size(); ++i)
      values.push_back(results->front().getFloat(i));
    return values;
  }
};

const Message kX = valueInfo("x", kF32, {"3", "2"});
const Message kMask = valueInfo("mask", kF32, {"3"});
const Message kY = valueInfo("y", kF32, {});
const Message kZeros = floats("zeros", {3, 2}, {0, 0, 0, 0, 0, 0});

Message textAttribute(const std::string& name, const std::string& value) {
  return Message().bytes(1, name).bytes(4, value).varint(20, 3);
}

// Rows of x that the mask chooses, doubled and added to x.
std::vector<Message> doubled(const Message& scatter) {
  return {node("NonZero", {"mask"}, {"i"}, {}, "", "choice"),
          node("Transpose", {"i"}, {"t"}, {attribute("perm", {1, 0})}),
          node("GatherND", {"x", "t"}, {"rows"}),
          node("Add", {"rows", "rows"}, {"twice"}), scatter};
}

TEST_F(ChosenRowsTest, OnlyTheChosenAreAdded) {
  const Message add = node("ScatterND", {"x", "t", "twice"}, {"y"},
                           {textAttribute("reduction", "add")});
  EXPECT_EQ(run(model(graph(doubled(add), {kX, kMask}, {kY})),
                {{1, 2, 3, 4, 5, 6}, {1, 0, -2}}),
            (std::vector<double>{3, 6, 3, 4, 15, 18}));
  EXPECT_EQ(run(model(graph(doubled(add), {kX, kMask}, {kY})),
                {{1, 2, 3, 4, 5, 6}, {0, 0, 0}}),
            (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

// PyTorch's older exporter writes a sum into zeros like this.
TEST_F(ChosenRowsTest, RowsPutIntoZerosAreASum) {
  const Message put = node("ScatterND", {"zeros", "t", "twice"}, {"y"});
  EXPECT_EQ(run(model(graph(doubled(put), {kX, kMask}, {kY}, {kZeros})),
                {{1, 2, 3, 4, 5, 6}, {0, 1, 1}}),
            (std::vector<double>{0, 0, 6, 8, 10, 12}));
}

TEST_F(ChosenRowsTest, RefusesRowsThatAreNotAddedUp) {
  const Message put =
      node("ScatterND", {"x", "t", "twice"}, {"y"}, {}, "", "put");
  expectRefused(model(graph(doubled(put), {kX, kMask}, {kY})),
                {"loc(\"put\"): expected rows chosen by NonZero to reach only "
                 "operations on rows separately, and a ScatterND or "
                 "ScatterElements that adds them up: shapes are static, and "
                 "which rows are chosen depends on the model's inputs; found a "
                 "scatter that does not add them",
                 "note: loc(\"choice\"): chosen here"});
  EXPECT_EQ(report_.unsupported, std::vector<std::string>{"NonZero"});
}

TEST_F(ChosenRowsTest, RefusesOperationsThatMixRows) {
  std::vector<Message> nodes =
      doubled(node("ReduceMax", {"twice"}, {"y"},
                   {attribute("axes", std::vector<int64_t>{0})}, "", "max"));
  expectRefused(model(graph(nodes, {kX, kMask}, {kY})),
                {"loc(\"max\"): expected rows chosen by NonZero",
                 "found 'nn.reduce', which mixes rows or needs their number"});
}

TEST_F(ChosenRowsTest, RefusesChosenRowsAsOutputs) {
  expectRefused(model(graph({node("NonZero", {"mask"}, {"y"})}, {kMask},
                            {valueInfo("y", kI64, {})})),
                {"expected rows chosen by NonZero to reach only operations on "
                 "rows separately",
                 "found an output of the model"});
}

TEST_F(ChosenRowsTest, RefusesTheirNumber) {
  std::vector<Message> nodes = {
      node("NonZero", {"mask"}, {"i"}), node("Shape", {"i"}, {"s"}),
      node("Cast", {"s"}, {"f"}, {attribute("to", int64_t{1})}),
      node("Sqrt", {"f"}, {"y"}, {}, "", "root")};
  expectRefused(model(graph(nodes, {kMask}, {kY})),
                {"loc(\"root\"): Sqrt: input 0 ('f') is computed from the "
                 "number of rows that a NonZero chooses: expected only shapes "
                 "of these rows"});
}

// A branch sees the names around it, and gives its own to the node's outputs.
TEST_F(ChosenRowsTest, RefusesTheirNumberInBranches) {
  const std::vector<Message> nodes = {
      node("NonZero", {"mask"}, {"i"}), node("Shape", {"i"}, {"s"}),
      node("Cast", {"one"}, {"yes"}, {attribute("to", int64_t{9})})};
  const Message one = int64s("one", {}, {1});
  const Message cast =
      node("Cast", {"s"}, {"f"}, {attribute("to", int64_t{1})});
  const auto root = [](const std::string& input) {
    return node("Sqrt", {input}, {"y"}, {}, "", "root");
  };
  const auto branch = [](const std::vector<Message>& inner,
                         const std::string& output) {
    return attribute("then_branch",
                     graph(inner, {}, {valueInfo(output, kF32, {})}));
  };
  std::vector<Message> inside = nodes, outside = nodes;
  inside.push_back(
      node("If", {"yes"}, {"y"}, {branch({cast, root("f")}, "y")}));
  outside.push_back(node("If", {"yes"}, {"g"}, {branch({cast}, "f")}));
  outside.push_back(root("g"));
  expectRefused(model(graph(inside, {kMask}, {kY}, {one})),
                {"loc(\"root\"): Sqrt: input 0 ('f') is computed from the "
                 "number of rows that a NonZero chooses"});
  expectRefused(model(graph(outside, {kMask}, {kY}, {one})),
                {"loc(\"root\"): Sqrt: input 0 ('g') is computed from the "
                 "number of rows that a NonZero chooses"});
}

// onnxruntime's operator.
class MoeTest : public ChosenRowsTest {
 protected:
  static Message moe(const std::vector<Message>& attributes,
                     const std::vector<std::string>& inputs) {
    const std::vector<float> numbers(12, 0.5F);
    Message file = model(graph(
        {node("MoE", inputs, {"y"}, attributes, "com.microsoft", "moe")},
        {kX, valueInfo("p", kF32, {"3", "2"}),
         valueInfo("q", kF32, {"3", "4"})},
        {kY},
        {floats("m.a", {2, 3, 2}, numbers), floats("m.b", {2, 2, 3}, numbers),
         floats("m.c", {2, 3, 2}, numbers), floats("flat", {12}, numbers),
         floats("even", {2, 2, 3}, numbers),
         floats("turned", {3, 2}, {1, 1, 1, 1, 1, 1})}));
    return file.message(8, Message().bytes(1, "com.microsoft").varint(2, 1));
  }
  const std::vector<std::string> kInputs = {"x", "p", "m.a", "", "m.b"};
  const std::vector<Message> kSwiglu = {
      textAttribute("activation_type", "swiglu"),
      attribute("swiglu_fusion", int64_t{2})};
};

TEST_F(MoeTest, IsOneOperation) {
  auto module = import(moe({attribute("k", int64_t{2})}, kInputs));
  ASSERT_TRUE(module) << errors_;
  int found = 0;
  module->walk([&](nn::ExpertsOp) { ++found; });
  EXPECT_EQ(found, 1);
}

TEST_F(MoeTest, RefusesShapesThatDoNotFit) {
  expectRefused(moe({}, {"x", "q", "m.a", "", "m.b"}),
                {"expected router_probs with 2 experts, the first size of "
                 "fc1_experts_weights, found 4"});
  expectRefused(moe({}, {"x", "p", "m.a", "", "m.b", "", "flat"}),
                {"expected fc3_experts_weights [experts, out, in], found "});
  expectRefused(moe({}, {"x", "p", "m.a", "turned", "m.b"}),
                {"expected fc1_experts_bias [experts, out], of shape "});
  expectRefused(moe({}, {"x", "p", "m.a", "", "m.b", "turned"}),
                {"expected fc2_experts_bias [experts, out], of shape "});
  expectRefused(moe({}, {"x", "p", "m.a", "", "m.b", "", "", "turned"}),
                {"expected fc3_experts_weights with fc3_experts_bias"});
  // A bias is cut in halves as its matrix is.
  expectRefused(moe(kSwiglu, {"x", "p", "even", "flat", "m.b"}),
                {"expected fc1_experts_bias [experts, out], of shape "});
}

TEST_F(MoeTest, RefusesWhatItLacks) {
  const auto text = [](const char* name) {
    return textAttribute("activation_type", name);
  };
  expectRefused(moe({text("identity")}, kInputs),
                {"loc(\"moe\"): MoE: activation_type=identity is not "
                 "supported"});
  expectRefused(moe({attribute("use_sparse_mixer", int64_t{1})}, kInputs),
                {"MoE: use_sparse_mixer is not supported"});
  expectRefused(moe({attribute("k", int64_t{3})}, kInputs),
                {"expected k from 1 to the number of experts, 2, found 3"});
  expectRefused(moe({text("swiglu")}, kInputs),
                {"expected fc3_experts_weights, or swiglu_fusion 1 or 2"});
  expectRefused(
      moe({text("swiglu"), attribute("swiglu_fusion", int64_t{1})}, kInputs),
      {"expected swiglu_fusion 1 or 2 to have an even number of outputs"});
  expectRefused(moe({}, {"x", "p", "m.a"}),
                {"expected input 4, fc2_experts_weights"});
  expectRefused(
      model(graph({node("QMoE", {"x"}, {"y"}, {}, "com.microsoft", "moe")},
                  {kX}, {kY})),
      {"operators that are not supported",
       "com.microsoft::QMoE, 1 node: "
       "'moe'"});
}

}  // namespace
}  // namespace partita::onnx
