// Whole programs whose ranks communicate on recorded GPUs: collectives and
// transfers, in steps that run and in replayed steps.
#include <stdlib.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/local.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_executor_testing.h"
#include "runtime/cuda/nccl.h"
#include "runtime/executor/rank.h"
#include "runtime/program/test_pipeline_program.h"
#include "runtime/program/test_program.h"

namespace partita::cuda {
namespace {

// Four ranks with a GPU each. Data exchanged among them stays on the GPUs.
class NcclExecutorTest : public CudaExecutorTest {
 protected:
  // Runs the program on all ranks. Rank 0 calls `ready` before each run, while
  // the others wait.
  template <typename Program>
  void RunOnGpus(const Program& program, size_t runs,
                 const std::vector<executor::ConstTensor>& inputs,
                 const std::vector<executor::MutableTensor>& outputs,
                 const std::function<void(size_t run)>& ready) {
    Write(program);
    const auto artifact = std::make_shared<const program::Artifact>(
        std::move(program::Artifact::Open(path_)).value());
    auto bases = comm::MakeLocalCommunicators(4);
    std::vector<std::thread> threads;
    std::vector<absl::Status> statuses(4);
    for (size_t rank = 0; rank < 4; ++rank) {
      threads.emplace_back([&, rank] {
        statuses[rank] =
            RunRank(artifact, *bases[rank], runs, inputs, outputs, ready);
        if (!statuses[rank].ok()) bases[rank]->Fail(statuses[rank]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const absl::Status& status : statuses)
      ASSERT_TRUE(status.ok()) << status;
  }
  // Loads the program with a thread per rank. `wrap` may wrap the
  // ranks' communicators.
  template <typename Program, typename Wrap>
  std::unique_ptr<RankGroup> LoadOnGpus(const Program& program,
                                        const Wrap& wrap) {
    Write(program);
    executor::GroupOptions options;
    options.make_device = [](int) {
      return MakeCudaDevice({0, kLibrary, kLibrary, kLibrary});
    };
    options.make_communicator = [&](int, comm::Communicator& base)
        -> absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>> {
      PARTITA_ASSIGN_OR_RETURN(
          auto gpus, MakeNcclCommunicator(base, {0, kLibrary, kLibrary, {}}));
      return wrap(std::move(gpus));
    };
    auto ranks = RankGroup::LoadAll(path_, options);
    EXPECT_TRUE(ranks.ok()) << ranks.status();
    return ranks.ok() ? *std::move(ranks) : nullptr;
  }
  // Runs the program for x. All ranks' outputs are in y_, all_ and where_.
  void RunDivided(const program::DividedProgram& divided, size_t runs,
                  const std::function<void(size_t run)>& ready) {
    RunOnGpus(divided, runs, {{DType::kF32, {5, 8}, x_.data()}},
              {{DType::kF32, {5, 8}, y_.data()},
               {DType::kF32, {5, 8}, all_.data()},
               {DType::kI64, {4}, where_.data()}},
              ready);
  }
  // Checks that y of the last run equals a single device's result for x.
  void ExpectUndivided() {
    const auto ranks = Load(program::DividedProgram(5, 1, 1));
    ASSERT_NE(ranks, nullptr);
    int64_t alone = -1;
    Floats y(40, -1), whole(40, -1);
    ASSERT_TRUE(ranks
                    ->Run({{DType::kF32, {5, 8}, x_.data()}},
                          {{DType::kF32, {5, 8}, y.data()},
                           {DType::kF32, {5, 8}, whole.data()},
                           {DType::kI64, {1}, &alone}})
                    .ok());
    ExpectNear(y, y_);
    ExpectNear(y, all_);
    EXPECT_EQ(where_, (std::vector<int64_t>{0, 1, 2, 3}));
  }
  // Makes collectives start and await. After the sum is awaited, it is copied
  // over its input.
  static void StartAndUse(program::DividedProgram& divided) {
    divided.StartCollectives();
    auto& body = divided.program.functions[0]->body;
    const auto& sum = body[2]->operands;
    body.insert(body.begin() + 5, program::MakeCopy(sum[1], sum[0]));
  }
  // Number of calls in the log.
  static size_t Count(const std::string& log, const std::string& call) {
    size_t count = 0;
    for (size_t at = 0; (at = log.find(call, at)) != std::string::npos; ++at)
      ++count;
    return count;
  }

  Floats x_ = Seeded(40, 9), y_ = Floats(40, -1), all_ = Floats(40, -1);
  std::vector<int64_t> where_ = std::vector<int64_t>(4, -1);

 private:
  absl::Status RunRank(std::shared_ptr<const program::Artifact> artifact,
                       comm::Communicator& base, size_t runs,
                       const std::vector<executor::ConstTensor>& inputs,
                       const std::vector<executor::MutableTensor>& outputs,
                       const std::function<void(size_t run)>& ready) {
    executor::RankOptions options;
    options.make_device = [](int) {
      return MakeCudaDevice({0, kLibrary, kLibrary, kLibrary});
    };
    options.make_communicator = [](int, comm::Communicator& communicator) {
      return MakeNcclCommunicator(communicator, {0, kLibrary, kLibrary, {}});
    };
    PARTITA_ASSIGN_OR_RETURN(
        const auto rank,
        executor::Rank::Load(std::move(artifact), options, 0, &base));
    for (size_t run = 0; run < runs; ++run) {
      PARTITA_RETURN_IF_ERROR(base.Agree(absl::OkStatus()));
      if (base.rank() == 0) ready(run);
      PARTITA_RETURN_IF_ERROR(base.Agree(absl::OkStatus()));
      PARTITA_RETURN_IF_ERROR(rank->Run(inputs, outputs));
    }
    return base.Agree(absl::OkStatus());
  }
};

// Collectives in place and started, with steps captured in the second run and
// without capture.
TEST_F(NcclExecutorTest, DividedProgramsExchangeOnTheGpus) {
  recording_.Watch();
  for (const bool starts : {false, true}) {
    for (const char* graphs : {"0", "1"}) {
      SCOPED_TRACE(::testing::Message() << starts << graphs);
      setenv("PARTITA_CUDA_GRAPHS", graphs, 1);
      program::DividedProgram divided(5, 2, 2);
      if (starts) StartAndUse(divided);
      std::vector<std::string> logs;
      RunDivided(divided, 4, [&](size_t run) {
        logs.push_back(recording_.TakeLog());
        // Sets new inputs and clears the outputs.
        std::fill(y_.begin(), y_.end(), -1);
        std::fill(all_.begin(), all_.end(), -1);
        for (float& value : x_) value += static_cast<float>(run);
      });
      logs.push_back(recording_.TakeLog());
      unsetenv("PARTITA_CUDA_GRAPHS");
      ASSERT_EQ(logs.size(), 5u);
      const bool captures = *graphs == '1';
      for (size_t run = 1; run < 5; ++run) {
        const std::string& log = logs[run];
        const bool replays = captures && run >= 2;
        EXPECT_EQ(Count(log, "ncclAllReduce"), replays && run > 2 ? 0u : 4u);
        EXPECT_EQ(Count(log, "cuGraphLaunch"), replays ? 4u : 0u);
        if (starts && !replays) {
          EXPECT_GE(Count(log, "cuStreamWaitEvent"), 16u);
        }
      }
      ExpectUndivided();
      EXPECT_EQ(recording_.TakeRaces(), "");
    }
  }
}

TEST_F(NcclExecutorTest, StepsAreCapturedByAllRanksOrByNone) {
  program::DividedProgram divided(5, 2, 2);
  divided.StartCollectives();
  recording_.TakeLog();
  RunDivided(divided, 4, [&](size_t run) {
    if (run == 1)
      recording_.FailNext("cuGraphInstantiateWithFlags", kCuOutOfMemory);
  });
  const std::string log = recording_.TakeLog();
  EXPECT_EQ(Count(log, "cuStreamBeginCapture"), 4u);
  EXPECT_EQ(Count(log, "cuGraphLaunch"), 0u);
  ExpectUndivided();
}

// One GPU cannot begin its capture, so no rank captures.
TEST_F(NcclExecutorTest, AllCaptureWhatOthersExchangeOrNone) {
  const program::DividedProgram divided(5, 2, 2);
  std::vector<std::string> logs;
  RunDivided(divided, 3, [&](size_t run) {
    logs.push_back(recording_.TakeLog());
    if (run == 1)
      recording_.FailNext("cuStreamBeginCapture_v2", kCuOutOfMemory);
  });
  logs.push_back(recording_.TakeLog());
  ASSERT_EQ(logs.size(), 4u);
  EXPECT_EQ(Count(logs[2], "cuStreamBeginCapture"), 4u);
  for (size_t run = 1; run < 4; ++run) {
    EXPECT_EQ(Count(logs[run], "ncclAllReduce"), 4u) << run;
    EXPECT_EQ(Count(logs[run], "cuGraphLaunch"), 0u) << run;
  }
  ExpectUndivided();
}

// Data sent and received stays on the GPUs. Memory is written before a receive
// into it, and again after a send from it. Four halves use two slots.
TEST_F(NcclExecutorTest, StagesTransferOnTheGpus) {
  using program::PipelineProgram;
  constexpr int64_t kBatch = 8, kWidth = PipelineProgram::kWidth,
                    kOut = PipelineProgram::kOut;
  constexpr float kRate = 0.001f;
  recording_.Watch();
  for (const char* graphs : {"0", "1"}) {
    SCOPED_TRACE(graphs);
    setenv("PARTITA_CUDA_GRAPHS", graphs, 1);
    PipelineProgram pipeline(kBatch, 2);
    auto& body = pipeline.program.functions[2]->body;
    auto& second = pipeline.program.functions[3]->body;
    ASSERT_EQ(body[1]->name, "h");
    ASSERT_EQ(body[4]->name, "dh");
    const program::Buffer h = body[1]->operands[2], half = body[4]->operands[0],
                          dh = program::Frame(half.value(), h.bytes()),
                          z = program::Frame(0, h.bytes());
    for (size_t i = 0; i < 2; ++i) {
      body.insert(body.begin() + 2,
                  std::make_unique<program::InstructionT>(*body[3]));
      second.insert(second.begin(),
                    std::make_unique<program::InstructionT>(*second[1]));
    }
    body.insert(body.begin() + 6, program::MakeCopy(z, h));
    body.insert(body.begin() + 1, program::MakeCopy(z, dh));
    const Floats x = Seeded(kBatch * kWidth, 7), t = Seeded(kBatch * kOut, 8);
    Floats w = PipelineProgram::StartOfW(), u = PipelineProgram::StartOfU();
    float loss = -1;
    int64_t step = 0, at = -1;
    Floats y(static_cast<size_t>(kBatch * kOut), -1);
    const auto check = [&] {
      const auto expected = program::PipelineStep(x, t, kRate, w, u);
      EXPECT_NEAR(loss, expected.loss, 1e-4 * expected.loss);
      EXPECT_EQ(at, step);
      ExpectNear(expected.y, y);
    };
    std::vector<std::string> logs;
    RunOnGpus(pipeline, 4,
              {{DType::kF32, {kBatch, kWidth}, x.data()},
               {DType::kF32, {kBatch, kOut}, t.data()},
               {DType::kF32, {}, &kRate},
               {DType::kI64, {}, &step}},
              {{DType::kF32, {}, &loss},
               {DType::kI64, {}, &at},
               {DType::kF32, {kBatch, kOut}, y.data()}},
              [&](size_t run) {
                logs.push_back(recording_.TakeLog());
                if (run > 0) check();
                ++step;
                std::fill(y.begin(), y.end(), -1);
              });
    check();
    unsetenv("PARTITA_CUDA_GRAPHS");
    logs.push_back(recording_.TakeLog());
    ASSERT_EQ(logs.size(), 5u);
    const bool captures = *graphs == '1';
    // Two ranks send four halves each, the others two halves each.
    for (size_t run = 1; run < 5; ++run) {
      const bool replays = captures && run >= 2;
      EXPECT_EQ(Count(logs[run], "ncclSend"), replays && run > 2 ? 0u : 12u);
      EXPECT_EQ(Count(logs[run], "ncclRecv"), replays && run > 2 ? 0u : 12u);
      EXPECT_EQ(Count(logs[run], "cuGraphLaunch"), replays ? 4u : 0u);
    }
    EXPECT_EQ(recording_.TakeRaces(), "");
  }
}

// Sends two halves, and the whole, which uses the slot of the first half.
TEST_F(NcclExecutorTest, SlotsAreAsLargeAsWhatTheyAreFor) {
  using program::PipelineProgram;
  constexpr int64_t kRows = 32, kWidth = PipelineProgram::kWidth,
                    kHidden = PipelineProgram::kHidden,
                    kOut = PipelineProgram::kOut;
  PipelineProgram pipeline(kRows, 1);
  auto& functions = pipeline.program.functions;
  const program::Buffer h = functions[2]->body[1]->operands[2];
  auto send = std::make_unique<program::InstructionT>(*functions[1]->body[0]);
  send->operands[0] = h;
  send->operation.AsSend()->shape = {kRows, kHidden};
  functions[2]->body.insert(functions[2]->body.begin() + 4, std::move(send));
  auto receive =
      std::make_unique<program::InstructionT>(*functions[3]->body[0]);
  const program::Buffer half = receive->operands[0];
  receive->operands[0] = program::Frame(half.value(), 2 * half.bytes());
  receive->operation.AsReceive()->shape = {kRows, kHidden};
  functions[3]->body.insert(functions[3]->body.begin() + 2, std::move(receive));
  const auto ranks = LoadOnGpus(
      pipeline,
      [](std::unique_ptr<comm::DeviceCommunicator> gpus) { return gpus; });
  ASSERT_NE(ranks, nullptr);
  const Floats x = Seeded(kRows * kWidth, 7), t = Seeded(kRows * kOut, 8);
  const float rate = 0.001f;
  const int64_t step = 1;
  float loss = -1;
  int64_t at = -1;
  Floats y(static_cast<size_t>(kRows * kOut), -1);
  const absl::Status status =
      ranks->Run({{DType::kF32, {kRows, kWidth}, x.data()},
                  {DType::kF32, {kRows, kOut}, t.data()},
                  {DType::kF32, {}, &rate},
                  {DType::kI64, {}, &step}},
                 {{DType::kF32, {}, &loss},
                  {DType::kI64, {}, &at},
                  {DType::kF32, {kRows, kOut}, y.data()}});
  ASSERT_TRUE(status.ok()) << status;
  Floats w = PipelineProgram::StartOfW(), u = PipelineProgram::StartOfU();
  ExpectNear(program::PipelineStep(x, t, rate, w, u).y, y);
  // x, lr, step and at; slots for 640 and 320 bytes.
  EXPECT_EQ(ranks->Uses().value()[0].memory.staging,
            kRows * kWidth * 4 + 4 + 8 + 8 + 768 + 512);
}

// Records the threads on which communicators are destroyed.
class Watched : public comm::DeviceCommunicator {
 public:
  struct Threads {
    std::mutex mutex;
    std::set<std::thread::id> ids;
  };
  Watched(std::unique_ptr<comm::DeviceCommunicator> gpus, Threads& threads)
      : gpus_(std::move(gpus)), threads_(threads) {}
  ~Watched() override {
    const std::lock_guard<std::mutex> lock(threads_.mutex);
    threads_.ids.insert(std::this_thread::get_id());
  }
  absl::StatusOr<std::unique_ptr<comm::Collective>> Prepare(
      const comm::Operation& operation, const std::vector<int>& ranks,
      bool beside) override {
    return gpus_->Prepare(operation, ranks, beside);
  }
  absl::Status Enqueue(comm::Collective& collective, const void* input,
                       void* output, void* stream) override {
    return gpus_->Enqueue(collective, input, output, stream);
  }
  absl::Status Await(void* stream) override { return gpus_->Await(stream); }

 private:
  const std::unique_ptr<comm::DeviceCommunicator> gpus_;
  Threads& threads_;
};

// Rank 1 stops after two runs of captured steps. NCCL frees an aborted group
// only after the graphs that use it are destroyed, which end only when all
// their groups have stopped: with four ranks, each is in two groups.
class LostRankTest : public NcclExecutorTest,
                     public ::testing::WithParamInterface<int> {};

TEST_P(LostRankTest, EndsReplaysOfTheOthersInTime) {
  const int ranks = GetParam();
  Write(program::DividedProgram(5, ranks / 2, 2));
  absl::StatusOr<program::Artifact> opened = program::Artifact::Open(path_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto artifact =
      std::make_shared<const program::Artifact>(*std::move(opened));
  comm::CommOptions options;
  options.timeout = std::chrono::milliseconds(1500);
  const auto bases = comm::MakeLocalCommunicators(ranks, options);
  executor::RankOptions rank_options;
  rank_options.make_device = [](int) {
    return MakeCudaDevice({0, kLibrary, kLibrary, kLibrary});
  };
  rank_options.make_communicator = [&](int, comm::Communicator& base) {
    return MakeNcclCommunicator(base, {0, kLibrary, kLibrary, options});
  };
  absl::Status lost;
  recording_.TakeLog();
  const auto begin = std::chrono::steady_clock::now();
  const auto work = [&](comm::Communicator& base) {
    const auto rank = executor::Rank::Load(artifact, rank_options, 0, &base);
    ASSERT_TRUE(rank.ok()) << rank.status();
    const int runs = base.rank() == 1 ? 4 : 5;
    absl::Status status;
    for (int run = 0; run < runs && status.ok(); ++run)
      status = (*rank)->Run({{DType::kF32, {5, 8}, x_.data()}},
                            {{DType::kF32, {5, 8}, y_.data()},
                             {DType::kF32, {5, 8}, all_.data()},
                             {DType::kI64, {ranks}, where_.data()}});
    if (base.rank() == 0) lost = status;
  };
  std::vector<std::thread> others;
  for (int rank = 1; rank < ranks; ++rank)
    others.emplace_back([&, rank] { work(*bases[static_cast<size_t>(rank)]); });
  work(*bases[0]);
  for (std::thread& other : others) other.join();
  EXPECT_FALSE(lost.ok());
  EXPECT_THAT(std::string(lost.message()),
              ::testing::HasSubstr("all_reduce 'mlp.down'"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  const std::string log = recording_.TakeLog();
  EXPECT_GE(Count(log, "cuGraphLaunch"), 5u);
  EXPECT_GE(Count(log, "ncclCommAbort"), 1u);
  EXPECT_EQ(Count(log, "ncclCommAbort hangs"), 0u);
}

INSTANTIATE_TEST_SUITE_P(OfTwoAndFour, LostRankTest, ::testing::Values(2, 4));

// Ranks as threads of one process, without a launcher.
TEST_F(NcclExecutorTest, ThreadsExchangeOnTheGpusToo) {
  Watched::Threads left;
  auto ranks =
      LoadOnGpus(program::DividedProgram(5, 2, 2),
                 [&](std::unique_ptr<comm::DeviceCommunicator> gpus) {
                   return std::make_unique<Watched>(std::move(gpus), left);
                 });
  ASSERT_NE(ranks, nullptr);
  const auto run = [&] {
    recording_.TakeLog();
    std::fill(y_.begin(), y_.end(), -1);
    const absl::Status status = ranks->Run({{DType::kF32, {5, 8}, x_.data()}},
                                           {{DType::kF32, {5, 8}, y_.data()},
                                            {DType::kF32, {5, 8}, all_.data()},
                                            {DType::kI64, {4}, where_.data()}});
    EXPECT_TRUE(status.ok()) << status;
    return recording_.TakeLog();
  };
  EXPECT_EQ(Count(run(), "ncclAllReduce"), 4u);
  run();
  EXPECT_EQ(Count(run(), "cuGraphLaunch"), 4u);
  // No rank replays while another one is timed.
  ranks->EnableProfile();
  EXPECT_EQ(ranks->profiles().size(), 1u);
  EXPECT_EQ(Count(run(), "ncclAllReduce"), 4u);
  ranks.reset();
  const std::string log = recording_.TakeLog();
  EXPECT_EQ(Count(log, "ncclCommAbort"), 0u) << log;
  EXPECT_GE(Count(log, "ncclCommFinalize"), 4u) << log;
  // Leaving a group may wait for the others, so each rank leaves on its own
  // thread.
  EXPECT_EQ(left.ids.size(), 4u);
  ExpectUndivided();
}

}  // namespace
}  // namespace partita::cuda
