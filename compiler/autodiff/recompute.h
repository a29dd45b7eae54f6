// What a backward function computes again instead of being given it.
#ifndef PARTITA_COMPILER_AUTODIFF_RECOMPUTE_H_
#define PARTITA_COMPILER_AUTODIFF_RECOMPUTE_H_

#include <optional>

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"

namespace partita::autodiff {

enum class Recompute {
  kNone,       // only what costs nothing: constants, reshapes, broadcasts
  kSelective,  // what is elementwise, norms and softmaxes
  kFull,       // everything but the function's arguments
};

// On an operation of the model: the word of its own policy, for which
// differentiation asks before that of the whole.
inline constexpr char kRecomputeAttr[] = "recompute";

inline std::optional<Recompute> recomputeOf(llvm::StringRef word) {
  return llvm::StringSwitch<std::optional<Recompute>>(word)
      .Case("none", Recompute::kNone)
      .Case("selective", Recompute::kSelective)
      .Case("full", Recompute::kFull)
      .Default(std::nullopt);
}

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_RECOMPUTE_H_
