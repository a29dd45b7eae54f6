// Products of rows with matrices chosen by the rows' indices.
#ifndef PARTITA_RUNTIME_CPU_GROUPED_GEMM_H_
#define PARTITA_RUNTIME_CPU_GROUPED_GEMM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/cpu/library_op.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

// For `threads` threads. `matrices` is null or the constant matrices, which may
// be packed. 16-bit types are computed in f32 if oneDNN cannot compute with
// them on this machine.
absl::StatusOr<std::unique_ptr<CpuOp>> MakeGroupedGemm(
    DnnlContext& context, const device::GroupedGemmDesc& desc,
    const void* matrices, int threads);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_GROUPED_GEMM_H_
