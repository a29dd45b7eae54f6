// The gradients of matrices that multiply rows chosen by the rows' indices.
#ifndef PARTITA_RUNTIME_CPU_GROUPED_WEIGHT_GRAD_H_
#define PARTITA_RUNTIME_CPU_GROUPED_WEIGHT_GRAD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/cpu/library_op.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

// For `threads` threads. 16-bit types are computed in f32 if oneDNN cannot
// compute with them on this machine.
absl::StatusOr<std::unique_ptr<CpuOp>> MakeGroupedWeightGrad(
    DnnlContext& context, const device::GroupedGemmDesc& desc, int threads);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_GROUPED_WEIGHT_GRAD_H_
