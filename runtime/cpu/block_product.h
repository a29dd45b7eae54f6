// A small matrix product by oneDNN that several threads run at once, each on
// its own operands.
#ifndef PARTITA_RUNTIME_CPU_BLOCK_PRODUCT_H_
#define PARTITA_RUNTIME_CPU_BLOCK_PRODUCT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/cpu/dnnl_handles.h"
#include "runtime/cpu/library_op.h"

namespace partita::cpu {

// out [m, n] = lhs [m, k] * rhs [k, n], or += if `adds`. Strides are in
// elements. lhs and rhs are of `dtype`, out of `out_dtype`.
struct BlockProductDesc {
  int64_t m = 1, n = 1, k = 1;
  base::DType dtype = base::DType::kF32, out_dtype = base::DType::kF32;
  std::array<int64_t, 2> lhs_strides = {};
  std::array<int64_t, 2> rhs_strides = {};
  std::array<int64_t, 2> out_strides = {};
  bool adds = false;
};

// Runs on the calling thread alone.
class BlockProduct {
 public:
  // For threads 0 to `threads` - 1. `packed` is the layout of rhs, null: its
  // strides. Unimplemented if oneDNN has no implementation, or none but its
  // reference for a packed rhs.
  static absl::StatusOr<BlockProduct> Create(const DnnlContext& context,
                                             const BlockProductDesc& desc,
                                             const dnnl_memory_desc_t* packed,
                                             int threads);
  // The layout of rhs by its strides, and the layout that oneDNN prefers for a
  // constant rhs.
  static absl::StatusOr<dnnl_memory_desc_t> RhsLayout(
      const BlockProductDesc& desc);
  static absl::StatusOr<dnnl_memory_desc_t> PackedLayout(
      const DnnlContext& context, const BlockProductDesc& desc);

  int64_t scratch_bytes() const { return scratch_bytes_; }  // of one thread
  const std::string& description() const { return description_; }

  // Each call of one thread uses that thread's `scratch`. Different threads may
  // call this at the same time.
  absl::Status Run(int thread, const void* lhs, const void* rhs, void* out,
                   char* scratch);
  // With a packed rhs, whose memory object threads share.
  absl::Status RunPacked(int thread, const void* lhs, dnnl_memory_t rhs,
                         void* out, char* scratch);

 private:
  struct Arguments {
    DnnlMemory lhs, rhs, out, scratchpad;
  };

  dnnl_stream_t stream_ = nullptr;
  DnnlPrimitive primitive_;
  std::vector<Arguments> arguments_;  // by thread
  int64_t scratch_bytes_ = 0;
  std::string description_;
};

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_BLOCK_PRODUCT_H_
