// Tests every kind of collective among ranks that share a recorded GPU, against
// its definition and the host communicators, and timeouts.
#include "runtime/cuda/shared_gpu.h"

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random_fill.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/local.h"
#include "runtime/comm/test_cases.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/gpu_rank_testing.h"
#include "runtime/cuda/recording/recording.h"

namespace partita::cuda {
namespace {

using comm::Collective;
using comm::Communicator;
using comm::DeviceCommunicator;
using comm::Operation;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

SharedGpuOptions Options(std::chrono::milliseconds timeout) {
  return {0, kLibrary, {timeout}};
}

std::vector<std::unique_ptr<Communicator>> MakeRanks(int size, bool beside) {
  const auto gpu = MakeSharedGpu(size, Options(std::chrono::seconds(60)));
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (auto& base : comm::MakeLocalCommunicators(size)) {
    auto gpus = std::move(MakeSharedCommunicator(gpu, *base)).value();
    ranks.push_back(
        std::make_unique<GpuRank>(std::move(base), std::move(gpus), beside));
  }
  return ranks;
}

TEST(SharedGpuTest, EqualsTheDefinition) {
  const recording::Recording recording(kLibrary);
  recording.Watch();
  recording.TakeLog();
  comm::CheckAgainstReference(
      [](int size) { return MakeRanks(size, size % 2 == 0); });
  // Only the test's own inputs and outputs go through the host.
  EXPECT_THAT(recording.TakeLog(), HasSubstr("partita_reduce_box"));
  EXPECT_EQ(recording.TakeRaces(), "");
}

// Sums of numbers that are rounded: order and places of rounding must match.
TEST(SharedGpuTest, SumsAreTheHostsToTheBit) {
  for (const auto dtype : {base::DType::kF32, base::DType::kF64,
                           base::DType::kF16, base::DType::kBF16}) {
    Operation sum;
    sum.dtype = dtype;
    sum.input_shape = sum.output_shape = {7, 33};
    std::vector<std::string> inputs;
    for (uint64_t member = 0; member < 4; ++member) {
      inputs.emplace_back(static_cast<size_t>(sum.InputBytes()), '\0');
      ASSERT_TRUE(base::FillElements({"uniform", 3.0, member}, dtype, 0, 7 * 33,
                                     inputs.back().data())
                      .ok());
    }
    EXPECT_TRUE(
        comm::RunOnThreads(MakeRanks(4, false), sum, inputs) ==
        comm::RunOnThreads(comm::MakeLocalCommunicators(4), sum, inputs))
        << base::NameOf(dtype);
  }
}

TEST(SharedGpuTest, GroupsOfVeryManyGoThroughTheHost) {
  const auto bases = comm::MakeLocalCommunicators(65);
  const auto gpu = MakeSharedGpu(65, Options(std::chrono::seconds(1)));
  const auto gpus = std::move(MakeSharedCommunicator(gpu, *bases[0])).value();
  Operation sum;
  sum.input_shape = sum.output_shape = {4};
  std::vector<int> ranks;
  for (int rank = 0; rank < 65; ++rank) ranks.push_back(rank);
  const auto all = gpus->Prepare(sum, ranks, false);
  EXPECT_TRUE(all.ok() && *all == nullptr) << all.status();
  ranks.pop_back();
  const auto most = gpus->Prepare(sum, ranks, false);
  EXPECT_TRUE(most.ok() && *most != nullptr) << most.status();
}

// Two ranks in threads with a short timeout, each with a stream and memory.
class SharedWaitTest : public ::testing::Test {
 protected:
  struct Rank {
    Rank(std::shared_ptr<SharedGpu> gpu, Communicator& base)
        : self(base.rank()),
          base(base),
          device(std::move(MakeCudaDevice({0, kLibrary, "none"})).value()),
          stream(std::move(device->CreateStream()).value()),
          memory(std::move(device::Allocation::Make(*device, 64)).value()),
          gpus(
              std::move(MakeSharedCommunicator(std::move(gpu), base)).value()) {
    }
    absl::StatusOr<std::unique_ptr<Collective>> Prepare(
        const std::string& name, comm::Kind kind = comm::Kind::kAllReduce,
        int sender = 0) {
      Operation operation;
      operation.kind = kind;
      operation.input_shape = operation.output_shape = {4};
      operation.name = name;
      return gpus->Prepare(operation, {sender, 1 - sender}, false);
    }
    absl::Status Start(Collective& collective, int64_t at = 0) {
      return gpus->Enqueue(collective, memory.data() + at, memory.data() + at,
                           stream->native_handle());
    }
    absl::Status Join(Collective& collective) {
      return gpus->Join(collective, stream->native_handle());
    }
    absl::Status Await() { return gpus->Await(stream->native_handle()); }
    // Writes all sixteen numbers of its memory.
    absl::Status Write(float value) {
      const std::vector<float> values(16, value);
      return device->CopyToDevice(*stream, memory.data(), values.data(), 64);
    }
    std::vector<float> Read() {
      std::vector<float> values(16, -1);
      EXPECT_TRUE(
          device->CopyToHost(*stream, values.data(), memory.data(), 64).ok());
      return values;
    }

