// A training step divided over recorded GPUs whose gradients are reduced beside
// the products of backward passes: on a stream of its own, in order with what
// needs it, and unordered with the rest.
#include <stdlib.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_executor_testing.h"
#include "runtime/cuda/nccl.h"
#include "runtime/program/test_program.h"
#include "runtime/program/test_training_program.h"

namespace partita::cuda {
namespace {

using program::TrainingProgram;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class NcclOverlapTest : public CudaExecutorTest {
 protected:
  using Body = std::vector<std::unique_ptr<program::InstructionT>>;

  NcclOverlapTest() { recording_.Watch(); }

  static Body::iterator Find(Body& body, const std::string& name) {
    return std::find_if(body.begin(), body.end(), [&](const auto& instruction) {
      return instruction->name == name;
    });
  }
  static void Move(Body& body, const std::string& name, Body::iterator to) {
    auto from = Find(body, name);
    from < to ? std::rotate(from, from + 1, to)
              : std::rotate(to, from, from + 1);
  }
  // Starts the gradient's sum as soon as the gradient is computed. The loss is
  // multiplied beside it. The update in the end needs the sum.
  static TrainingProgram Overlapped() {
    TrainingProgram training(5, 2, 2);
    Body& body = training.program.functions[0]->body;
    Move(body, "gradient", Find(body, "sum"));
    Move(body, "w.sum", Find(body, "sum"));
    (*Find(body, "w.sum"))->operation.AsCollective()->token = 1;
    body.insert(Find(body, "update"), program::MakeAwait(1));
    return training;
  }
  std::unique_ptr<RankGroup> LoadOnGpus(TrainingProgram training) {
    Write(std::move(training));
    executor::GroupOptions options;
    options.make_device = [](int) {
      return MakeCudaDevice({0, kLibrary, kLibrary, kLibrary});
    };
    options.make_communicator = [](int, comm::Communicator& base) {
      return MakeNcclCommunicator(base, {0, kLibrary, kLibrary, {}});
    };
    auto ranks = RankGroup::LoadAll(path_, options);
    EXPECT_TRUE(ranks.ok()) << ranks.status();
    return ranks.ok() ? *std::move(ranks) : nullptr;
  }
  static void RunOneStep(RankGroup& ranks) {
    const Floats x = Seeded(5 * TrainingProgram::kWidth, 5),
                 t = Seeded(5 * TrainingProgram::kOut, 6);
    const float rate = 0.02f;
    const int64_t step = 1;
    float loss = -1;
    int64_t at = -1;
    const absl::Status status =
        ranks.Run({{DType::kF32, {5, TrainingProgram::kWidth}, x.data()},
                   {DType::kF32, {5, TrainingProgram::kOut}, t.data()},
                   {DType::kF32, {}, &rate},
                   {DType::kI64, {}, &step}},
                  {{DType::kF32, {}, &loss}, {DType::kI64, {}, &at}});
    EXPECT_TRUE(status.ok()) << status;
  }
};

// The sum's stream waits for the gradient, and the update for the sum.
TEST_F(NcclOverlapTest, GradientsAreSummedBesideOtherProducts) {
  for (const char* graphs : {"0", "1"}) {
    SCOPED_TRACE(graphs);
    setenv("PARTITA_CUDA_GRAPHS", graphs, 1);
    {
      const auto ranks = LoadOnGpus(Overlapped());
      ASSERT_NE(ranks, nullptr);
      recording_.TakeLog();
      Floats w = TrainingProgram::Start();
      TrainThreeSteps(*ranks, w);
    }
    unsetenv("PARTITA_CUDA_GRAPHS");
    const std::string log = recording_.TakeLog();
    EXPECT_THAT(
        log, AllOf(HasSubstr("cuEventRecord"), HasSubstr("cuStreamWaitEvent")));
    EXPECT_EQ(log.find("cuGraphLaunch") != std::string::npos, *graphs == '1');
    EXPECT_EQ(recording_.TakeRaces(), "");
  }
}

// Without the waits of streams, the sum reads a gradient that may not be there
// yet, and the update reads a sum that may not be there yet. So the products in
// between, and these two, are ordered by nothing else.
TEST_F(NcclOverlapTest, MissingEdgesAreFound) {
  setenv("PARTITA_CUDA_GRAPHS", "0", 1);
  const auto ranks = LoadOnGpus(Overlapped());
  unsetenv("PARTITA_CUDA_GRAPHS");
  ASSERT_NE(ranks, nullptr);
  recording_.TakeRaces();
  recording_.Skip("cuStreamWaitEvent");
  RunOneStep(*ranks);
  const std::string races = recording_.TakeRaces();
  recording_.FailNext("cuStreamWaitEvent", kCuSuccess, 0);
  EXPECT_THAT(
      races,
      AnyOf(HasSubstr("ncclAllReduce reads what cublasLtMatmul writes"),
            HasSubstr("cublasLtMatmul writes what ncclAllReduce reads")));
  EXPECT_THAT(
      races,
      AnyOf(HasSubstr("cublasLtMatmul reads what ncclAllReduce writes"),
            HasSubstr("ncclAllReduce writes what cublasLtMatmul reads")));
}

}  // namespace
}  // namespace partita::cuda
