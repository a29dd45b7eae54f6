// Weights made from a seed.
#ifndef PARTITA_RUNTIME_BASE_RANDOM_FILL_H_
#define PARTITA_RUNTIME_BASE_RANDOM_FILL_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "runtime/base/dtype.h"

namespace partita::base {

// Element i of the stream of `seed`, word j: mix(mix(seed) + (2 i + j + 1) *
// 0x9E3779B97F4A7C15), mix being the finalizer of SplitMix64. It depends on
// seed, i and j alone, so any part of a tensor can be made by itself, anywhere.
uint64_t RandomWord(uint64_t seed, uint64_t i, int j);

// In [0, 1), from word 0.
double RandomUnit(uint64_t seed, uint64_t i);
// Mean 0, standard deviation 1: Box and Muller's transform of words 0 and 1.
double RandomNormal(uint64_t seed, uint64_t i);

struct Fill {
  std::string kind;  // "zeros", "ones", "normal" (mean 0, deviation scale),
                     // "uniform" (in [-scale, scale))
  double scale = 1;
  uint64_t seed = 0;
};

// Writes elements [first, first + count) of a tensor to `target`, on several
// threads if there are many. normal and uniform need a floating-point type.
// InvalidArgument for another kind.
absl::Status FillElements(const Fill& fill, DType dtype, int64_t first,
                          int64_t count, void* target);

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_RANDOM_FILL_H_
