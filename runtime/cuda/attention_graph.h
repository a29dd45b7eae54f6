// Attention as cuDNN describes it, and the library's plans for it.
#ifndef PARTITA_RUNTIME_CUDA_ATTENTION_GRAPH_H_
#define PARTITA_RUNTIME_CUDA_ATTENTION_GRAPH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/dnn.h"
#include "runtime/cuda/dnn_plans.h"
#include "runtime/device/operations.h"

namespace partita::cuda {

// A graph of products, pointwise operations and reductions, which the library
// recognizes and computes in one kernel.
class AttentionGraph {
 public:
  // Describes an attention to the library. `gpu` is as in FindPlans; both must
  // outlive the result. Unimplemented if the library is older than 9.10, if a
  // row of a tensor does not begin at a multiple of kTensorAlignment bytes, or
  // if the library rejects the description.
  static absl::StatusOr<std::unique_ptr<AttentionGraph>> Make(
      const Dnn& dnn, const device::AttentionDesc& desc,
      const DnnDescriptor* gpu = nullptr);

  // Plans within the workspace that runtime/program/library_limits.h allows.
  // `name` and `has_time` are as in DnnPlanRequest.
  absl::StatusOr<std::vector<DnnPlan>> Plans(
      const std::string& name = "",
      const std::function<bool()>& has_time = nullptr) const;
  // True if the operands of the launch are aligned as the plans expect.
  bool IsAligned(void* const* buffers) const;
  // Puts a plan on the stream.
  absl::Status Run(const DnnPlan& plan, DnnStream stream, void* const* buffers,
                   void* workspace) const;

 private:
  // A tensor of the graph. The graph owns the descriptor.
  struct Tensor {
    const DnnDescriptor* descriptor = nullptr;
    std::vector<int64_t> dims;
    int64_t id = 0;
  };
  // The memory of a tensor that is not virtual.
  struct Bound {
    int64_t id;
    int operand;           // of the launch; -1: `value`
    int64_t offset_bytes;  // in the operand
    const void* value;
  };

  AttentionGraph(const Dnn& dnn, const device::AttentionDesc& desc,
                 const DnnDescriptor* gpu)
      : dnn_(dnn), desc_(desc), gpu_(gpu) {}

  absl::Status CheckRows() const;
  void MakeOperations();
  // Adds what hides the keys behind the causal offset.
  Tensor Mask(const Tensor& scores);
  absl::Status MakeGraph();

  // Each of these adds one descriptor, tensor or operation. The first error
  // stays in status_.
  DnnDescriptor& Add(DnnKind kind);
  void Finish(DnnDescriptor& made);
  Tensor AddTensor(DnnDataType type, std::vector<int64_t> dims,
                   const std::vector<int64_t>& strides,
                   DnnAttribute flag = kDnnTensorId);
  Tensor Virtual(const std::vector<int64_t>& dims, DnnDataType type = kDnnF32);
  Tensor Value(DnnDataType type, const void* value);
  Tensor Input(const device::AttentionDesc::Tensor& tensor, int64_t heads,
               int64_t positions, int64_t size, bool is_transposed = false);
  Tensor Pointwise(DnnPointwiseMode mode, const Tensor& x, const Tensor* b,
                   const Tensor& y, const Tensor* selector = nullptr,
                   int64_t axis = -1);
  Tensor Reduce(DnnReductionMode mode, const Tensor& x);
  void Multiply(const Tensor& a, const Tensor& b, const Tensor& c);

  const Dnn& dnn_;
  const device::AttentionDesc desc_;
  const DnnDescriptor* const gpu_;
  float scale_ = 0, hidden_ = 0;
  int32_t causal_offset_ = 0;
  std::vector<std::unique_ptr<DnnDescriptor>> descriptors_;
  std::vector<DnnObject> operations_;
  std::vector<Bound> bound_;
  std::unique_ptr<DnnDescriptor> graph_;
  int64_t last_id_ = 0;
  absl::Status status_;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_ATTENTION_GRAPH_H_
