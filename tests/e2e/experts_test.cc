// Trains a small model with mixtures of experts, undivided and under plans that
// divide the experts, their hidden width, the batch, stored values and depth.
// Losses, gradients and parameters are equal.
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/plan/plan.h"
#include "gtest/gtest.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "tests/e2e/compiled_model.h"

namespace partita::e2e {
namespace {

constexpr int kLayers = 4;
constexpr int64_t kBatch = 4, kSteps = 3;
constexpr float kRate = 1e-2;

// A layer is a normalisation, a router and a mixture of 5 experts, 2 of which
// take each row. Odd layers have experts without a gate and with biases. The
// first row of every second choice is dropped.
constexpr char kLayer[] = R"(
  %n# = nn.rms_norm %x# scale(%scale# : tensor<8xf32>) axis = 2 epsilon = 1.0e-6 : tensor<$x6x8xf32>
  %z# = nn.dot_general %n#, %router# contract = [2] x [1] : tensor<$x6x8xf32>, tensor<5x8xf32> -> tensor<$x6x5xf32>
  %s# = nn.softmax %z# axis = 2 : tensor<$x6x5xf32>
  %p#, %i# = nn.top_k %s# largest = true : tensor<$x6x5xf32> -> tensor<$x6x2xf32>, tensor<$x6x2xi64>
  %j# = arith.select %kept, %i#, %none : tensor<$x6x2xi1>, tensor<$x6x2xi64>
)";
constexpr char kGated[] = R"(
  %y# = nn.experts %n#[%j#], %p# gate(%gate# : tensor<5x7x8xf32>) up(%up# : tensor<5x7x8xf32>) down(%down# : tensor<5x8x7xf32>)
    activation = silu : tensor<$x6x8xf32>, tensor<$x6x2xi64>, tensor<$x6x2xf32> -> tensor<$x6x8xf32>
)";
constexpr char kBiased[] = R"(
  %y# = nn.experts %n#[%j#], %p# up(%up# : tensor<5x7x8xf32>) down(%down# : tensor<5x8x7xf32>) up_bias(%upbias# : tensor<5x7xf32>)
    down_bias(%downbias# : tensor<5x8xf32>) activation = gelu : tensor<$x6x8xf32>, tensor<$x6x2xi64>, tensor<$x6x2xf32> -> tensor<$x6x8xf32>
)";

std::string Parameter(const std::string& name, int layer,
                      const std::string& type, int seed, double scale = 0.5) {
  return absl::StrCat(",\n    %", name, layer, ": tensor<", type,
                      "> {nn.kind = \"parameter\", nn.name = \"h.", layer, ".",
                      name, "\", nn.source = #nn.init<\"normal\", ",
                      scale > 0 ? "0.5" : "0.0", " : f64, ", seed, ">}");
}

// Without `router`, equal scores choose the first two experts for all rows.
std::string ModelText(double router) {
  std::string arguments =
      "%x0: tensor<$x6x8xf32> {nn.kind = \"input\", nn.name = \"x\"}";
  std::string body = R"(
  %column = nn.iota dim = 2 : tensor<$x6x2xi64>
  %row = nn.iota dim = 1 : tensor<$x6x2xi64>
  %both = arith.subi %column, %row : tensor<$x6x2xi64>
  %one = arith.constant dense<1> : tensor<$x6x2xi64>
  %none = arith.constant dense<-1> : tensor<$x6x2xi64>
  %kept = arith.cmpi ne, %both, %one : tensor<$x6x2xi64>)";
  for (int layer = 0; layer < kLayers; ++layer) {
    const bool gated = layer % 2 == 0;
    const int seed = 10 * layer + 1;
    arguments += Parameter("scale", layer, "8xf32", seed) +
                 Parameter("router", layer, "5x8xf32", seed + 1, router) +
                 Parameter("up", layer, "5x7x8xf32", seed + 2) +
                 Parameter("down", layer, "5x8x7xf32", seed + 3);
    if (gated) arguments += Parameter("gate", layer, "5x7x8xf32", seed + 4);
    if (!gated)
      arguments += Parameter("upbias", layer, "5x7xf32", seed + 5) +
                   Parameter("downbias", layer, "5x8xf32", seed + 6);
    body += absl::StrReplaceAll(
        absl::StrCat(kLayer, gated ? kGated : kBiased, "  %x", layer + 1,
                     " = arith.addf %x#, %y# : tensor<$x6x8xf32>\n"),
        {{"#", absl::StrCat(layer)}});
  }
  return absl::StrReplaceAll(
      absl::StrCat("func.func @main(", arguments,
                   ")\n    -> (tensor<$x6x8xf32> {nn.name = \"y\"}) {", body,
                   "  return %x", kLayers, " : tensor<$x6x8xf32>\n}\n"),
      {{"$", absl::StrCat(kBatch)}});
}

