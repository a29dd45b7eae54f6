// Tests every kind of collective on recorded GPUs against its definition.
#include "runtime/cuda/nccl.h"

#include <chrono>
#include <fstream>
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
#include "runtime/comm/row_cases.h"
#include "runtime/comm/test_cases.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/gpu_rank_testing.h"
#include "runtime/cuda/nccl_plan.h"
#include "runtime/cuda/recording/recording.h"
#include "runtime/program/library_limits.h"

namespace partita::cuda {
namespace {

using comm::Collective;
using comm::Communicator;
using comm::Operation;
using ::testing::AllOf;
using ::testing::HasSubstr;

const NcclOptions kGood = {0, kLibrary, kLibrary, {}};

TEST(NcclTest, EqualsTheDefinition) {
  comm::CheckAgainstReference([](int size) {
    std::vector<std::unique_ptr<Communicator>> ranks;
    for (auto& base : comm::MakeLocalCommunicators(size)) {
      auto gpus = std::move(MakeNcclCommunicator(*base, kGood)).value();
      ranks.push_back(std::make_unique<GpuRank>(std::move(base),
                                                std::move(gpus), size == 3));
    }
    return ranks;
  });
  const std::string log = recording::Recording(kLibrary).TakeLog();
  for (const char* symbol : {"ncclAllReduce", "ncclReduceScatter",
                             "ncclAllGather", "ncclBroadcast", "ncclSend"})
    EXPECT_THAT(log, HasSubstr(symbol));
}

TEST(NcclTest, RowsTravelAndReturn) {
  comm::CheckRows([](int size) {
    std::vector<std::unique_ptr<Communicator>> ranks;
    for (auto& base : comm::MakeLocalCommunicators(size)) {
      auto gpus = std::move(MakeNcclCommunicator(*base, kGood)).value();
      ranks.push_back(
          std::make_unique<GpuRank>(std::move(base), std::move(gpus), false));
    }
    return ranks;
  });
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
  // Blocks of columns are sent as they lie, and unpacked.
  gather.dim = 1;
  gather.output_shape = {4, 32};
  const NcclPlan columns = *PlanNccl(gather, 4, 1);
  EXPECT_TRUE(columns.packed.empty());
  EXPECT_EQ(columns.unpacked.size(), 3u);
  EXPECT_EQ(columns.scratch_bytes, 3 * 4 * 8 * 4);

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

// The compiler counts PackingBytes.
TEST(NcclPlanTest, PackingTakesNoMoreThanIsCounted) {
  using Kind = program::PackedCollective::Kind;
  int packed = 0;
  for (int n = 1; n <= 8; ++n)
    for (const Operation& operation : comm::TestOperations(n)) {
      program::PackedCollective counted;
      counted.kind =
          operation.kind == comm::Kind::kReduceScatter ? Kind::kReduceScatter
          : operation.kind == comm::Kind::kAllGather   ? Kind::kAllGather
          : operation.kind == comm::Kind::kExchange    ? Kind::kExchange
          : operation.kind == comm::Kind::kAllToAll    ? Kind::kAllToAll
                                                       : Kind::kOther;
      counted.input_shape = operation.input_shape;
      counted.output_shape = operation.output_shape;
      counted.dim = operation.dim;
      counted.step = operation.step;
      counted.element_bytes = base::SizeOf(operation.dtype);
      counted.devices = n;
      for (int index = 0; index < n; ++index) {
        const auto plan = PlanNccl(operation, n, index);
        if (!plan) continue;
        packed += plan->scratch_bytes > 0;
        EXPECT_LE(plan->scratch_bytes, program::PackingBytes(counted))
            << comm::Describe(operation) << " of " << n;
      }
    }
  EXPECT_GT(packed, 20);
}

TEST(NcclPlanTest, OthersGoThroughTheHost) {
  Operation sum;
  sum.input_shape = sum.output_shape = {4};
  sum.dtype = base::DType::kI16;  // NCCL has no sums of this type
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
    EXPECT_EQ(plan.local.Bytes(), 0);
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
              AllOf(HasSubstr("NCCL cannot be loaded: expected libno_nccl.so"),
                    HasSubstr("set LD_LIBRARY_PATH to where it lies")));
}

// Runs AgreeOnNccl on two ranks in threads. Returns whether each got a
// communicator.
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

// No rank falls back to host memory silently, which would be far slower.
TEST(AgreeOnNcclTest, WhatIsInstalledMustWork) {
  const std::string broken = ::testing::TempDir() + "/libbroken_nccl.so";
  std::ofstream(broken) << "no library";
  const auto expect = [&](const NcclOptions& bad, const std::string& text) {
    for (const auto& have : Agree({kGood, bad}))
      EXPECT_THAT(std::string(have.status().message()),
                  AllOf(HasSubstr("rank 1: "), HasSubstr(text)));
  };
  expect({0, kLibrary, broken, {}},
         "NCCL cannot be loaded: expected " + broken);
  expect({0, kLibrary, "libm.so.6", {}}, "libm.so.6 has no function nccl");
  expect({0, "libno_cuda.so", kLibrary, {}},
         "the driver of NVIDIA GPUs cannot be loaded");
  expect({99, kLibrary, kLibrary, {}}, "expected a GPU number 99");
}

// Each rank sends before it receives. Neither call waits for the other rank's.
TEST(NcclTransferTest, BothDirectionsAtOnce) {
  comm::CommOptions options;
  options.timeout = std::chrono::seconds(5);
  auto bases = comm::MakeLocalCommunicators(2, options);
  const auto exchange = [&](Communicator& base) -> absl::Status {
    const int rank = base.rank();
    PARTITA_ASSIGN_OR_RETURN(const auto device,
                             MakeCudaDevice({0, kLibrary, "none"}));
    PARTITA_ASSIGN_OR_RETURN(
        const auto gpus,
        MakeNcclCommunicator(base, {0, kLibrary, kLibrary, options}));
    // Transfers and their streams, by sender.
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
    const std::vector<float> sent = {static_cast<float>(rank), 7};
    std::vector<float> received(2, -1);
    for (int round = 0; round < 2; ++round) {
      device::Stream& out = *streams[static_cast<size_t>(rank)];
      device::Stream& in = *streams[static_cast<size_t>(1 - rank)];
      PARTITA_RETURN_IF_ERROR(
          device->CopyToDevice(out, memory.data(), sent.data(), 8));
      PARTITA_RETURN_IF_ERROR(
          gpus->Enqueue(*transfers[static_cast<size_t>(rank)], memory.data(),
                        memory.data(), out.native_handle()));
      PARTITA_RETURN_IF_ERROR(gpus->Enqueue(
          *transfers[static_cast<size_t>(1 - rank)], memory.data() + 8,
          memory.data() + 8, in.native_handle()));
      PARTITA_RETURN_IF_ERROR(gpus->Await(in.native_handle()));
      PARTITA_RETURN_IF_ERROR(gpus->Await(out.native_handle()));
      PARTITA_RETURN_IF_ERROR(
          device->CopyToHost(in, received.data(), memory.data() + 8, 8));
      EXPECT_EQ(received,
                (std::vector<float>{static_cast<float>(1 - rank), 7}));
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

}  // namespace
}  // namespace partita::cuda
