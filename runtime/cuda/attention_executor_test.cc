// Whole programs whose launches compute an attention, on recorded GPUs: the
// library computes it, or the kernel is launched.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/attention_testing.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_executor_testing.h"
#include "runtime/device/null_device.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/profile.h"
#include "runtime/executor/rank_group.h"
#include "runtime/program/library_limits.h"
#include "runtime/program/test_program.h"

namespace partita::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr char kTwoKernels[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry attend(.param .u64 a, .param .u64 b, .param .u64 c, "
    ".param .u64 d) { ret; }\n"
    ".visible .entry attend_too(.param .u64 a, .param .u64 b, .param .u64 c, "
    ".param .u64 d) { ret; }\n";
constexpr int kLaunches = 3;

std::unique_ptr<program::AttentionT> ToProgram(
    const device::AttentionDesc& desc) {
  auto attention = std::make_unique<program::AttentionT>();
  attention->dtype = program::DType::bf16;
  attention->batch = desc.batch;
  attention->heads = desc.heads;
  attention->groups = desc.groups;
  attention->queries = desc.queries;
  attention->keys = desc.keys;
  attention->size = desc.size;
  attention->value_size = desc.value_size;
  attention->scale = desc.scale;
  attention->causal = desc.causal;
  attention->causal_offset = desc.causal_offset;
  const auto tensor = [](const device::AttentionDesc::Tensor& from) {
    return std::make_unique<program::AttentionTensor>(
        from.operand, from.offset, from.strides[0], from.strides[1],
        from.strides[2]);
  };
  attention->q = tensor(desc.q);
  attention->k = tensor(desc.k);
  attention->v = tensor(desc.v);
  attention->out = tensor(desc.out);
  attention->lse = static_cast<int>(desc.lse);
  return attention;
}

// main(x) -> out0, lse0, out1, lse1, out2, lse2: three launches of one
// attention, the last by another kernel. All ranks have all tensors.
program::ProgramT AttentionProgram(const device::AttentionDesc& desc,
                                   int ranks) {
  using program::DType;
  program::ProgramT program;
  program.producer = "test";
  program.target = kTarget;
  program.mesh = program::MakeMesh({{"data", ranks}});
  for (const char* kernel : {"attend", "attend_too"})
    program.kernels.push_back(program::MakeKernel(kernel));
  const std::vector<int64_t> joint = {JointSize(desc)},
                             rows = {desc.batch, desc.queries,
                                     desc.heads * desc.value_size},
                             sums = {desc.batch, desc.heads, desc.queries};
  const int64_t count = desc.batch * desc.queries * desc.heads;
  program.inputs.push_back(program::MakePort("x", DType::bf16, joint));
  auto main =
      program::MakeFunction("main", 1 + 2 * kLaunches, 2 * kLaunches, 0);
  for (int i = 0; i < kLaunches; ++i) {
    const std::string number = std::to_string(i);
    program.outputs.push_back(
        program::MakePort("out" + number, DType::bf16, rows));
    program.outputs.push_back(
        program::MakePort("lse" + number, DType::f32, sums));
    program::LaunchT launch;
    launch.kernel = i == 2 ? 1 : 0;
    launch.grid = launch.block = {1, 1, 1};
    launch.scratch_bytes = kLaunchScratch;
    launch.attention = ToProgram(desc);
    main->body.push_back(program::MakeLaunch(
        launch,
        {program::Argument(0, 2 * joint[0]),
         program::Argument(1 + 2 * i, 2 * count * desc.value_size),
         program::Argument(2 + 2 * i, 4 * count)},
        2));
  }
  program.functions.push_back(std::move(main));
  program::AddEntry(program, 0, {});
  return program;
}

size_t Count(const std::string& log, const std::string& call) {
  size_t count = 0;
  for (size_t at = 0; (at = log.find(call, at)) != std::string::npos; ++at)
    ++count;
  return count;
}

class AttentionExecutorTest : public CudaExecutorTest {
 protected:
  AttentionExecutorTest()
      : desc_(DescribeAttention(DType::kBF16, /*causal=*/true)),
        x_(Numbers(static_cast<size_t>(JointSize(desc_)))),
        bits_(ToBits(DType::kBF16, x_)) {
    options_ = {0, kLibrary, "none", kLibrary};
    options_.tuned = folder_ + "/model.algorithms";
    options_.measures = true;
    recording_.Register("attend", &Attend);
    recording_.Register("attend_too", &Attend);
    recording_.SetLaunchTime(kSlow);
    WriteProgram(1);
  }
  ~AttentionExecutorTest() override { recording_.SetLaunchTime(0); }

  void WriteProgram(int ranks) {
    const absl::Status status = program::WriteArtifact(
        path_, {program::SerializeProgram(AttentionProgram(desc_, ranks)),
                kTwoKernels, program::DataSection()});
    ASSERT_TRUE(status.ok()) << status;
  }

  // The six outputs of a run. NaN: not written.
  struct Outputs {
    std::vector<std::vector<uint16_t>> out;
    std::vector<Floats> lse;
  };
  // `model` is an Executor or a RankGroup.
  template <typename Model>
  Outputs Run(Model& model) const {
    const auto rows =
        static_cast<size_t>(desc_.batch * desc_.queries * desc_.heads);
    const auto size = static_cast<size_t>(desc_.value_size);
    Outputs made;
    made.out.assign(kLaunches, std::vector<uint16_t>(rows * size, 0x7fff));
    made.lse.assign(kLaunches, Floats(rows, NAN));
    std::vector<executor::MutableTensor> outputs;
    for (size_t i = 0; i < kLaunches; ++i) {
      outputs.push_back(
          {DType::kBF16, model.outputs()[2 * i].shape, made.out[i].data()});
      outputs.push_back(
          {DType::kF32, model.outputs()[2 * i + 1].shape, made.lse[i].data()});
    }
    const absl::Status status =
        model.Run({{DType::kBF16, {JointSize(desc_)}, bits_.data()}}, outputs);
    EXPECT_TRUE(status.ok()) << status;
    return made;
  }
  void ExpectValues(const Outputs& made) const {
    const AttentionValues expected = AttentionReference(desc_, x_);
    for (size_t launch = 0; launch < kLaunches; ++launch) {
      const Floats out = ToFloats(DType::kBF16, made.out[launch]);
      // Weights and results are rounded to 16 bits.
      for (size_t i = 0; i < out.size(); ++i)
        ASSERT_NEAR(out[i], expected.out[i], 3e-2) << launch << " " << i;
      for (size_t i = 0; i < expected.lse.size(); ++i)
        ASSERT_NEAR(made.lse[launch][i], expected.lse[i], 1e-5) << i;
    }
  }
  static void ExpectMarks(const Outputs& made) {
    for (const std::vector<uint16_t>& out : made.out) EXPECT_EQ(out[0], kMark);
  }
  // Loads the program on a new device of options_, runs it, and expects that
  // all three attentions are launched.
  void ExpectLaunches() {
    const auto device = std::move(MakeCudaDevice(options_)).value();
    const auto executor = executor::Executor::Load(path_, *device);
    ASSERT_TRUE(executor.ok()) << executor.status();
    recording_.TakeLog();
    ExpectMarks(Run(**executor));
    const std::string log = recording_.TakeLog();
    EXPECT_EQ(Count(log, "cuLaunchKernel attend"), 3u);
    EXPECT_THAT(log, Not(HasSubstr("cudnn")));
    EXPECT_EQ((*executor)->Memory().scratch, kLaunchScratch);
  }

  const device::AttentionDesc desc_;
  const Floats x_;
  const std::vector<uint16_t> bits_;
  CudaOptions options_;
};

// Runs the steps, captures them, and replays them.
TEST_F(AttentionExecutorTest, TheLibraryComputesLaunches) {
  const auto device = std::move(MakeCudaDevice(options_)).value();
  recording_.TakeLog();
  auto executor = executor::Executor::Load(path_, *device);
  ASSERT_TRUE(executor.ok()) << executor.status();
  // Equal attentions by the same kernel are prepared once.
  const size_t plans =
      Count(recording_.TakeLog(), recording::kGetHeuristicsResults);
  EXPECT_EQ(plans, 2u);
  for (int run = 0; run < 4; ++run) {
    SCOPED_TRACE(run);
    recording_.TakeLog();
    ExpectValues(Run(**executor));
    const std::string log = recording_.TakeLog();
    EXPECT_THAT(log, Not(HasSubstr("cuLaunchKernel")));
    EXPECT_EQ(Count(log, "engine 3\n"), run < 2 ? 3u : 0u);
    EXPECT_EQ(Count(log, "cuGraphLaunch"), run < 1 ? 0u : 1u);
  }
}

TEST_F(AttentionExecutorTest, ProfilesNameTheLibrary) {
  const auto names = [&] {
    const auto device = std::move(MakeCudaDevice(options_)).value();
    auto executor = std::move(executor::Executor::Load(path_, *device)).value();
    executor->EnableProfile();
    Run(*executor);
    std::vector<std::string> found;
    for (const executor::ProfileRow& row : executor->profile()->Rows())
      found.push_back(row.name + " " + std::to_string(row.calls));
    return found;
  };
  EXPECT_THAT(names(),
              UnorderedElementsAre("attend (cuDNN) 2", "attend_too (cuDNN) 1"));
  options_.dnn = "none";
  EXPECT_THAT(names(), UnorderedElementsAre("attend 2", "attend_too 1"));
}

// The workspace of the recorded plan exceeds the scratch of the launch.
TEST_F(AttentionExecutorTest, TheScratchHoldsTheWorkspace) {
  const auto device = std::move(MakeCudaDevice(options_)).value();
  const auto executor =
      std::move(executor::Executor::Load(path_, *device)).value();
  EXPECT_EQ(executor->Memory().scratch, 1024);
  EXPECT_LE(executor->Memory().scratch, program::kAttentionWorkspaceBytes);
}

TEST_F(AttentionExecutorTest, WhatTheDeviceRefusesIsLaunched) {
  recording_.SetLaunchTime(kFast);
  ExpectLaunches();
  recording_.SetLaunchTime(kSlow);
  recording_.FailNext("cudnnBackendFinalize", static_cast<CuResult>(3000),
                      1 << 20);
  options_.tuned = "";
  ExpectLaunches();
  recording_.FailNext("cudnnBackendFinalize", kCuSuccess, 0);
  options_.dnn = "none";
  ExpectLaunches();
}

// Devices without libraries of attention launch.
TEST_F(AttentionExecutorTest, OtherDevicesLaunch) {
  device::NullDevice null;
  const auto executor =
      std::move(executor::Executor::Load(path_, null)).value();
  const device::NullCounts before = null.counts();
  Run(*executor);
  EXPECT_EQ(null.counts().launches - before.launches, 3);
  EXPECT_EQ(null.counts().library_calls - before.library_calls, 0);
}

TEST_F(AttentionExecutorTest, ErrorsNameTheLaunch) {
  options_.dnn = folder_ + "/absent.so";
  const auto device = std::move(MakeCudaDevice(options_)).value();
  const absl::Status status = executor::Executor::Load(path_, *device).status();
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("cannot prepare 'launch': "), HasSubstr("absent.so")));
}

// All ranks compute the same bits, so no rank chooses for itself, even where a
// file says that the library is faster.
TEST_F(AttentionExecutorTest, SeveralRanksLaunch) {
  {
    const auto device = std::move(MakeCudaDevice(options_)).value();
    ExpectValues(
        Run(*std::move(executor::Executor::Load(path_, *device)).value()));
  }
  options_.measures = false;
  WriteProgram(2);
  executor::GroupOptions group;
  group.make_device = [&](int) { return MakeCudaDevice(options_); };
  recording_.TakeLog();
  auto ranks = RankGroup::LoadAll(path_, group);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  ExpectMarks(Run(**ranks));
  const std::string log = recording_.TakeLog();
  EXPECT_EQ(Count(log, "cuLaunchKernel attend"), 6u);
  EXPECT_THAT(log, Not(HasSubstr("cudnn")));
}

}  // namespace
}  // namespace partita::cuda
