// Recognises sparse constant masks.
#ifndef PARTITA_COMPILER_SIMPLIFY_SPARSE_MASK_H_
#define PARTITA_COMPILER_SIMPLIFY_SPARSE_MASK_H_

#include "compiler/simplify/constant_mask.h"

namespace partita::simplify {

// Matches a causal window with sinks (Xiao et al., 2024), then blocks of keys,
// causal or not (Child et al., 2019; Zaheer et al., 2020). `hides` is true if a
// query does not see a key, and nullopt if the score changes otherwise. Returns
// nullopt if there is no such pattern, or if a query sees no key.
std::optional<ConstantMask> matchSparseMask(
    int64_t queries, int64_t keys,
    llvm::function_ref<std::optional<bool>(int64_t, int64_t)> hides);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_SPARSE_MASK_H_
