// Tensor maps, by which GPUs from sm_90 on copy boxes of tensors.
#ifndef PARTITA_RUNTIME_CUDA_TENSOR_MAPS_H_
#define PARTITA_RUNTIME_CUDA_TENSOR_MAPS_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/context.h"
#include "runtime/device/device.h"

namespace partita::cuda {

// The tensor maps of one launch, which are parameters of its kernel.
class CudaTensorMaps : public device::TensorMaps {
 public:
  // Encodes the maps. `buffers` has an entry for every operand that a map
  // names, null if its address is not known yet. FailedPrecondition if the
  // driver has no tensor maps.
  static absl::StatusOr<std::unique_ptr<CudaTensorMaps>> Make(
      std::shared_ptr<Context> context, std::vector<device::TensorMapDesc> maps,
      void* const* buffers);

  // Encodes the maps again whose operands have moved. The context must be
  // current.
  absl::Status Update(void* const* buffers);

  int count() const { return static_cast<int>(descs_.size()); }
  void* parameter(int i) { return &maps_[static_cast<size_t>(i)]; }

 private:
  CudaTensorMaps(std::shared_ptr<Context> context,
                 std::vector<device::TensorMapDesc> descs)
      : context_(std::move(context)),
        descs_(std::move(descs)),
        maps_(descs_.size()),
        encoded_(descs_.size(), nullptr) {}
  absl::Status Encode(size_t i, void* operand);

  const std::shared_ptr<Context> context_;
  const std::vector<device::TensorMapDesc> descs_;
  std::vector<CuTensorMap> maps_;
  std::vector<const void*> encoded_;  // address for which each map is encoded
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_TENSOR_MAPS_H_
