// Convolutions and their gradients through oneDNN.
#ifndef PARTITA_RUNTIME_CPU_CONV_H_
#define PARTITA_RUNTIME_CPU_CONV_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/cpu/library_op.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

// Unimplemented if oneDNN cannot compute with this element type on this
// machine. `weight` may be packed if constant; pass none for a weight's
// gradient.
absl::StatusOr<std::unique_ptr<CpuOp>> MakeConv(DnnlContext& context,
                                                const device::ConvDesc& desc,
                                                const Constant& weight);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_CONV_H_
