// Every kernel of the golden models, for inference and training, assembles for
// GPUs and stays within its registers and shared memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "compiler/driver/import_model.h"
#include "compiler/kernels/ptxas.h"
#include "mlir/Parser/Parser.h"
#include "runtime/program/artifact.h"
#include "runtime/program/labels.h"
#include "runtime/program/types.h"
#include "tests/e2e/compiled_model.h"

namespace partita::e2e {
namespace {

constexpr const char* kModels[] = {"bert_mlm",     "coatnet_64", "gpt2",
                                   "coatnet_bias", "gpt2_4l",    "t5",
                                   "vit",          "vit_3l"};

constexpr const char* kChips[] = {"sm_80", "sm_90", "sm_90a"};
constexpr plan::Precision kPrecisions[] = {
    plan::Precision::kF32, plan::Precision::kBF16, plan::Precision::kF16};
enum class Use { kInference, kTraining };

struct Case {
  const char* model;
  Use use;
  plan::Precision precision;
  const char* chip;
};

std::string NameOf(const Case& which) {
  std::string name = which.model;
  name += which.use == Use::kTraining ? "_training" : "_inference";
  switch (which.precision) {
    case plan::Precision::kF32:
      name += "_f32_";
      break;
    case plan::Precision::kBF16:
      name += "_bf16_";
      break;
    case plan::Precision::kF16:
      name += "_f16_";
      break;
    case plan::Precision::kF8:  // not compiled
      name += "_f8_";
      break;
  }
  return name + which.chip;
}

// Each model in each precision for each GPU.
std::vector<Case> Matrix() {
  std::vector<Case> cases;
  for (const char* model : kModels)
    for (const Use use : {Use::kInference, Use::kTraining})
      for (const plan::Precision precision : kPrecisions)
        for (const char* chip : kChips)
          cases.push_back({model, use, precision, chip});
  return cases;
}

class GpuCodeTest : public testing::TestWithParam<Case> {
 protected:
  // The artifact's path; empty on failure.
  std::string Compile() {
    const Case& which = GetParam();
    const bool trains = which.use == Use::kTraining;
    const std::string folder =
        std::string("tests/data/onnx-tiny/") + which.model + "/";
    auto inputs = ReadTensors(folder + "io.safetensors", "in.");
    if (!inputs.ok()) return "";
    driver::ImportOptions import;
    for (const auto& [name, tensor] : *inputs)
      import.input_shapes[name] = tensor.shape;
    auto module = driver::importModel(
        folder + (trains ? "model_train.onnx" : "model_eval.onnx"), import,
        context_.get());
    if (!module) return "";
    driver::CompileOptions options;
    options.output = testing::TempDir() + NameOf(which) + ".partita";
    options.target = std::string("cuda:") + which.chip;
    options.cubins.emplace();  // PTX only
    if (trains) options.train.optimizer = "adamw";
    options.precision = which.precision;
    return mlir::succeeded(driver::compileToFile(*module, options))
               ? options.output
               : "";
  }

