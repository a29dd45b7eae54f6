// Every kind of collective on GPUs that are recorded, against its definition;
// and what happens when a group of GPUs stands still.
#include "runtime/cuda/nccl.h"

#include <algorithm>
#include <chrono>
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
// where they can.
class GpuRank : public Communicator {
 public:
  explicit GpuRank(std::unique_ptr<Communicator> base)
      : base_(std::move(base)),
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
                             gpus_->Prepare(operation, ranks));
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
  const std::unique_ptr<device::Device> device_;
  const std::unique_ptr<device::Stream> stream_;
  const std::unique_ptr<DeviceCommunicator> gpus_;
  std::vector<Collective*> on_gpu_;
};

TEST(NcclTest, EqualsTheDefinition) {
  comm::CheckAgainstReference([](int size) {
    std::vector<std::unique_ptr<Communicator>> ranks;
    for (auto& base : comm::MakeLocalCommunicators(size))
      ranks.push_back(std::make_unique<GpuRank>(std::move(base)));
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
  sum.kind = comm::Kind::kTransfer;  // its sender must not wait
  EXPECT_FALSE(PlanNccl(sum, 2, 0).has_value());
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

// Both GPUs' work never ends, and rank 1 is gone.
TEST(NcclTest, WhoStandsStillIsNamedInTime) {
  const recording::Recording recording(kLibrary);
  comm::CommOptions options;
  options.patience = std::chrono::milliseconds(300);
  auto ranks = comm::MakeLocalCommunicators(2, options);
  const auto device = std::move(MakeCudaDevice({0, kLibrary, "none"})).value();
  const auto stream = std::move(device->CreateStream()).value();
  const auto gpus = std::move(MakeNcclCommunicator(
                                  *ranks[0], {0, kLibrary, kLibrary, options}))
                        .value();
  recording.FailNext("cuStreamQuery", kCuNotReady, 1 << 30);
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status = gpus->Await(stream->native_handle());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  recording.FailNext("cuStreamQuery", kCuSuccess, 0);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1"));
  // From now on nothing works.
  EXPECT_EQ(gpus->Await(stream->native_handle()), status);
}

}  // namespace
}  // namespace partita::cuda
