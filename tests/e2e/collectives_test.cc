// Runs reductions over parts of a mesh: programs that iree-org/iree#21503 and
// #22139 report as failing in IREE.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/driver/explain.h"
#include "compiler/plan/plan.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "tests/e2e/compiled_model.h"

namespace partita::e2e {
namespace {

// An input divided over an axis, by the text of its sharding's dimensions.
struct Placed {
  std::string name, dims;
};

class CollectivesTest : public testing::Test {
 protected:
  // The first result under a mesh with these input shardings; empty mesh:
  // undivided.
  std::vector<float> run(const std::string& text, const std::string& mesh,
                         const std::vector<Placed>& placed) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context_.get());
    if (!module) {
      ADD_FAILURE() << context_.errors;
      return {};
    }
    auto model =
        mesh.empty()
            ? CompiledModel::Make(*module, testing::TempDir(), "whole", 1)
            : CompiledModel::MakeDivided(*module, testing::TempDir(), "divided",
                                         planOf(mesh, placed));
    if (!model.ok()) {
      ADD_FAILURE() << model.status();
      return {};
    }
    std::vector<HostTensor> inputs;
    for (const executor::TensorSpec& spec : (*model)->inputs()) {
      HostTensor input{spec.dtype, spec.shape, std::string(spec.bytes, '\0')};
      auto* values = reinterpret_cast<float*>(input.bytes.data());
      // Small whole numbers, so that sums are exact in any order.
      for (int64_t i = 0; i < input.elements(); ++i)
        values[i] = static_cast<float>((i * 7 + i / 64) % 11) - 5;
      inputs.push_back(std::move(input));
    }
    auto outputs = (*model)->Run(inputs);
    if (!outputs.ok()) {
      ADD_FAILURE() << outputs.status();
      return {};
    }
    const HostTensor& first = outputs->front();
    return {first.floats(), first.floats() + first.elements()};
  }

  // The collectives of the divided program: "all_reduce over a: 16".
  std::vector<std::string> sent(const std::string& text,
                                const std::string& mesh,
                                const std::vector<Placed>& placed) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context_.get());
    auto explained = driver::explainPlan(*module, planOf(mesh, placed),
                                         /*train=*/nullptr);
    std::vector<std::string> sent;
    if (mlir::failed(explained)) return sent;
    for (const llvm::json::Value& value :
         *explained->getAsObject()->getArray("collectives")) {
      const llvm::json::Object& row = *value.getAsObject();
      sent.push_back((*row.getString("kind") + " over " +
                      *row.getString("axes") + ": " +
                      std::to_string(*row.getInteger("bytes")))
                         .str());
    }
    return sent;
  }

  static plan::Plan planOf(const std::string& mesh,
                           const std::vector<Placed>& placed) {
    std::string text = "mesh: {" + mesh + "}\noverrides:\n";
    for (const Placed& input : placed)
      text += "  - {tensor: " + input.name + ", sharding: \"" + input.dims +
              "\"}\n";
    auto plan = plan::ParsePlan(text, "test.yaml");
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *plan : plan::Plan();
  }

  CompilerContext context_;
};

// F4: all_reduce(4xf32) over 2 devices.
TEST_F(CollectivesTest, FourNumbersOverTwoDevices) {
  const char* text = R"(
    func.func @main(%x: tensor<2x4xf32> {nn.kind = "input", nn.name = "x"}) -> tensor<4xf32> {
      %0 = nn.reduce sum %x dims = [0] : tensor<2x4xf32> -> tensor<4xf32>
      return %0 : tensor<4xf32>
    })";
  const std::vector<Placed> placed = {{"x", "[{a}, {}]"}};
  EXPECT_THAT(sent(text, "a: 2", placed),
              testing::ElementsAre("all_reduce over a: 16"));
  const std::vector<float> sums = run(text, "a: 2", placed);
  EXPECT_EQ(sums, run(text, "", {}));
  EXPECT_THAT(sums, testing::ElementsAre(-5 + 1, 2 - 3, -2 + 4, 5 + 0));
}

// F3 and F4: on 2 x 2 devices, the groups along the first axis are {0, 2} and
// {1, 3}, along the second {0, 1} and {2, 3}. Adds a 512 x 512 sum over each.
TEST_F(CollectivesTest, TwoGroupingsOfFourDevices) {
  const char* text = R"(
    func.func @main(%x: tensor<512x8xf32> {nn.kind = "input", nn.name = "x"},
                    %u: tensor<8x512xf32> {nn.kind = "input", nn.name = "u"},
                    %y: tensor<512x8xf32> {nn.kind = "input", nn.name = "y"},
                    %v: tensor<8x512xf32> {nn.kind = "input", nn.name = "v"}) -> tensor<512x512xf32> {
      %0 = nn.dot_general %x, %u contract = [1] x [0] : tensor<512x8xf32>, tensor<8x512xf32> -> tensor<512x512xf32>
      %1 = nn.dot_general %y, %v contract = [1] x [0] : tensor<512x8xf32>, tensor<8x512xf32> -> tensor<512x512xf32>
      %2 = arith.addf %0, %1 : tensor<512x512xf32>
      return %2 : tensor<512x512xf32>
    })";
  const std::vector<Placed> placed = {{"x", "[{}, {a}]"},
                                      {"u", "[{a}, {}]"},
                                      {"y", "[{}, {b}]"},
                                      {"v", "[{b}, {}]"}};
  EXPECT_THAT(sent(text, "a: 2, b: 2", placed),
              testing::ElementsAre("all_reduce over a: 1048576",
                                   "all_reduce over b: 1048576"));
  EXPECT_EQ(run(text, "a: 2, b: 2", placed), run(text, "", {}));
}

}  // namespace
}  // namespace partita::e2e
