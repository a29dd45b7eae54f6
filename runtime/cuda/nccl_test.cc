// Every kind of collective on GPUs that are recorded, against its definition;
// and what happens when a group of GPUs stands still.
#include "runtime/cuda/nccl.h"

#include <algorithm>
#include <chrono>
#include <fstream>
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
#include "runtime/comm/test_cases.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/nccl_api.h"
#include "runtime/cuda/nccl_plan.h"
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

// A rank with a GPU, for tests that give host memory: operations run on the GPU
// where they can, all of them in one order, which `beside` chooses.
class GpuRank : public Communicator {
 public:
  GpuRank(std::unique_ptr<Communicator> base, bool beside)
      : base_(std::move(base)),
        beside_(beside),
        device_(std::move(MakeCudaDevice({0, kLibrary, "none"})).value()),
        stream_(std::move(device_->CreateStream()).value()),
        gpus_(
            std::move(MakeNcclCommunicator(*base_, {0, kLibrary, kLibrary, {}}))
                .value()) {}

  int rank() const override { return base_->rank(); }
  int size() const override { return base_->size(); }
  std::string Describe(int rank) const override {
    return base_->Describe(rank);
  }
  absl::StatusOr<std::unique_ptr<Collective>> Prepare(
      Operation operation, std::vector<int> ranks) override {
    PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<Collective> collective,
                             gpus_->Prepare(operation, ranks, beside_));
    if (collective != nullptr) {
      on_gpu_.push_back(collective.get());
      return collective;
    }
    PARTITA_ASSIGN_OR_RETURN(
        collective, base_->Prepare(std::move(operation), std::move(ranks)));
    // Where one lay that is gone.
    on_gpu_.erase(std::remove(on_gpu_.begin(), on_gpu_.end(), collective.get()),
                  on_gpu_.end());
    return collective;
  }
  absl::Status Run(Collective& collective, const void* input,
                   void* output) override {
    if (std::find(on_gpu_.begin(), on_gpu_.end(), &collective) == on_gpu_.end())
      return base_->Run(collective, input, output);
    const int64_t in_bytes = collective.operation().InputBytes();
    const int64_t out_bytes = collective.operation().OutputBytes();
    PARTITA_ASSIGN_OR_RETURN(const auto in,
                             device::Allocation::Make(*device_, in_bytes));
    PARTITA_ASSIGN_OR_RETURN(const auto out,
                             device::Allocation::Make(*device_, out_bytes));
    PARTITA_RETURN_IF_ERROR(
        device_->CopyToDevice(*stream_, in.data(), input, in_bytes));
    void* const target = input == output ? in.data() : out.data();
    PARTITA_RETURN_IF_ERROR(gpus_->Enqueue(collective, in.data(), target,
                                           stream_->native_handle()));
    PARTITA_RETURN_IF_ERROR(gpus_->Await(stream_->native_handle()));
    return device_->CopyToHost(*stream_, output, target, out_bytes);
  }
  std::unique_ptr<Communicator> MakeBeside() override { return nullptr; }
  absl::Status WaitFor(Communicator& beside, const Done& done) override {
    return base_->WaitFor(beside, done);
  }
  absl::Status Progress() override { return base_->Progress(); }
  uint64_t Beats() const override { return base_->Beats(); }
  void Fail(const absl::Status& status) override { base_->Fail(status); }

 private:
  const std::unique_ptr<Communicator> base_;
  const bool beside_;
  const std::unique_ptr<device::Device> device_;
  const std::unique_ptr<device::Stream> stream_;
  const std::unique_ptr<DeviceCommunicator> gpus_;
  std::vector<Collective*> on_gpu_;
};

TEST(NcclTest, EqualsTheDefinition) {
  comm::CheckAgainstReference([](int size) {
    std::vector<std::unique_ptr<Communicator>> ranks;
    for (auto& base : comm::MakeLocalCommunicators(size))
      ranks.push_back(std::make_unique<GpuRank>(std::move(base), size == 3));
    return ranks;
  });
  const std::string log = recording::Recording(kLibrary).TakeLog();
  for (const char* symbol : {"ncclAllReduce", "ncclReduceScatter",
                             "ncclAllGather", "ncclBroadcast", "ncclSend"})
    EXPECT_THAT(log, HasSubstr(symbol));
}

