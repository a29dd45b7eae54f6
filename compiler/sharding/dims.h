// Names of dimensions, as stored in the attribute nn.dims.
//
// The text of a dimension is its segments, most significant first, joined by
// "*". A segment is a name, or a size if it has no name: "E", "N*8" (heads of
// 8), "3". "L=H*W" is a flattened image that attention reads as a sequence. If
// a name repeats within one value, the repetition has a prime: "[E, E']".
#ifndef PARTITA_COMPILER_SHARDING_DIMS_H_
#define PARTITA_COMPILER_SHARDING_DIMS_H_

#include <optional>
#include <string>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/IR/Value.h"

namespace partita::sharding {

// On function arguments: an array with one string per dimension. On operations:
// an array of such arrays, one per result.
inline constexpr char kDimsAttr[] = "nn.dims";

// All names of dimensions.
inline constexpr const char* kDimNames[] = {"B", "M", "N", "E", "L",
                                            "V", "H", "W", "X"};

struct DimSegment {
  std::string name;  // with primes; empty if the segment has no name
  int64_t size = 0;  // 0 if text and dimension size do not determine it
};

struct Dim {
  std::string role;  // name of the whole dimension; usually empty
  llvm::SmallVector<DimSegment> segments;  // empty if the size is 1

  // True if an entry `name` of a plan divides this dimension: its first segment
  // or its role has that name.
  bool isNamed(llvm::StringRef name) const;
};

std::string print(const Dim& dim);
// Parses the text of a dimension of this size. Returns nullopt if the text is
// malformed or its numbers do not divide the size.
std::optional<Dim> parseDim(llvm::StringRef text, int64_t size);

// Returns the names of a value's dimensions; nullopt if it has none.
std::optional<llvm::SmallVector<Dim>> dimsOf(mlir::Value value);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_DIMS_H_
