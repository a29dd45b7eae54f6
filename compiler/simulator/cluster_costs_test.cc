#include "compiler/simulator/cluster_costs.h"

#include "compiler/planner/cost/cost.h"
#include "compiler/simulator/report.h"
#include "compiler/simulator/simulate.h"
#include "compiler/simulator/trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/program/test_pipeline_program.h"
#include "runtime/program/test_program.h"
#include "runtime/program/test_training_program.h"

namespace partita::simulator {
namespace {

using program::Frame;
using testing::HasSubstr;
using testing::Not;

planner::Cluster ClusterOf(const std::string& name) {
  auto cluster = planner::BuiltInCluster(name);
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return *std::move(cluster);
}

// Seconds of `instruction` on a node of eight A100.
double SecondsOf(std::unique_ptr<program::InstructionT> instruction,
                 double kernel_cycles = 0) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(program::CreateInstruction(builder, instruction.get()));
  const ClusterCosts costs(ClusterOf("a100-80-sxm"), {}, {kernel_cycles});
  flatbuffers::FlatBufferBuilder of_program;
  of_program.Finish(program::CreateProgram(of_program));
  return costs.Compute(
      *flatbuffers::GetRoot<program::Program>(of_program.GetBufferPointer()),
      *flatbuffers::GetRoot<program::Instruction>(builder.GetBufferPointer()));
}

TEST(ClusterCostsTest, ProductsTakeWhatTheModelSays) {
  const planner::Device device = ClusterOf("a100-80-sxm").device;
  const int64_t bytes = int64_t{4} * 4096 * 4096;
  const double seconds = SecondsOf(program::MakeProduct(
      {4096, 4096, 4096}, {Frame(0, bytes), Frame(0, bytes), Frame(0, bytes)},
      "product"));
  EXPECT_DOUBLE_EQ(seconds, planner::MatmulTime(device, core::Precision::kF32,
                                                1, 4096, 4096, 4096));
  // The product is no faster than the peak allows.
  EXPECT_GT(seconds, 2.0 * 4096 * 4096 * 4096 / 19.5e12);
}

// On GPUs, products of 16-bit rows that begin at odd addresses are slow.
TEST(ClusterCostsTest, ProductsOfOddRowsTakeLongerOnGpus) {
  const auto seconds =
      [](const char* target, program::DType dtype, int64_t m, int64_t n,
         program::Preactivation preactivation = program::Preactivation::none) {
        program::ProgramT program;
        program.target = target;
        const int64_t bytes = int64_t{4} * 8192 * 8192;
        auto instruction = program::MakeProduct(
            {m, n, 1024, false, false, /*rhs_transposed=*/true},
            {Frame(0, bytes), Frame(0, bytes), Frame(0, bytes)}, "product");
        instruction->operation.AsGemm()->dtype = dtype;
        instruction->operation.AsGemm()->preactivation = preactivation;
        const std::string text = program::SerializeProgram(program);
        flatbuffers::FlatBufferBuilder builder;
        builder.Finish(program::CreateInstruction(builder, instruction.get()));
        return ClusterCosts(ClusterOf("a100-80-sxm"), {}, {})
            .Compute(*program::GetProgram(text.data()),
                     *flatbuffers::GetRoot<program::Instruction>(
                         builder.GetBufferPointer()));
      };
  const auto slowness = [&](const char* target, program::DType dtype,
                            int64_t m) {
    return seconds(target, dtype, m, 5025) / seconds(target, dtype, m, 5024);
  };
  EXPECT_NEAR(slowness("cuda:sm_80", program::DType::bf16, 4096), 2.5, 0.1);
  EXPECT_NEAR(slowness("cuda:sm_80", program::DType::f32, 4096), 1, 0.05);
  EXPECT_NEAR(slowness("cpu", program::DType::bf16, 4096), 1, 0.05);
  // The result is one row.
  EXPECT_NEAR(slowness("cuda:sm_80", program::DType::bf16, 1), 1, 0.05);
  // Pre-activations take the time of their bytes, once.
  for (const program::Preactivation preactivation :
       {program::Preactivation::kept, program::Preactivation::given}) {
    const auto more = [&](int64_t n) {
      return seconds("cuda:sm_80", program::DType::bf16, 4096, n,
                     preactivation) -
             seconds("cuda:sm_80", program::DType::bf16, 4096, n);
    };
    EXPECT_NEAR(more(5025),
                planner::MemoryBoundTime(ClusterOf("a100-80-sxm").device,
                                         2.0 * 4096 * 5025),
                1e-9);
    EXPECT_GT(more(5024), 0);
  }
}

// Factors of 8 bits are half the bytes at twice the rate of 16 bits, on devices
// that have such products.
TEST(ClusterCostsTest, FactorsOfEightBitsTakeTheirPeak) {
  const auto seconds = [](const char* cluster, program::GemmFactors factors,
                          int64_t size) {
    program::ProgramT program;
    program.target = "cuda:sm_90a";
    const int64_t bytes = size * size;
    auto instruction = program::MakeProduct(
        {size, size, size, false, false, /*rhs_transposed=*/true},
        {Frame(0, bytes), Frame(0, bytes), Frame(0, 2 * bytes)}, "product");
    instruction->operation.AsGemm()->dtype = program::DType::bf16;
    instruction->operation.AsGemm()->factors = factors;
    const std::string text = program::SerializeProgram(program);
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(program::CreateInstruction(builder, instruction.get()));
    return ClusterCosts(ClusterOf(cluster), {}, {})
        .Compute(*program::GetProgram(text.data()),
                 *flatbuffers::GetRoot<program::Instruction>(
                     builder.GetBufferPointer()));
  };
  using program::GemmFactors;
  const planner::Device h100 = ClusterOf("h100-sxm").device;
  for (const GemmFactors factors :
       {GemmFactors::f8, GemmFactors::f8_lhs_e5m2, GemmFactors::f8_rhs_e5m2}) {
    EXPECT_DOUBLE_EQ(
        seconds("h100-sxm", factors, 4096),
        planner::MatmulTime(h100, core::Precision::kF8, 1, 4096, 4096, 4096));
    const double ratio = seconds("h100-sxm", GemmFactors::same, 16384) /
                         seconds("h100-sxm", factors, 16384);
    EXPECT_NEAR(ratio, 2, 0.05);
    // An A100 multiplies them as bf16.
    EXPECT_DOUBLE_EQ(seconds("a100-80-sxm", factors, 4096),
                     seconds("a100-80-sxm", GemmFactors::same, 4096));
  }
}

TEST(ClusterCostsTest, KernelsTakeTheLongerOfBytesAndWork) {
  const planner::Device device = ClusterOf("a100-80-sxm").device;
  constexpr int64_t kBytes = int64_t{1} << 30;
  auto launch = [&](int64_t range, double cycles, int64_t bytes) {
    program::LaunchT kernel;
    kernel.range = range;
    return SecondsOf(
        program::MakeLaunch(kernel, {Frame(0, bytes), Frame(bytes, bytes)}, 1),
        cycles);
  };
  EXPECT_DOUBLE_EQ(launch(1000, 80, kBytes),
                   planner::MemoryBoundTime(device, 2.0 * kBytes));
  // The kernel takes 20 s on a core with 256 GFLOP/s (4 cycles per ns).
  EXPECT_NEAR(launch(1000, 80e6, 64), 20 * 256e9 / (19.5e12 * device.matmul),
              1e-3);
  EXPECT_DOUBLE_EQ(launch(1000, 80, 64), device.launch);
  EXPECT_DOUBLE_EQ(launch(0, 0, 64), 0);
}

TEST(ClusterCostsTest, AttentionOfGpusTakesItsProductsTime) {
  const planner::Device device = ClusterOf("a100-80-sxm").device;
  auto launch = [&](int64_t operations, int64_t bytes) {
    program::LaunchT kernel;
    kernel.grid = {8, 1, 1};
    kernel.block = {128, 1, 1};
    kernel.operations = operations;
    return SecondsOf(
        program::MakeLaunch(kernel, {Frame(0, bytes), Frame(bytes, bytes)}, 1));
  };
  EXPECT_DOUBLE_EQ(
      launch(int64_t{1} << 40, 64),
      planner::AttentionTime(device, core::Precision::kF32, 0x1p40));
  constexpr int64_t kBytes = int64_t{1} << 30;
  EXPECT_DOUBLE_EQ(launch(1000, kBytes),
                   planner::MemoryBoundTime(device, 2.0 * kBytes));
}

// Seconds of an instruction without a program.
double SecondsOn(const planner::Cluster& cluster,
                 std::unique_ptr<program::InstructionT> instruction) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(program::CreateInstruction(builder, instruction.get()));
  flatbuffers::FlatBufferBuilder of_program;
  of_program.Finish(program::CreateProgram(of_program));
  return ClusterCosts(cluster, {})
      .Compute(*flatbuffers::GetRoot<program::Program>(
                   of_program.GetBufferPointer()),
               *flatbuffers::GetRoot<program::Instruction>(
                   builder.GetBufferPointer()));
}

