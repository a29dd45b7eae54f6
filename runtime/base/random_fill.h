// Generates weights from a seed.
#ifndef PARTITA_RUNTIME_BASE_RANDOM_FILL_H_
#define PARTITA_RUNTIME_BASE_RANDOM_FILL_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "runtime/base/dtype.h"

namespace partita::base {

// Word i of the stream of `seed`: mix(mix(seed) + (i + 1) *
// 0x9E3779B97F4A7C15), where mix is the finalizer of SplitMix64. It depends
// only on seed and i, so any part of a tensor can be generated separately.
uint64_t RandomWord(uint64_t seed, uint64_t i);

// In [0, 1): the upper 53 bits of word i.
double RandomUnit(uint64_t seed, uint64_t i);
// Mean 0, standard deviation 1: the quantile of the normal distribution at
// (the upper 32 bits of word i + 1/2) / 2^32.
double RandomNormal(uint64_t seed, uint64_t i);

struct Fill {
  std::string kind;  // "zeros", "ones", "normal" (mean 0, deviation scale),
                     // "uniform" (in [-scale, scale))
  double scale = 1;
  uint64_t seed = 0;
};

// Writes elements [first, first + count) of a tensor to `target`, with several
// threads if there are many. normal and uniform need a floating-point type.
// InvalidArgument for any other kind.
absl::Status FillElements(const Fill& fill, DType dtype, int64_t first,
                          int64_t count, void* target);

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_RANDOM_FILL_H_
