// Recompute policies: the values that a backward function computes again
// instead of receiving them.
#ifndef PARTITA_COMPILER_AUTODIFF_RECOMPUTE_H_
#define PARTITA_COMPILER_AUTODIFF_RECOMPUTE_H_

#include <optional>

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"

namespace partita::autodiff {

enum class Recompute {
  kNone,       // only free operations: constants, iotas, reshapes, broadcasts
  kSelective,  // also elementwise work, moves, norms and softmaxes
  kFull,       // everything but the function's arguments
};

// On an operation of the model: its own policy, which takes precedence.
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
