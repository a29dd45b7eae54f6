// Launches the runtime's own kernels that copy, fill and reduce parts of
// tensors, for collectives among GPUs.
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

// All functions put work on streams of the context and do not wait. Boxes
// without bytes are skipped.
class Boxes {
 public:
  // Loads the kernels. The context must be current on the calling thread.
  static absl::StatusOr<std::unique_ptr<const Boxes>> Load(
      std::shared_ptr<Context> context);

  // Copies a box. `from` and `to` point to whole tensors, in which the box
  // gives the offsets.
  absl::Status Copy(CuStream stream, const comm::Box& box, const void* from,
                    void* to) const;
  // Fills a box. `fill` has the bytes of one element.
  absl::Status Fill(CuStream stream, const comm::Box& box,
                    const std::string& fill, void* to) const;
  // Row r of `to` becomes row index[r] of `from`, or 0 if that is negative.
  // `index` is in GPU memory.
  absl::Status GatherRows(CuStream stream, const int64_t* index, int64_t rows,
                          int64_t row_bytes, const void* from, void* to) const;
  // Combines the box of all inputs, in input order, and writes the result to
  // the box of all outputs. 16-bit floats are rounded once, like in
  // comm::Reduce. Takes up to kMaxMembers inputs and outputs. An output may be
  // an input if the box has the same offsets in both.
  absl::Status Reduce(CuStream stream, comm::Reduction reduction,
                      base::DType dtype, const comm::Box& box,
                      const std::vector<const char*>& inputs,
                      const std::vector<char*>& outputs) const;

 private:
  std::shared_ptr<const OwnKernels> kernels_;
  CuFunction copy_ = nullptr, fill_ = nullptr, reduce_ = nullptr,
             gather_rows_ = nullptr;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_BOXES_H_