    const int self;
    Communicator& base;
    const std::unique_ptr<device::Device> device;
    const std::unique_ptr<device::Stream> stream;
    const device::Allocation memory;
    const std::unique_ptr<DeviceCommunicator> gpus;
  };

  SharedWaitTest() : recording_(kLibrary) {}
  // Returns the status of `body` by rank. Neither rank leaves before both are
  // done.
  std::vector<absl::Status> Run(
      const std::function<absl::Status(Rank&)>& body,
      std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    const auto bases = comm::MakeLocalCommunicators(2, {timeout});
    const auto gpu = MakeSharedGpu(2, Options(timeout));
    std::vector<absl::Status> statuses(2);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {
        Rank rank(gpu, *bases[i]);
        statuses[i] = body(rank);
        bases[i]->Agree(absl::OkStatus()).IgnoreError();
      });
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }
  static void ExpectOk(const std::vector<absl::Status>& statuses) {
    for (const absl::Status& status : statuses)
      EXPECT_TRUE(status.ok()) << status;
  }

  const recording::Recording recording_;
};

// Both ranks send twice before they receive, and join their sends at the end.
TEST_F(SharedWaitTest, TransfersWaitForNobodyUntilTheyAreJoined) {
  recording_.Watch();
  ExpectOk(Run([](Rank& rank) -> absl::Status {
    const comm::Kind kind = comm::Kind::kTransfer;
    PARTITA_ASSIGN_OR_RETURN(const auto out,
                             rank.Prepare("h", kind, rank.self));
    PARTITA_ASSIGN_OR_RETURN(const auto in,
                             rank.Prepare("h", kind, 1 - rank.self));
    for (int round = 0; round < 3; ++round) {
      const float value = static_cast<float>(10 * round + rank.self);
      PARTITA_RETURN_IF_ERROR(rank.Write(value));
      PARTITA_RETURN_IF_ERROR(rank.Start(*out, 0));
      PARTITA_RETURN_IF_ERROR(rank.Start(*out, 16));
      PARTITA_RETURN_IF_ERROR(rank.Start(*in, 32));
      PARTITA_RETURN_IF_ERROR(rank.Join(*in));
      PARTITA_RETURN_IF_ERROR(rank.Start(*in, 48));
      PARTITA_RETURN_IF_ERROR(rank.Join(*in));
      PARTITA_RETURN_IF_ERROR(rank.Join(*out));
      PARTITA_RETURN_IF_ERROR(rank.Join(*out));
      PARTITA_RETURN_IF_ERROR(rank.Await());
      std::vector<float> expected(8, value);
      expected.resize(16, static_cast<float>(10 * round + 1 - rank.self));
      EXPECT_EQ(rank.Read(), expected);
    }
    return absl::OkStatus();
  }));
  EXPECT_EQ(recording_.TakeRaces(), "");
}

// A rank's next write to memory waits until the other rank has read it.
TEST_F(SharedWaitTest, MemoryIsReadBeforeItIsWrittenAgain) {
  recording_.Watch();
  ExpectOk(Run([](Rank& rank) -> absl::Status {
    PARTITA_ASSIGN_OR_RETURN(const auto sum, rank.Prepare("x"));
    float expected = static_cast<float>(rank.self + 1);
    for (int i = 0; i < 20; ++i) {
      PARTITA_RETURN_IF_ERROR(rank.Write(static_cast<float>(rank.self + i)));
      PARTITA_RETURN_IF_ERROR(rank.Start(*sum));
      expected = static_cast<float>(1 + 2 * i);
    }
    PARTITA_RETURN_IF_ERROR(rank.Await());
    EXPECT_EQ(rank.Read()[0], expected);
    return absl::OkStatus();
  }));
  EXPECT_EQ(recording_.TakeRaces(), "");
}

TEST_F(SharedWaitTest, WhoDoesNotComeIsNamed) {
  const auto statuses = Run(
      [](Rank& rank) -> absl::Status {
        PARTITA_ASSIGN_OR_RETURN(const auto sum, rank.Prepare("h.0.mlp"));
        if (rank.self == 1) return absl::OkStatus();
        const absl::Status status = rank.Start(*sum);
        // All later calls fail.
        EXPECT_FALSE(rank.Start(*sum).ok());
        return status;
      },
      std::chrono::milliseconds(1500));
  EXPECT_TRUE(absl::IsDeadlineExceeded(statuses[0])) << statuses[0];
  EXPECT_THAT(std::string(statuses[0].message()),
              HasSubstr("rank 1 did not arrive at all_reduce 'h.0.mlp' of "
                        "f32[4] among ranks 0, 1 within 1500 ms"));
}

TEST_F(SharedWaitTest, ATransferThatNobodySendsIsNamed) {
  const auto statuses = Run(
      [](Rank& rank) -> absl::Status {
        PARTITA_ASSIGN_OR_RETURN(
            const auto transfer,
            rank.Prepare("dh", comm::Kind::kTransfer, /*sender=*/1));
        if (rank.self == 1) return absl::OkStatus();
        PARTITA_RETURN_IF_ERROR(rank.Start(*transfer));
        return rank.Join(*transfer);
      },
      std::chrono::milliseconds(1500));
  EXPECT_TRUE(absl::IsDeadlineExceeded(statuses[0])) << statuses[0];
  EXPECT_THAT(std::string(statuses[0].message()),
              AllOf(HasSubstr("rank 1 did not arrive at transfer 'dh'"),
                    HasSubstr("among ranks 1, 0")));
}

// Rank 1 has sent and frees its memory: before rank 0 arrives to receive, or
// when the copy is on rank 0's stream.
TEST_F(SharedWaitTest, WhatEndsIsReadByNobody) {
  recording_.Watch();
  for (const bool held : {false, true}) {
    SCOPED_TRACE(held);
    const auto statuses = Run([&](Rank& rank) -> absl::Status {
      PARTITA_ASSIGN_OR_RETURN(
          auto transfer,
          rank.Prepare("dh", comm::Kind::kTransfer, /*sender=*/1));
      if (rank.self == 1) {
        PARTITA_ASSIGN_OR_RETURN(device::Allocation sent,
                                 device::Allocation::Make(*rank.device, 64));
        PARTITA_RETURN_IF_ERROR(rank.gpus->Enqueue(
            *transfer, sent.data(), sent.data(), rank.stream->native_handle()));
        PARTITA_RETURN_IF_ERROR(rank.base.Agree(absl::OkStatus()));
        if (held) PARTITA_RETURN_IF_ERROR(rank.base.Agree(absl::OkStatus()));
        transfer.reset();
        sent = device::Allocation();
        return held ? absl::OkStatus() : rank.base.Agree(absl::OkStatus());
      }
      PARTITA_RETURN_IF_ERROR(rank.base.Agree(absl::OkStatus()));
      if (!held) PARTITA_RETURN_IF_ERROR(rank.base.Agree(absl::OkStatus()));
      const absl::Status status = rank.Start(*transfer);
      if (held) PARTITA_RETURN_IF_ERROR(rank.base.Agree(absl::OkStatus()));
      PARTITA_RETURN_IF_ERROR(status);
      return rank.Join(*transfer);
    });
    EXPECT_TRUE(statuses[1].ok()) << statuses[1];
    EXPECT_EQ(statuses[0].ok(), held) << statuses[0];
    if (!held) {
      EXPECT_THAT(std::string(statuses[0].message()),
                  HasSubstr("rank 1 left before all ranks arrived at "
                            "transfer 'dh'"));
    }
    EXPECT_EQ(recording_.TakeRaces(), "");
  }
}

// The last of several launches of a collective fails. The earlier ones have
// ended when the other rank learns of it and frees its memory.
TEST_F(SharedWaitTest, WhatFailsHalfwayIsReadByNobody) {
  recording_.Watch();
  const auto statuses = Run([&](Rank& rank) -> absl::Status {
    Operation gather;
    gather.kind = comm::Kind::kAllGather;
    gather.input_shape = {4};
    gather.output_shape = {8};
    gather.dim = 0;
    gather.size = 8;
    PARTITA_ASSIGN_OR_RETURN(auto all,
                             rank.gpus->Prepare(gather, {0, 1}, true));
    PARTITA_ASSIGN_OR_RETURN(device::Allocation buffer,
                             device::Allocation::Make(*rank.device, 64));
    const auto start = [&] {
      return rank.gpus->Enqueue(*all, buffer.data(), buffer.data() + 32,
                                rank.stream->native_handle());
    };
    if (rank.self == 1) PARTITA_RETURN_IF_ERROR(start());
    PARTITA_RETURN_IF_ERROR(rank.base.Agree(absl::OkStatus()));
    absl::Status status;
    if (rank.self == 0) {
      // Fails the event behind the copies, not the one before them.
      recording_.FailNext("cuEventRecord", kCuIllegalAddress, 1, /*after=*/1);
      status = start();
    }
    PARTITA_RETURN_IF_ERROR(rank.base.Agree(absl::OkStatus()));
    if (rank.self == 1) status = rank.Join(*all);
    all.reset();
    return status;
  });
  for (const absl::Status& status : statuses) EXPECT_FALSE(status.ok());
  EXPECT_EQ(recording_.TakeRaces(), "");
}

TEST_F(SharedWaitTest, AGpuThatNeverEndsIsAnError) {
  recording_.FailNext("cuStreamQuery", kCuNotReady, 1 << 30);
  recording_.FailNext("cuEventQuery", kCuNotReady, 1 << 30);
  const auto statuses = Run(
      [](Rank& rank) -> absl::Status {
        PARTITA_ASSIGN_OR_RETURN(const auto sum, rank.Prepare("x"));
        PARTITA_RETURN_IF_ERROR(rank.Start(*sum));
        return rank.Await();
      },
      std::chrono::milliseconds(1500));
  recording_.FailNext("cuStreamQuery", kCuSuccess, 0);
  recording_.FailNext("cuEventQuery", kCuSuccess, 0);
  for (const absl::Status& status : statuses)
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("shares with others made no progress within "
                                "1500 ms; it has not finished "
                                "all_reduce 'x' of f32[4] among ranks 0, 1"),
                      HasSubstr("--timeout")));
}

TEST_F(SharedWaitTest, WhatTheDriverRefusesIsAnErrorOfBoth) {
  const auto statuses = Run([&](Rank& rank) -> absl::Status {
    PARTITA_ASSIGN_OR_RETURN(const auto sum, rank.Prepare("x"));
    PARTITA_RETURN_IF_ERROR(rank.base.Agree(absl::OkStatus()));
    if (rank.self == 0)
      recording_.FailNext("cuStreamWaitEvent", kCuIllegalAddress);
    PARTITA_RETURN_IF_ERROR(rank.base.Agree(absl::OkStatus()));
    return rank.Start(*sum);
  });
  for (const absl::Status& status : statuses)
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
}

}  // namespace
}  // namespace partita::cuda
