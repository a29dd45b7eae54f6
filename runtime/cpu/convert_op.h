// Library operations on element types that oneDNN lacks on this machine (f16
// everywhere, bf16 on older processors). They are computed in f32: operands are
// converted at each run, constant weights once.
#ifndef PARTITA_RUNTIME_CPU_CONVERT_OP_H_
#define PARTITA_RUNTIME_CPU_CONVERT_OP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/cpu/library_op.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

// Like MakeGemm and MakeConv, for any 16-bit type.
absl::StatusOr<std::unique_ptr<CpuOp>> MakeConvertedGemm(
    DnnlContext& context, const device::GemmDesc& desc,
    const void* constant_rhs);
absl::StatusOr<std::unique_ptr<CpuOp>> MakeConvertedConv(
    DnnlContext& context, const device::ConvDesc& desc,
    const void* constant_weight);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_CONVERT_OP_H_
