// Products of a few rows with weights of 4 bits in groups, and dequantization
// of such weights. A weight's place e counts numbers; byte e / 2 holds it, in
// its low bits if e is even, and it stands for scales[e / group] * (bits -
// zero), with zero = zeros[e / group], or 8 without zeros.
#ifndef PARTITA_RUNTIME_CPU_NIBBLE_ROWS_H_
#define PARTITA_RUNTIME_CPU_NIBBLE_ROWS_H_

#include <cstdint>

namespace partita::cpu {

struct NibbleWeights {
  const uint8_t* bytes = nullptr;
  const float* scales = nullptr;
  const int8_t* zeros = nullptr;  // null: 8
  int64_t group = 2;              // even
};

// Blocks of this many numbers along k are arranged for MultiplyNibbleRows.
inline constexpr int64_t kNibbleBlock = 32;

struct NibbleRows {
  int64_t rows = 1, columns = 1, depth = 1;  // of the product: m, n, k
  const float* lhs = nullptr;  // of ArrangeRows, `depth` numbers per row
  NibbleWeights weights;
  int64_t first = 0;        // place of the first column's first weight
  int64_t column_step = 0;  // from one column's weights to the next's
  float* out = nullptr;
  int64_t out_row = 0, out_column = 1;
  const float* bias = nullptr;  // by column; null: none
};

// True if columns begin at groups and consist of whole groups of whole blocks.
// Weights of a column are contiguous.
bool CanMultiplyNibbleRows(const NibbleRows& product);

// Copies a row of `depth` numbers, `step` apart: in each block, those at even
// places first, then a sixteenth of the others, since high bits are read as 16
// times their integer.
void ArrangeRow(const float* row, int64_t step, int64_t depth, float* arranged);

// out = lhs * weights + bias
void MultiplyNibbleRows(const NibbleRows& product);

// The `count` numbers at places from `first` on.
void Dequantize(const NibbleWeights& weights, int64_t first, int64_t count,
                float* target);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_NIBBLE_ROWS_H_