TEST(ClusterCostsTest, AttentionTakesWhatWasMeasured) {
  planner::Cluster cluster = ClusterOf("a100-80-sxm");
  planner::RateTables& tables = cluster.device.tables;
  tables[planner::kCopyName] = {{{1e3}}, {1e12}};
  cluster.device.launch = 0;
  tables[planner::AttentionName(false)] = {{{1, 100}}, {1e10, 1e12}};
  tables[planner::AttentionName(true)] = {{{1, 100}}, {1e9, 1e11}};
  const auto seconds = [&](int64_t operations, int results) {
    program::LaunchT kernel;
    kernel.range = 8;
    kernel.operations = operations;
    std::vector<program::Buffer> operands;
    for (int i = 0; i < 4; ++i)
      operands.push_back(Frame(i << 18, int64_t{250000}));
    return SecondsOn(cluster, program::MakeLaunch(kernel, operands, results));
  };
  // A million bytes, with 10 and 100 operations per byte.
  EXPECT_NEAR(seconds(10000000, 1), 1e7 / 1e11, 1e-9);
  EXPECT_NEAR(seconds(100000000, 1), 1e8 / 1e12, 1e-9);
  EXPECT_NEAR(seconds(100000000, 3), 1e8 / 1e11, 1e-9);
  // A kernel is never faster than memory.
  EXPECT_NEAR(seconds(1, 1), 1e-6, 1e-12);
}

