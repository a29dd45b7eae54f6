// Sums of all places of a window's row stay in registers while the row of
// windows is read.
#include "runtime/cpu/depthwise_kernels.h"

#include <cstring>

namespace partita::cpu {
namespace {

using Vector = float __attribute__((vector_size(64)));
constexpr int64_t kVectorLanes = 16;
constexpr int kVectors = kDepthwiseLanes / kVectorLanes;

// Vectors cross no calls: everything that handles them is inlined into a
// function for one processor.
#define PARTITA_INLINE [[gnu::always_inline]] inline
// Sums stay in registers only if loops over them are unrolled.
#define PARTITA_UNROLL _Pragma("GCC unroll 8")

PARTITA_INLINE Vector Load(const float* from) {
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof(vector));
  return vector;
}
PARTITA_INLINE void Store(float* to, const Vector& vector) {
  __builtin_memcpy(to, &vector, sizeof(vector));
}

template <int Width>
PARTITA_INLINE void Sum(const DepthwiseRow& row) {
  Vector sums[Width][kVectors];
  PARTITA_UNROLL
  for (int k = 0; k < Width; ++k) {
    PARTITA_UNROLL
    for (int i = 0; i < kVectors; ++i)
      sums[k][i] = Load(row.sums + k * kDepthwiseLanes + i * kVectorLanes);
  }
  const float* input = row.input;
  const float* grad = row.grad;
  for (int64_t x = 0; x < row.outputs; ++x) {
    PARTITA_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const Vector factor = Load(grad + i * kVectorLanes);
      PARTITA_UNROLL
      for (int k = 0; k < Width; ++k)
        sums[k][i] +=
            factor * Load(input + k * kDepthwiseLanes + i * kVectorLanes);
    }
    input += row.stride * kDepthwiseLanes;
    grad += kDepthwiseLanes;
  }
  PARTITA_UNROLL
  for (int k = 0; k < Width; ++k) {
    PARTITA_UNROLL
    for (int i = 0; i < kVectors; ++i)
      Store(row.sums + k * kDepthwiseLanes + i * kVectorLanes, sums[k][i]);
  }
}

template <int Width>
[[gnu::target("avx512f,avx512vl,fma")]] void SumRow(const DepthwiseRow& row) {
  Sum<Width>(row);
}

}  // namespace

DepthwiseKernel ChooseDepthwiseKernel(int64_t width) {
  if (!__builtin_cpu_supports("avx512f") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("fma"))
    return nullptr;
  switch (width) {
    case 3:
      return &SumRow<3>;
    case 5:
      return &SumRow<5>;
    case 7:
      return &SumRow<7>;
    default:
      return nullptr;
  }
}

void CopyChannels(base::DType dtype, const char* source, int64_t pitch,
                  int64_t count, int64_t positions, float* target) {
  const int64_t size = base::SizeOf(dtype);
  for (int64_t x = 0; x < positions; ++x) {
    if (dtype != base::DType::kF32) {
      base::Convert(dtype, source, base::DType::kF32, target, count);
    } else if (count == kDepthwiseLanes) {
      std::memcpy(target, source, kDepthwiseLanes * sizeof(float));
    } else {
      std::memcpy(target, source, static_cast<size_t>(count) * sizeof(float));
    }
    source += pitch * size;
    target += kDepthwiseLanes;
  }
}

}  // namespace partita::cpu