HostTensor Floats(std::vector<int64_t> shape, double phase) {
  HostTensor tensor{base::DType::kF32, std::move(shape), ""};
  std::vector<float> values(tensor.elements());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(
        std::sin(static_cast<double>(i * i + 13 * i) + phase));
  tensor.bytes.assign(reinterpret_cast<const char*>(values.data()),
                      values.size() * sizeof(float));
  return tensor;
}

template <typename T>
HostTensor Scalar(base::DType dtype, T value) {
  return {dtype,
          {},
          std::string(reinterpret_cast<const char*>(&value), sizeof(value))};
}

struct Case {
  const char* name;
  const char* mesh;
  const char* shard;
  int zero = 0;
  int64_t microbatches = 1;
  const char* schedule = "";
  const char* experts = "";  // as --experts has it
};

// Clips the norm of the gradients if `clip_norm` is not 0. `router` is as in
// ModelText.
absl::StatusOr<std::unique_ptr<CompiledModel>> Train(const Case& given,
                                                     double clip_norm = 0,
                                                     double router = 0.5) {
  CompilerContext context;
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(ModelText(router), context.get());
  if (!module) return absl::InvalidArgumentError(context.errors);
  std::optional<plan::Plan> plan;
  if (given.mesh[0] != '\0') {
    plan.emplace();
    auto mesh = plan::ParseMeshOption(given.mesh);
    if (!mesh.ok()) return mesh.status();
    plan->mesh = *mesh;
    auto shard = plan::ParseShardOption(given.shard, plan->mesh);
    if (!shard.ok()) return shard.status();
    plan->shard = *shard;
    plan->zero = given.zero;
    plan->microbatches = given.microbatches;
  }
  if (given.schedule[0] != '\0') {
    auto schedule = plan::ParseSchedule(given.schedule);
    if (!schedule.ok()) return schedule.status();
    plan->schedule = *schedule;
  }
  if (given.experts[0] != '\0') {
    auto experts = plan::ParseExpertsOption(given.experts);
    if (!experts.ok()) return experts.status();
    plan->experts = *experts;
  }
  driver::TrainOptions train;
  train.optimizer = "adamw";
  train.loss = "mse";
  train.keep_gradients = true;
  train.microbatches = given.microbatches;
  train.clip_norm = clip_norm;
  auto model = CompiledModel::MakeTraining(
      *module, testing::TempDir(),
      absl::StrCat("experts", given.name, clip_norm), plan, train);
  if (!model.ok())
    return absl::InternalError(
        absl::StrCat(model.status().ToString(), "\n", context.errors));
  return model;
}

std::map<std::string, HostTensor> InputsOf(CompiledModel& model, int64_t step) {
  std::map<std::string, HostTensor> inputs;
  for (const executor::TensorSpec& input : model.inputs()) {
    if (input.name == "lr")
      inputs[input.name] = Scalar(base::DType::kF32, kRate);
    else if (input.name == "step")
      inputs[input.name] = Scalar(base::DType::kI64, step);
    else
      inputs[input.name] =
          Floats(input.shape, static_cast<double>(step) + input.name.size());
  }
  return inputs;
}

