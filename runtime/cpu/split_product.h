// Products of f32 by the kernels of split_kernels.h.
#ifndef PARTITA_RUNTIME_CPU_SPLIT_PRODUCT_H_
#define PARTITA_RUNTIME_CPU_SPLIT_PRODUCT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/cpu/library_op.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

// For `threads` threads. Where it computes, the result does not depend on their
// number. Null if oneDNN should compute it: without AMX, for other types than
// f32, for few rows, columns or depth, with less than half as many tasks as
// threads, for an activation before a residual is added, or for matrices that
// are contiguous in neither dimension.
// `rhs` never changes, and is copied if it is one matrix; null: it may change.
// ResourceExhausted if memory ran out.
absl::StatusOr<std::unique_ptr<CpuOp>> MakeSplitProduct(
    DnnlContext& context, const device::GemmDesc& desc, const void* rhs,
    int threads);

// The same for a convolution, no gradient, that is pointwise, in channels last,
// with strides of 1, one group and at least 128 outputs. Null for others.
absl::StatusOr<std::unique_ptr<CpuOp>> MakeSplitPointwiseConv(
    DnnlContext& context, const device::ConvDesc& desc, const void* weight,
    int threads);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_SPLIT_PRODUCT_H_