  CompilerContext context_;
};

// Kernels of one kind share limits.
enum class Work { kAttention, kProduct, kNorm, kOther };
constexpr const char* kWorks[] = {"attention", "product", "norm", "other"};

// Registers per thread: the largest count by ptxas 13.0 for these models plus a
// margin of at most 6. With 62 registers, eight blocks of 128 threads fit on a
// multiprocessor; with 80, six; with 216, two. No norm spills, nor does
// attention in 16 bits.
struct Limits {
  int registers;
  int spilled_bytes;  // per thread
};
Limits LimitsOf(Work work, plan::Precision precision) {
  switch (work) {
    case Work::kAttention:
      // Gradients in f32 store and load one register.
      return {216, precision == plan::Precision::kF32 ? 8 : 0};
    case Work::kProduct:
      // Products of experts' rows; those in f32 store and load a few registers.
      return {252, precision == plan::Precision::kF32 ? 16 : 0};
    case Work::kNorm:
      return {62, 0};
    case Work::kOther:
      break;
  }
  // Sums down the columns of 48 rows, a loop that LLVM fully unrolls, store and
  // load one register, and two if they also convert f16.
  return {80, precision == plan::Precision::kF16 ? 16 : 8};
}

struct Kernel {
  Work work = Work::kOther;
  std::string label;  // operations and layers
};

// The kernels by their symbols.
std::map<std::string, Kernel> KernelsOf(const program::Program& program) {
  std::map<std::string, Kernel> kernels;
  for (const auto* function : *program.functions())
    for (const auto* instruction : *function->body())
      if (const auto* launch = instruction->operation_as_Launch()) {
        Kernel& kernel =
            kernels[program.kernels()->Get(launch->kernel())->name()->str()];
        kernel.label = program::KernelLabel(program, *launch).str();
        if (launch->operations() > 0) {
          kernel.work = kernel.label.find("ordered_dot") == std::string::npos
                            ? Work::kAttention
                            : Work::kProduct;
          continue;
        }
        for (const char* norm :
             {"layer_norm", "rms_norm", "batch_norm", "softmax"})
          if (kernel.label.find(norm) != std::string::npos)
            kernel.work = Work::kNorm;
      }
  return kernels;
}

// Checks and prints the registers, spills and shared memory of all kernels.
void CheckResources(const std::string& name, plan::Precision precision,
                    const std::map<std::string, Kernel>& kernels,
                    const kernels::Assembled& assembled) {
  std::map<Work, kernels::Assembled::Kernel> most;
  std::printf("%s\n  registers spilled shared  kernel\n", name.c_str());
  for (const auto& [symbol, used] : assembled.kernels) {
    const auto found = kernels.find(symbol);
    ASSERT_NE(found, kernels.end()) << symbol;
    const Kernel& kernel = found->second;
    std::printf("  %9d %7d %6d  %s\n", used.registers, used.spilled_bytes,
                used.shared_bytes, kernel.label.c_str());
    const Limits limits = LimitsOf(kernel.work, precision);
    EXPECT_LE(used.registers, limits.registers) << kernel.label;
    EXPECT_LE(used.spilled_bytes, limits.spilled_bytes) << kernel.label;
    EXPECT_LE(used.shared_bytes, 48 * 1024) << kernel.label;
    kernels::Assembled::Kernel& largest = most[kernel.work];
    largest.registers = std::max(largest.registers, used.registers);
    largest.spilled_bytes = std::max(largest.spilled_bytes, used.spilled_bytes);
    largest.shared_bytes = std::max(largest.shared_bytes, used.shared_bytes);
  }
  for (const auto& [work, used] : most)
    std::printf(
        "most of %s in %s: %d registers, %d bytes spilled, %d bytes "
        "shared\n",
        kWorks[static_cast<int>(work)], name.c_str(), used.registers,
        used.spilled_bytes, used.shared_bytes);
}

TEST_P(GpuCodeTest, Assembles) {
  const std::string path = Compile();
  ASSERT_NE(path, "") << context_.errors;
  auto artifact = program::Artifact::Open(path);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  const std::string ptx(artifact->code());
  EXPECT_EQ(ptx.find(".extern"), std::string::npos);
  if (!kernels::hasPtxas()) GTEST_SKIP() << kernels::kWithoutPtxas;
  const auto found = KernelsOf(artifact->program());
  // Blackwell runs the PTX of sm_90.
  std::vector<std::string> chips = {GetParam().chip};
  if (chips.front() == "sm_90") chips.push_back("sm_100");
  for (const std::string& chip : chips) {
    const kernels::Assembled assembled = kernels::assemble(ptx, chip);
    if (!assembled.ok &&
        assembled.report.find("gpu-name") != std::string::npos) {
      if (chip == GetParam().chip)
        GTEST_SKIP() << "this ptxas does not know " << chip;
      std::printf("this ptxas does not know %s\n", chip.c_str());
      continue;
    }
    ASSERT_TRUE(assembled.ok) << assembled.report;
    CheckResources(NameOf(GetParam()) + " on " + chip, GetParam().precision,
                   found, assembled);
    EXPECT_EQ(assembled.kernels.size(), artifact->program().kernels()->size());
  }
}

// No launch in a real model's training step has too few threads for its work:
// each thread reads and writes a few kilobytes on average at most. (One warp
// that reads 16 KB per thread, 16 bytes at a time, waits a thousand times for
// memory.)
class GpuWorkTest
    : public testing::TestWithParam<
          std::pair<const char*, std::map<std::string, int64_t>>> {};

constexpr int64_t kMostBytesPerThread = 16 * 1024;

TEST_P(GpuWorkTest, IsSharedByManyThreads) {
  const auto& [model, dims] = GetParam();
  CompilerContext context;
  driver::ImportOptions import;
  import.dims = dims;
  import.training = true;
  auto module = driver::importModel(model, import, context.get());
  ASSERT_TRUE(module) << context.errors;
  driver::CompileOptions options;
  options.output = testing::TempDir() + model + ".partita";
  options.target = "cuda:sm_90";
  options.cubins.emplace();
  options.train.optimizer = "adamw";
  options.train.clip_norm = 1;
  options.precision = plan::Precision::kBF16;
  ASSERT_TRUE(mlir::succeeded(driver::compileToFile(*module, options)))
      << context.errors;
  auto artifact = program::Artifact::Open(options.output);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  int64_t launches = 0;
  for (const auto* function : *artifact->program().functions())
    for (const auto* instruction : *function->body()) {
      const auto* launch = instruction->operation_as_Launch();
      if (!launch) continue;
      ++launches;
      int64_t threads = 1, bytes = -launch->unread_bytes();
      for (const auto* sizes : {launch->grid(), launch->block()})
        for (const int size : *sizes) threads *= size;
      for (const auto* buffer : *instruction->operands())
        bytes += buffer->bytes();
      EXPECT_LE(bytes, threads * kMostBytesPerThread)
          << artifact->program().kernels()->Get(launch->kernel())->name()->str()
          << " of " << threads << " threads";
    }
  EXPECT_GT(launches, 50);
}

INSTANTIATE_TEST_SUITE_P(
    Models, GpuWorkTest,
    testing::Values(
        std::pair("gpt2",
                  std::map<std::string, int64_t>{{"batch", 8}, {"seq", 1024}}),
        std::pair("vit-b-16", std::map<std::string, int64_t>{{"batch", 64}}),
        std::pair("coatnet-0", std::map<std::string, int64_t>{{"batch", 64}})),
    [](const auto& info) {
      std::string name = info.param.first;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// Warpgroup tiles of large heads exceed the default shared memory of a block.
// The launch must request more, and must carry the tensor maps of its copies.
TEST(GpuCodeOfTextTest, LargeHeadsAskForSharedMemoryAndMaps) {
  const std::string heads = "tensor<1x2x256x128xbf16>";
  std::string inputs;
  for (const std::string name : {"q", "k", "v"})
    inputs += (inputs.empty() ? "%" : ", %") + name + ": " + heads +
              " {nn.kind = \"input\", nn.name = \"" + name + "\"}";
  const std::string text = "func.func @main(" + inputs + ") -> (" + heads +
                           " {nn.name = \"y\"}) {\n  %y = nn.attention %q, %k, "
                           "%v scale = 1.25e-1 : (" +
                           heads + ", " + heads + ", " + heads + ") -> " +
                           heads + "\n  return %y : " + heads + "\n}\n";
  CompilerContext context;
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
  ASSERT_TRUE(module) << context.errors;
  driver::CompileOptions options;
  options.output = testing::TempDir() + "large_heads.partita";
  options.target = "cuda:sm_90a";
  ASSERT_TRUE(mlir::succeeded(driver::compileToFile(*module, options)))
      << context.errors;
  auto artifact = program::Artifact::Open(options.output);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  int launches = 0;
  for (const auto* function : *artifact->program().functions())
    for (const auto* instruction : *function->body())
      if (const auto* launch = instruction->operation_as_Launch()) {
        ++launches;
        EXPECT_EQ(launch->shared_bytes(), 96 * 1024 + 128);
        ASSERT_EQ(program::SizeOrZero(launch->maps()), 2);
        for (int i = 0; i < 2; ++i) {
          const program::TensorMap& map = *launch->maps()->Get(i);
          EXPECT_EQ(map.operand(), 1 + i);
          EXPECT_EQ(map.dtype(), program::DType::bf16);
          EXPECT_EQ(program::ToVector(map.shape()),
                    (std::vector<int64_t>{1, 2, 256, 128}));
          EXPECT_EQ(program::ToVector(map.box()),
                    (std::vector<int64_t>{1, 1, 64, 64}));
          EXPECT_EQ(map.swizzle(), program::Swizzle::bytes128);
        }
      }
  EXPECT_EQ(launches, 1);
}

// The gradient's part for blocks of keys copies tiles of queries and of the
// result's gradient; the parts before and behind it have no tensor maps.
TEST(GpuCodeOfGradientsTest, OnlyThePartForKeysHasTensorMaps) {
  const std::string heads = "tensor<1x2x256x64xbf16>",
                    sums = "tensor<1x2x256xf32>";
  std::string inputs, types;
  for (const std::string name : {"q", "k", "v", "y", "g", "e"}) {
    const std::string& type = name == "e" ? sums : heads;
    inputs += (inputs.empty() ? "%" : ", %") + name + ": " + type +
              " {nn.kind = \"input\", nn.name = \"" + name + "\"}";
    types += (types.empty() ? "" : ", ") + type;
  }
  const std::string text =
      "func.func @main(" + inputs + ") -> (" + heads + " {nn.name = \"dq\"}, " +
      heads + " {nn.name = \"dk\"}, " + heads +
      " {nn.name = \"dv\"}) {\n  %r:3 = nn.attention_grad %q, %k, %v, %y, %g "
      "lse(%e) scale = 1.25e-1 causal_offset = 0 : (" +
      types + ") -> (" + heads + ", " + heads + ", " + heads +
      ")\n  return %r#0, %r#1, %r#2 : " + heads + ", " + heads + ", " + heads +
      "\n}\n";
  CompilerContext context;
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
  ASSERT_TRUE(module) << context.errors;
  driver::CompileOptions options;
  options.output = testing::TempDir() + "gradients.partita";
  options.target = "cuda:sm_90a";
  ASSERT_TRUE(mlir::succeeded(driver::compileToFile(*module, options)))
      << context.errors;
  auto artifact = program::Artifact::Open(options.output);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  std::vector<std::vector<int>> operands;  // of each launch's maps
  for (const auto* function : *artifact->program().functions())
    for (const auto* instruction : *function->body())
      if (const auto* launch = instruction->operation_as_Launch()) {
        operands.emplace_back();
        for (unsigned i = 0; i < program::SizeOrZero(launch->maps()); ++i) {
          const program::TensorMap& map = *launch->maps()->Get(i);
          operands.back().push_back(map.operand());
          EXPECT_EQ(program::ToVector(map.shape()),
                    (std::vector<int64_t>{1, 2, 256, 64}));
          EXPECT_EQ(program::ToVector(map.box()),
                    (std::vector<int64_t>{1, 1, 64, 64}));
        }
      }
  EXPECT_EQ(operands, (std::vector<std::vector<int>>{{}, {0, 4}, {}}));
}

// Mixtures of experts have products with one matrix per row. A layer computes
// the order of its rows once in each direction, and each row counts once.
TEST(GpuCodeOfExpertsTest, TrainingAssembles) {
  const std::string folder = "tests/data/torch-tiny/mixtral/";
  for (const plan::Precision precision :
       {plan::Precision::kF32, plan::Precision::kBF16}) {
    CompilerContext context;
    driver::ImportOptions import;
    import.dims = {{"batch", 3}, {"seq", 5}};
    import.training = true;
    auto module =
        driver::importModel(folder + "model_eval.pt2", import, context.get());
    ASSERT_TRUE(module) << context.errors;
    driver::CompileOptions options;
    options.output = testing::TempDir() + "experts.partita";
    options.target = "cuda:sm_90a";
    options.cubins.emplace();
    options.train.optimizer = "adamw";
    options.precision = precision;
    ASSERT_TRUE(mlir::succeeded(driver::compileToFile(*module, options)))
        << context.errors;
    auto artifact = program::Artifact::Open(options.output);
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    int64_t orders = 0, operations = 0;
    for (const auto* function : *artifact->program().functions())
      for (const auto* instruction : *function->body()) {
        const auto* launch = instruction->operation_as_Launch();
        if (!launch) continue;
        const std::string label =
            program::KernelLabel(artifact->program(), *launch).str();
        orders += label.find("order_rows") != std::string::npos;
        if (label.find("ordered_dot") != std::string::npos)
          operations += launch->operations();
      }
    EXPECT_EQ(orders, 2);
    // Gate, up and down; gate and up again, and the six gradients. Each token
    // has two rows of 16 and 24 numbers.
    EXPECT_EQ(operations, 11 * (2 * 30 * 16 * 24));
    if (!kernels::hasPtxas()) GTEST_SKIP() << kernels::kWithoutPtxas;
    const kernels::Assembled assembled =
        kernels::assemble(std::string(artifact->code()), "sm_90a");
    ASSERT_TRUE(assembled.ok) << assembled.report;
    CheckResources("mixtral", precision, KernelsOf(artifact->program()),
                   assembled);
  }
}

// The program of a pipeline has the kernels of all stages; some multiply floats
// of 8 bits.
TEST(GpuCodeOfPipelinesTest, TrainingWithFloatsOf8BitsAssembles) {
  const std::string folder = "tests/data/onnx-tiny/gpt2_4l/";
  auto inputs = ReadTensors(folder + "io.safetensors", "in.");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  CompilerContext context;
  driver::ImportOptions import;
  for (const auto& [name, tensor] : *inputs)
    import.input_shapes[name] = tensor.shape;
  auto module =
      driver::importModel(folder + "model_train.onnx", import, context.get());
  ASSERT_TRUE(module) << context.errors;
  driver::CompileOptions options;
  options.output = testing::TempDir() + "pipeline.partita";
  options.target = "cuda:sm_90a";
  options.cubins.emplace();
  options.train.optimizer = "adamw";
  options.precision = plan::Precision::kF8;
  options.plan.emplace();
  options.plan->mesh = *plan::ParseMeshOption("p=2");
  options.plan->shard = *plan::ParseShardOption("D=p", options.plan->mesh);
  options.plan->microbatches = 2;
  ASSERT_TRUE(mlir::succeeded(driver::compileToFile(*module, options)))
      << context.errors;
  auto artifact = program::Artifact::Open(options.output);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  int64_t products = 0;
  for (const auto* function : *artifact->program().functions())
    for (const auto* instruction : *function->body())
      if (const auto* gemm = instruction->operation_as_Gemm())
        products += gemm->factors() >= program::GemmFactors::f8;
  EXPECT_GT(products, 0);
  if (!kernels::hasPtxas()) GTEST_SKIP() << kernels::kWithoutPtxas;
  const kernels::Assembled assembled =
      kernels::assemble(std::string(artifact->code()), "sm_90a");
  ASSERT_TRUE(assembled.ok) << assembled.report;
  EXPECT_EQ(assembled.kernels.size(), artifact->program().kernels()->size());
}

INSTANTIATE_TEST_SUITE_P(Matrix, GpuCodeTest, testing::ValuesIn(Matrix()),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace partita::e2e
