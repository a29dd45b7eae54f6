// Inner loops of the weight gradient of depthwise convolutions, for CPUs with
// AVX-512.
#ifndef PARTITA_RUNTIME_CPU_DEPTHWISE_KERNELS_H_
#define PARTITA_RUNTIME_CPU_DEPTHWISE_KERNELS_H_

#include <cstdint>

#include "runtime/base/dtype.h"

namespace partita::cpu {

// Channels that are computed together.
inline constexpr int64_t kDepthwiseLanes = 32;

// One row of windows of kDepthwiseLanes channels. Positions are contiguous, and
// a window of the kernel begins at every `stride`th.
struct DepthwiseRow {
  const float* input = nullptr;  // [(outputs - 1) * stride + width, lanes]
  const float* grad = nullptr;   // [outputs, lanes]
  float* sums = nullptr;         // [width, lanes]
  int64_t outputs = 0, stride = 1;
};

// Adds to sums[k] the products grad[x] * input[x * stride + k] over all x.
using DepthwiseKernel = void (*)(const DepthwiseRow& row);

// The kernel for a window of this width: 3, 5 or 7. Null for another width, or
// if this CPU lacks AVX-512.
DepthwiseKernel ChooseDepthwiseKernel(int64_t width);

// Copies `count` <= kDepthwiseLanes channels of each of `positions` positions,
// which begin `pitch` elements apart. `dtype` is f32 or bf16. Other lanes of
// the target keep their values.
void CopyChannels(base::DType dtype, const char* source, int64_t pitch,
                  int64_t count, int64_t positions, float* target);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_DEPTHWISE_KERNELS_H_
