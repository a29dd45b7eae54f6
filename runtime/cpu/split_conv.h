// Convolutions of f32 with windows, on AMX.
#ifndef PARTITA_RUNTIME_CPU_SPLIT_CONV_H_
#define PARTITA_RUNTIME_CPU_SPLIT_CONV_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/cpu/library_op.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

// For `threads` threads. The choice and the result do not depend on their
// number. Null if oneDNN should compute it: without AMX, for gradients, other
// types than f32, channels first, other than two spatial dimensions, several
// groups, padding below zero, an activation before a residual is added, a
// weight that may change (null) or has numbers that are infinite, NaN or at
// least 2^127, for sizes that oneDNN computes faster, and if there is no memory
// for the copy of the weight: 1.5 times its size, with channels and outputs
// filled up to multiples of 32.
absl::StatusOr<std::unique_ptr<CpuOp>> MakeSplitWindowConv(
    DnnlContext& context, const device::ConvDesc& desc, const void* weight,
    int threads);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_SPLIT_CONV_H_
