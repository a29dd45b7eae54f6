// Names of dimensions, as the attribute nn.dims holds them.
//
// A dimension's text is its segments, the most significant first, joined by
// "*": a name, or the size where there is none. "E", "N*8" (heads of 8), "3".
// "L=H*W" is the flattened image that attention reads as a sequence. A name met
// again on one value has a prime: "[E, E']".
#ifndef PARTITA_COMPILER_SHARDING_DIMS_H_
#define PARTITA_COMPILER_SHARDING_DIMS_H_

#include <optional>
#include <string>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/IR/Value.h"

namespace partita::sharding {

// On arguments of functions an array with a string for each dimension; on
// operations an array of such arrays, one per result.
inline constexpr char kDimsAttr[] = "nn.dims";

// The names there are, of dimensions of values.
inline constexpr const char* kDimNames[] = {"B", "M", "N", "E", "L",
                                            "V", "H", "W", "X"};

struct DimSegment {
  std::string name;  // with primes; empty where there is none
  int64_t size = 0;  // 0 where the text and the dimension's size do not tell
};

struct Dim {
  std::string role;  // what the whole is read as; mostly empty
  llvm::SmallVector<DimSegment> segments;  // none: size 1

  // Whether an entry `name` of a plan divides this dimension: its first
  // segment, or the whole, has that name.
  bool isNamed(llvm::StringRef name) const;
};

std::string print(const Dim& dim);
// Of a dimension of this size; nothing where the text is not of that form or
// its numbers do not divide the size.
std::optional<Dim> parseDim(llvm::StringRef text, int64_t size);

// The names of a value's dimensions; nothing where it has none.
std::optional<llvm::SmallVector<Dim>> dimsOf(mlir::Value value);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_DIMS_H_
