// Converts fragments to matrices and back.
#include "compiler/kernels/warp_emulation.h"

#include <atomic>
#include <cstring>
#include <utility>

namespace partita::kernels {
namespace {

// Rounds to 11 bits, halves away from zero.
float tf32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits = (bits + 0x1000) & ~uint32_t{0x1fff};
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

double productOf(float a, float b) {
  const double large_a = tf32(a), large_b = tf32(b);
  const double small_a = tf32(a - tf32(a)), small_b = tf32(b - tf32(b));
  return large_a * large_b + small_a * large_b + large_a * small_b;
}

std::atomic<int64_t> multiplied = 0;

}  // namespace

float elementOf(uint32_t word, int i, bool bf16) {
  const uint16_t bits = static_cast<uint16_t>(word >> (16 * i));
  if (bf16) {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof(value));
    return value;
  }
  _Float16 half;
  std::memcpy(&half, &bits, sizeof(half));
  return static_cast<float>(half);
}

int64_t multipliedFragments() { return multiplied; }

void multiplyFragments(bool bf16, ProductOfLane* lanes[kLanesOfWarp]) {
  ++multiplied;
  float a[16][16], b[16][8];
  for (int lane = 0; lane < kLanesOfWarp; ++lane) {
    const int group = lane / 4, first = 2 * (lane % 4);
    for (int i = 0; i < 2; ++i) {
      for (int word = 0; word < 4; ++word)
        a[group + 8 * (word % 2)][first + 8 * (word / 2) + i] =
            elementOf(lanes[lane]->left[word], i, bf16);
      for (int word = 0; word < 2; ++word)
        b[first + 8 * word + i][group] =
            elementOf(lanes[lane]->right[word], i, bf16);
    }
  }
  for (int lane = 0; lane < kLanesOfWarp; ++lane)
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
      double sum = lanes[lane]->sums[i];
      for (int k = 0; k < 16; ++k)
        sum += static_cast<double>(a[row][k]) * b[k][column];
      lanes[lane]->sums[i] = static_cast<float>(sum);
    }
}

void multiplyFloatFragments(bool, FloatProductOfLane* lanes[kLanesOfWarp]) {
  float a[16][8], b[8][8];
  for (int lane = 0; lane < kLanesOfWarp; ++lane) {
    const int group = lane / 4, first = lane % 4;
    for (int word = 0; word < 4; ++word)
      a[group + 8 * (word % 2)][first + 4 * (word / 2)] =
          lanes[lane]->left[word];
    for (int word = 0; word < 2; ++word)
      b[first + 4 * word][group] = lanes[lane]->right[word];
  }
  for (int lane = 0; lane < kLanesOfWarp; ++lane)
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
      double sum = lanes[lane]->sums[i];
      for (int k = 0; k < 8; ++k) sum += productOf(a[row][k], b[k][column]);
      lanes[lane]->sums[i] = static_cast<float>(sum);
    }
}

void loadMatrices(bool transposed, LoadOfLane* lanes[kLanesOfWarp]) {
  for (int lane = 0; lane < kLanesOfWarp; ++lane)
    for (int matrix = 0; matrix < 4; ++matrix) {
      uint16_t pair[2];
      for (int i = 0; i < 2; ++i) {
        int row = lane / 4, column = 2 * (lane % 4) + i;
        if (transposed) std::swap(row, column);
        std::memcpy(&pair[i], lanes[8 * matrix + row]->row + 2 * column, 2);
      }
      lanes[lane]->words[matrix] = pair[0] | static_cast<uint32_t>(pair[1])
                                                 << 16;
    }
}

}  // namespace partita::kernels
