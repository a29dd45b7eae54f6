// Training with states in files: bit for bit as in memory.
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random_fill.h"
#include "runtime/comm/local.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/device/null_device.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/rank_group.h"
#include "runtime/program/test_pipeline_program.h"
#include "runtime/program/test_program.h"
#include "runtime/program/test_training_program.h"

namespace partita::executor {
namespace {

using base::DType;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

constexpr int64_t kBatch = 5, kWidth = program::TrainingProgram::kWidth,
                  kOut = program::TrainingProgram::kOut;
constexpr float kRate = 0.02f;

Floats Seeded(int64_t count, uint64_t seed) {
  Floats values(static_cast<size_t>(count));
  EXPECT_TRUE(base::FillElements({"uniform", 1.0, seed}, DType::kF32, 0, count,
                                 values.data())
                  .ok());
  return values;
}

class StateFilesTest : public ::testing::Test {
 protected:
  StateFilesTest() {
    folder_ = ::testing::TempDir() + "/state_files_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    std::filesystem::create_directory(States());
  }
  ~StateFilesTest() override { std::filesystem::remove_all(folder_); }

  std::string States() const { return folder_ + "/states"; }

  // `w` is a state, too: it is read by the first steps of a run, and written by
  // the last ones, so that several windows share it.
  void Write(int64_t data, int64_t tensor) {
    program::TrainingProgram training(kBatch, data, tensor);
    training.program.parameters[0]->kind = program::ParameterKind::state;
    const absl::Status status =
        program::WriteArtifact(folder_ + "/model.partita", training.Parts());
    ASSERT_TRUE(status.ok()) << status;
  }

  absl::StatusOr<std::unique_ptr<RankGroup>> Load(
      const StateStoreOptions& store) {
    GroupOptions options;
    options.make_device = [](int) { return cpu::MakeCpuDevice({1}); };
    options.state_store = store;
    return RankGroup::LoadAll(folder_ + "/model.partita", options);
  }

  // Losses and states of some steps; halfway, states are read and written, as
  // checkpoints do.
  Floats Train(RankGroup& ranks) {
    const Floats x = Seeded(kBatch * kWidth, 7), t = Seeded(kBatch * kOut, 8);
    Floats found;
    for (int64_t step = 1; step <= 10; ++step) {
      float loss = -1;
      int64_t at = -1;
      const absl::Status status =
          ranks.Run({{DType::kF32, {kBatch, kWidth}, x.data()},
                     {DType::kF32, {kBatch, kOut}, t.data()},
                     {DType::kF32, {}, &kRate},
                     {DType::kI64, {}, &step}},
                    {{DType::kF32, {}, &loss}, {DType::kI64, {}, &at}});
      EXPECT_TRUE(status.ok()) << status;
      found.push_back(loss);
      Floats w(static_cast<size_t>(kWidth * kOut));
      EXPECT_TRUE(
          ranks.ReadParameter("w", {DType::kF32, {kWidth, kOut}, w.data()})
              .ok());
      found.insert(found.end(), w.begin(), w.end());
      float count = -1;
      EXPECT_TRUE(ranks.ReadParameter("count", {DType::kF32, {}, &count}).ok());
      found.push_back(count);
      if (step != 5) continue;
      w[3] *= 2;
      EXPECT_TRUE(
          ranks.WriteParameter("w", {DType::kF32, {kWidth, kOut}, w.data()})
              .ok());
    }
    return found;
  }

  std::string folder_;
};

TEST_F(StateFilesTest, SameBitsAsInMemory) {
  for (const auto& [data, tensor] :
       {std::pair(1, 1), std::pair(2, 1), std::pair(1, 2), std::pair(2, 2)}) {
    SCOPED_TRACE(testing::Message() << data << "x" << tensor);
    Write(data, tensor);
    const auto memory = Load({});
    ASSERT_TRUE(memory.ok()) << memory.status();
    const Floats expected = Train(**memory);
    EXPECT_EQ(expected.back(), 10);
    const int64_t ranks = data * tensor;
    // One window for all states, or one for each.
    for (const int64_t buffers : {int64_t{0}, 3 * program::kStatePage}) {
      const auto files = Load({States(), buffers});
      ASSERT_TRUE(files.ok()) << files.status();
      EXPECT_EQ(Train(**files), expected) << buffers;
      const auto uses = (*files)->Uses();
      ASSERT_TRUE(uses.ok()) << uses.status();
      ASSERT_EQ(static_cast<int64_t>(uses->size()), ranks);
      EXPECT_EQ(uses->at(0).memory.files, 2 * program::kStatePage);
      EXPECT_EQ(uses->at(0).memory.host,
                (buffers == 0 ? 2 : 3) * program::kStatePage);
      int64_t found = 0;
      for (const auto& entry : std::filesystem::directory_iterator(States()))
        found += entry.is_regular_file();
      EXPECT_EQ(found, ranks);
    }
    EXPECT_TRUE(std::filesystem::is_empty(States()));
  }
}

TEST_F(StateFilesTest, Refusals) {
  Write(1, 1);
  EXPECT_THAT(std::string(Load({folder_ + "/none", 0}).status().message()),
              HasSubstr("/none: expected a folder for optimizer states, which "
                        "must exist"));
  EXPECT_THAT(std::string(Load({States(), 100}).status().message()),
              HasSubstr("expected at least 12288 bytes for the buffers of "
                        "optimizer states"));
  const auto files = Load({States(), 0});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(std::string((*files)->EnableNanTrace().message()),
              HasSubstr("numbers can be traced if optimizer states are in "
                        "memory, found them in a file; leave the folder for "
                        "them out, or compile with offload: optimizer"));
  // The same model twice in one folder.
  EXPECT_THAT(std::string(Load({States(), 0}).status().message()),
              HasSubstr("give each run a folder of its own"));
}

// Only the second stage has states. The first would wait for its transfers.
TEST_F(StateFilesTest, StagesRefuseBuffersTogether) {
  program::PipelineProgram pipeline(/*batch=*/8, /*data_axis=*/1);
  for (const auto& parameter : pipeline.program.parameters)
    if (parameter->name == "w") parameter->kind = program::ParameterKind::state;
  const std::string path = folder_ + "/model.partita";
  ASSERT_EQ(program::WriteArtifact(path, pipeline.Parts()), absl::OkStatus());
  const auto communicators = comm::MakeLocalCommunicators(2);
  std::vector<absl::Status> statuses(2);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      const auto cpu = cpu::MakeCpuDevice({1});
      LoadOptions options;
      options.communicator = communicators[rank].get();
      options.state_store = {States(), 100};
      statuses[rank] = Executor::Load(path, **cpu, options).status();
    });
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses)
    EXPECT_THAT(std::string(status.message()), HasSubstr("expected at least "));
  EXPECT_TRUE(std::filesystem::is_empty(States()));
}

// GPUs are such devices: their kernels need states in pinned memory.
TEST_F(StateFilesTest, DevicesWithMemoryOfTheirOwnRefuse) {
  Write(1, 1);
  device::NullDevice null;
  LoadOptions options;
  options.state_store.folder = States();
  EXPECT_THAT(
      std::string(Executor::Load(folder_ + "/model.partita", null, options)
                      .status()
                      .message()),
      HasSubstr(
          "optimizer states can be in files on devices whose "
          "memory is the host's, which device 'null' is not; "
          "leave the folder for them out, or compile with offload: optimizer"));
  EXPECT_TRUE(std::filesystem::is_empty(States()));
}

}  // namespace
}  // namespace partita::executor
