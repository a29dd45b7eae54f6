// Timeouts of a group of recorded GPUs: the message names the missing rank and
// the operation.
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/local.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/nccl.h"
#include "runtime/cuda/nccl_api.h"
#include "runtime/cuda/recording/recording.h"

namespace partita::cuda {
namespace {

using comm::Collective;
using comm::Communicator;
using comm::DeviceCommunicator;
using comm::Operation;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kLibrary[] = "runtime/cuda/recording/librecording.so";

// Two ranks in threads, with a short timeout.
class NcclWaitTest : public ::testing::Test {
 protected:
  struct Rank {
    Rank(Communicator& base, const comm::CommOptions& options)
        : rank(static_cast<size_t>(base.rank())),
          device(std::move(MakeCudaDevice({0, kLibrary, "none"})).value()),
          stream(std::move(device->CreateStream()).value()),
          memory(std::move(device::Allocation::Make(*device, 64)).value()),
          gpus(std::move(
                   MakeNcclCommunicator(base, {0, kLibrary, kLibrary, options}))
                   .value()) {}
    absl::StatusOr<std::unique_ptr<Collective>> Prepare(
        const std::string& name = "h.0.mlp") {
      Operation sum;
      sum.input_shape = sum.output_shape = {4};
      sum.name = name;
      return gpus->Prepare(sum, {0, 1}, false);
    }
    absl::Status Start(Collective& collective) {
      return gpus->Enqueue(collective, memory.data(), memory.data(),
                           stream->native_handle());
    }
    absl::Status Await() { return gpus->Await(stream->native_handle()); }

    const size_t rank;
    const std::unique_ptr<device::Device> device;
    const std::unique_ptr<device::Stream> stream;
    const device::Allocation memory;
    const std::unique_ptr<DeviceCommunicator> gpus;
  };

  NcclWaitTest() : recording_(kLibrary) {
    options_.timeout = std::chrono::milliseconds(2000);
    bases_ = comm::MakeLocalCommunicators(2, options_);
  }
  // Returns the status of rank 0, which runs `first`, and checks that it ends
  // in time. Rank 1 runs `other` meanwhile.
  absl::Status Run(const std::function<absl::Status(Rank&)>& first,
                   const std::function<void(Rank&)>& other) {
    std::promise<void> made;
    std::thread thread([&] {
      Rank rank(*bases_[1], options_);
      made.set_value();
      other(rank);
    });
    Rank rank(*bases_[0], options_);
    made.get_future().wait();
    const auto begin = std::chrono::steady_clock::now();
    absl::Status status = first(rank);
    EXPECT_LT(std::chrono::steady_clock::now() - begin,
              std::chrono::seconds(30));
    // All later calls fail.
    EXPECT_EQ(rank.Await(), status);
    EXPECT_FALSE(rank.Prepare().ok());
    thread.join();
    return status;
  }
  // Prepares and starts a sum, and waits for it.
  static absl::Status SumAndWait(Rank& rank) {
    PARTITA_ASSIGN_OR_RETURN(const auto sum, rank.Prepare());
    PARTITA_RETURN_IF_ERROR(rank.Start(*sum));
    return rank.Await();
  }

  const recording::Recording recording_;
  comm::CommOptions options_;
  std::vector<std::unique_ptr<Communicator>> bases_;
};

// The GPU's work never ends, and rank 1 is gone.
TEST_F(NcclWaitTest, WhoStandsStillIsNamed) {
  recording_.FailNext("cuStreamQuery", kCuNotReady, 1 << 30);
  const absl::Status status =
      Run([](Rank& rank) { return rank.Await(); }, [](Rank&) {});
  recording_.FailNext("cuStreamQuery", kCuSuccess, 0);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1"));
}

// Rank 1 joins the group but does not run the sum.
TEST_F(NcclWaitTest, ACollectiveThatNeverEndsIsNamed) {
  const absl::Status status =
      Run(SumAndWait, [](Rank& rank) { EXPECT_TRUE(rank.Prepare().ok()); });
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("rank 1 did not arrive"),
            HasSubstr("the GPU of rank 0 did not end its work within 2000 ms"),
            HasSubstr("; it stands at all_reduce 'h.0.mlp' of f32[4] among "
                      "ranks 0, 1")));
  EXPECT_THAT(recording_.TakeLog(), HasSubstr("ncclCommAbort"));
}

