// The weight gradient of depthwise convolutions.
#ifndef PARTITA_RUNTIME_CPU_DEPTHWISE_GRAD_H_
#define PARTITA_RUNTIME_CPU_DEPTHWISE_GRAD_H_

#include <memory>

#include "runtime/cpu/library_op.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

// For `threads` threads. The result does not depend on their number. Null if
// oneDNN should compute it: only two-dimensional, channels-last convolutions of
// f32 and bf16 are supported, with one channel per group, no dilation, and a
// window 3, 5 or 7 wide, on CPUs with AVX-512. bf16 is summed in f32. Padding
// is multiplied as zeros: where a gradient is infinite or NaN, places of the
// window that see padding there are NaN.
std::unique_ptr<CpuOp> MakeDepthwiseWeightGrad(const device::ConvDesc& desc,
                                               int threads);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_DEPTHWISE_GRAD_H_