// The outputs of a step by name.
std::map<std::string, HostTensor> Step(CompiledModel& model, int64_t step) {
  std::map<std::string, HostTensor> outputs;
  auto results = model.Run(InputsOf(model, step));
  EXPECT_TRUE(results.ok()) << results.status();
  for (size_t i = 0; results.ok() && i < results->size(); ++i)
    outputs[model.outputs()[i].name] = (*results)[i];
  return outputs;
}

class ExpertsTest : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    auto whole = Train({"Whole", "", ""});
    ASSERT_TRUE(whole.ok()) << whole.status();
    for (int64_t step = 1; step <= kSteps; ++step)
      undivided_.push_back(Step(**whole, step));
  }

  // The outputs of each step.
  static inline std::vector<std::map<std::string, HostTensor>> undivided_;
};

TEST_P(ExpertsTest, DividedTrainsLikeUndivided) {
  ASSERT_EQ(undivided_.size(), static_cast<size_t>(kSteps));
  auto divided = Train(GetParam());
  ASSERT_TRUE(divided.ok()) << divided.status();
  for (int64_t step = 1; step <= kSteps; ++step) {
    const auto &expected = undivided_[step - 1], found = Step(**divided, step);
    ASSERT_EQ(expected.count("loss"), 1u);
    ASSERT_EQ(found.size(), expected.size());
    int gradients = 0;
    for (const auto& [name, tensor] : expected) {
      ASSERT_EQ(found.count(name), 1u) << name;
      const Distance distance = Compare(found.at(name), tensor, 0, 0);
      EXPECT_LE(distance.largest, 1e-5 * distance.largest_expected + 1e-7)
          << name << " of step " << step << ", largest "
          << distance.largest_expected;
      // Gradients of nothing would be equal too.
      if (name != "loss") EXPECT_GT(distance.largest_expected, 1e-5) << name;
      gradients += name != "loss";
    }
    EXPECT_EQ(gradients, 22);
  }
}

// All rows travel to the first device; the second gets none.
TEST(ExpertRowsTest, AllRowsMayTravelToOneDevice) {
  const Case rows = {"AllToOne", "d=2", "B=d;X=d", 0, 1, "", "rows"};
  auto whole = Train({"AllToOneWhole", "", ""}, /*clip_norm=*/0, /*router=*/0);
  auto divided = Train(rows, /*clip_norm=*/0, /*router=*/0);
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_TRUE(divided.ok()) << divided.status();
  const auto expected = Step(**whole, 1), found = Step(**divided, 1);
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    const Distance distance = Compare(found.at(name), tensor, 0, 0);
    EXPECT_LE(distance.largest, 1e-5 * distance.largest_expected + 1e-7)
        << name;
  }
}

// A bound that is too small ends the step, and nothing is dropped. Both devices
// send 22 of their 24 pairs to the first one.
TEST(ExpertRowsTest, TooManyRowsEndTheStep) {
  auto bounded = Train({"Bounded", "d=2", "B=d;X=d", 0, 1, "", "rows=1.5"},
                       /*clip_norm=*/0, /*router=*/0);
  ASSERT_TRUE(bounded.ok()) << bounded.status();
  const auto results = (*bounded)->Run(InputsOf(**bounded, 1));
  ASSERT_FALSE(results.ok());
  const std::string message(results.status().message());
  EXPECT_NE(message.find("failed: expected at most 36 rows for the experts of "
                         "device 0 of the group, found "),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("times the even share of 24; give the plan 'experts: "
                         "{rows: 1."),
            std::string::npos)
      << message;
}