// Rank 1 shares the group's id and then stops.
TEST_F(NcclWaitTest, AGroupThatNeverMeetsIsNamed) {
  const absl::Status status =
      Run([](Rank& rank) { return rank.Prepare().status(); },
          [&](Rank&) {
            Operation share;
            share.kind = comm::Kind::kBroadcast;
            share.dtype = base::DType::kU8;
            share.input_shape = share.output_shape = {128};
            share.name = "the id of the group of the GPUs of ranks 0, 1";
            const auto broadcast =
                std::move(bases_[1]->Prepare(share, {0, 1})).value();
            std::string id(128, '\0');
            EXPECT_TRUE(bases_[1]->Run(*broadcast, id.data(), id.data()).ok());
          });
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("rank 1 did not arrive"),
                    HasSubstr("joining the group of the GPUs of ranks 0, 1 did "
                              "not end within 2000 ms")));
}

// Both ranks call, but NCCL never reports that the sum is on the stream.
TEST_F(NcclWaitTest, ACallThatNeverEndsIsNamed) {
  const auto sum = [&](Rank& rank) -> absl::Status {
    PARTITA_ASSIGN_OR_RETURN(const auto sum, rank.Prepare());
    PARTITA_RETURN_IF_ERROR(bases_[rank.rank]->Agree(absl::OkStatus()));
    recording_.FailNext("ncclCommGetAsyncError",
                        static_cast<CuResult>(kNcclInProgress), 1 << 30);
    return rank.Start(*sum);
  };
  const absl::Status status = Run(sum, [&](Rank& rank) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(sum(rank)));
  });
  recording_.FailNext("ncclCommGetAsyncError", kCuSuccess, 0);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("all_reduce 'h.0.mlp' of f32[4] did not end within 2000 "
                "ms"));
}

// NCCL loses the other member, without the ranks noticing.
TEST_F(NcclWaitTest, WhatTheLibraryFindsOutEndsTheWait) {
  options_.timeout = std::chrono::seconds(60);
  constexpr CuResult kRemoteError = static_cast<CuResult>(6);
  const auto prepare = [&](Rank& rank) {
    auto sum = rank.Prepare();
    EXPECT_TRUE(bases_[rank.rank]->Agree(sum.status()).ok());
    return sum;
  };
  const auto fail = [&](Rank& rank) -> absl::Status {
    PARTITA_ASSIGN_OR_RETURN(const auto sum, prepare(rank));
    PARTITA_RETURN_IF_ERROR(rank.Start(*sum));
    recording_.FailNext("ncclCommGetAsyncError", kRemoteError);
    return rank.Await();
  };
  const absl::Status status =
      Run(fail, [&](Rank& rank) { EXPECT_TRUE(prepare(rank).ok()); });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("exchanging in the group of the GPUs of ranks 0, "
                              "1: NCCL says"),
                    HasSubstr("it stands at all_reduce 'h.0.mlp'")));
}

// Both ranks capture operations of a step, and one rank does not run all of
// them.
class NcclReplayTest : public NcclWaitTest {
 protected:
  // Rank 0 replays sums of these names. Rank 1 runs the first `done` of them.
  std::string Replay(const std::vector<std::string>& names, size_t done) {
    options_.timeout = std::chrono::seconds(1);
    std::vector<std::unique_ptr<Collective>> sums;
    std::unique_ptr<device::Graph> graph;
    const auto replay = [&](Rank& rank) -> absl::Status {
      for (const std::string& name : names) {
        PARTITA_ASSIGN_OR_RETURN(auto sum, rank.Prepare(name));
        sums.push_back(std::move(sum));
      }
      PARTITA_ASSIGN_OR_RETURN(
          graph, rank.device->Capture(*rank.stream, [&]() -> absl::Status {
            for (const auto& sum : sums)
              PARTITA_RETURN_IF_ERROR(rank.Start(*sum));
            return absl::OkStatus();
          }));
      PARTITA_RETURN_IF_ERROR(rank.device->Replay(*rank.stream, *graph));
      const absl::Status status = rank.Await();
      graph.reset();
      return status;
    };
    const absl::Status status = Run(replay, [&](Rank& rank) {
      std::vector<std::unique_ptr<Collective>> own;
      for (const std::string& name : names)
        own.push_back(std::move(rank.Prepare(name)).value());
      for (size_t i = 0; i < done; ++i) EXPECT_TRUE(rank.Start(*own[i]).ok());
      if (done > 0) EXPECT_TRUE(rank.Await().ok());
    });
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    return std::string(status.message());
  }
};

TEST_F(NcclReplayTest, TheOperationThatNeverEndsIsNamed) {
  EXPECT_THAT(Replay({"h.0.attn", "h.0.mlp", "h.1.attn"}, 1),
              AllOf(HasSubstr("rank 1"),
                    HasSubstr("the GPU of rank 0 did not end its work"),
                    HasSubstr("; it stands at all_reduce 'h.0.mlp' of f32[4] "
                              "among ranks 0, 1, operation 2 of 3 among GPUs "
                              "in the replayed step")));
}

