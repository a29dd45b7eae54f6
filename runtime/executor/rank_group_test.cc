// Divided programs on threads equal the undivided computation for every mesh,
// and end in bounded time when a rank dies or stalls.
#include "runtime/executor/rank_group.h"

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random_fill.h"
#include "runtime/comm/device_communicator.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/executor/bad_device.h"
#include "runtime/program/test_program.h"

namespace partita::executor {
namespace {

using base::DType;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::MatchesRegex;

using Floats = std::vector<float>;

Floats Seeded(int64_t count, uint64_t seed) {
  Floats values(static_cast<size_t>(count));
  EXPECT_TRUE(base::FillElements({"uniform", 1.0, seed}, DType::kF32, 0, count,
                                 values.data())
                  .ok());
  return values;
}

// relu(x w0 + b0) w1 of DividedProgram.
Floats Expected(const Floats& x) {
  const Floats w0 = Seeded(56, 1), b0 = Seeded(7, 2);
  Floats y(x.size(), 0);
  for (size_t row = 0; row < x.size() / 8; ++row) {
    for (size_t m = 0; m < 7; ++m) {
      float hidden = b0[m];
      for (size_t k = 0; k < 8; ++k) hidden += x[row * 8 + k] * w0[k * 7 + m];
      hidden = std::max(hidden, 0.0f);
      for (size_t n = 0; n < 8; ++n)
        y[row * 8 + n] += hidden * (static_cast<float>((m * 8 + n) % 5) - 2.0f);
    }
  }
  return y;
}

absl::StatusOr<std::unique_ptr<device::Device>> MakeCpu(int) {
  return cpu::MakeCpuDevice({1});
}

class RankGroupTest : public ::testing::Test {
 protected:
  RankGroupTest() {
    folder_ = ::testing::TempDir() + "/ranks_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/model.partita";
    options_.make_device = &MakeCpu;
    options_.comm.timeout = milliseconds(20000);
  }
  ~RankGroupTest() override { std::filesystem::remove_all(folder_); }

  void Write(const program::DividedProgram& divided) {
    const absl::Status status = program::WriteArtifact(path_, divided.Parts());
    ASSERT_TRUE(status.ok()) << status;
  }

