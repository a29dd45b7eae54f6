// Tensor parallelism over one, two and three axes, as plans: the bytes that a
// device sends equal the published formulas, and results are equal.
//
// - 1-D: Megatron-LM (Shoeybi et al., 2019).
// - 2-D: SUMMA as in Optimus (Xu et al., 2021). On q x q devices, a product of
//   m x k by k x n moves (1 - 1/q) (m k + k n) / q elements per device.
// - 2.5-D: Tesseract (Wang et al., 2021): d copies of the weights.
// - 3-D: Agarwal et al. (1995), as in Bian et al. (2021). On q^3 devices:
//   (1 - 1/q) (m k + k n + m n) / q^2.
#include <gtest/gtest.h>

#include "compiler/driver/explain.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/division_plan.h"

namespace partita::e2e {
namespace {

constexpr int64_t kRows = 64, kWidth = 48, kHidden = 96, kFloat = 4;
constexpr char kModel[] = R"(
func.func @main(%x: tensor<64x48xf32> {nn.kind = "input", nn.name = "x", nn.dims = ["B", "E"]},
    %up: tensor<48x96xf32> {nn.kind = "input", nn.name = "up", nn.dims = ["E", "M"]},
    %down: tensor<96x48xf32> {nn.kind = "input", nn.name = "down", nn.dims = ["M", "E"]}) -> tensor<64x48xf32> {
  %zero = arith.constant dense<0.0> : tensor<64x96xf32>
  %0 = nn.dot_general %x, %up contract = [1] x [0] : tensor<64x48xf32>, tensor<48x96xf32> -> tensor<64x96xf32>
  %1 = arith.maximumf %0, %zero : tensor<64x96xf32>
  %2 = nn.dot_general %1, %down contract = [1] x [0] : tensor<64x96xf32>, tensor<96x48xf32> -> tensor<64x48xf32>
  return %2 : tensor<64x48xf32>
}
)";

// Elements that a device sends or receives for the products x up and h down.
int64_t OneAxis(int64_t t) { return 2 * (t - 1) * kRows * kWidth / t; }
int64_t TwoAxes(int64_t q, int64_t copies) {
  return 2 * (q - 1) * (kRows / copies * kWidth + kWidth * kHidden) / q / q;
}
int64_t ThreeAxes(int64_t q) {
  return 2 * (q - 1) * (kRows * kWidth + kWidth * kHidden + kRows * kHidden) /
         q / q / q;
}

struct Layout {
  Division division;
  int64_t elements;
};

class TensorParallelTest : public testing::TestWithParam<Layout> {
 protected:
  mlir::OwningOpRef<mlir::ModuleOp> Parse() {
    return mlir::parseSourceString<mlir::ModuleOp>(kModel, context_.get());
  }

  static std::vector<float> Run(CompiledModel& model) {
    std::vector<HostTensor> inputs;
    for (const executor::TensorSpec& spec : model.inputs()) {
      HostTensor input{spec.dtype, spec.shape, std::string(spec.bytes, '\0')};
      auto* values = reinterpret_cast<float*>(input.bytes.data());
      // Small whole numbers, so that sums are exact in any order.
      for (int64_t i = 0; i < input.elements(); ++i)
        values[i] = static_cast<float>((i * 7 + i / 64) % 11) - 5;
      inputs.push_back(std::move(input));
    }
    auto outputs = model.Run(inputs);
    if (!outputs.ok()) {
      ADD_FAILURE() << outputs.status();
      return {};
    }
    const HostTensor& first = outputs->front();
    return {first.floats(), first.floats() + first.elements()};
  }

  CompilerContext context_;
};

TEST_P(TensorParallelTest, SendsWhatTheFormulaSays) {
  const auto& [division, elements] = GetParam();
  auto plan = PlanOf(division);
  ASSERT_TRUE(plan.ok()) << plan.status();
  auto module = Parse();
  ASSERT_TRUE(module) << context_.errors;
  auto explained = driver::explainPlan(*module, *plan, /*train=*/nullptr);
  ASSERT_TRUE(mlir::succeeded(explained)) << context_.errors;
  int64_t bytes = 0;
  for (const llvm::json::Value& row :
       *explained->getAsObject()->getArray("collectives"))
    bytes += *row.getAsObject()->getInteger("bytes");
  EXPECT_EQ(bytes, elements * kFloat);
}

TEST_P(TensorParallelTest, EqualsUndivided) {
  const Division& division = GetParam().division;
  auto plan = PlanOf(division);
  ASSERT_TRUE(plan.ok()) << plan.status();
  auto module = Parse();
  ASSERT_TRUE(module) << context_.errors;
  auto undivided =
      CompiledModel::Make(*module, testing::TempDir(), division.name, 1);
  ASSERT_TRUE(undivided.ok()) << undivided.status();
  module = Parse();
  auto divided =
      CompiledModel::MakeDivided(*module, testing::TempDir(),
                                 std::string(division.name) + "Divided", *plan);
  ASSERT_TRUE(divided.ok()) << divided.status();
  const std::vector<float> expected = Run(**undivided);
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(Run(**divided), expected);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, TensorParallelTest,
    testing::Values(
        Layout{{"OneAxis", "t=4", "M=t"}, OneAxis(4)},
        Layout{{"TwoAxes", "a=2,b=2", "B=a;M=b;E=b+a"}, TwoAxes(2, 1)},
        Layout{{"TwoAxesOfFour", "a=4,b=4", "B=a;M=b;E=b+a"}, TwoAxes(4, 1)},
        Layout{{"TwoAxesWithCopies", "d=2,a=2,b=2", "B=d+a;M=b;E=b+a"},
               TwoAxes(2, 2)},
        Layout{{"ThreeAxes", "a=2,b=2,c=2", "B=a;E=b,M=c;B=b+c;E=a"},
               ThreeAxes(2)}),
    [](const auto& info) { return info.param.division.name; });

}  // namespace
}  // namespace partita::e2e
