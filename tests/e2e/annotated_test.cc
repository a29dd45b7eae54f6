// ONNX files with multi-device annotations: each element is on the annotated
// device, and the annotated program computes the same as the undivided one.
#include <fstream>

#include "compiler/driver/annotate.h"
#include "compiler/driver/import_model.h"
#include "compiler/driver/model_plan.h"
#include "compiler/partition/spmd_interpreter.h"
#include "compiler/sharding/convert.h"
#include "frontends/onnx/test_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/golden.h"

namespace partita::e2e {
namespace {

using onnx::Message;
using testing::ElementsAre;
using Rows = std::vector<double>;

std::string Write(const std::string& name, const Message& model) {
  const std::string path = testing::TempDir() + "/" + name + ".onnx";
  std::ofstream(path, std::ios::binary) << model.encoded();
  return path;
}

// The elements of [[1, 2], [3, 4]] on each device if `spec` annotates x.
std::vector<Rows> Scatter(const Message& spec, int64_t devices) {
  const Message model = onnx::withDevices(
      onnx::model(onnx::graph(
          {onnx::onDevices(onnx::node("Relu", {"x"}, {"y"}), "d", {spec})},
          {onnx::valueInfo("x", onnx::kF32, {"2", "2"})},
          {onnx::valueInfo("y", onnx::kF32, {})})),
      "d", devices);
  CompilerContext context;
  auto module = driver::importModel(Write("scatter", model), {}, context.get());
  EXPECT_TRUE(module) << context.errors;
  if (!module) return {};
  auto mesh = sharding::meshOf(*module);
  auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
  auto attr = main.getArgAttrOfType<dist::ShardingAttr>(0, dist::kShardingAttr);
  EXPECT_TRUE(mlir::succeeded(mesh) && attr);
  nn::Tensor whole(
      llvm::cast<mlir::RankedTensorType>(main.getArgumentTypes()[0]));
  for (int64_t i = 0; i < 4; ++i) whole.setFloat(i, i + 1);
  std::vector<Rows> parts(devices);
  for (auto [position, part] : llvm::enumerate(partition::scatterTensor(
           whole, *mesh, *sharding::toCore(attr, *mesh)))) {
    const int64_t device =
        mesh->device_ids.empty() ? position : mesh->device_ids[position];
    for (int64_t i = 0; i < part.size(); ++i)
      parts[device].push_back(part.getFloat(i));
  }
  return parts;
}

// The examples of ONNX's multi-device proposal. For the last one, the proposal
// prints [[2, 3]] for devices 2 and 3, which is not a row of the tensor.
TEST(AnnotatedTest, ElementsLieWhereTheProposalSays) {
  using onnx::shardedDim;
  using onnx::shardingSpec;
  EXPECT_THAT(Scatter(shardingSpec("x", {0, 1}, {}, {shardedDim(0, 2)}), 2),
              ElementsAre(Rows{1, 2}, Rows{3, 4}));
  EXPECT_THAT(Scatter(shardingSpec("x", {0, 1}, {}, {shardedDim(1, 2)}), 2),
              ElementsAre(Rows{1, 3}, Rows{2, 4}));
  EXPECT_THAT(Scatter(shardingSpec("x", {0, 1, 2, 3}, {},
                                   {shardedDim(0, 2), shardedDim(1, 2)}),
                      4),
              ElementsAre(Rows{1}, Rows{2}, Rows{3}, Rows{4}));
  // The order of axes is the order in the list.
  EXPECT_THAT(Scatter(shardingSpec("x", {0, 1, 2, 3}, {},
                                   {shardedDim(1, 2), shardedDim(0, 2)}),
                      4),
              ElementsAre(Rows{1}, Rows{3}, Rows{2}, Rows{4}));
  EXPECT_THAT(Scatter(shardingSpec("x", {3, 2, 1, 0}, {},
                                   {shardedDim(0, 2), shardedDim(1, 2)}),
                      4),
              ElementsAre(Rows{4}, Rows{3}, Rows{2}, Rows{1}));
  EXPECT_THAT(Scatter(shardingSpec("x", {-1}, {{-1, {0, 1}}}, {}), 2),
              ElementsAre(Rows{1, 2, 3, 4}, Rows{1, 2, 3, 4}));
  EXPECT_THAT(Scatter(shardingSpec("x", {-1, -2}, {{-1, {0, 1}}, {-2, {2, 3}}},
                                   {shardedDim(0, 2)}),
                      4),
              ElementsAre(Rows{1, 2}, Rows{1, 2}, Rows{3, 4}, Rows{3, 4}));
}

std::vector<float> MadeUp(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(i * 37 % 101) / 101 - 0.5f);
  return values;
}

HostTensor MadeUpTensor(std::vector<int64_t> shape) {
  HostTensor tensor;
  tensor.shape = std::move(shape);
  const std::vector<float> values = MadeUp(tensor.elements());
  tensor.bytes.assign(reinterpret_cast<const char*>(values.data()),
                      values.size() * sizeof(float));
  return tensor;
}

TEST(AnnotatedTest, EqualsUndivided) {
  const std::string path = Write("perceptron", onnx::dividedPerceptron());
  CompilerContext context;
  driver::ImportOptions none;
  none.onnx_configuration = "none";
  auto whole = driver::importModel(path, none, context.get());
  auto parts = driver::importModel(path, {}, context.get());
  ASSERT_TRUE(whole && parts) << context.errors;
  EXPECT_FALSE(driver::planOfModel(*whole));
  const auto plan = driver::planOfModel(*parts);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->mesh.Size(), 4);

