// Factors that make an activation's channels alike before it is rounded: it is
// divided by them, and the weights' rows are multiplied (Xiao et al., 2023,
// "SmoothQuant").
#ifndef PARTITA_COMPILER_QUANTIZE_SMOOTH_H_
#define PARTITA_COMPILER_QUANTIZE_SMOOTH_H_

#include <cstdint>
#include <vector>

namespace partita::quantize {

// Raises `largest` to the largest magnitude of each index of dimension `dim` of
// a row-major weight.
void largestAlong(const std::vector<float>& weight,
                  const std::vector<int64_t>& shape, int64_t dim,
                  std::vector<float>& largest);

// Multiplies each index of dimension `dim` by its factor.
void multiplyAlong(std::vector<float>& weight,
                   const std::vector<int64_t>& shape, int64_t dim,
                   const std::vector<float>& factors);

// activation^strength / weight^(1 - strength) for each channel, from largest
// magnitudes; 1 where either is 0.
std::vector<float> smoothingFactors(const std::vector<double>& activation,
                                    const std::vector<float>& weight,
                                    double strength);

}  // namespace partita::quantize

#endif  // PARTITA_COMPILER_QUANTIZE_SMOOTH_H_
