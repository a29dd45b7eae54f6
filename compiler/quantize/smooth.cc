// A dimension of a row-major tensor repeats every `inner` elements.
#include "compiler/quantize/smooth.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace partita::quantize {
namespace {

// Calls f(element, index of dimension `dim`) for each element.
template <typename Weight, typename F>
void forEach(Weight& weight, const std::vector<int64_t>& shape, int64_t dim,
             F f) {
  size_t inner = 1;
  for (size_t i = static_cast<size_t>(dim) + 1; i < shape.size(); ++i)
    inner *= static_cast<size_t>(shape[i]);
  const auto size = static_cast<size_t>(shape[static_cast<size_t>(dim)]);
  for (size_t i = 0; i < weight.size(); ++i) f(weight[i], i / inner % size);
}

}  // namespace

void largestAlong(const std::vector<float>& weight,
                  const std::vector<int64_t>& shape, int64_t dim,
                  std::vector<float>& largest) {
  forEach(weight, shape, dim, [&](float value, size_t index) {
    largest[index] = std::max(largest[index], std::abs(value));
  });
}

void multiplyAlong(std::vector<float>& weight,
                   const std::vector<int64_t>& shape, int64_t dim,
                   const std::vector<float>& factors) {
  forEach(weight, shape, dim,
          [&](float& value, size_t index) { value *= factors[index]; });
}

std::vector<float> smoothingFactors(const std::vector<double>& activation,
                                    const std::vector<float>& weight,
                                    double strength) {
  std::vector<float> factors;
  for (size_t i = 0; i < weight.size(); ++i) {
    const double factor = std::pow(activation[i], strength) /
                          std::pow(double{weight[i]}, 1 - strength);
    factors.push_back(std::isnormal(static_cast<float>(factor))
                          ? static_cast<float>(factor)
                          : 1.0F);
  }
  return factors;
}

}  // namespace partita::quantize
