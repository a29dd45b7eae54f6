// Pipelines on threads: two stages with their own parameters exchange
// activations and gradients. They equal the undivided step, and end in bounded
// time when a stage dies or stalls.
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random_fill.h"
#include "runtime/comm/local.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/executor/bad_device.h"
#include "runtime/executor/rank.h"
#include "runtime/executor/rank_group.h"
#include "runtime/program/test_pipeline_program.h"
#include "runtime/program/test_program.h"

namespace partita::executor {
namespace {

using base::DType;
using program::PipelineProgram;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

using Floats = std::vector<float>;
constexpr int64_t kBatch = 8, kWidth = PipelineProgram::kWidth,
                  kHidden = PipelineProgram::kHidden,
                  kOut = PipelineProgram::kOut;
constexpr float kRate = 0.001f;

Floats Seeded(int64_t count, uint64_t seed) {
  Floats values(static_cast<size_t>(count));
  EXPECT_TRUE(base::FillElements({"uniform", 1.0, seed}, DType::kF32, 0, count,
                                 values.data())
                  .ok());
  return values;
}

void ExpectNear(const Floats& expected, const Floats& found) {
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(expected[i], found[i], 1e-4) << i;
}

// Tensors of one step. A run that gave up may still write to them.
struct Step {
  Floats x, t;
  int64_t number = 1;
  float loss = -1;
  int64_t at = -1;
  Floats y = Floats(kBatch * kOut, -1);
  std::vector<ConstTensor> Inputs() const {
    return {{DType::kF32, {kBatch, kWidth}, x.data()},
            {DType::kF32, {kBatch, kOut}, t.data()},
            {DType::kF32, {}, &kRate},
            {DType::kI64, {}, &number}};
  }
  std::vector<MutableTensor> Outputs() {
    return {{DType::kF32, {}, &loss},
            {DType::kI64, {}, &at},
            {DType::kF32, {kBatch, kOut}, y.data()}};
  }
};

class PipelineTest : public ::testing::Test {
 protected:
  PipelineTest() {
    folder_ = ::testing::TempDir() + "/pipeline_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/model.partita";
    options_.make_device = [](int) { return cpu::MakeCpuDevice({1}); };
    options_.comm.timeout = milliseconds(20000);
    step_->x = Seeded(kBatch * kWidth, 7);
    step_->t = Seeded(kBatch * kOut, 8);
  }
  ~PipelineTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<RankGroup> Load(const PipelineProgram& pipeline) {
    const absl::Status status = program::WriteArtifact(path_, pipeline.Parts());
    EXPECT_TRUE(status.ok()) << status;
    auto ranks = RankGroup::LoadAll(path_, options_);
    EXPECT_TRUE(ranks.ok()) << ranks.status();
    return ranks.ok() ? *std::move(ranks) : nullptr;
  }

  static Floats Read(RankGroup& ranks, const std::string& name, int64_t rows,
                     int64_t columns) {
    Floats values(static_cast<size_t>(rows * columns), -99);
    const absl::Status status = ranks.ReadParameter(
        name, {DType::kF32, {rows, columns}, values.data()});
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }

