// cuDNN's plans for a graph of operations, and their execution.
#ifndef PARTITA_RUNTIME_CUDA_DNN_PLANS_H_
#define PARTITA_RUNTIME_CUDA_DNN_PLANS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/dnn.h"

namespace partita::cuda {

// Alignment of tensors in bytes. Our own kernels compute the rare operations on
// tensors with less.
constexpr int64_t kTensorAlignment = 16;

// An engine that the library has prepared for a graph.
struct DnnPlan {
  std::unique_ptr<DnnDescriptor> config, plan;
  std::string name;
  int64_t workspace_bytes = 0;
};

struct DnnPlanRequest {
  const char* what;             // for errors, e.g. "convolution"
  bool tensor_cores = true;     // false: exclude engines that use them
  int64_t workspace_bytes = 0;  // upper bound
  std::string name;             // of the only plan to prepare; empty: all
  // True while another plan may be prepared. Not asked before the first. Null:
  // no limit.
  std::function<bool()> has_time;
};

// Plans for the operation graph that keep the numbers, the library's preferred
// one first; at most 8. Excluded are engines that round inputs (TF32 for f32),
// that sum in a nondeterministic order, or that need more workspace than
// requested. `gpu` describes the GPU to plan for; null: the GPU of the
// library's handle. Unimplemented, with the library's reason, if there is none.
// DeadlineExceeded if the time ended before one could be prepared.
absl::StatusOr<std::vector<DnnPlan>> FindPlans(const Dnn& dnn,
                                               const DnnDescriptor& graph,
                                               const DnnDescriptor* gpu,
                                               const DnnPlanRequest& request);

// Puts a plan on the stream. `pointers` lists the memory of the tensors with
// these ids. Internal, with `doing`, if the library fails.
absl::Status RunPlan(const Dnn& dnn, const DnnPlan& plan, DnnStream stream,
                     const std::vector<int64_t>& ids,
                     const std::vector<void*>& pointers, void* workspace,
                     const char* doing);

// Describes a GPU that need not be present (cuDNN 9.11 or later) by properties
// in the library's JSON.
absl::StatusOr<std::unique_ptr<DnnDescriptor>> DescribeGpu(
    const Dnn& dnn, const std::string& json);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_DNN_PLANS_H_
