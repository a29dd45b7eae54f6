// Probes are valid programs with an operation for every cell of a table, and a
// table has the times of a profile.
#include "compiler/measure/measure.h"

#include <cstdlib>
#include <set>
#include <string>

#include "compiler/measure/probe_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/program/test_program.h"
#include "runtime/program/test_training_program.h"

namespace partita::measure {
namespace {

using testing::HasSubstr;

std::string Folder() {
  const char* folder = std::getenv("TEST_TMPDIR");
  return folder == nullptr ? testing::TempDir() : folder;
}

// A machine on which every operation takes 1 ms, except 2 ms for convolutions
// from 32 to 128 channels. Opening the artifact checks the program.
absl::StatusOr<ProfileTimes> TakeAMillisecond(const std::string& path) {
  const auto artifact = program::Artifact::Open(path);
  if (!artifact.ok()) return artifact.status();
  std::string rows;
  std::set<std::string> seen;
  const program::Program& program = artifact->program();
  bool met = false;
  for (unsigned f = 0; f < program.functions()->size(); ++f)
    for (const program::Instruction* instruction :
         *program.functions()->Get(f)->body()) {
      std::string name = instruction->name()->str();
      if (name == "ball") {
        const bool sends = instruction->operation_as_Send() != nullptr;
        const auto count = instruction->operands()->Get(0)->bytes() / 4;
        const std::string entry = f == 0 ? "entry 1" : "entry 0";
        name = sends
                   ? "send f32[" + std::to_string(count) + "] to " + entry
                   : "receive f32[" + std::to_string(count) + "] from " + entry;
      } else if (name == "meet") {
        EXPECT_NE(instruction->operation_as_Collective(), nullptr);
      } else if (name != "values") {
        if (instruction->operation_as_Collective() != nullptr)
          EXPECT_TRUE(met) << "nothing holds devices together before " << name;
        EXPECT_TRUE(seen.insert(name).second) << "twice: " << name;
      }
      met = name == "meet";
      rows += (rows.empty() ? "" : ", ") + std::string("{\"name\": \"") + name +
              " (ours)\", \"calls\": 1, \"median_ms\": " +
              (name.find(" * 128x32x") == std::string::npos ? "1}" : "2}");
    }
  return ProfileTimes::Parse("{\"profile\": [" + rows + "]}");
}

TEST(MeasureTables, HasATableForEachOperation) {
  MeasureOptions options;
  options.devices = 2;
  options.precisions = {core::Precision::kF32, core::Precision::kBF16};
  options.folder = Folder();
  options.run = TakeAMillisecond;
  int steps = 0;
  options.progress = [&](const std::string&, int number, int count) {
    EXPECT_EQ(number, ++steps);
    EXPECT_LE(number, count);
  };
  const auto tables = MeasureTables(options);
  ASSERT_TRUE(tables.ok()) << tables.status();
  // Four forms of products in two precisions, three directions of three
  // convolutions, five collectives, messages.
  EXPECT_EQ(tables->size(), 8u + 9 + 5 + 1);
  EXPECT_EQ(steps, 8 + 9 + 5 + 1);
  for (const auto& [name, table] : *tables) {
    EXPECT_EQ(static_cast<size_t>(planner::DimensionsOf(name)),
              table.sizes.size())
        << name;
    size_t cells = 1;
    for (const auto& sizes : table.sizes) cells *= sizes.size();
    EXPECT_EQ(table.rates.size(), cells) << name;
  }
  const auto rate = [&](const std::string& name, std::vector<double> at) {
    return tables->at(name).At(at);
  };
  // To the digits that a table has.
  EXPECT_NEAR(rate("product bf16 tn", {128, 512, 32}) / (2e3 * 128 * 512 * 32),
              1, 1e-3);
  EXPECT_NEAR(rate("convolution f32 forward window", {128, 32, 784}) /
                  (2e3 * 784 * 128 * 32 * 9),
              1, 1e-3);
  EXPECT_NEAR(rate("convolution f32 forward window", {32, 128, 784}) /
                  (1e3 * 784 * 128 * 32 * 9),
              1, 1e-3);
  EXPECT_NEAR(rate("convolution f32 input_grad depthwise", {128, 784}) /
                  (2e3 * 784 * 128 * 9),
              1, 1e-3);
  const double bytes = tables->at("all_reduce 2").sizes[0][2];
  EXPECT_EQ(bytes, 4 << 18);
  EXPECT_NEAR(tables->at("all_reduce 2").Seconds(bytes), 1e-3, 1e-6);
  // There and back, each with a send and a receive.
  EXPECT_NEAR(tables->at("send").Seconds(4 << 18), 1e-3, 1e-6);
}

TEST(MeasureTables, OneDeviceSendsNothing) {
  MeasureOptions options;
  options.precisions = {core::Precision::kF32};
  options.small = true;
  options.folder = Folder();
  options.run = TakeAMillisecond;
  options.progress = [](const std::string&, int, int) {};
  const auto tables = MeasureTables(options);
  ASSERT_TRUE(tables.ok()) << tables.status();
  EXPECT_EQ(tables->size(), 4u + 9);
}

TEST(EvictCaches, LaunchesComeAfterBlocksLargerThanCaches) {
  program::TrainingProgram sample(4, 1, 1);
  sample.program.kernels.push_back(program::MakeKernel("kernel"));
  program::LaunchT kernel;
  kernel.range = kernel.grain = 1;
  auto& body = sample.program.functions[0]->body;
  const size_t before = body.size();
  for (int i = 0; i < 2; ++i)
    body.push_back(program::MakeLaunch(
        kernel, {program::Argument(4, 4), program::Argument(9, 4)}, 1));
  const std::string path = Folder() + "/cold.partita";
  program::ArtifactParts parts;
  parts.program = program::SerializeProgram(sample.program);
  parts.code = "code";
  parts.data = sample.data;
  ASSERT_TRUE(program::WriteArtifact(path, parts).ok());
  ASSERT_TRUE(EvictCaches(path).ok());
  const auto artifact = program::Artifact::Open(path);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  EXPECT_EQ(artifact->code(), "code");
  EXPECT_EQ(artifact->data().size(), static_cast<size_t>(sample.data.size()));
  const auto& cold = *artifact->program().functions()->Get(0)->body();
  ASSERT_EQ(cold.size(), before + 6);
  for (unsigned i = 0; i < 6; ++i) {
    const program::Instruction& instruction =
        *cold.Get(static_cast<unsigned>(before) + i);
    if (i % 3 == 2) {
      EXPECT_NE(instruction.operation_as_Launch(), nullptr) << i;
      continue;
    }
    ASSERT_NE(instruction.operation_as_Copy(), nullptr) << i;
    EXPECT_GE(instruction.operands()->Get(0)->bytes(), 64 << 20);
  }
}

TEST(ProfileTimes, AreOfOneCallByTheBeginningOfTheName) {
  const auto times = ProfileTimes::Parse(
      R"json({"profile": [{"name": "gemm 1x2x3x4 f32 (brgemm)", "calls": 2, "median_ms": 3, "ms": 9},
                      {"name": "gemm 1x2x3x4 f32 bias (brgemm)", "calls": 1, "median_ms": 5},
                      {"name": "all_reduce sum f32[4] over group", "calls": 1, "median_ms": 7}]
})json");
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_DOUBLE_EQ(*times->Seconds("gemm 1x2x3x4 f32"), 1.5e-3);
  EXPECT_DOUBLE_EQ(*times->Seconds("all_reduce sum f32[4]"), 7e-3);
  EXPECT_THAT(std::string(times->Seconds("gemm 1x2x3x4").status().message()),
              HasSubstr("expected 'gemm 1x2x3x4' in the profile of a probe"));
}

TEST(ProfileTimes, RefusesWhatIsNoReport) {
  for (const char* text :
       {"", "[]", "{}", R"({"profile": [{"name": 1}]})",
        R"({"profile": [{"name": "a", "calls": 1, "median_ms": "x"}]})"})
    EXPECT_EQ(ProfileTimes::Parse(text).status().code(),
              absl::StatusCode::kDataLoss)
        << text;
}

}  // namespace
}  // namespace partita::measure
