// Convolutions as cuDNN describes them, and the library's plans for them.
#ifndef PARTITA_RUNTIME_CUDA_CONV_GRAPH_H_
#define PARTITA_RUNTIME_CUDA_CONV_GRAPH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/dnn.h"
#include "runtime/cuda/dnn_plans.h"
#include "runtime/device/operations.h"

namespace partita::cuda {

// The convolution's tensors. Their unique ids are these values plus 1.
enum Role : size_t { kInput = 0, kWeight, kOutput };
constexpr size_t kRoles = 3;

// The convolution with the two spatial dimensions that the library needs at
// least.
device::ConvDesc AtLeastTwoSpatial(device::ConvDesc desc);

class ConvGraph {
 public:
  // Describes a convolution of at least two spatial dimensions, without bias,
  // activation and residual, to the library. `gpu` describes the GPU to plan
  // for (DescribeGpu); null: the GPU of the library's handle. `dnn` and `gpu`
  // must outlive the result. Unimplemented if the library rejects the
  // description.
  static absl::StatusOr<std::unique_ptr<ConvGraph>> Make(
      const Dnn& dnn, const device::ConvDesc& desc,
      const DnnDescriptor* gpu = nullptr);

  // Plans (dnn_plans.h) within the workspace that
  // runtime/program/library_limits.h allows; without TF32.
  absl::StatusOr<std::vector<DnnPlan>> Plans() const;

 private:
  ConvGraph(const Dnn& dnn, const device::ConvDesc& desc,
            const DnnDescriptor* gpu)
      : dnn_(dnn), desc_(desc), gpu_(gpu) {}
  absl::Status MakeTensor(Role role, const std::vector<int64_t>& dims,
                          bool channels_last);
  absl::Status MakeTensors();
  absl::Status MakeOperation();
  absl::Status MakeGraph();

  const Dnn& dnn_;
  const device::ConvDesc desc_;
  const DnnDescriptor* const gpu_;
  std::array<std::unique_ptr<DnnDescriptor>, kRoles> tensors_;
  std::unique_ptr<DnnDescriptor> convolution_, operation_, graph_;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_CONV_GRAPH_H_
