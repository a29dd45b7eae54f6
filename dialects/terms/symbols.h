// Functions that the C++ which mlir-tblgen generates for attributes of these
// terms calls: names to values, and back.
#ifndef PARTITA_DIALECTS_TERMS_SYMBOLS_H_
#define PARTITA_DIALECTS_TERMS_SYMBOLS_H_

#include <optional>

#include "dialects/terms/activation.h"
#include "dialects/terms/collective_kind.h"
#include "dialects/terms/conv_direction.h"
#include "dialects/terms/reduction.h"
#include "llvm/ADT/StringRef.h"

namespace partita::terms {

inline llvm::StringRef stringifyReduction(Reduction reduction) {
  return NameOf(reduction);
}
inline llvm::StringRef stringifyCollectiveKind(CollectiveKind kind) {
  return NameOf(kind);
}
inline llvm::StringRef stringifyActivation(Activation activation) {
  return NameOf(activation);
}
inline llvm::StringRef stringifyConvDirection(ConvDirection direction) {
  return NameOf(direction);
}

inline std::optional<Reduction> symbolizeReduction(llvm::StringRef name) {
  for (const Reduction reduction : kReductions)
    if (name == NameOf(reduction)) return reduction;
  return std::nullopt;
}
inline std::optional<CollectiveKind> symbolizeCollectiveKind(
    llvm::StringRef name) {
  for (const CollectiveKind kind : kCollectiveKinds)
    if (name == NameOf(kind)) return kind;
  return std::nullopt;
}
inline std::optional<Activation> symbolizeActivation(llvm::StringRef name) {
  for (const Activation activation : kActivations)
    if (name == NameOf(activation)) return activation;
  return std::nullopt;
}
inline std::optional<ConvDirection> symbolizeConvDirection(
    llvm::StringRef name) {
  for (const ConvDirection direction : kConvDirections)
    if (name == NameOf(direction)) return direction;
  return std::nullopt;
}

}  // namespace partita::terms

#endif  // PARTITA_DIALECTS_TERMS_SYMBOLS_H_
