// Compares activations with double precision, over all magnitudes.
#include "runtime/cpu/vector_activations.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "gtest/gtest.h"

namespace partita::cpu {
namespace {

using device::Activation;

double Exact(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kGeluErf:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh:
      return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) *
                               (x + 0.044715 * x * x * x)));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kRelu6:
      return std::clamp(x, 0.0, 6.0);
    case Activation::kHardSwish:
      return x * std::clamp(x + 3, 0.0, 6.0) / 6;
  }
  return x;
}

double MaxError(Activation activation, double x, double exact) {
  if (activation == Activation::kGeluErf || activation == Activation::kGeluTanh)
    return 1e-7 * (std::abs(x) + std::abs(exact));
  return 2e-7 * std::abs(exact);
}

// Each 1000th float, also denormal numbers, infinities and NaN.
TEST(VectorActivationsTest, AreExact) {
  if (!HasVectorActivations()) GTEST_SKIP() << "this CPU has no AVX-512";
  // Results that are smaller may be 0.
  constexpr double kTiny = 1e-36;
  for (int i = 1; i <= static_cast<int>(Activation::kHardSwish); ++i) {
    const Activation activation = static_cast<Activation>(i);
    const VectorActivation activate = VectorActivationOf(activation);
    ASSERT_NE(activate, nullptr);
    for (int64_t first = 0; first < int64_t{1} << 32; first += 32 * 997) {
      alignas(64) float x[32], found[32];
      for (int64_t lane = 0; lane < 32; ++lane) {
        const uint32_t bits = static_cast<uint32_t>(first + lane * 997);
        std::memcpy(&x[lane], &bits, sizeof(bits));
      }
      x[31] = first == 0 ? INFINITY : first == 32 * 997 ? -INFINITY : x[31];
      std::memcpy(found, x, sizeof(x));
      activate(found, 2);
      for (int lane = 0; lane < 32; ++lane) {
        const double exact = Exact(activation, x[lane]);
        if (std::isnan(exact)) {
          ASSERT_TRUE(std::isnan(found[lane])) << i << ": " << x[lane];
        } else if (std::isinf(exact)) {
          ASSERT_EQ(found[lane], exact) << i << ": " << x[lane];
        } else {
          ASSERT_NEAR(found[lane], exact,
                      MaxError(activation, x[lane], exact) + kTiny)
              << i << ": " << x[lane];
        }
      }
    }
  }
}

}  // namespace
}  // namespace partita::cpu
