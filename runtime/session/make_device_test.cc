// Environment of the GPU driver when it starts, with a recorded driver. Other
// tests check whether devices can be made.
#include "runtime/session/make_device.h"

#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/comm/local.h"
#include "runtime/cuda/recording/recording.h"
#include "runtime/program/test_program.h"
#include "runtime/session/open_ranks.h"

namespace partita::session {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class EnvironmentTest : public ::testing::Test {
 protected:
  EnvironmentTest() : recording_("runtime/cuda/recording/libnamed_driver.so") {
    EXPECT_TRUE(recording_.opened());
    folder_ = ::testing::TempDir() + "/environment_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    options_.model = folder_ + "/model.partita";
    options_.device = "cuda";
    options_.timeout = 5;
    Write(program::DividedProgram(4, 2, 1).Parts());
    unsetenv("CUDA_MODULE_LOADING");
  }
  ~EnvironmentTest() override {
    unsetenv("CUDA_MODULE_LOADING");
    std::filesystem::remove_all(folder_);
  }

  template <typename Parts>
  void Write(const Parts& parts) {
    EXPECT_TRUE(program::WriteArtifact(options_.model, parts).ok());
  }
  // Driver calls while the model was loaded in this process.
  std::string Log() {
    recording_.TakeLog();
    OpenAllRanks(options_).status().IgnoreError();
    return recording_.TakeLog();
  }

  cuda::recording::Recording recording_;
  std::string folder_;
  SessionOptions options_;
};

TEST_F(EnvironmentTest, KernelsAreLoadedWhenTheyAreNeeded) {
  const std::string log = Log();
  EXPECT_THAT(log, HasSubstr("cuInit LAZY\n"));
  EXPECT_THAT(log, Not(HasSubstr("cuInit\n")));
}

TEST_F(EnvironmentTest, ProcessesDoSoToo) {
  recording_.TakeLog();
  const auto ranks = comm::MakeLocalCommunicators(2);
  std::vector<std::thread> processes;
  for (const auto& rank : ranks)
    processes.emplace_back([&] {
      comm::Launch launch;
      launch.rank = launch.local_rank = rank->rank();
      launch.size = launch.local_size = 2;
      const absl::Status status = OpenOneRank(options_, launch, *rank).status();
      if (!status.ok()) rank->Fail(status);
    });
  for (std::thread& process : processes) process.join();
  const std::string log = recording_.TakeLog();
  EXPECT_THAT(log, HasSubstr("cuInit LAZY\n"));
  EXPECT_THAT(log, Not(HasSubstr("cuInit\n")));
}

TEST_F(EnvironmentTest, WhatTheUserSaysStays) {
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  EXPECT_THAT(Log(), HasSubstr("cuInit EAGER\n"));
}

TEST_F(EnvironmentTest, BuffersOfFilesThatThereAreNot) {
  options_.offload_buffers = 5000;
  EXPECT_EQ(OpenAllRanks(options_).status().message(),
            "--offload-buffers: expected --offload-dir, or a model compiled "
            "with offload: {optimizer: nvme}");
}

TEST_F(EnvironmentTest, OneGpuDoesSoToo) {
  options_.share_gpu = true;
  EXPECT_THAT(Log(), HasSubstr("cuInit LAZY\n"));
  options_.share_gpu = false;
  Write(program::DividedProgram(4, 1, 1).Parts());
  EXPECT_THAT(Log(), HasSubstr("cuInit LAZY\n"));
  Write(program::SampleProgram().Parts());
  EXPECT_THAT(Log(), HasSubstr("cuInit LAZY\n"));
}

// Runs a function on a thread for each of two ranks.
template <typename Function>
void OnTwoRanks(const Function& run) {
  const auto ranks = comm::MakeLocalCommunicators(2);
  std::vector<std::thread> threads;
  for (const auto& rank : ranks) threads.emplace_back([&] { run(*rank); });
  for (std::thread& thread : threads) thread.join();
}

// Only threads of one process on one GPU exchange in its memory.
TEST_F(EnvironmentTest, ThreadsOnOneGpuExchangeInItsMemory) {
  const program::DividedProgram divided(4, 2, 1);
  const std::string bytes = program::SerializeProgram(divided.program);
  const program::Program& program = *program::GetProgram(bytes.data());
  // "shared" if each of two ranks gets a communicator that uses the memory of
  // one GPU, "none" if no rank gets a communicator.
  const auto found = [&](bool in_threads) -> std::string {
    const auto make = MakeCommunicators(options_, program, in_threads);
    EXPECT_TRUE(make.ok()) << make.status();
    std::atomic<int> shared = 0, none = 0;
    OnTwoRanks([&](comm::Communicator& rank) {
      const auto made = (*make)(rank.rank(), rank);
      if (!made.ok()) return;
      if (*made == nullptr)
        ++none;
      else if ((*made)->MeetsOnHosts())
        ++shared;
    });
    return shared == 2 ? "shared" : none == 2 ? "none" : "something else";
  };
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_NE(found(/*in_threads=*/true), "shared");
  setenv("CUDA_VISIBLE_DEVICES", "1", 1);
  EXPECT_EQ(found(/*in_threads=*/true), "shared");
  EXPECT_EQ(found(/*in_threads=*/false), "none");
  unsetenv("CUDA_VISIBLE_DEVICES");
  options_.share_gpu = true;
  EXPECT_EQ(found(/*in_threads=*/true), "shared");
  EXPECT_EQ(found(/*in_threads=*/false), "none");
  options_.device = "cpu";
  EXPECT_EQ(found(/*in_threads=*/true), "none");
}

TEST_F(EnvironmentTest, OneRankExchangesNothing) {
  const program::DividedProgram one(4, 1, 1);
  const std::string bytes = program::SerializeProgram(one.program);
  options_.share_gpu = true;
  const auto make = MakeCommunicators(
      options_, *program::GetProgram(bytes.data()), /*in_threads=*/true);
  ASSERT_TRUE(make.ok()) << make.status();
  const auto ranks = comm::MakeLocalCommunicators(1);
  const auto made = (*make)(0, *ranks[0]);
  EXPECT_TRUE(made.ok() && *made == nullptr) << made.status();
}

}  // namespace
}  // namespace partita::session