  std::string folder_, path_;
  GroupOptions options_;
  std::shared_ptr<Step> step_ = std::make_shared<Step>();
};

TEST_F(PipelineTest, TrainsAsTheUndividedStep) {
  for (const int64_t data : {1, 2, 4}) {
    SCOPED_TRACE(data);
    const auto ranks = Load(PipelineProgram(kBatch, data));
    ASSERT_NE(ranks, nullptr);
    EXPECT_EQ(ranks->devices(), 2 * data);
    Floats w = PipelineProgram::StartOfW(), u = PipelineProgram::StartOfU();
    EXPECT_EQ(Read(*ranks, "w", kHidden, kOut), w);
    EXPECT_EQ(Read(*ranks, "u", kWidth, kHidden), u);
    for (step_->number = 1; step_->number <= 4; ++step_->number) {
      const auto expected =
          program::PipelineStep(step_->x, step_->t, kRate, w, u);
      const absl::Status status = ranks->Run(step_->Inputs(), step_->Outputs());
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_NEAR(step_->loss, expected.loss, 1e-4 * expected.loss);
      EXPECT_EQ(step_->at, step_->number);
      ExpectNear(expected.y, step_->y);
      ExpectNear(w, Read(*ranks, "w", kHidden, kOut));
      ExpectNear(u, Read(*ranks, "u", kWidth, kHidden));
    }
  }
}

TEST_F(PipelineTest, ParametersAreReplacedOnTheStageThatHoldsThem) {
  const auto ranks = Load(PipelineProgram(kBatch, 2));
  ASSERT_NE(ranks, nullptr);
  ASSERT_EQ(ranks->parameters().size(), 3u);
  EXPECT_TRUE(ranks->parameters()[0].updated);
  EXPECT_FALSE(ranks->parameters()[2].updated);
  Floats w = Seeded(kHidden * kOut, 20), u = Seeded(kWidth * kHidden, 21);
  const auto write = [&](const std::string& name, int64_t rows, int64_t columns,
                         const Floats& values) {
    return ranks->WriteParameter(name,
                                 {DType::kF32, {rows, columns}, values.data()});
  };
  EXPECT_TRUE(write("w", kHidden, kOut, w).ok());
  EXPECT_TRUE(write("u", kWidth, kHidden, u).ok());
  EXPECT_THAT(std::string(write("f", kWidth, kWidth, Seeded(36, 1)).message()),
              HasSubstr("parameter 'f': the program does not update it"));
  const auto expected = program::PipelineStep(step_->x, step_->t, kRate, w, u);
  ASSERT_TRUE(ranks->Run(step_->Inputs(), step_->Outputs()).ok());
  EXPECT_NEAR(step_->loss, expected.loss, 1e-4 * expected.loss);
  ExpectNear(w, Read(*ranks, "w", kHidden, kOut));
  EXPECT_EQ(Read(*ranks, "f", kWidth, kWidth)[5], PipelineProgram::Frozen(5));
}

TEST_F(PipelineTest, DevicesHoldWhatTheirStageNames) {
  const auto ranks = Load(PipelineProgram(kBatch, 2));
  ASSERT_NE(ranks, nullptr);
  const std::vector<RankUse> uses = ranks->Uses().value();
  ASSERT_EQ(uses.size(), 4u);
  for (size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(uses[rank].entry, static_cast<int>(rank % 2));
    // w or u, and the derived g unless the library packs it, which depends on
    // the processor.
    const MemoryUse& memory = uses[rank].memory;
    const bool first = rank % 2 == 0;
    const int64_t derived = first && memory.packed == 0 ? kWidth * kWidth : 0;
    EXPECT_EQ(memory.globals,
              4 * (kHidden * (first ? kWidth : kOut) + derived));
    EXPECT_GT(uses[rank].flops, 0);
  }
  EXPECT_EQ(uses[0].steps, 11);
  EXPECT_EQ(uses[1].steps, 13);
}

TEST_F(PipelineTest, ProfilesOfAllStages) {
  const auto ranks = Load(PipelineProgram(kBatch, 2));
  ASSERT_NE(ranks, nullptr);
  EXPECT_TRUE(ranks->profiles().empty());
  ranks->EnableProfile();
  ASSERT_TRUE(ranks->Run(step_->Inputs(), step_->Outputs()).ok());
  ASSERT_EQ(ranks->profiles().size(), 2u);
  const std::string first = ranks->profiles()[0]->ToString(),
                    second = ranks->profiles()[1]->ToString();
  EXPECT_THAT(first, HasSubstr("send f32[2,5] to entry 1"));
  EXPECT_THAT(first, HasSubstr("receive f32[2,5] from entry 1"));
  EXPECT_THAT(second, HasSubstr("receive f32[2,5] from entry 0"));
  EXPECT_THAT(second, Not(HasSubstr("from entry 1")));
}

TEST_F(PipelineTest, NumbersThatAreNotFiniteAreTracedToTheirStage) {
  PipelineProgram pipeline(kBatch, 1);
  program::DescribeOutputs(pipeline.program);
  const auto ranks = Load(pipeline);
  ASSERT_NE(ranks, nullptr);
  ASSERT_TRUE(ranks->EnableNanTrace().ok());
  ASSERT_TRUE(ranks->Run(step_->Inputs(), step_->Outputs()).ok());
  EXPECT_TRUE(ranks->CheckFinite().ok());
  const auto after_u_of = [&](float value) {
    const Floats u(kWidth * kHidden, value);
    const ConstTensor tensor = {DType::kF32, {kWidth, kHidden}, u.data()};
    EXPECT_TRUE(ranks->WriteParameter("u", tensor).ok());
    const Floats w = PipelineProgram::StartOfW();
    EXPECT_TRUE(
        ranks->WriteParameter("w", {DType::kF32, {kHidden, kOut}, w.data()})
            .ok());
    EXPECT_TRUE(ranks->Run(step_->Inputs(), step_->Outputs()).ok());
    return std::string(ranks->CheckFinite().message());
  };
  // The outcomes of both stages are NaN; the first stage's parameter is the
  // cause.
  EXPECT_EQ(after_u_of(std::nanf("")),
            "rank 0 (data 0, pipe 0): parameter 'u' holds NaN before the step");
  EXPECT_THAT(after_u_of(3e38f),
              HasSubstr("rank 1 (data 0, pipe 1): 'y' (product) made NaN, "
                        "first in element [0] of f32[56], of an infinite "
                        "number: 'h' (receive f32[4,5] from entry 0)"));
}

// Same as across processes: whole outputs and parameters are gathered on rank
// 0, which holds only some of them.
TEST_F(PipelineTest, RankZeroGathersWhatOthersHold) {
  const PipelineProgram pipeline(kBatch, 2);
  ASSERT_TRUE(program::WriteArtifact(path_, pipeline.Parts()).ok());
  Floats w = PipelineProgram::StartOfW(), u = PipelineProgram::StartOfU();
  const auto expected = program::PipelineStep(step_->x, step_->t, kRate, w, u);
  auto communicators = comm::MakeLocalCommunicators(4, options_.comm);
  std::vector<absl::Status> statuses(4);
  const auto work = [&](comm::Communicator& communicator) -> absl::Status {
    auto artifact = program::Artifact::Open(path_);
    if (!artifact.ok()) return artifact.status();
    auto rank = Rank::Load(
        std::make_shared<const program::Artifact>(*std::move(artifact)),
        options_, communicator.rank(), &communicator);
    if (!rank.ok()) return rank.status();
    const bool root = communicator.rank() == 0;
    std::vector<MutableTensor> outputs = step_->Outputs();
    if (!root)
      for (MutableTensor& output : outputs) output.data = nullptr;
    absl::Status status = (*rank)->Run(step_->Inputs(), outputs);
    if (status.ok())
      status = (*rank)->Gather(communicator, outputs, Rank::Which::kNumbers);
    if (root) {
      EXPECT_NEAR(step_->loss, expected.loss, 1e-4 * expected.loss);
      EXPECT_EQ(step_->y[0], -1);
    }
    if (status.ok()) status = (*rank)->Gather(communicator, outputs);
    return status;
  };
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 4; ++rank)
    threads.emplace_back([&, rank] {
      statuses[rank] = work(*communicators[rank]);
      if (!statuses[rank].ok()) communicators[rank]->Fail(statuses[rank]);
    });
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses)
    EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(step_->at, 1);
  ExpectNear(expected.y, step_->y);
}

