// Kernels of our own that copy, fill and reduce parts of tensors, as
// collectives among GPUs need them.
#ifndef PARTITA_RUNTIME_CUDA_BOXES_H_
#define PARTITA_RUNTIME_CUDA_BOXES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/comm/operation.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/own_ops.h"

namespace partita::cuda {

// All put work on streams of the context and wait for nothing. Boxes without
// bytes are no work.
class Boxes {
 public:
  // Loads the kernels; the context is the calling thread's.
  static absl::StatusOr<std::unique_ptr<const Boxes>> Load(
      std::shared_ptr<Context> context);

  // From and to whole tensors, in which the box says where.
  absl::Status Copy(CuStream stream, const comm::Box& box, const void* from,
                    void* to) const;
  // `fill`: the bytes of one element.
  absl::Status Fill(CuStream stream, const comm::Box& box,
                    const std::string& fill, void* to) const;
  // The box of all inputs, combined in their order, to the box of all outputs;
  // as comm::Reduce, 16-bit floats are rounded once. Up to kMostMembers of
  // both. An output may be an input if the box lies in both alike.
  absl::Status Reduce(CuStream stream, comm::Reduction reduction,
                      base::DType dtype, const comm::Box& box,
                      const std::vector<const char*>& inputs,
                      const std::vector<char*>& outputs) const;

 private:
  std::shared_ptr<const OwnKernels> kernels_;
  CuFunction copy_ = nullptr, fill_ = nullptr, reduce_ = nullptr;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_BOXES_H_
