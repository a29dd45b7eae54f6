// Environment of the GPU driver when it starts, with a recorded driver. Other
// tests check whether devices can be made.
#include "runtime/session/make_device.h"

#include <stdlib.h>

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
#include "runtime/session/session.h"

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
    OpenSession(options_).status().IgnoreError();
    return recording_.TakeLog();
  }

  cuda::recording::Recording recording_;
  std::string folder_;
  SessionOptions options_;
};

TEST_F(EnvironmentTest, SeveralGpusLoadAllKernelsAtOnce) {
  const std::string log = Log();
  EXPECT_THAT(log, HasSubstr("cuInit EAGER\n"));
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
      const absl::Status status =
          OpenProcessSession(options_, launch, *rank).status();
      if (!status.ok()) rank->Fail(status);
    });
  for (std::thread& process : processes) process.join();
  const std::string log = recording_.TakeLog();
  EXPECT_THAT(log, HasSubstr("cuInit EAGER\n"));
  EXPECT_THAT(log, Not(HasSubstr("cuInit\n")));
}

TEST_F(EnvironmentTest, WhatTheUserSaysStays) {
  setenv("CUDA_MODULE_LOADING", "LAZY", 1);
  EXPECT_THAT(Log(), HasSubstr("cuInit LAZY\n"));
}

TEST_F(EnvironmentTest, OneGpuNeedsNothing) {
  options_.share_gpu = true;
  EXPECT_THAT(Log(), HasSubstr("cuInit\n"));
  options_.share_gpu = false;
  Write(program::DividedProgram(4, 1, 1).Parts());
  EXPECT_THAT(Log(), HasSubstr("cuInit\n"));
  Write(program::SampleProgram().Parts());
  EXPECT_THAT(Log(), HasSubstr("cuInit\n"));
}

// Only threads of one process on one GPU exchange in its memory.
TEST_F(EnvironmentTest, ThreadsOnOneGpuExchangeInItsMemory) {
  unsetenv("CUDA_VISIBLE_DEVICES");
  const program::DividedProgram divided(4, 2, 1);
  const std::string bytes = program::SerializeProgram(divided.program);
  const program::Program& program = *program::GetProgram(bytes.data());
  EXPECT_EQ(MakeSharedGpu(options_, program), nullptr);
  setenv("CUDA_VISIBLE_DEVICES", "1", 1);
  EXPECT_NE(MakeSharedGpu(options_, program), nullptr);
  unsetenv("CUDA_VISIBLE_DEVICES");
  options_.share_gpu = true;
  const auto shared = MakeSharedGpu(options_, program);
  ASSERT_NE(shared, nullptr);
  const auto ranks = comm::MakeLocalCommunicators(2);
  std::vector<std::thread> threads;
  for (const auto& rank : ranks)
    threads.emplace_back([&] {
      const auto made = MakeDeviceCommunicator(options_, program, rank->rank(),
                                               *rank, shared);
      ASSERT_TRUE(made.ok()) << made.status();
      ASSERT_NE(*made, nullptr);
      EXPECT_TRUE((*made)->MeetsOnHosts());
      // Same as in a separate process.
      const auto alone =
          MakeDeviceCommunicator(options_, program, rank->rank(), *rank);
      EXPECT_TRUE(alone.ok() && *alone == nullptr) << alone.status();
    });
  for (std::thread& thread : threads) thread.join();
  options_.device = "cpu";
  EXPECT_EQ(MakeSharedGpu(options_, program), nullptr);
  const program::DividedProgram one(4, 1, 1);
  const std::string whole = program::SerializeProgram(one.program);
  options_.device = "cuda";
  EXPECT_EQ(MakeSharedGpu(options_, *program::GetProgram(whole.data())),
            nullptr);
}

}  // namespace
}  // namespace partita::session