INSTANTIATE_TEST_SUITE_P(
    Plans, ExpertsTest,
    testing::Values(
        Case{"X2", "x=2", "X=x"}, Case{"X3", "x=3", "X=x"},
        // The last device has no experts.
        Case{"X4", "x=4", "X=x"}, Case{"M2", "t=2", "M=t"},
        Case{"M3", "t=3", "M=t"}, Case{"X2M2", "x=2,t=2", "X=x,M=t"},
        Case{"E2", "e=2", "E=e"}, Case{"B2", "d=2", "B=d"},
        Case{"B2L3", "d=2,s=3", "B=d;L=s"},
        // Experts over the axes of the batch.
        Case{"B2X2", "d=2", "B=d;X=d"}, Case{"X2B2", "d=2", "X=d;B=d"},
        Case{"B2X2ByRows", "d=2", "B=d;X=d", 0, 1, "", "rows"},
        Case{"X2B2ByRows", "d=2", "X=d;B=d", 0, 1, "", "rows"},
        Case{"B2X2Gathered", "d=2", "B=d;X=d", 0, 1, "", "gather"},
        Case{"B2X2Bounded", "d=2", "B=d;X=d", 0, 1, "", "rows=1.9"},
        // Of three devices the last has no rows, of four no experts.
        Case{"B3X3ByRows", "d=3", "B=d;X=d", 0, 1, "", "rows"},
        Case{"B4X4ByRows", "d=4", "B=d;X=d", 0, 1, "", "rows"},
        Case{"L4X4ByRows", "s=4", "L=s;X=s", 0, 1, "", "rows"},
        Case{"B2L2X4ByRows", "d=2,s=2", "B=d;L=s;X=d+s", 0, 1, "", "rows"},
        Case{"B2L3X2ByRows", "d=2,s=3", "B=d;L=s;X=d", 0, 1, "", "rows"},
        Case{"B2X2M2ByRows", "d=2,t=2", "B=d;X=d;M=t", 0, 1, "", "rows"},
        Case{"B2X2E2ByRows", "d=2,e=2", "B=d;X=d;E=e", 0, 1, "", "rows"},
        Case{"B2X2Zero1ByRows", "d=2", "B=d;X=d", 1, 1, "", "rows"},
        Case{"B2X2Zero2ByRows", "d=2", "B=d;X=d", 2, 2, "", "rows"},
        Case{"B2X2Zero3ByRows", "d=2", "B=d;X=d", 3, 1, "", "rows"},
        Case{"D2B2X2ByRows", "p=2,d=2", "D=p;B=d;X=d", 1, 2, "1f1b", "rows"},
        Case{"D2B2X2ZbH1ByRows", "p=2,d=2", "D=p;B=d;X=d", 0, 2, "zb-h1",
             "rows"},
        Case{"BX3InOneEntry", "d=3", "B=d,X=d"},
        Case{"B2X2M2", "d=2,t=2", "B=d;X=d;M=t"},
        Case{"M2L2X2", "t=2", "X=t;M=t;L=t"},
        Case{"B2X2Zero1", "d=2", "B=d;X=d", 1},
        Case{"B2X2Zero2", "d=2", "B=d;X=d", 2, 2},
        Case{"B2X2Zero3", "d=2", "B=d;X=d", 3},
        Case{"B4X4Zero1", "d=4", "B=d;X=d", 1},
        Case{"B2Zero3", "d=2", "B=d", 3}, Case{"B2Zero1", "d=2", "B=d", 1},
        Case{"B2X2InZero3", "d=2,x=2", "B=d;X=x", 3},
        Case{"D2", "p=2", "D=p", 0, 2, "1f1b"},
        Case{"D2X2", "p=2,x=2", "D=p;X=x", 0, 2, "1f1b"},
        Case{"D2B2X2Zero1", "p=2,d=2", "D=p;B=d;X=d", 1, 2, "1f1b"},
        Case{"D2M2ZbH1", "p=2,t=2", "D=p;M=t", 0, 2, "zb-h1"}),
    [](const testing::TestParamInfo<Case>& info) {
      return std::string(info.param.name);
    });

// The norm of the gradients counts every element once, wherever it is: shards
// of experts and of their width, replicated and partial gradients, stages, and
// shards of ZeRO. Clipping makes later steps depend on it.
constexpr double kClipNorm = 0.25;

class ExpertsNormTest : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    auto whole = Train({"Whole", "", ""}, kClipNorm);
    ASSERT_TRUE(whole.ok()) << whole.status();
    for (int64_t step = 1; step <= kSteps; ++step)
      undivided_.push_back(Step(**whole, step)["grad_norm"].floats()[0]);
    // The norms are clipped, and differ.
    for (const float norm : undivided_) ASSERT_GT(norm, 2 * kClipNorm);
    ASSERT_GT(std::abs(undivided_[1] - undivided_[0]), 1e-3 * undivided_[0]);
  }

  static inline std::vector<float> undivided_;
};

