// How many matrix products attention is: what kernels compute, the compiler
// writes into programs, and the planner counts without them.
#ifndef PARTITA_COMPILER_CORE_ATTENTION_WORK_H_
#define PARTITA_COMPILER_CORE_ATTENTION_WORK_H_

#include <cstdint>
#include <initializer_list>

namespace partita::core {

// Products of each query with each key that it sees: over a head's size of
// keys, and of values.
struct AttentionProducts {
  int64_t of_keys = 0, of_values = 0;
};

// Scores, and sums of values.
inline constexpr AttentionProducts kAttention = {1, 1};
// Its gradient as one kernel: scores again, what the weights get, and the
// gradients of queries, keys and values.
inline constexpr AttentionProducts kAttentionGradient = {3, 2};
// On tensor cores as several, none of which adds to another's sums: that of the
// queries computes scores twice, that of keys and values, and that of a bias,
// once more each.
inline constexpr AttentionProducts kQueriesGradient = {3, 1};
inline constexpr AttentionProducts kKeysGradient = {2, 2};
inline constexpr AttentionProducts kBiasGradient = {1, 1};

// Whether tiles for tensor cores have these sizes of a head, of elements of so
// many bytes: multiples of 16 up to 128. Of gradients in f32, keys and values
// of larger heads than 64 are more than a block's memory.
constexpr bool FitsTensorCores(int64_t of_keys, int64_t of_values,
                               int64_t element_bytes, bool gradient) {
  const int64_t most = gradient && element_bytes == 4 ? 64 : 128;
  for (const int64_t size : {of_keys, of_values})
    if (size % 16 != 0 || size < 16 || size > most) return false;
  return true;
}

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_ATTENTION_WORK_H_
