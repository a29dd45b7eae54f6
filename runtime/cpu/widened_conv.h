// Convolutions of integers of 8 bits on processors without instructions for
// their products (VNNI). There, oneDNN 2.6 adds two products in 16 bits, which
// may saturate, or has no such convolution at all.
#ifndef PARTITA_RUNTIME_CPU_WIDENED_CONV_H_
#define PARTITA_RUNTIME_CPU_WIDENED_CONV_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cpu/library_op.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

// True if oneDNN multiplies integers of 8 bits exactly on this processor, as
// far as ONEDNN_MAX_CPU_ISA permits.
bool MultipliesBytesExactly();

// Like MakeInt8Conv, through a convolution of floats: exact up to sums of 2^24,
// rounded to 24 bits above. Inputs are widened and results scaled by one
// thread.
absl::StatusOr<std::unique_ptr<CpuOp>> MakeWidenedConv(
    DnnlContext& context, const device::ConvDesc& desc,
    const std::vector<const void*>& constants);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_WIDENED_CONV_H_
