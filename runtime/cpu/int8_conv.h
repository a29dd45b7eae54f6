// Convolutions of integers of 8 bits through oneDNN.
#ifndef PARTITA_RUNTIME_CPU_INT8_CONV_H_
#define PARTITA_RUNTIME_CPU_INT8_CONV_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cpu/library_op.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

// `desc` has factors kI8 or kU8I8. `constants` has one entry per operand: its
// content if it is constant, else null. Constant scales and zero points become
// part of the primitive, which then computes faster. Unimplemented if oneDNN
// has no such convolution on this machine.
absl::StatusOr<std::unique_ptr<CpuOp>> MakeInt8Conv(
    DnnlContext& context, const device::ConvDesc& desc,
    const std::vector<const void*>& constants);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_INT8_CONV_H_
