// A rank for tests of collectives, on a recorded GPU.
#ifndef PARTITA_RUNTIME_CUDA_GPU_RANK_TESTING_H_
#define PARTITA_RUNTIME_CUDA_GPU_RANK_TESTING_H_

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/device_communicator.h"
#include "runtime/cuda/cuda_device.h"

namespace partita::cuda {

constexpr char kLibrary[] = "runtime/cuda/recording/librecording.so";

// A rank with a GPU, for tests that pass host memory. Operations run on the GPU
// if it supports them. `beside` chooses whether all of them run in place or
// beside.
class GpuRank : public comm::Communicator {
 public:
  // `gpus` is the rank's device communicator, which uses `base`.
  GpuRank(std::unique_ptr<comm::Communicator> base,
          std::unique_ptr<comm::DeviceCommunicator> gpus, bool beside)
      : base_(std::move(base)),
        beside_(beside),
        device_(std::move(MakeCudaDevice({0, kLibrary, "none"})).value()),
        stream_(std::move(device_->CreateStream()).value()),
        gpus_(std::move(gpus)) {}

  int rank() const override { return base_->rank(); }
  int size() const override { return base_->size(); }
  std::string Describe(int rank) const override {
    return base_->Describe(rank);
  }
  absl::StatusOr<std::unique_ptr<comm::Collective>> Prepare(
      comm::Operation operation, std::vector<int> ranks) override {
    PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<comm::Collective> collective,
                             gpus_->Prepare(operation, ranks, beside_));
    if (collective != nullptr) {
      on_gpu_.push_back(collective.get());
      return collective;
    }
    PARTITA_ASSIGN_OR_RETURN(
        collective, base_->Prepare(std::move(operation), std::move(ranks)));
    // A new collective may have the address of a destroyed one.
    on_gpu_.erase(std::remove(on_gpu_.begin(), on_gpu_.end(), collective.get()),
                  on_gpu_.end());
    return collective;
  }
  absl::Status Run(comm::Collective& collective, const void* input,
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
    // Keeps the bytes of the output that the operation does not write.
    PARTITA_RETURN_IF_ERROR(
        device_->CopyToDevice(*stream_, out.data(), output, out_bytes));
    void* const target = input == output ? in.data() : out.data();
    PARTITA_RETURN_IF_ERROR(gpus_->Enqueue(collective, in.data(), target,
                                           stream_->native_handle()));
    if (gpus_->MeetsOnHosts() && beside_)
      PARTITA_RETURN_IF_ERROR(
          gpus_->Join(collective, stream_->native_handle()));
    PARTITA_RETURN_IF_ERROR(gpus_->Await(stream_->native_handle()));
    return device_->CopyToHost(*stream_, output, target, out_bytes);
  }
  absl::Status RunRows(comm::Collective& collective, const void* input,
                       const int64_t* to, void* output) override {
    if (std::find(on_gpu_.begin(), on_gpu_.end(), &collective) == on_gpu_.end())
      return base_->RunRows(collective, input, to, output);
    const comm::Operation& operation = collective.operation();
    const auto copied =
        [&](const void* data,
            int64_t bytes) -> absl::StatusOr<device::Allocation> {
      PARTITA_ASSIGN_OR_RETURN(device::Allocation memory,
                               device::Allocation::Make(*device_, bytes));
      PARTITA_RETURN_IF_ERROR(
          device_->CopyToDevice(*stream_, memory.data(), data, bytes));
      return memory;
    };
    PARTITA_ASSIGN_OR_RETURN(const auto in,
                             copied(input, operation.InputBytes()));
    PARTITA_ASSIGN_OR_RETURN(
        const auto numbers,
        copied(to, operation.size * static_cast<int64_t>(sizeof(int64_t))));
    PARTITA_ASSIGN_OR_RETURN(const auto out,
                             copied(output, operation.OutputBytes()));
    PARTITA_RETURN_IF_ERROR(gpus_->EnqueueRows(collective, in.data(),
                                               numbers.data(), out.data(),
                                               stream_->native_handle()));
    PARTITA_RETURN_IF_ERROR(gpus_->Await(stream_->native_handle()));
    return device_->CopyToHost(*stream_, output, out.data(),
                               operation.OutputBytes());
  }
  std::unique_ptr<comm::Communicator> MakeBeside() override { return nullptr; }
  absl::Status WaitFor(comm::Communicator& beside, const Done& done) override {
    return base_->WaitFor(beside, done);
  }
  absl::Status Progress() override { return base_->Progress(); }
  uint64_t Beats() const override { return base_->Beats(); }
  void Fail(const absl::Status& status) override { base_->Fail(status); }

 private:
  const std::unique_ptr<comm::Communicator> base_;
  const bool beside_;
  const std::unique_ptr<device::Device> device_;
  const std::unique_ptr<device::Stream> stream_;
  const std::unique_ptr<comm::DeviceCommunicator> gpus_;
  std::vector<comm::Collective*> on_gpu_;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_GPU_RANK_TESTING_H_