// Rank 2, in the first stage, misbehaves before it sends anything.
class BadStageTest : public PipelineTest {
 protected:
  absl::Status RunWith(BadDevice::Habit habit) {
    PipelineProgram pipeline(kBatch, 2);
    auto& body = pipeline.program.functions[2]->body;
    std::rotate(body.begin(), body.end() - 2, body.end() - 1);
    options_.make_device =
        [habit](int rank) -> absl::StatusOr<std::unique_ptr<device::Device>> {
      auto cpu = cpu::MakeCpuDevice({1});
      if (rank != 2 || !cpu.ok()) return cpu;
      return std::unique_ptr<device::Device>(
          std::make_unique<BadDevice>(*std::move(cpu), habit));
    };
    const auto ranks = Load(pipeline);
    if (ranks == nullptr) return absl::OkStatus();
    static std::vector<std::shared_ptr<Step>> kept;
    kept.push_back(step_);
    const auto begin = std::chrono::steady_clock::now();
    const absl::Status status = ranks->Run(step_->Inputs(), step_->Outputs());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(10000));
    return status;
  }
};

TEST_F(BadStageTest, AStageThatFailsEndsTheOthers) {
  const absl::Status status = RunWith(BadDevice::Habit::kFail);
  EXPECT_EQ(status.message(), "rank 2: 'copy' failed: a bit fell over");
}

TEST_F(BadStageTest, AStageThatStallsIsNamed) {
  options_.comm.timeout = milliseconds(300);
  const absl::Status status = RunWith(BadDevice::Habit::kHang);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      MatchesRegex(".*rank 2 did not arrive at (transfer 'entry 0 to entry 1' "
                   "of f32.2,5.|all_reduce 'u.sum' of f32.6,5.) within 300 ms "
                   "and made no progress.*"));
  // The thread left behind must end before the folder is removed.
  std::this_thread::sleep_for(milliseconds(1500));
}

}  // namespace
}  // namespace partita::executor
