// Base class of products and convolutions of this device.
#ifndef PARTITA_RUNTIME_CUDA_LIBRARY_OP_H_
#define PARTITA_RUNTIME_CUDA_LIBRARY_OP_H_

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/cuda/driver_api.h"
#include "runtime/device/device.h"

namespace partita::cuda {

class CudaOp : public device::LibraryOp {
 public:
  explicit CudaOp(int operands) : operands_(operands) {}
  // GPUs do not pack weights.
  bool Packed(int index) const final { return false; }

  int operands() const { return operands_; }
  // Device memory that Run needs, in bytes.
  int64_t scratch_bytes() const { return scratch_bytes_; }
  virtual absl::Status Run(CuStream stream, void* const* buffers,
                           void* scratch) = 0;

 protected:
  int64_t scratch_bytes_ = 0;

 private:
  const int operands_;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_LIBRARY_OP_H_