TEST(ClusterCostsTest, WhatUpdatesFetchesNothingThatItOverwrites) {
  program::TrainingProgram sample(4, 1, 1);
  constexpr int64_t kBytes =
      4 * program::TrainingProgram::kWidth * program::TrainingProgram::kOut;
  program::LaunchT kernel;
  kernel.range = 8;
  auto& body = sample.program.functions[0]->body;
  const auto add = [&](int64_t from, int64_t to) {
    body.push_back(program::MakeLaunch(
        kernel,
        {program::Argument(from, kBytes), program::Argument(to, kBytes)}, 1));
  };
  const size_t first = body.size();
  add(4, 9);  // w to w', which is its memory
  add(0, 9);
  const std::string bytes = program::SerializeProgram(sample.program);
  const program::Program& program = *program::GetProgram(bytes.data());
  const auto& main = *program.functions()->Get(0)->body();
  const auto* over = main.Get(static_cast<unsigned>(first));
  const auto* apart = main.Get(static_cast<unsigned>(first) + 1);
  const ParameterUses uses = ParameterUsesOf(program);
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_TRUE(uses.at(over).overwrites);
  planner::Cluster cluster = ClusterOf("a100-80-sxm");
  cluster.device.launch = 0;
  cluster.device.tables[planner::kCopyName] = {{{1}}, {1e9}};
  cluster.device.tables[planner::kUpdateName] = {{{1}}, {2e9}};
  const ClusterCosts costs(cluster, {}, {}, uses);
  EXPECT_NEAR(costs.Compute(program, *apart), 2 * kBytes / 1e9, 1e-12);
  EXPECT_NEAR(costs.Compute(program, *over), 2 * kBytes / 2e9, 1e-12);
}