TEST(NcclPlanTest, PartsThatLieTogetherAreNotCopied) {
  Operation gather;
  gather.kind = comm::Kind::kAllGather;
  gather.dim = 0;
  gather.input_shape = {4, 8};
  gather.output_shape = {16, 8};
  EXPECT_EQ(PlanNccl(gather, 4, 1)->kind, NcclPlan::Kind::kAllGather);
  gather.output_shape = {15, 8};  // the last rows are dropped
  const NcclPlan rest = *PlanNccl(gather, 4, 1);
  EXPECT_EQ(rest.kind, NcclPlan::Kind::kPieces);
  EXPECT_EQ(rest.scratch_bytes, 0);
  gather.dim = 1;
  gather.output_shape = {4, 32};
  EXPECT_GT(PlanNccl(gather, 4, 1)->scratch_bytes, 0);

  Operation scatter;
  scatter.kind = comm::Kind::kReduceScatter;
  scatter.dim = 0;
  scatter.input_shape = {16, 8};
  scatter.output_shape = {4, 8};
  EXPECT_EQ(PlanNccl(scatter, 4, 0)->scratch_bytes, 0);
  scatter.input_shape = {15, 8};
  EXPECT_EQ(PlanNccl(scatter, 4, 0)->scratch_bytes, 4 * 4 * 8 * 4);
  EXPECT_TRUE(PlanNccl(scatter, 4, 0)->clear);
}

TEST(NcclPlanTest, OthersGoThroughTheHost) {
  Operation sum;
  sum.input_shape = sum.output_shape = {4};
  sum.dtype = base::DType::kI16;  // the library has no such sums
  EXPECT_FALSE(PlanNccl(sum, 2, 0).has_value());
  sum.dtype = base::DType::kI8;
  EXPECT_TRUE(PlanNccl(sum, 2, 0).has_value());
}

TEST(NcclPlanTest, TransfersGoAsTheyLie) {
  Operation transfer;
  transfer.kind = comm::Kind::kTransfer;
  transfer.dtype = base::DType::kI16;
  transfer.input_shape = transfer.output_shape = {4, 3};
  for (const int index : {0, 1}) {
    const NcclPlan plan = *PlanNccl(transfer, 2, index);
    EXPECT_EQ(plan.kind, NcclPlan::Kind::kPieces);
    EXPECT_EQ(plan.scratch_bytes, 0);
    EXPECT_EQ(plan.own.Bytes(), 0);
    EXPECT_EQ(plan.sends.size(), index == 0 ? 1u : 0u);
    EXPECT_EQ(plan.receives.size(), index == 1 ? 1u : 0u);
    EXPECT_EQ((index == 0 ? plan.sends : plan.receives).front().bytes, 24);
  }
}

TEST(NcclTest, WithoutNcclItSaysWhatToDo) {
  auto ranks = comm::MakeLocalCommunicators(1);
  const auto gpus =
      MakeNcclCommunicator(*ranks[0], {0, kLibrary, "libno_nccl.so", {}});
  EXPECT_TRUE(absl::IsFailedPrecondition(gpus.status()));
  EXPECT_THAT(std::string(gpus.status().message()),
              AllOf(HasSubstr("NCCL is not there: expected libno_nccl.so"),
                    HasSubstr("set LD_LIBRARY_PATH to where it lies")));
}

const NcclOptions kGood = {0, kLibrary, kLibrary, {}};

// Whether two ranks, in threads, get a communicator with these options.
std::vector<absl::StatusOr<bool>> Agree(
    const std::vector<NcclOptions>& options) {
  const auto bases = comm::MakeLocalCommunicators(2);
  std::vector<std::future<absl::StatusOr<bool>>> ranks;
  for (size_t rank = 0; rank < 2; ++rank)
    ranks.push_back(
        std::async(std::launch::async, [&, rank]() -> absl::StatusOr<bool> {
          PARTITA_ASSIGN_OR_RETURN(const auto gpus,
                                   AgreeOnNccl(*bases[rank], options[rank]));
          return gpus != nullptr;
        }));
  return {ranks[0].get(), ranks[1].get()};
}

