// Reductions that combine the elements of several devices or shards.
#ifndef PARTITA_DIALECTS_TERMS_REDUCTION_H_
#define PARTITA_DIALECTS_TERMS_REDUCTION_H_

#include <cstdint>

namespace partita::terms {

// kAny and kAll apply to i1, the others to all other types.
enum class Reduction : uint32_t { kSum, kProduct, kMax, kMin, kAny, kAll };

// All values in numeric order.
inline constexpr Reduction kReductions[] = {
    Reduction::kSum, Reduction::kProduct, Reduction::kMax,
    Reduction::kMin, Reduction::kAny,     Reduction::kAll};

// The name in IR and in programs: "sum", "prod", "max", "min", "any", "all".
const char* NameOf(Reduction reduction);

}  // namespace partita::terms

#endif  // PARTITA_DIALECTS_TERMS_REDUCTION_H_
