// Matrix products of f32 with weights of 4 bits, which stay 4 bits in memory.
#ifndef PARTITA_RUNTIME_CPU_INT4_GEMM_H_
#define PARTITA_RUNTIME_CPU_INT4_GEMM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/cpu/library_op.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

// `desc` has factors kRhsI4. Run uses `threads` threads.
absl::StatusOr<std::unique_ptr<CpuOp>> MakeInt4WeightGemm(
    const DnnlContext& context, const device::GemmDesc& desc, int threads);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_INT4_GEMM_H_
