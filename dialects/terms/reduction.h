// How the elements of several devices, or of several shards, are combined.
#ifndef PARTITA_DIALECTS_TERMS_REDUCTION_H_
#define PARTITA_DIALECTS_TERMS_REDUCTION_H_

#include <cstdint>

namespace partita::terms {

// kAny and kAll are those of i1, the others those of every other type.
enum class Reduction : uint32_t { kSum, kProduct, kMax, kMin, kAny, kAll };

// All values, in the order of their numbers.
inline constexpr Reduction kReductions[] = {
    Reduction::kSum, Reduction::kProduct, Reduction::kMax,
    Reduction::kMin, Reduction::kAny,     Reduction::kAll};

// The name in IR and in programs: "sum", "prod", "max", "min", "any",
// "all".
const char* NameOf(Reduction reduction);

}  // namespace partita::terms

#endif  // PARTITA_DIALECTS_TERMS_REDUCTION_H_
