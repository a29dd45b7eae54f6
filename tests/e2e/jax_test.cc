// Compiles programs that jax.export wrote, runs them, and compares with JAX:
// models, whole training steps, and programs that JAX divides over 2 x 2
// devices, by annotations or by hand (shard_map).
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_join.h"
#include "compiler/driver/explain.h"
#include "compiler/driver/import_model.h"
#include "compiler/driver/model_plan.h"
#include "compiler/plan/plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/dtype.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/golden.h"

namespace partita::e2e {
namespace {

using Tensors = std::map<std::string, HostTensor>;

constexpr char kFolder[] = "tests/data/jax-tiny/";

std::string FileOf(const std::string& name) {
  return kFolder + name + ".mlirbc";
}

Tensors Read(const std::string& name, const std::string& prefix) {
  auto tensors = ReadTensors(kFolder + name + ".safetensors", prefix);
  EXPECT_TRUE(tensors.ok()) << tensors.status();
  return tensors.ok() ? *std::move(tensors) : Tensors();
}

// Integers and booleans must be equal, and so dropout is JAX's bit for bit.
void ExpectSame(const HostTensor& found, const HostTensor& expected,
                const std::string& name, double rtol, double atol) {
  ASSERT_EQ(found.dtype, expected.dtype) << name;
  ASSERT_EQ(found.shape, expected.shape) << name;
  if (expected.dtype != base::DType::kF32) {
    EXPECT_EQ(found.bytes, expected.bytes) << name;
    return;
  }
  const Distance distance = Compare(found, expected, rtol, atol);
  EXPECT_TRUE(distance.within)
      << name << ": largest difference " << distance.largest << " of "
      << distance.largest_expected;
}

bool IsDivided(const std::string& name) {
  return name.find("2x2") != std::string::npos || name.rfind("manual_", 0) == 0;
}

// On the mesh of the program's own shardings, or on one device.
std::unique_ptr<CompiledModel> Load(const std::string& name,
                                    bool ignores_shardings,
                                    const std::string& weights = "") {
  driver::ImportOptions options;
  options.weights = weights;
  options.ignore_shardings = ignores_shardings;
  CompilerContext context;
  auto module = driver::importModel(FileOf(name), options, context.get());
  EXPECT_TRUE(module) << context.errors;
  if (!module) return nullptr;
  auto plan = driver::planOfModel(*module, FileOf(name));
  EXPECT_EQ(plan.has_value(), !ignores_shardings && IsDivided(name));
  if (!plan) {
    plan.emplace();
    plan->mesh = *plan::ParseMeshOption("data=1");
  }
  auto compiled = CompiledModel::MakeDivided(
      *module, testing::TempDir(), name + (ignores_shardings ? "_whole" : ""),
      *plan);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return compiled.ok() ? *std::move(compiled) : nullptr;
}

void ExpectOutputs(CompiledModel& model, const std::string& name) {
  const Tensors expected = Read(name, "out.");
  auto outputs = model.Run(Read(name, "in."));
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_EQ(outputs->size(), expected.size());
  for (size_t i = 0; i < outputs->size(); ++i) {
    std::string output = model.outputs()[i].name;
    if (output.rfind("result.", 0) == 0) output = output.substr(7);
    ASSERT_TRUE(expected.count(output)) << output;
    ExpectSame((*outputs)[i], expected.at(output), output, 1e-4, 1e-5);
  }
}

void WriteStates(CompiledModel& model, const std::string& name) {
  for (const auto& [state, value] : Read(name, "state.")) {
    const absl::Status written = model.WriteParameter(state, value);
    ASSERT_TRUE(written.ok()) << written;
  }
}

// Five steps from the states that the model has.
void ExpectSteps(CompiledModel& model, const std::string& name) {
  const Tensors inputs = Read(name, "in.");
  for (int step = 1; step <= 5; ++step) {
    const std::string prefix = "out" + std::to_string(step) + ".";
    auto outputs = model.Run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    ASSERT_EQ(outputs->size(), 1u);
    ExpectSame(outputs->front(), Read(name, prefix).at("loss"),
               "loss of step " + std::to_string(step), 1e-4, 0);
  }
  for (const auto& [state, expected] : Read(name, "after.")) {
    auto found = model.ReadParameter(state);
    ASSERT_TRUE(found.ok()) << found.status();
    ExpectSame(*found, expected, state, 1e-3, 1e-5);
  }
}

std::string NameOf(const testing::TestParamInfo<const char*>& info) {
  return info.param;
}

class JaxModelTest : public testing::TestWithParam<const char*> {};

TEST_P(JaxModelTest, OutputsAreThoseOfJax) {
  auto model = Load(GetParam(), /*ignores_shardings=*/false);
  if (model) ExpectOutputs(*model, GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Programs, JaxModelTest,
    testing::Values("mlp", "gpt", "gpt_scan", "vit", "coatnet", "moe",
                    "indexing", "operations", "random_bits", "gpt_2x2",
                    "manual_mlp_2x2", "manual_ring",
                    "manual_gather_scatter_2x2", "manual_experts",
                    "manual_families", "manual_part_2x2", "linen_scan",
                    "linen_decode", "linen_dropout", "nnx_vit", "loop_newton",
                    "loop_matmul", "loop_nested", "loop_bounds", "loop_never",
                    "loop_in_scan", "loop_batched", "loop_in_branch",
                    "loop_sum", "loop_2x2"),
    NameOf);

class JaxStepTest : public testing::TestWithParam<const char*> {};

TEST_P(JaxStepTest, FiveStepsAreThoseOfJax) {
  auto model = Load(GetParam(), /*ignores_shardings=*/false);
  if (!model) return;
  WriteStates(*model, GetParam());
  ExpectSteps(*model, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Programs, JaxStepTest,
                         testing::Values("gpt_step", "dropout_step",
                                         "coatnet_step", "gpt_step_2x2",
                                         "linen_step", "linen_conv_step",
                                         "nnx_step", "optax_steps",
                                         "loop_step"),
                         NameOf);

// The mean distance of two tensors of f32.
double MeanDistance(const HostTensor& a, const HostTensor& b) {
  EXPECT_EQ(a.bytes.size(), b.bytes.size());
  const size_t count = std::min(a.bytes.size(), b.bytes.size()) / sizeof(float);
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    float x, y;
    std::memcpy(&x, a.bytes.data() + i * sizeof(float), sizeof(float));
    std::memcpy(&y, b.bytes.data() + i * sizeof(float), sizeof(float));
    sum += std::abs(x - y);
  }
  return sum / static_cast<double>(count);
}

// XLA leaves out roundings to bf16 between operations that it joins, so outputs
// differ from JAX's about as much as JAX's differ from f32. Partita rounds
// wherever the program says so, which costs some accuracy: 17 % in the mean.
TEST(JaxTest, Bf16IsAboutAsExactAsJax) {
  auto model = Load("linen_bf16", /*ignores_shardings=*/false);
  ASSERT_TRUE(model);
  auto outputs = model->Run(Read("linen_bf16", "in."));
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_EQ(outputs->size(), 1u);
  const HostTensor exact = Read("linen_bf16", "exact.").at("logits");
  const double of_jax =
      MeanDistance(Read("linen_bf16", "out.").at("logits"), exact);
  EXPECT_GT(of_jax, 0);
  EXPECT_LE(MeanDistance(outputs->front(), exact), 1.25 * of_jax);
}

TEST(JaxTest, ShardingsAreIgnoredOnRequest) {
  if (auto model = Load("gpt_2x2", /*ignores_shardings=*/true))
    ExpectOutputs(*model, "gpt_2x2");
  if (auto model = Load("loop_2x2", /*ignores_shardings=*/true))
    ExpectOutputs(*model, "loop_2x2");
  if (auto model = Load("gpt_step_2x2", /*ignores_shardings=*/true)) {
    WriteStates(*model, "gpt_step_2x2");
    ExpectSteps(*model, "gpt_step_2x2");
  }
}

// Writes a folder with model.safetensors.
void WriteFolder(const std::string& folder, const Tensors& tensors) {
  std::string header, bytes;
  for (const auto& [name, tensor] : tensors) {
    header += (header.empty() ? "{\"" : ",\"") + name + "\":{\"dtype\":\"" +
              (tensor.dtype == base::DType::kF32 ? "F32" : "U32") +
              "\",\"shape\":[" + absl::StrJoin(tensor.shape, ",") +
              "],\"data_offsets\":[" + std::to_string(bytes.size()) + ",";
    bytes += tensor.bytes;
    header += std::to_string(bytes.size()) + "]}";
  }
  header += "}";
  const uint64_t size = header.size();
  std::filesystem::create_directories(folder);
  std::ofstream file(folder + "/model.safetensors", std::ios::binary);
  file.write(reinterpret_cast<const char*>(&size), sizeof(size));
  file << header << bytes;
}

// The key of the random numbers is u32.
TEST(JaxTest, WeightsGiveStatesOfAnyType) {
  const std::string folder = testing::TempDir() + "/dropout_weights";
  Tensors states = Read("dropout_step", "state.");
  WriteFolder(folder, states);
  if (auto model = Load("dropout_step", false, folder))
    ExpectSteps(*model, "dropout_step");

  states.at("key").dtype = base::DType::kF32;
  WriteFolder(folder, states);
  driver::ImportOptions options;
  options.weights = folder;
  CompilerContext context;
  EXPECT_FALSE(
      driver::importModel(FileOf("dropout_step"), options, context.get()));
  EXPECT_THAT(context.errors,
              testing::HasSubstr("key: expected U32, found F32"));
}

TEST(JaxTest, ManualComputationsRunOnOneDevice) {
  for (const char* name : {"manual_mlp_2x2", "manual_ring", "manual_families"})
    if (auto model = Load(name, /*ignores_shardings=*/true))
      ExpectOutputs(*model, name);
}

// The kinds of a divided program's collectives.
std::set<std::string> CollectivesOf(const std::string& name) {
  std::set<std::string> kinds;
  CompilerContext context;
  auto module = driver::importModel(FileOf(name), {}, context.get());
  EXPECT_TRUE(module) << context.errors;
  if (!module) return kinds;
  const auto plan = driver::planOfModel(*module, FileOf(name));
  EXPECT_TRUE(plan.has_value());
  if (!plan) return kinds;
  auto explained = driver::explainPlan(*module, *plan, /*train=*/nullptr);
  EXPECT_TRUE(mlir::succeeded(explained)) << context.errors;
  if (mlir::failed(explained)) return kinds;
  for (const llvm::json::Value& row :
       *explained->getAsObject()->getArray("collectives"))
    kinds.insert(row.getAsObject()->getString("kind")->str());
  return kinds;
}

// Nothing is gathered that the program does not gather.
TEST(JaxTest, CollectivesOfManualComputationsAreTheProgramsOwn) {
  using testing::ElementsAre;
  EXPECT_THAT(CollectivesOf("manual_mlp_2x2"), ElementsAre("all_reduce"));
  EXPECT_THAT(CollectivesOf("manual_ring"), ElementsAre("permute"));
  EXPECT_THAT(CollectivesOf("manual_gather_scatter_2x2"),
              ElementsAre("all_gather", "all_reduce", "reduce_scatter"));
  EXPECT_THAT(CollectivesOf("manual_experts"),
              ElementsAre("all_reduce", "all_to_all"));
}

TEST(JaxTest, ContentDecidesAndNotTheName) {
  // Serialized by jax.export, with a header of its own.
  CompilerContext context;
  auto module =
      driver::importModel(std::string(kFolder) + "mlp.jax", {}, context.get());
  ASSERT_TRUE(module) << context.errors;
  auto model = CompiledModel::Make(*module, testing::TempDir(), "mlp_file", 1);
  ASSERT_TRUE(model.ok()) << model.status();
  ExpectOutputs(**model, "mlp");
}

// The whole text of what a refused program gives.
std::string ErrorsOf(const std::string& name) {
  CompilerContext context;
  EXPECT_FALSE(
      driver::importModel(FileOf("refused/" + name), {}, context.get()));
  return context.errors;
}

TEST(JaxTest, RefusalsSayWhatToDo) {
  using testing::AllOf;
  using testing::HasSubstr;
  EXPECT_THAT(ErrorsOf("symbolic_batch"),
              HasSubstr("argument 'arg0' is tensor<?x4xf32>: expected a static "
                        "shape; export the function for arguments with sizes, "
                        "without symbolic dimensions"));
  EXPECT_THAT(ErrorsOf("factorisation"),
              HasSubstr("custom_call: a call of 'lapack_spotrf_ffi', which is "
                        "code outside of the program; it is not supported"));
  EXPECT_THAT(ErrorsOf("host_callback"),
              HasSubstr("a call of 'xla_ffi_python_cpu_callback', which runs "
                        "Python on the host; leave callbacks out of the "
                        "exported function"));
  EXPECT_THAT(ErrorsOf("complex_numbers"),
              AllOf(HasSubstr("operations that are not supported (StableHLO_v"),
                    HasSubstr("vhlo.fft_v1, 1 time: fft")));
  EXPECT_THAT(ErrorsOf("nested_shard_map"),
              AllOf(HasSubstr("sdy.manual_computation: a manual computation "
                              "within another is not supported"),
                    HasSubstr("make_jax.py")));
  EXPECT_THAT(ErrorsOf("group_of_an_axis"),
              AllOf(HasSubstr("all_reduce: expected groups of all devices "
                              "along whole axes of the manual computation"),
                    HasSubstr("make_jax.py")));
  EXPECT_THAT(ErrorsOf("loop_in_shard_map"),
              HasSubstr("a loop whose number of iterations depends on data, "
                        "within shard_map, is not supported"));
}

}  // namespace
}  // namespace partita::e2e
