// Products of a few rows with weights of 8 bits, and widening of such weights.
// Both convert weights in registers.
#ifndef PARTITA_RUNTIME_CPU_WIDEN_ROWS_H_
#define PARTITA_RUNTIME_CPU_WIDEN_ROWS_H_

#include <cstdint>

namespace partita::cpu {

// The most columns of a call of MultiplyFewRows: their sums stay in the
// first-level cache.
inline constexpr int64_t kMostColumns = 1024;

struct FewRows {
  int64_t rows = 1, columns = 1, depth = 1;  // of the product: m, n, k
  const float* lhs = nullptr;
  int64_t lhs_row = 0, lhs_depth = 1;  // strides in elements
  const int8_t* weights = nullptr;
  int64_t weight_depth = 0, weight_column = 1;
  float* out = nullptr;
  int64_t out_row = 0, out_column = 1;
  const float* scale = nullptr;  // by column
  const float* bias = nullptr;   // by column; null: none
};

// True if the weights are contiguous along a dimension that MultiplyFewRows can
// read in vectors.
bool CanMultiplyFewRows(const FewRows& product);

// out = scale * (lhs * weights) + bias, with at most kMostColumns columns.
void MultiplyFewRows(const FewRows& product);

// Copies `count` numbers.
void Widen(const int8_t* source, int64_t count, float* target);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_WIDEN_ROWS_H_
