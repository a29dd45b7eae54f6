// Matrix products through oneDNN.
#ifndef PARTITA_RUNTIME_CPU_GEMM_H_
#define PARTITA_RUNTIME_CPU_GEMM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/cpu/library_op.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

// Unimplemented if oneDNN cannot compute with this element type on this
// machine. `rhs` may be packed if constant.
absl::StatusOr<std::unique_ptr<CpuOp>> MakeGemm(DnnlContext& context,
                                                const device::GemmDesc& desc,
                                                const Constant& rhs);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_GEMM_H_