// States on the host are read and written over its link, both ways at once.
TEST(ClusterCostsTest, StatesOnTheHostTravelOverItsLink) {
  program::TrainingProgram sample(4, 1, 1);
  constexpr int64_t kState = 1 << 20, kOther = 1 << 10;
  program::LaunchT kernel;
  kernel.range = 8;
  auto& body = sample.program.functions[0]->body;
  // The state "count" is argument 5, and its new value the last argument.
  const size_t first = body.size();
  body.push_back(program::MakeLaunch(
      kernel,
      {program::Argument(5, kState), program::Argument(0, kOther),
       program::Argument(10, kState)},
      1));
  const auto seconds = [&](bool host, double bandwidth) {
    for (auto& parameter : sample.program.parameters)
      if (parameter->name == "count") parameter->host = host;
    const std::string bytes = program::SerializeProgram(sample.program);
    const program::Program& program = *program::GetProgram(bytes.data());
    planner::Cluster cluster = ClusterOf("a100-80-sxm");
    cluster.device.launch = 0;
    cluster.device.host_bandwidth = bandwidth;
    cluster.device.tables[planner::kUpdateName] = {{{1}}, {1e12}};
    return ClusterCosts(cluster, {}, {}, ParameterUsesOf(program))
        .Compute(program, *program.functions()->Get(0)->body()->Get(
                              static_cast<unsigned>(first)));
  };
  EXPECT_NEAR(seconds(false, 1e9), (2.0 * kState + kOther) / 1e12, 1e-12);
  EXPECT_NEAR(seconds(true, 1e9), kState / 1e9, 1e-12);
  // No link is known.
  EXPECT_NEAR(seconds(true, 0), (2.0 * kState + kOther) / 1e12, 1e-12);
}

TEST(ClusterCostsTest, MeasuredConvolutionsAreNoFasterThanMemory) {
  planner::Cluster cluster = ClusterOf("a100-80-sxm");
  cluster.device.tables[planner::kCopyName] = {{{1e3}}, {1e9}};
  planner::RateTable& table = cluster.device.tables[planner::ConvName(
      "f32", "forward", planner::ConvKind::kWindow)];
  const auto seconds = [&](double rate) {
    // Sizes are input channels and output channels.
    table = {{{32, 64}, {32, 64}, {56 * 56}}, {1, rate, 1, 1}};
    const int64_t in = 4 * 32 * 56 * 56, out = 2 * in;
    auto conv = program::MakeConv3x3(
        64, 56, {Frame(0, in), Frame(0, 4 * 64 * 32 * 9), Frame(0, out)});
    conv->operation.AsConv()->input_shape[1] = 32;
    conv->operation.AsConv()->weight_shape[1] = 32;
    return SecondsOn(cluster, std::move(conv));
  };
  EXPECT_NEAR(seconds(1e9), 2.0 * 56 * 56 * 64 * 32 * 9 / 1e9, 1e-9);
  EXPECT_NEAR(seconds(1e13), 4e-9 * (96 * 56 * 56 + 64 * 32 * 9), 1e-9);
}

// A row is multiplied by one matrix: the number of matrices adds little.
TEST(ClusterCostsTest, GroupedProductsDoEachRowOnce) {
  const auto seconds = [](int64_t rows, int64_t groups, bool weight_grad) {
    program::GroupedGemmT gemm;
    gemm.ids = program::DType::i32;
    gemm.rows = gemm.lhs_rows = rows;
    gemm.groups = groups;
    gemm.n = gemm.k = 1024;
    gemm.weight_grad = weight_grad;
    program::OperationUnion operation;
    operation.Set(std::move(gemm));
    const program::Buffer some = Frame(0, 4096);
    return SecondsOf(program::MakeInstruction(
        std::move(operation), {some, some, some, some}, 1, "experts"));
  };
  for (const bool weight_grad : {false, true}) {
    EXPECT_GT(seconds(8192, 8, weight_grad),
              2.0 * 8192 * 1024 * 1024 / 19.5e12);
    EXPECT_LT(seconds(8192, 8, weight_grad),
              1.5 * seconds(8192, 1, weight_grad));
    EXPECT_GT(seconds(16384, 8, weight_grad),
              1.5 * seconds(8192, 8, weight_grad));
  }
  // One row reads one matrix, however many there are.
  EXPECT_DOUBLE_EQ(seconds(1, 8, false), seconds(1, 64, false));
}

TEST(ClusterCostsTest, ConvolutionsAreProducts) {
  const int64_t bytes = 4 * 64 * 56 * 56;
  const double seconds = SecondsOf(program::MakeConv3x3(
      64, 56, {Frame(0, bytes), Frame(0, 4 * 64 * 64 * 9), Frame(0, bytes)}));
  const planner::Device device = ClusterOf("a100-80-sxm").device;
  EXPECT_DOUBLE_EQ(seconds, planner::MatmulTime(device, core::Precision::kF32,
                                                1, 56 * 56, 64, 64 * 9));
}

