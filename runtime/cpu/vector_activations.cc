// Polynomials on short intervals, and exponentials beyond them.
#include "runtime/cpu/vector_activations.h"

#include <immintrin.h>

namespace partita::cpu {
namespace {

// clang-format off
#define PARTITA_AVX512 [[gnu::target("avx512f,avx512dq,fma")]]
// clang-format on
#define PARTITA_AVX512_INLINE PARTITA_AVX512 [[gnu::always_inline]] inline

constexpr int64_t kLanes = 16;

PARTITA_AVX512_INLINE __m512 Splat(float value) {
  return _mm512_set1_ps(value);
}

// sum = sum * x + coefficient, for each coefficient.
template <int count>
PARTITA_AVX512_INLINE __m512 Polynomial(const float (&coefficients)[count],
                                        __m512 x) {
  __m512 sum = Splat(coefficients[0]);
#pragma GCC unroll 8
  for (int i = 1; i < count; ++i)
    sum = _mm512_fmadd_ps(sum, x, Splat(coefficients[i]));
  return sum;
}

// 2^n * e^r with |r| <= ln(2) / 2. The series' remainder is below 2^-26.
PARTITA_AVX512_INLINE __m512 Exp(__m512 x) {
  constexpr float kSeries[] = {1.f / 5040, 1.f / 720, 1.f / 120, 1.f / 24,
                               1.f / 6,    .5f,       1,         1};
  // Beyond these e^x is 0 or infinite. The second operand is the result if it
  // is NaN.
  x = _mm512_max_ps(Splat(-110), _mm512_min_ps(Splat(89), x));
  const __m512 n =
      _mm512_roundscale_ps(_mm512_mul_ps(x, Splat(1.44269504f)),
                           _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, Splat(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, Splat(-2.12194440e-4f), r);
  return _mm512_scalef_ps(Polynomial(kSeries, r), n);
}

PARTITA_AVX512_INLINE __m512 Sigmoid(__m512 x, __m512 numerator) {
  const __m512 e = Exp(_mm512_sub_ps(_mm512_setzero_ps(), x));
  return _mm512_div_ps(numerator, _mm512_add_ps(Splat(1), e));
}

// x / 2 * (1 + erf(x / sqrt(2))). With t = |x| / sqrt(2), 1 - erf(t) is
// exp(polynomial of t). Near 0, erf is t times a polynomial of t^2.
PARTITA_AVX512_INLINE __m512 GeluErf(__m512 x) {
  constexpr float kFar[] = {-1.72853470e-5f, 3.83197126e-4f,  -3.88396438e-3f,
                            2.42546219e-2f,  -1.06777877e-1f, -6.34846687e-1f,
                            -1.28717512e-1f};
  constexpr float kNear[] = {-5.96761703e-4f, 4.99119423e-3f,  -2.67681349e-2f,
                             1.12819925e-1f,  -3.76125336e-1f, 1.28379166e-1f};
  const __m512 a = _mm512_mul_ps(x, Splat(0.70710678f)), t = _mm512_abs_ps(a);
  const __m512 rest = Exp(_mm512_fmsub_ps(Polynomial(kFar, t), t, t));
  const __m512 near =
      _mm512_fmadd_ps(Polynomial(kNear, _mm512_mul_ps(a, a)), a, a);
  // 1 + erf(a).
  const __m512 far = _mm512_mask_sub_ps(
      rest, _mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_GT_OQ), Splat(2),
      rest);
  const __m512 sum = _mm512_mask_add_ps(
      far, _mm512_cmp_ps_mask(t, Splat(0.927734375f), _CMP_LE_OQ), near,
      Splat(1));
  return _mm512_mul_ps(_mm512_mul_ps(x, Splat(.5f)), sum);
}

// (1 + tanh(a)) / 2 = 1 / (1 + e^-2a)
PARTITA_AVX512_INLINE __m512 GeluTanh(__m512 x) {
  const __m512 cube = _mm512_mul_ps(_mm512_mul_ps(x, x), x);
  const __m512 a = _mm512_fmadd_ps(cube, Splat(0.044715f), x);
  return Sigmoid(_mm512_mul_ps(a, Splat(1.5957691f)), x);
}

PARTITA_AVX512_INLINE __m512 Tanh(__m512 x) {
  constexpr float kNear[] = {-5.70498872745e-3f, 2.06390887954e-2f,
                             -5.37397155531e-2f, 1.33314422036e-1f,
                             -3.33332819422e-1f};
  const __m512 square = _mm512_mul_ps(x, x), t = _mm512_abs_ps(x);
  const __m512 near =
      _mm512_fmadd_ps(_mm512_mul_ps(Polynomial(kNear, square), square), x, x);
  const __m512 e = Exp(_mm512_add_ps(t, t));
  __m512 far = _mm512_div_ps(Splat(2), _mm512_add_ps(e, Splat(1)));
  far = _mm512_sub_ps(Splat(1), far);
  far = _mm512_or_ps(far, _mm512_and_ps(x, Splat(-0.f)));
  return _mm512_mask_mov_ps(
      far, _mm512_cmp_ps_mask(t, Splat(0.625f), _CMP_LE_OQ), near);
}

// The second operand is the result if it is NaN.
PARTITA_AVX512_INLINE __m512 Relu(__m512 x) {
  return _mm512_max_ps(_mm512_setzero_ps(), x);
}

PARTITA_AVX512_INLINE __m512 Relu6(__m512 x) {
  return _mm512_min_ps(Splat(6), Relu(x));
}

template <device::Activation activation>
PARTITA_AVX512 void Activate(float* values, int64_t vectors) {
  using device::Activation;
  for (int64_t i = 0; i < vectors; ++i, values += kLanes) {
    __m512 x = _mm512_load_ps(values);
    if constexpr (activation == Activation::kRelu)
      x = Relu(x);
    else if constexpr (activation == Activation::kGeluErf)
      x = GeluErf(x);
    else if constexpr (activation == Activation::kGeluTanh)
      x = GeluTanh(x);
    else if constexpr (activation == Activation::kSilu)
      x = Sigmoid(x, x);
    else if constexpr (activation == Activation::kTanh)
      x = Tanh(x);
    else if constexpr (activation == Activation::kSigmoid)
      x = Sigmoid(x, Splat(1));
    else if constexpr (activation == Activation::kRelu6)
      x = Relu6(x);
    else if constexpr (activation == Activation::kHardSwish)
      x = _mm512_mul_ps(
          x, _mm512_div_ps(Relu6(_mm512_add_ps(x, Splat(3))), Splat(6)));
    _mm512_store_ps(values, x);
  }
}

}  // namespace

bool HasVectorActivations() {
  return __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512dq");
}

VectorActivation VectorActivationOf(device::Activation activation) {
  using device::Activation;
  switch (activation) {
    case Activation::kNone:
      return nullptr;
    case Activation::kRelu:
      return Activate<Activation::kRelu>;
    case Activation::kGeluErf:
      return Activate<Activation::kGeluErf>;
    case Activation::kGeluTanh:
      return Activate<Activation::kGeluTanh>;
    case Activation::kSilu:
      return Activate<Activation::kSilu>;
    case Activation::kTanh:
      return Activate<Activation::kTanh>;
    case Activation::kSigmoid:
      return Activate<Activation::kSigmoid>;
    case Activation::kRelu6:
      return Activate<Activation::kRelu6>;
    case Activation::kHardSwish:
      return Activate<Activation::kHardSwish>;
  }
  return nullptr;
}

}  // namespace partita::cpu
