// Trains attention with sinks and with tables of blocks, and causal attention
// in rings, undivided and with divided batches, heads and sequences. Losses and
// gradients are equal.
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/plan/names.h"
#include "compiler/plan/plan.h"
#include "gtest/gtest.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "tests/e2e/compiled_model.h"

namespace partita::e2e {
namespace {

// 4 heads of 8 numbers, 96 positions.
constexpr char kModel[] = R"(
func.func @main(%x: tensor<2x96x32xf32> {nn.kind = "input", nn.name = "x"},
    %wq: W {nn.kind = "parameter", nn.name = "q", nn.source = #nn.init<"normal", 0.3 : f64, 1>},
    %wk: W {nn.kind = "parameter", nn.name = "k", nn.source = #nn.init<"normal", 0.3 : f64, 2>},
    %wv: W {nn.kind = "parameter", nn.name = "v", nn.source = #nn.init<"normal", 0.3 : f64, 3>},
    %wo: W {nn.kind = "parameter", nn.name = "o", nn.source = #nn.init<"normal", 0.3 : f64, 4>})
    -> (tensor<2x96x32xf32> {nn.name = "y"}) {
  PROJECT(q)
  PROJECT(k)
  PROJECT(v)
  %a = nn.attention %tq, %tk, %tv scale = 0.35 MASK : (H, H, H) -> H
  %ta = nn.transpose %a perm = [0, 2, 1, 3] : H -> tensor<2x96x4x8xf32>
  %ra = nn.reshape %ta : tensor<2x96x4x8xf32> -> tensor<2x96x32xf32>
  %p = nn.dot_general %ra, %wo contract = [2] x [1] : tensor<2x96x32xf32>, W -> tensor<2x96x32xf32>
  %y = arith.addf %x, %p : tensor<2x96x32xf32>
  return %y : tensor<2x96x32xf32>
}
)";
constexpr char kProject[] = R"(
  %d# = nn.dot_general %x, %w# contract = [2] x [1] : tensor<2x96x32xf32>, W -> tensor<2x96x32xf32>
  %r# = nn.reshape %d# : tensor<2x96x32xf32> -> tensor<2x96x4x8xf32>
  %t# = nn.transpose %r# perm = [0, 2, 1, 3] : tensor<2x96x4x8xf32> -> H
)";

constexpr char kSinks[] = "causal_offset = 0 window = 20 sinks = 5";
// A table for all heads, and one for each.
constexpr char kShared[] =
    "causal_offset = 0 blocks = dense<[[[1, 0, 0], [1, 1, 0], [0, 1, 1]]]> : "
    "tensor<1x3x3xi1> block_size = 32";
constexpr char kPerHead[] =
    "blocks = dense<[[[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[1, 1, 0], [1, 1, 1], "
    "[0, 1, 1]], [[0, 0, 1], [1, 0, 0], [0, 1, 0]], [[1, 0, 1], [0, 1, 1], [1, "
    "1, 1]]]> : tensor<4x3x3xi1> block_size = 32";

std::string ModelText(const char* mask) {
  std::string text = kModel;
  for (const char* name : {"q", "k", "v"})
    text = absl::StrReplaceAll(
        text, {{absl::StrCat("PROJECT(", name, ")"),
                absl::StrReplaceAll(kProject, {{"#", name}})}});
  return absl::StrReplaceAll(text, {{"W", "tensor<32x32xf32>"},
                                    {"MASK", mask},
                                    {"H", "tensor<2x4x96x8xf32>"}});
}

struct Case {
  const char* name;
  const char* mesh;
  const char* shard;
  const char* attention = "";
};

absl::StatusOr<std::unique_ptr<CompiledModel>> Train(const char* mask,
                                                     const Case& given) {
  CompilerContext context;
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(ModelText(mask), context.get());
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
    for (const auto& [name, way] : plan::AttentionNames())
      if (name == given.attention) plan->attention = way;
  }
  driver::TrainOptions train;
  train.optimizer = "sgd";
  train.loss = "mse";
  train.keep_gradients = true;
  auto model = CompiledModel::MakeTraining(*module, testing::TempDir(),
                                           absl::StrCat("sparse", given.name),
                                           plan, train);
  if (!model.ok())
    return absl::InternalError(
        absl::StrCat(model.status().ToString(), "\n", context.errors));
  return model;
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

// The outputs of a step by name.
std::map<std::string, HostTensor> Step(CompiledModel& model) {
  std::map<std::string, HostTensor> inputs, outputs;
  for (const executor::TensorSpec& input : model.inputs()) {
    inputs[input.name] =
        Floats(input.shape, static_cast<double>(input.name.size()));
    if (input.name == "lr") {
      const float rate = 1e-2F;
      inputs[input.name] = {
          base::DType::kF32,
          {},
          std::string(reinterpret_cast<const char*>(&rate), sizeof rate)};
    }
  }
  auto results = model.Run(inputs);
  EXPECT_TRUE(results.ok()) << results.status();
  for (size_t i = 0; results.ok() && i < results->size(); ++i)
    outputs[model.outputs()[i].name] = (*results)[i];
  return outputs;
}

// The outputs of the undivided step. All divisions of a mask are compared with
// one run.
const std::map<std::string, HostTensor>& UndividedStep(const char* mask) {
  using Outputs = std::map<std::string, HostTensor>;
  static auto& known = *new std::map<std::string, Outputs>;
  const auto [entry, is_new] = known.try_emplace(mask);
  if (is_new) {
    auto whole = Train(mask, {"Whole", "", ""});
    EXPECT_TRUE(whole.ok()) << whole.status();
    if (whole.ok()) entry->second = Step(**whole);
  }
  return entry->second;
}

// Expects equal losses and gradients.
void ExpectEqualSteps(const char* mask, const Case& given) {
  SCOPED_TRACE(mask);
  auto divided = Train(mask, given);
  ASSERT_TRUE(divided.ok()) << divided.status();
  const auto &expected = UndividedStep(mask), found = Step(**divided);
  ASSERT_EQ(expected.size(), 5u);  // the loss, and four gradients
  for (const auto& [name, tensor] : expected) {
    ASSERT_EQ(found.count(name), 1u) << name;
    const Distance distance = Compare(found.at(name), tensor, 0, 0);
    EXPECT_LE(distance.largest, 1e-5 * distance.largest_expected + 1e-7)
        << name << ", largest " << distance.largest_expected;
    EXPECT_GT(distance.largest_expected, 1e-6) << name;
  }
}

class SparseAttentionTest : public testing::TestWithParam<Case> {};

TEST_P(SparseAttentionTest, DividedTrainsLikeUndivided) {
  for (const char* mask : {kSinks, kShared, kPerHead})
    ExpectEqualSteps(mask, GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Plans, SparseAttentionTest,
    testing::Values(Case{"B2", "d=2", "B=d"}, Case{"N2", "t=2", "N=t"},
                    Case{"N4", "t=4", "N=t"},
                    Case{"L2Gather", "s=2", "L=s", "gather"},
                    // Parts of blocks.
                    Case{"L5Gather", "s=5", "L=s", "gather"},
                    Case{"L2Ulysses", "s=2", "L=s", "ulysses"},
                    Case{"L4Ulysses", "s=4", "L=s", "ulysses"},
                    Case{"N2L2", "t=2,s=2", "N=t;L=s", "gather"},
                    // Keys are gathered instead.
                    Case{"L2Ring", "s=2", "L=s", "ring"}),
    [](const testing::TestParamInfo<Case>& info) {
      return std::string(info.param.name);
    });

// Two, three and four devices divide causal attention into half blocks. Five
// keep whole blocks, as 96 positions are not ten halves.
class CausalRingTest : public testing::TestWithParam<Case> {};

TEST_P(CausalRingTest, DividedTrainsLikeUndivided) {
  for (const char* mask :
       {"causal_offset = 0", "causal_offset = 0 window = 60"})
    ExpectEqualSteps(mask, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Devices, CausalRingTest,
                         testing::Values(Case{"Ring2", "s=2", "L=s", "ring"},
                                         Case{"Ring3", "s=3", "L=s", "ring"},
                                         Case{"Ring4", "s=4", "L=s", "ring"},
                                         Case{"Ring2N2", "t=2,s=2", "N=t;L=s",
                                              "ring"},
                                         Case{"Ring5", "s=5", "L=s", "ring"}),
                         [](const testing::TestParamInfo<Case>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace partita::e2e