TEST_F(NcclReplayTest, TheFirstIsNamedWhereNoneEnds) {
  EXPECT_THAT(Replay({"h.0.attn", "h.0.mlp"}, 0),
              HasSubstr("; it stands at all_reduce 'h.0.attn' of f32[4] among "
                        "ranks 0, 1, operation 1 of 2 among GPUs"));
}

// Replays a graph twice: events of the first replay do not count in the second.
TEST_F(NcclReplayTest, EachReplayIsOfItsOwn) {
  options_.timeout = std::chrono::seconds(1);
  std::unique_ptr<Collective> sum;
  std::unique_ptr<device::Graph> graph;
  const auto replay = [&](Rank& rank) -> absl::Status {
    PARTITA_ASSIGN_OR_RETURN(sum, rank.Prepare());
    PARTITA_ASSIGN_OR_RETURN(graph, rank.device->Capture(*rank.stream, [&] {
      return rank.Start(*sum);
    }));
    absl::Status status;
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(status.ok()) << status;
      PARTITA_RETURN_IF_ERROR(rank.device->Replay(*rank.stream, *graph));
      status = rank.Await();
    }
    graph.reset();
    return status;
  };
  const absl::Status status = Run(replay, [](Rank& rank) {
    const auto own = std::move(rank.Prepare()).value();
    EXPECT_TRUE(rank.Start(*own).ok());
    EXPECT_TRUE(rank.Await().ok());
  });
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("; it stands at all_reduce 'h.0.mlp' of f32[4] among "
                        "ranks 0, 1, operation 1 of 1 among GPUs in the "
                        "replayed step"));
}

// All sums end, but a kernel after them does not.
TEST_F(NcclReplayTest, WhatStandsBehindThemAllIsSaid) {
  options_.timeout = std::chrono::seconds(1);
  std::unique_ptr<Collective> sum;
  std::unique_ptr<device::Graph> graph;
  const auto replay = [&](Rank& rank) -> absl::Status {
    PARTITA_ASSIGN_OR_RETURN(sum, rank.Prepare());
    PARTITA_ASSIGN_OR_RETURN(graph, rank.device->Capture(*rank.stream, [&] {
      return rank.Start(*sum);
    }));
    PARTITA_RETURN_IF_ERROR(rank.device->Replay(*rank.stream, *graph));
    PARTITA_RETURN_IF_ERROR(rank.device->Synchronize(*rank.stream));
    recording_.FailNext("cuStreamQuery", kCuNotReady, 1 << 30);
    const absl::Status status = rank.Await();
    graph.reset();
    return status;
  };
  const absl::Status status = Run(replay, [](Rank& rank) {
    const auto own = std::move(rank.Prepare()).value();
    EXPECT_TRUE(rank.Start(*own).ok());
    EXPECT_TRUE(rank.device->Synchronize(*rank.stream).ok());
  });
  recording_.FailNext("cuStreamQuery", kCuSuccess, 0);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("; it has passed the last of the 1 operations among "
                        "GPUs in the replayed step, all_reduce 'h.0.mlp'"));
}

// An operation needs more scratch while a sum that uses the scratch never ends.
TEST_F(NcclWaitTest, PreparingDoesNotWaitForEver) {
  options_.timeout = std::chrono::seconds(1);
  const auto gather = [](Rank& rank, int64_t size) {
    Operation columns;
    columns.kind = comm::Kind::kAllGather;
    columns.dim = 1;
    columns.input_shape = {size, 1};
    columns.output_shape = {size, 2};
    return rank.gpus->Prepare(columns, {0, 1}, false).status();
  };
  const auto prepare = [&](Rank& rank) -> absl::Status {
    PARTITA_RETURN_IF_ERROR(gather(rank, 4));
    PARTITA_ASSIGN_OR_RETURN(const auto sum, rank.Prepare());
    PARTITA_RETURN_IF_ERROR(rank.Start(*sum));
    return gather(rank, 400);
  };
  const absl::Status status =
      Run(prepare, [](Rank& rank) { EXPECT_TRUE(rank.Prepare().ok()); });
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("; it stands at all_reduce 'h.0.mlp'"));
}

TEST_F(NcclWaitTest, TheRankThatFailedIsNamedWhereItIsKnown) {
  options_.timeout = std::chrono::seconds(60);
  const absl::Status status = Run(SumAndWait, [&](Rank& rank) {
    EXPECT_TRUE(rank.Prepare().ok());
    bases_[1]->Fail(absl::DataLossError("rank 1 fell over"));
  });
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 fell over"));
}

}  // namespace
}  // namespace partita::cuda