  const std::map<std::string, HostTensor> inputs = {
      {"x", MadeUpTensor({5, 6})}};
  auto undivided =
      CompiledModel::Make(*whole, testing::TempDir(), "Perceptron", 1);
  ASSERT_TRUE(undivided.ok()) << undivided.status();
  auto divided = CompiledModel::MakeDivided(*parts, testing::TempDir(),
                                            "PerceptronDivided", *plan);
  ASSERT_TRUE(divided.ok()) << divided.status();
  EXPECT_EQ((*divided)->report().devices, 4);
  EXPECT_GE((*divided)->report().collectives, 2);
  auto expected = (*undivided)->Run(inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  auto outputs = (*divided)->Run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  const Distance distance = Compare((*outputs)[0], (*expected)[0], 0, 0);
  EXPECT_LE(distance.largest, 1e-5 * distance.largest_expected);
}

// A plan given together with annotations must use their mesh.
TEST(AnnotatedTest, APlanMustFit) {
  const std::string path = Write("fits", onnx::dividedPerceptron());
  CompilerContext context;
  auto parts = driver::importModel(path, {}, context.get());
  ASSERT_TRUE(parts) << context.errors;
  plan::Plan plan;
  plan.mesh = *plan::ParseMeshOption("data=2,tensor=2");
  auto divided =
      CompiledModel::MakeDivided(*parts, testing::TempDir(), "Misfit", plan);
  ASSERT_FALSE(divided.ok());
  for (const char* part :
       {"mesh of the model's own annotations", "{x: 2, y: 2}",
        "{data: 2, tensor: 2}", "--onnx-configuration none"})
    EXPECT_THAT(std::string(divided.status().message()),
                testing::HasSubstr(part));
}

// The mesh, and the annotations of arguments and results.
std::vector<std::string> Signature(mlir::ModuleOp module) {
  std::vector<std::string> lines;
  auto print = [&](const auto& printed) {
    llvm::raw_string_ostream(lines.emplace_back()) << printed;
  };
  for (dist::MeshOp mesh : module.getOps<dist::MeshOp>()) print(mesh);
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    if (auto attr = main.getArgAttr(i, dist::kShardingAttr)) print(attr);
  for (mlir::Value value : main.front().getTerminator()->getOperands())
    if (auto attr = value.getDefiningOp()->getAttr(dist::kShardingsAttr))
      print(attr);
  return lines;
}

// Writes the model at `path` again, with the annotations of `plan` or its own.
std::string Annotate(const std::string& path, const std::string& name,
                     const driver::ImportOptions& import,
                     std::optional<plan::Plan> plan, int64_t& tensors) {
  CompilerContext context;
  driver::AnnotateOptions options;
  options.model = path;
  options.import = import;
  options.plan = std::move(plan);
  options.configuration = "tp";
  options.output = testing::TempDir() + "/" + name + ".onnx";
  auto facts = driver::annotateModel(options, context.get());
  EXPECT_TRUE(mlir::succeeded(facts)) << context.errors;
  if (mlir::succeeded(facts))
    tensors = *facts->getAsObject()->getInteger("annotated_tensors");
  return options.output;
}

// Reading, writing and reading again gives the same annotations.
TEST(AnnotatedTest, RoundTrip) {
  const std::string path = Write("round", onnx::dividedPerceptron());
  int64_t tensors = 0, again = 0;
  const std::string once = Annotate(path, "once", {}, std::nullopt, tensors);
  // x, both weights, the bias, s, t, u, v, y.
  EXPECT_EQ(tensors, 9);
  const std::string twice = Annotate(once, "twice", {}, std::nullopt, again);
  EXPECT_EQ(again, 9);
  CompilerContext context;
  auto first = driver::importModel(once, {}, context.get());
  auto second = driver::importModel(twice, {}, context.get());
  auto original = driver::importModel(path, {}, context.get());
  ASSERT_TRUE(first && second && original) << context.errors;
  EXPECT_EQ(Signature(*first), Signature(*second));
  // Values without an annotation in the original, the bias and the result, now
  // have a sharding too.
  const std::vector<std::string> had = Signature(*original);
  const std::vector<std::string> has = Signature(*first);
  for (const std::string& line : had) EXPECT_THAT(has, testing::Contains(line));
  EXPECT_EQ(had.size(), 4u);
  EXPECT_EQ(has.size(), 6u);
  // The reshard at the use of v is preserved.
  int constraints = 0;
  second->walk([&](dist::ConstraintOp) { ++constraints; });
  EXPECT_EQ(constraints, 1);
}

// A plan written as annotations gives the division of the plan.
TEST(AnnotatedTest, APlanWrittenDownComputesTheSame) {
  const std::string folder = "tests/data/onnx-tiny/gpt2/";
  auto inputs = ReadTensors(folder + "io.safetensors", "in.");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  driver::ImportOptions options;
  for (const auto& [name, tensor] : *inputs)
    options.input_shapes[name] = tensor.shape;
  plan::Plan plan;
  plan.mesh = *plan::ParseMeshOption("data=2,tensor=2");
  plan.shard =
      *plan::ParseShardOption("B=data;M=tensor,N=tensor,V=tensor", plan.mesh);
  int64_t tensors = 0;
  const std::string written =
      Annotate(folder + "model_eval.onnx", "gpt2", options, plan, tensors);
  EXPECT_GT(tensors, 50);
  CompilerContext context;
  auto whole =
      driver::importModel(folder + "model_eval.onnx", options, context.get());
  auto parts = driver::importModel(written, options, context.get());
  ASSERT_TRUE(whole && parts) << context.errors;
  const auto own = driver::planOfModel(*parts);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->mesh.Size(), 4);
  auto undivided = CompiledModel::Make(*whole, testing::TempDir(), "Whole", 1);
  ASSERT_TRUE(undivided.ok()) << undivided.status();
  auto divided =
      CompiledModel::MakeDivided(*parts, testing::TempDir(), "Written", *own);
  ASSERT_TRUE(divided.ok()) << divided.status();
  EXPECT_GT((*divided)->report().collectives, 0);
  auto expected = (*undivided)->Run(*inputs);
  auto outputs = (*divided)->Run(*inputs);
  ASSERT_TRUE(expected.ok() && outputs.ok());
  const Distance distance = Compare((*outputs)[0], (*expected)[0], 0, 0);
  EXPECT_LE(distance.largest, 1e-5 * distance.largest_expected);
}

