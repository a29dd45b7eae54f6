// Number of matrix products in attention. Kernels, the compiler and the planner
// share these counts.
#ifndef PARTITA_COMPILER_CORE_ATTENTION_WORK_H_
#define PARTITA_COMPILER_CORE_ATTENTION_WORK_H_

#include <cstdint>
#include <initializer_list>

namespace partita::core {

// Products per pair of a query and a key that it sees. The inner size is the
// head size of the keys or of the values.
struct AttentionProducts {
  int64_t of_keys = 0, of_values = 0;
};

// Forward: scores, and weighted sums of values.
inline constexpr AttentionProducts kAttention = {1, 1};
// The gradient: scores again, gradients of the weights, and gradients of
// queries, keys and values.
inline constexpr AttentionProducts kAttentionGradient = {3, 2};
// On tensor cores, the gradient of a bias is a kernel of its own, which
// computes scores and gradients of the weights once more. So does one for the
// sums of weights, scores alone, if the log-sum-exp of the attention is not
// kept.
inline constexpr AttentionProducts kBiasGradient = {1, 1};
inline constexpr AttentionProducts kSumsOfWeights = {1, 0};

// True if tensor core tiles support these head sizes: multiples of 16 up to
// 128. For gradients in f32 the limit is 64, because larger keys and values
// exceed the shared memory of a block.
constexpr bool FitsTensorCores(int64_t of_keys, int64_t of_values,
                               int64_t element_bytes, bool gradient) {
  const int64_t most = gradient && element_bytes == 4 ? 64 : 128;
  for (const int64_t size : {of_keys, of_values})
    if (size % 16 != 0 || size < 16 || size > most) return false;
  return true;
}

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_ATTENTION_WORK_H_
