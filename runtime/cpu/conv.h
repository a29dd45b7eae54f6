// Convolutions and their gradients through oneDNN.
#ifndef PARTITA_RUNTIME_CPU_CONV_H_
#define PARTITA_RUNTIME_CPU_CONV_H_

#include <memory>
#include <vector>

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

// A convolution's tensors and window in oneDNN's terms.
struct ConvLayouts {
  dnnl_memory_desc_t input, weight, bias, out;  // layouts in memory
  dnnl_memory_desc_t any_weight;                // layout left to oneDNN
  // Dilations minus 1: oneDNN counts the gaps between kernel elements.
  std::vector<int64_t> holes;
};
absl::StatusOr<ConvLayouts> LayoutsOf(const device::ConvDesc& desc);

// If input and output have one channel, channels first and channels last are
// the same layout. oneDNN 2.6 computes wrong results from channels-last
// strides, so this returns channels first.
device::ConvDesc Simplified(device::ConvDesc desc);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_CONV_H_