// A ring, for which ONNX has no words, stays a ring, also when the annotations
// are written again.
TEST(AnnotatedTest, TheChoiceOfAttentionIsKept) {
  const std::string folder = "tests/data/onnx-tiny/gpt2/";
  auto inputs = ReadTensors(folder + "io.safetensors", "in.");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  driver::ImportOptions options;
  for (const auto& [name, tensor] : *inputs)
    options.input_shapes[name] = tensor.shape;
  plan::Plan plan;
  plan.mesh = *plan::ParseMeshOption("seq=2");
  plan.shard = *plan::ParseShardOption("L=seq", plan.mesh);
  plan.attention = core::LongAttention::kRing;
  int64_t tensors = 0;
  const std::string once =
      Annotate(folder + "model_eval.onnx", "ring", options, plan, tensors);
  const std::string twice =
      Annotate(once, "ring_again", options, std::nullopt, tensors);
  for (const std::string& path : {once, twice}) {
    CompilerContext context;
    auto module = driver::importModel(path, options, context.get());
    ASSERT_TRUE(module) << context.errors;
    const auto own = driver::planOfModel(*module);
    ASSERT_TRUE(own);
    EXPECT_EQ(own->attention, core::LongAttention::kRing) << path;
  }
  // Another plan replaces it.
  plan.attention.reset();
  const std::string gathered =
      Annotate(once, "gathered", options, plan, tensors);
  CompilerContext context;
  auto module = driver::importModel(gathered, options, context.get());
  ASSERT_TRUE(module) << context.errors;
  const auto own = driver::planOfModel(*module);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->attention, std::nullopt);
}

}  // namespace
}  // namespace partita::e2e
