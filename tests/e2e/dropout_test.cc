// Training with dropout: every plan drops the same elements, another seed drops
// others.
#include <gtest/gtest.h>

#include <fstream>

#include "compiler/driver/import_model.h"
#include "frontends/onnx/test_model.h"
#include "tests/e2e/compiled_model.h"

namespace partita::e2e {
namespace {

using onnx::node;

// Three times x -> dropout(relu(x w_i)), with rows [8, 16].
std::string WriteModel() {
  std::vector<onnx::Message> nodes = {node(
                                 "Cast", {"one"}, {"training"},
                                 {onnx::attribute("to", int64_t{9})})},
                             weights = {onnx::int64s("one", {}, {1}),
                                        onnx::floats("ratio", {}, {0.25f})};
  std::string x = "x";
  for (const std::string layer : {"h.0", "h.1", "h.2"}) {
    std::vector<float> w(256);
    for (size_t i = 0; i < w.size(); ++i)
      w[i] = static_cast<float>((i * 37 + layer.back()) % 101) / 250 - 0.1f;
    weights.push_back(onnx::floats(layer + ".w", {16, 16}, w));
    nodes.push_back(node("MatMul", {x, layer + ".w"}, {layer + ".product"}));
    nodes.push_back(node("Relu", {layer + ".product"}, {layer + ".relu"}));
    nodes.push_back(node("Dropout", {layer + ".relu", "ratio", "training"},
                         {layer + ".y", layer + ".mask"}));
    x = layer + ".y";
  }
  const std::string path = testing::TempDir() + "/dropout.onnx";
  std::ofstream(path, std::ios::binary)
      << onnx::model(
             onnx::graph(nodes, {onnx::valueInfo("x", onnx::kF32, {"8", "16"})},
                         {onnx::valueInfo(x, onnx::kF32, {})}, weights))
             .encoded();
  return path;
}

template <typename T>
HostTensor Tensor(base::DType dtype, std::vector<int64_t> shape,
                  const std::vector<T>& values) {
  return {dtype, std::move(shape),
          std::string(reinterpret_cast<const char*>(values.data()),
                      values.size() * sizeof(T))};
}

class DropoutTest : public testing::Test {
 protected:
  // The loss and the gradients of a step, by name.
  std::map<std::string, HostTensor> Step(const std::string& mesh,
                                         const std::string& shard,
                                         int64_t microbatches, int64_t seed) {
    std::map<std::string, HostTensor> named;
    CompilerContext context;
    auto module = driver::importModel(WriteModel(), {}, context.get());
    EXPECT_TRUE(module) << context.errors;
    plan::Plan plan;
    if (!mesh.empty()) {
      plan.mesh = *plan::ParseMeshOption(mesh);
      plan.shard = *plan::ParseShardOption(shard, plan.mesh);
    }
    plan.microbatches = microbatches;
    driver::TrainOptions train;
    train.optimizer = "sgd";
    train.loss = "mse";
    train.keep_gradients = true;
    auto compiled = CompiledModel::MakeTraining(*module, testing::TempDir(),
                                                "step", plan, train);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    if (!compiled.ok()) return named;
    std::vector<float> x(128), y(128);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(i % 16) / 10 + 0.5f;  // all rows are equal
    auto outputs = (*compiled)->Run(
        {{"x", Tensor(base::DType::kF32, {8, 16}, x)},
         {"targets", Tensor(base::DType::kF32, {8, 16}, y)},
         {"seed", Tensor<int64_t>(base::DType::kI64, {}, {seed})},
         {"lr", Tensor<float>(base::DType::kF32, {}, {0})}});
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    if (!outputs.ok()) return named;
    for (size_t i = 0; i < outputs->size(); ++i)
      named[(*compiled)->outputs()[i].name] = (*outputs)[i];
    return named;
  }

  void ExpectEqual(const std::map<std::string, HostTensor>& actual,
                   const std::map<std::string, HostTensor>& expected) {
    ASSERT_EQ(expected.size(), 4u);  // the loss, three gradients
    for (const auto& [name, tensor] : expected) {
      const Distance distance = Compare(actual.at(name), tensor, 0, 0);
      EXPECT_LE(distance.largest, 1e-5 * distance.largest_expected) << name;
    }
  }
};

TEST_F(DropoutTest, PlansDropTheSameNumbers) {
  const auto whole = Step("", "", 1, 3);
  ExpectEqual(Step("d=2", "B=d", 1, 3), whole);
  ExpectEqual(Step("d=3", "B=d", 1, 3), whole);
  ExpectEqual(Step("t=2", "E=t", 1, 3), whole);
  ExpectEqual(Step("d=2,t=2", "B=d;E=t", 1, 3), whole);
}

TEST_F(DropoutTest, SeedsDropOthers) {
  const float one = Step("", "", 1, 3)["loss"].floats()[0];
  EXPECT_EQ(Step("", "", 1, 3)["loss"].floats()[0], one);
  EXPECT_NE(Step("", "", 1, 4)["loss"].floats()[0], one);
}

TEST_F(DropoutTest, PlansDropTheSameNumbersInMicrobatches) {
  const auto two = Step("", "", 2, 3);
  ExpectEqual(Step("d=2", "B=d", 2, 3), two);
  ExpectEqual(Step("t=2", "E=t", 2, 3), two);
}

}  // namespace
}  // namespace partita::e2e