  std::string folder_, path_;
  GroupOptions options_;
};

struct Results {
  Floats y, all;
  std::vector<int64_t> where;
};

absl::StatusOr<Results> RunOnce(RankGroup& ranks, const Floats& x) {
  // A rank that hangs may wake up later and write.
  static std::vector<std::unique_ptr<Results>> kept;
  kept.push_back(std::make_unique<Results>());
  Results& results = *kept.back();
  const int64_t batch = static_cast<int64_t>(x.size()) / 8;
  results.y.resize(x.size(), -1);
  results.all.resize(x.size(), -1);
  results.where.resize(static_cast<size_t>(ranks.devices()), -1);
  const absl::Status status =
      ranks.Run({{DType::kF32, {batch, 8}, x.data()}},
                {{DType::kF32, {batch, 8}, results.y.data()},
                 {DType::kF32, {batch, 8}, results.all.data()},
                 {DType::kI64, {ranks.devices()}, results.where.data()}});
  if (!status.ok()) return status;
  return results;
}

TEST_F(RankGroupTest, EqualsTheUndividedModelOnEveryMesh) {
  for (const auto& [data, tensor] :
       {std::pair(1, 1), std::pair(2, 1), std::pair(1, 2), std::pair(2, 2),
        std::pair(1, 3), std::pair(3, 1), std::pair(4, 2), std::pair(1, 8),
        std::pair(8, 1)}) {
    const Floats x = Seeded(5 * 8, 9);
    Write(program::DividedProgram(5, data, tensor));
    const auto ranks = RankGroup::LoadAll(path_, options_);
    ASSERT_TRUE(ranks.ok()) << ranks.status();
    EXPECT_EQ((*ranks)->devices(), data * tensor);
    EXPECT_EQ((*ranks)->inputs()[0].shape, (std::vector<int64_t>{5, 8}));
    const Floats expected = Expected(x);
    for (int run = 0; run < 3; ++run) {
      const auto results = RunOnce(**ranks, x);
      ASSERT_TRUE(results.ok()) << results.status();
      EXPECT_EQ(results->y, results->all) << data << "x" << tensor;
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(results->y[i], expected[i], 1e-5) << data << "x" << tensor;
      for (size_t i = 0; i < results->where.size(); ++i)
        EXPECT_EQ(results->where[i], static_cast<int64_t>(i));
    }
  }
}

TEST_F(RankGroupTest, StartedCollectivesGiveTheSameBits) {
  const Floats x = Seeded(5 * 8, 9);
  for (const auto& [data, tensor] :
       {std::pair(1, 1), std::pair(2, 2), std::pair(1, 3)}) {
    program::DividedProgram divided(5, data, tensor);
    Write(divided);
    const auto in_place = RankGroup::LoadAll(path_, options_);
    ASSERT_TRUE(in_place.ok()) << in_place.status();
    const auto expected = RunOnce(**in_place, x);
    ASSERT_TRUE(expected.ok()) << expected.status();
    divided.StartCollectives();
    Write(divided);
    const auto ranks = RankGroup::LoadAll(path_, options_);
    ASSERT_TRUE(ranks.ok()) << ranks.status();
    for (int run = 0; run < 20; ++run) {
      const auto results = RunOnce(**ranks, x);
      ASSERT_TRUE(results.ok()) << results.status();
      EXPECT_EQ(results->y, expected->y);
      EXPECT_EQ(results->all, expected->all);
      EXPECT_EQ(results->where, expected->where);
    }
  }
}

TEST_F(RankGroupTest, ProfileShowsWaits) {
  program::DividedProgram divided(4, 2, 2);
  divided.StartCollectives();
  Write(divided);
  const auto ranks = RankGroup::LoadAll(path_, options_);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  (*ranks)->EnableProfile();
  ASSERT_TRUE(RunOnce(**ranks, Seeded(32, 9)).ok());
  std::string names;
  for (const ProfileRow& row : (*ranks)->profiles()[0]->Rows())
    names += row.name + "\n";
  EXPECT_THAT(names, HasSubstr("start all_reduce sum f32[2,8] over tensor\n"));
  EXPECT_THAT(names,
              HasSubstr("wait for all_reduce sum f32[2,8] over tensor\n"));
}

TEST_F(RankGroupTest, DevicesMayStandInAnotherOrder) {
  program::DividedProgram divided(5, 2, 2);
  divided.program.mesh->device_ids = {2, 0, 3, 1};
  Write(divided);
  const Floats x = Seeded(5 * 8, 9);
  const auto ranks = RankGroup::LoadAll(path_, options_);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  const auto results = RunOnce(**ranks, x);
  ASSERT_TRUE(results.ok()) << results.status();
  const Floats expected = Expected(x);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(results->y[i], expected[i], 1e-5);
  EXPECT_EQ(results->where, (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST_F(RankGroupTest, ProfileShowsCollectives) {
  Write(program::DividedProgram(4, 2, 2));
  const auto ranks = RankGroup::LoadAll(path_, options_);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  (*ranks)->EnableProfile();
  ASSERT_TRUE(RunOnce(**ranks, Seeded(32, 9)).ok());
  std::string names;
  for (const ProfileRow& row : (*ranks)->profiles()[0]->Rows()) {
    names += row.name + "\n";
    // Half of 64 bytes is sent and received, twice.
    if (row.name.find("all_reduce") == 0) EXPECT_EQ(row.bytes, 128);
  }
  EXPECT_THAT(names, HasSubstr("all_reduce sum f32[2,8] over tensor\n"));
  EXPECT_THAT(names, HasSubstr("all_gather f32[2,8] to f32[4,8] over data\n"));
}

TEST_F(RankGroupTest, AnotherNumberOfDevicesIsRefused) {
  Write(program::DividedProgram(4, 2, 2));
  options_.devices = 3;
  EXPECT_THAT(
      std::string(RankGroup::LoadAll(path_, options_).status().message()),
      HasSubstr("the model was compiled for 4 devices (data=2,tensor=2), found "
                "--devices 3; leave it out, or compile"));
  const auto cpu = MakeCpu(0);
  EXPECT_THAT(
      std::string(Executor::Load(path_, **cpu).status().message()),
      HasSubstr("the model was compiled for 4 devices (data=2,tensor=2), but 1 "
                "rank runs it; start 4, or compile it for 1"));
}

TEST_F(RankGroupTest, MissingWeightsAreToldOnce) {
  program::DividedProgram divided(4, 2, 2);
  divided.program.parameters[2] = program::MakeFromFile(
      "w1", program::DType::f32, {7, 8}, "absent.bin", 0, program::DType::f32);
  divided.program.parameters[2]->type->shape = {4, 8};
  divided.program.parameters[2]->shard =
      program::MakeShard({7, 8}, {{program::WholeAxis(1, 2)}, {}});
  Write(divided);
  const std::string message(
      RankGroup::LoadAll(path_, options_).status().message());
  EXPECT_EQ(message.find(path_ + ": parameter 'w1': "), 0u) << message;
}

// A program whose first or last step is a copy, with a BadDevice on rank 2.
class BadRankTest : public RankGroupTest {
 protected:
  absl::Status RunWith(BadDevice::Habit habit) {
    program::DividedProgram divided(4, 2, 2);
    auto& body = divided.program.functions[0]->body;
    if (!last_) std::rotate(body.begin(), body.end() - 1, body.end());
    if (started_) divided.StartCollectives();
    Write(divided);
    options_.make_device =
        [habit](int rank) -> absl::StatusOr<std::unique_ptr<device::Device>> {
      auto cpu = MakeCpu(rank);
      if (rank != 2 || !cpu.ok()) return cpu;
      return std::unique_ptr<device::Device>(
          std::make_unique<BadDevice>(*std::move(cpu), habit));
    };
    const auto ranks = RankGroup::LoadAll(path_, options_);
    if (!ranks.ok()) return ranks.status();
    const absl::Status status = RunOnce(**ranks, x_).status();
    EXPECT_FALSE(RunOnce(**ranks, x_).ok());
    return status;
  }
  const Floats x_ = Seeded(32, 9);
  bool last_ = false, started_ = false;
};

TEST_F(BadRankTest, ARankThatFailsEndsTheOthers) {
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status = RunWith(BadDevice::Habit::kFail);
  EXPECT_EQ(status.message(), "rank 2: 'copy' failed: a bit fell over");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(10000));
}

TEST_F(BadRankTest, ARankThatHangsWhenNobodyWaitsIsNamed) {
  options_.comm.timeout = milliseconds(150);
  last_ = true;
  const absl::Status status = RunWith(BadDevice::Habit::kHang);
  EXPECT_EQ(status.message(),
            "rank 2 did not finish its step and made no progress for 450 ms");
  std::this_thread::sleep_for(milliseconds(1500));
}

// The copy comes after the sum is started.
TEST_F(BadRankTest, ARankThatFailsEndsWhatOthersAwait) {
  last_ = started_ = true;
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status = RunWith(BadDevice::Habit::kFail);
  EXPECT_EQ(status.message(), "rank 2: 'copy' failed: a bit fell over");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(10000));
}

TEST_F(BadRankTest, ARankThatHangsEndsWhatOthersAwait) {
  options_.comm.timeout = milliseconds(300);
  last_ = started_ = true;
  const absl::Status status = RunWith(BadDevice::Habit::kHang);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rank 2 did not arrive at all_gather 'gather' of "));
  std::this_thread::sleep_for(milliseconds(1500));
}

TEST_F(BadRankTest, ARankThatHangsIsNamed) {
  options_.comm.timeout = milliseconds(300);
  const absl::Status status = RunWith(BadDevice::Habit::kHang);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              MatchesRegex(".*rank 2 did not arrive at all_(reduce 'mlp.down'|"
                           "gather 'gather') of f32.2,8. within 300 ms and "
                           "made no progress.*"));
  // The thread left behind must end before the folder is removed.
  std::this_thread::sleep_for(milliseconds(1500));
}

class SlowDevice : public BadDevice {
 public:
  explicit SlowDevice(std::unique_ptr<device::Device> good)
      : BadDevice(std::move(good), Habit::kFail) {}
  std::vector<std::string> Warnings() const override { return {"no library"}; }
};

TEST_F(RankGroupTest, WarningsNameTheirRanks) {
  Write(program::DividedProgram(4, 2, 2));
  const auto warnings_of = [&](std::set<int> slow) {
    options_.make_device =
        [slow](int rank) -> absl::StatusOr<std::unique_ptr<device::Device>> {
      auto cpu = MakeCpu(rank);
      if (!cpu.ok() || slow.count(rank) == 0) return cpu;
      return std::make_unique<SlowDevice>(*std::move(cpu));
    };
    return RankGroup::LoadAll(path_, options_).value()->Warnings().value();
  };
  EXPECT_THAT(warnings_of({}), testing::IsEmpty());
  EXPECT_THAT(warnings_of({2}), testing::ElementsAre("rank 2: no library"));
  EXPECT_THAT(warnings_of({1, 3}),
              testing::ElementsAre("ranks 1, 3: no library"));
  EXPECT_THAT(warnings_of({0, 1, 2, 3}), testing::ElementsAre("no library"));
}

class UselessCommunicator : public comm::DeviceCommunicator {
  absl::StatusOr<std::unique_ptr<comm::Collective>> Prepare(
      const comm::Operation&, const std::vector<int>&, bool) override {
    return absl::AbortedError("it is too late");
  }
  absl::Status Enqueue(comm::Collective&, const void*, void*, void*) override {
    return absl::AbortedError("it is too late");
  }
  absl::Status Await(void*) override {
    return absl::AbortedError("it is too late");
  }
};

// The thread sanitizer sees if another thread touches the rank's parts.
TEST_F(RankGroupTest, ARankLeftBehindInLoadingGoesOn) {
  options_.comm.timeout = milliseconds(20);
  const auto late = std::make_shared<std::promise<void>>();
  options_.make_communicator = [late](int, comm::Communicator& base)
      -> absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>> {
    if (base.rank() == 0) {
      std::this_thread::sleep_for(milliseconds(2000));
      late->set_value();
    }
    return std::make_unique<UselessCommunicator>();
  };
  Write(program::DividedProgram(4, 2, 1));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(RankGroup::LoadAll(path_, options_).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(2000));
  late->get_future().wait();
  std::this_thread::sleep_for(milliseconds(500));
}

}  // namespace
}  // namespace partita::executor