TEST_P(ExpertsNormTest, EqualsUndivided) {
  ASSERT_EQ(undivided_.size(), static_cast<size_t>(kSteps));
  auto divided = Train(GetParam(), kClipNorm);
  ASSERT_TRUE(divided.ok()) << divided.status();
  for (int64_t step = 1; step <= kSteps; ++step) {
    auto outputs = Step(**divided, step);
    ASSERT_EQ(outputs.count("grad_norm"), 1u);
    EXPECT_NEAR(outputs["grad_norm"].floats()[0], undivided_[step - 1],
                1e-5 * undivided_[step - 1])
        << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plans, ExpertsNormTest,
    testing::Values(
        Case{"X2", "x=2", "X=x"}, Case{"X4", "x=4", "X=x"},
        Case{"M2", "t=2", "M=t"}, Case{"X2M2", "x=2,t=2", "X=x,M=t"},
        Case{"B2", "d=2", "B=d"}, Case{"B2Zero1", "d=2", "B=d", 1},
        Case{"B2Zero2", "d=2", "B=d", 2, 2}, Case{"B2Zero3", "d=2", "B=d", 3},
        Case{"B2M2", "d=2,t=2", "B=d;M=t"},
        Case{"B2M2Zero1", "d=2,t=2", "B=d;M=t", 1},
        Case{"B2M2Zero3", "d=2,t=2", "B=d;M=t", 3},
        Case{"B2X2", "d=2", "B=d;X=d"}, Case{"B2X2Zero1", "d=2", "B=d;X=d", 1},
        Case{"B2X2Zero2", "d=2", "B=d;X=d", 2, 2},
        Case{"B2X2Zero3", "d=2", "B=d;X=d", 3},
        Case{"B2AndX2", "d=2,x=2", "B=d;X=x"},
        Case{"B2AndX2Zero1", "d=2,x=2", "B=d;X=x", 1},
        Case{"B2AndX2Zero2", "d=2,x=2", "B=d;X=x", 2, 2},
        Case{"B2AndX2Zero3", "d=2,x=2", "B=d;X=x", 3},
        Case{"B2X2M2", "d=2,t=2", "B=d;X=d;M=t"},
        Case{"B2X2M2Zero1", "d=2,t=2", "B=d;X=d;M=t", 1},
        Case{"B2X2M2Zero2", "d=2,t=2", "B=d;X=d;M=t", 2, 2},
        Case{"B2X2M2Zero3", "d=2,t=2", "B=d;X=d;M=t", 3},
        Case{"D2", "p=2", "D=p", 0, 2, "1f1b"},
        Case{"D2X2", "p=2,x=2", "D=p;X=x", 0, 2, "1f1b"},
        Case{"D2M2", "p=2,t=2", "D=p;M=t", 0, 2, "1f1b"},
        Case{"D2X2M2", "p=2,x=2,t=2", "D=p;X=x;M=t", 0, 2, "1f1b"},
        Case{"D2B2X2", "p=2,d=2", "D=p;B=d;X=d", 0, 2, "1f1b"},
        Case{"D2B2X2Zero1", "p=2,d=2", "D=p;B=d;X=d", 1, 2, "1f1b"},
        Case{"D2B2X2Zero2", "p=2,d=2", "D=p;B=d;X=d", 2, 2, "1f1b"},
        Case{"D2B2X2Zero3", "p=2,d=2", "D=p;B=d;X=d", 3, 2, "1f1b"},
        Case{"D2B2X2M2Zero1", "p=2,d=2,t=2", "D=p;B=d;X=d;M=t", 1, 2, "1f1b"}),
    [](const testing::TestParamInfo<Case>& info) {
      return std::string(info.param.name);
    });

}  // namespace
}  // namespace partita::e2e