TEST(AgreeOnNcclTest, AllHaveItOrNone) {
  for (const auto& have : Agree({kGood, kGood}))
    EXPECT_TRUE(have.ok() && *have) << have.status();
  for (const auto& have : Agree({{0, kLibrary, "libno_nccl.so", {}}, kGood}))
    EXPECT_TRUE(have.ok() && !*have) << have.status();
}

// Nobody goes on through the host's memory, unasked and far slower.
TEST(AgreeOnNcclTest, WhatIsInstalledMustWork) {
  const std::string broken = ::testing::TempDir() + "/libbroken_nccl.so";
  std::ofstream(broken) << "no library";
  const auto expect = [&](const NcclOptions& bad, const std::string& text) {
    for (const auto& have : Agree({kGood, bad}))
      EXPECT_THAT(std::string(have.status().message()),
                  AllOf(HasSubstr("rank 1: "), HasSubstr(text)));
  };
  expect({0, kLibrary, broken, {}}, "NCCL is not there: expected " + broken);
  expect({0, kLibrary, "libm.so.6", {}}, "libm.so.6 has no function nccl");
  expect({0, "libno_cuda.so", kLibrary, {}},
         "the driver of NVIDIA GPUs is not there");
  expect({99, kLibrary, kLibrary, {}}, "expected a GPU number 99");
}

// Two ranks in threads, with little patience.
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
    absl::StatusOr<std::unique_ptr<Collective>> Prepare() {
      Operation sum;
      sum.input_shape = sum.output_shape = {4};
      sum.name = "h.0.mlp";
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
    options_.patience = std::chrono::milliseconds(2000);
    bases_ = comm::MakeLocalCommunicators(2, options_);
  }
  // What rank 0 gets, in time; `other` is what rank 1 does meanwhile.
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
    // From now on nothing works.
    EXPECT_EQ(rank.Await(), status);
    EXPECT_FALSE(rank.Prepare().ok());
    thread.join();
    return status;
  }
  // Both, up to what they start.
  static absl::Status SumAndWait(Rank& rank) {
    PARTITA_ASSIGN_OR_RETURN(const auto sum, rank.Prepare());
    PARTITA_RETURN_IF_ERROR(rank.Start(*sum));
    return rank.Await();
  }

  const recording::Recording recording_;
  comm::CommOptions options_;
  std::vector<std::unique_ptr<Communicator>> bases_;
};

// Both GPUs' work never ends, and rank 1 is gone.
TEST_F(NcclWaitTest, WhoStandsStillIsNamed) {
  recording_.FailNext("cuStreamQuery", kCuNotReady, 1 << 30);
  const absl::Status status =
      Run([](Rank& rank) { return rank.Await(); }, [](Rank&) {});
  recording_.FailNext("cuStreamQuery", kCuSuccess, 0);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1"));
}

// Rank 1 is there but for the sum.
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

// Rank 1 makes the group's id known and goes no further.
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

// Both call; the library never says that it has put the sum on the stream.
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

// The library loses the other member, of which the ranks know nothing.
TEST_F(NcclWaitTest, WhatTheLibraryFindsOutEndsTheWait) {
  options_.patience = std::chrono::seconds(60);
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

// What it captures of a step, and replays alone.
TEST_F(NcclWaitTest, AReplayedStepThatNeverEndsSaysHowToNameIt) {
  options_.patience = std::chrono::seconds(1);
  std::unique_ptr<Collective> sum;
  std::unique_ptr<device::Graph> graph;
  const auto replay = [&](Rank& rank) -> absl::Status {
    PARTITA_ASSIGN_OR_RETURN(sum, rank.Prepare());
    PARTITA_ASSIGN_OR_RETURN(graph, rank.device->Capture(*rank.stream, [&] {
      return rank.Start(*sum);
    }));
    PARTITA_RETURN_IF_ERROR(rank.device->Replay(*rank.stream, *graph));
    const absl::Status status = rank.Await();
    graph.reset();
    return status;
  };
  const absl::Status status =
      Run(replay, [](Rank& rank) { EXPECT_TRUE(rank.Prepare().ok()); });
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("; it replays a step with 1 operation among GPUs, the "
                        "first of them all_reduce 'h.0.mlp' of f32[4] among "
                        "ranks 0, 1: PARTITA_CUDA_GRAPHS=0 in the environment "
                        "names the one at which it stands"));
}