TEST(ClusterCostsTest, AProgramOnAClusterAndItsFaults) {
  const program::DividedProgram sample(/*batch=*/8, /*data_axis=*/2,
                                       /*tensor_axis=*/4);
  const std::string bytes = sample.Parts().program;
  const program::Program& program = *program::GetProgram(bytes.data());
  auto step = [&](const std::string& cluster,
                  const std::vector<std::string>& texts) {
    auto faults = ParseFaults(texts, 8);
    EXPECT_TRUE(faults.ok()) << faults.status();
    return Simulate(program, ClusterCosts(ClusterOf(cluster), *faults));
  };
  const Simulation one_node = step("a100-80-sxm", {});
  EXPECT_EQ(one_node.classes.size(), 1u);
  EXPECT_GT(one_node.times[0].collectives, 0);
  const Simulation slow_link = step("a100-80-sxm", {"link=0-1:0.1"});
  EXPECT_GT(slow_link.step, one_node.step);
  EXPECT_GT(slow_link.classes.size(), 1u);
  const Simulation slow_device = step("a100-80-sxm", {"device=5:0.5"});
  EXPECT_GT(slow_device.step, one_node.step);
  EXPECT_GT(slow_device.Bubble(), 0);
  EXPECT_DOUBLE_EQ(one_node.Bubble(), 0);
}

// A slow link has less bandwidth but normal latency. It hardly slows a small
// message, and slows a large one by its full factor.
TEST(ClusterCostsTest, SlowLinksHaveLessBandwidth) {
  auto faults = ParseFaults({"link=0-1:0.1"}, 8);
  ASSERT_TRUE(faults.ok());
  const ClusterCosts sound(ClusterOf("a100-80-sxm"), {}),
      slow(ClusterOf("a100-80-sxm"), *faults);
  EXPECT_NEAR(slow.Transfer(0, 1, 8) / sound.Transfer(0, 1, 8), 1, 0.01);
  EXPECT_NEAR(slow.Transfer(0, 1, 1 << 30) / sound.Transfer(0, 1, 1 << 30), 10,
              0.1);
  EXPECT_EQ(slow.Transfer(0, 2, 1 << 30), sound.Transfer(0, 2, 1 << 30));
}

TEST(ClusterCostsTest, TracesHaveARowForEachRankAndStream) {
  const program::PipelineProgram sample(/*batch=*/4, /*data_axis=*/1);
  const std::string bytes = sample.Parts().program;
  const program::Program& program = *program::GetProgram(bytes.data());
  const Simulation simulation =
      Simulate(program, ClusterCosts(ClusterOf("a100-80-sxm"), {}), {1, true});
  const std::string trace = WriteTrace(simulation, program);
  for (const char* part :
       {"\"name\":\"rank 0, stage 0\"", "\"name\":\"rank 1, stage 1\"",
        "\"name\":\"computes\"", "\"name\":\"sends\"", "\"cat\":\"compute\"",
        "\"cat\":\"transfer\"", "\"cat\":\"wait\"", "\"name\":\"memory\""})
    EXPECT_THAT(trace, HasSubstr(part));
  EXPECT_EQ(JsonString("a\"\\\n"), "\"a\\\"\\\\\\u000a\"");
}

TEST(ClusterCostsTest, ReportsArePagesWithEverythingInThem) {
  const program::DividedProgram sample(/*batch=*/8, /*data_axis=*/2,
                                       /*tensor_axis=*/4);
  const std::string bytes = sample.Parts().program;
  const program::Program& program = *program::GetProgram(bytes.data());
  const Simulation simulation =
      Simulate(program, ClusterCosts(ClusterOf("a100-80-sxm"), {}), {1, true});
  const std::string page =
      WriteReport(simulation, program, {"a<b", "data=2", "a node", 8e10});
  for (const char* part :
       {"<h1>a&lt;b</h1>", "rank 0 and 7 like it", "<h2>Timeline</h2>",
        "all_gather", "class=\"c1\"", "80.0 GB of a device", "</html>"})
    EXPECT_THAT(page, HasSubstr(part));
  for (const char* part : {"http", "src=", "nan", "inf%"})
    EXPECT_THAT(page, Not(HasSubstr(part)));
  EXPECT_EQ(HtmlText("<&\">"), "&lt;&amp;&quot;&gt;");
}

}  // namespace
}  // namespace partita::simulator
