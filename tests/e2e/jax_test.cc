// Compiles programs that jax.export wrote, runs them, and compares with JAX:
// models, whole training steps, and programs that JAX divides over 2 x 2
// devices.
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

// On the mesh of the program's own shardings, or on one device.
std::unique_ptr<CompiledModel> Load(const std::string& name,
                                    bool ignores_shardings) {
  driver::ImportOptions options;
  options.ignore_shardings = ignores_shardings;
  CompilerContext context;
  auto module = driver::importModel(FileOf(name), options, context.get());
  EXPECT_TRUE(module) << context.errors;
  if (!module) return nullptr;
  auto plan = driver::planOfModel(*module, FileOf(name));
  EXPECT_EQ(plan.has_value(),
            !ignores_shardings && name.find("2x2") != std::string::npos);
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

void ExpectSteps(CompiledModel& model, const std::string& name) {
  for (const auto& [state, value] : Read(name, "state.")) {
    const absl::Status written = model.WriteParameter(state, value);
    ASSERT_TRUE(written.ok()) << written;
  }
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

INSTANTIATE_TEST_SUITE_P(Programs, JaxModelTest,
                         testing::Values("mlp", "gpt", "gpt_scan", "vit",
                                         "coatnet", "moe", "indexing",
                                         "operations", "gpt_2x2"),
                         NameOf);

class JaxStepTest : public testing::TestWithParam<const char*> {};

TEST_P(JaxStepTest, FiveStepsAreThoseOfJax) {
  auto model = Load(GetParam(), /*ignores_shardings=*/false);
  if (model) ExpectSteps(*model, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Programs, JaxStepTest,
                         testing::Values("gpt_step", "dropout_step",
                                         "coatnet_step", "gpt_step_2x2"),
                         NameOf);

TEST(JaxTest, ShardingsAreIgnoredOnRequest) {
  if (auto model = Load("gpt_2x2", /*ignores_shardings=*/true))
    ExpectOutputs(*model, "gpt_2x2");
  if (auto model = Load("gpt_step_2x2", /*ignores_shardings=*/true))
    ExpectSteps(*model, "gpt_step_2x2");
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
  EXPECT_THAT(
      ErrorsOf("endless"),
      AllOf(HasSubstr("while: a loop whose number of iterations depends "
                      "on data is not supported"),
            HasSubstr("make_jax.py")));
  EXPECT_THAT(ErrorsOf("complex_numbers"),
              AllOf(HasSubstr("operations that are not supported (StableHLO_v"),
                    HasSubstr("vhlo.fft_v1, 1 time: fft")));
  EXPECT_THAT(ErrorsOf("shard_map"),
              AllOf(HasSubstr("sdy.manual_computation, 1 time: "),
                    HasSubstr("vhlo.all_reduce_v2, 1 time: ")));
}

}  // namespace
}  // namespace partita::e2e