// More scratch is needed while a sum that uses some never ends.
TEST_F(NcclWaitTest, PreparingDoesNotWaitForEver) {
  options_.patience = std::chrono::seconds(1);
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

// Each sends before it receives: neither call waits for the other rank's.
TEST(NcclTransferTest, BothDirectionsAtOnce) {
  comm::CommOptions options;
  options.patience = std::chrono::seconds(5);
  auto bases = comm::MakeLocalCommunicators(2, options);
  const auto exchange = [&](Communicator& base) -> absl::Status {
    const int own = base.rank();
    PARTITA_ASSIGN_OR_RETURN(const auto device,
                             MakeCudaDevice({0, kLibrary, "none"}));
    PARTITA_ASSIGN_OR_RETURN(
        const auto gpus,
        MakeNcclCommunicator(base, {0, kLibrary, kLibrary, options}));
    // By sender.
    std::vector<std::unique_ptr<Collective>> transfers;
    std::vector<std::unique_ptr<device::Stream>> streams;
    PARTITA_ASSIGN_OR_RETURN(const auto memory,
                             device::Allocation::Make(*device, 16));
    for (const int sender : {0, 1}) {
      Operation transfer;
      transfer.kind = comm::Kind::kTransfer;
      transfer.input_shape = transfer.output_shape = {2};
      transfer.name = "h";
      PARTITA_ASSIGN_OR_RETURN(
          auto prepared, gpus->Prepare(transfer, {sender, 1 - sender}, true));
      transfers.push_back(std::move(prepared));
      PARTITA_ASSIGN_OR_RETURN(auto stream, device->CreateStream());
      streams.push_back(std::move(stream));
    }
    const std::vector<float> sent = {static_cast<float>(own), 7};
    std::vector<float> received(2, -1);
    for (int round = 0; round < 2; ++round) {
      device::Stream& out = *streams[static_cast<size_t>(own)];
      device::Stream& in = *streams[static_cast<size_t>(1 - own)];
      PARTITA_RETURN_IF_ERROR(
          device->CopyToDevice(out, memory.data(), sent.data(), 8));
      PARTITA_RETURN_IF_ERROR(
          gpus->Enqueue(*transfers[static_cast<size_t>(own)], memory.data(),
                        memory.data(), out.native_handle()));
      PARTITA_RETURN_IF_ERROR(gpus->Enqueue(
          *transfers[static_cast<size_t>(1 - own)], memory.data() + 8,
          memory.data() + 8, in.native_handle()));
      PARTITA_RETURN_IF_ERROR(gpus->Await(in.native_handle()));
      PARTITA_RETURN_IF_ERROR(gpus->Await(out.native_handle()));
      PARTITA_RETURN_IF_ERROR(
          device->CopyToHost(in, received.data(), memory.data() + 8, 8));
      EXPECT_EQ(received, (std::vector<float>{static_cast<float>(1 - own), 7}));
    }
    return base.Agree(absl::OkStatus());
  };
  absl::Status other;
  std::thread thread([&] { other = exchange(*bases[1]); });
  const absl::Status status = exchange(*bases[0]);
  thread.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(other.ok()) << other;
}

TEST_F(NcclWaitTest, TheRankThatFailedIsNamedWhereItIsKnown) {
  options_.patience = std::chrono::seconds(60);
  const absl::Status status = Run(SumAndWait, [&](Rank& rank) {
    EXPECT_TRUE(rank.Prepare().ok());
    bases_[1]->Fail(absl::DataLossError("rank 1 fell over"));
  });
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 fell over"));
}

}  // namespace
}  // namespace partita::cuda
