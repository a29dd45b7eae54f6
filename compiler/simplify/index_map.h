// Maps an element of a tensor to the element that it is a copy of, through
// reshapes, transposes, broadcasts and slices.
#ifndef PARTITA_COMPILER_SIMPLIFY_INDEX_MAP_H_
#define PARTITA_COMPILER_SIMPLIFY_INDEX_MAP_H_

#include <optional>

#include "mlir/IR/Value.h"
#include "mlir/Support/LLVM.h"

namespace partita::simplify {

// A part of an index: (symbol / stride) % size, or `number`.
struct Digit {
  int symbol = -1;  // -1 for a number
  int64_t stride = 1, size = 1, number = 0;

  bool operator==(const Digit& other) const {
    return symbol == other.symbol && stride == other.stride &&
           size == other.size && number == other.number;
  }
};

// The index of one dimension: digits of mixed radix, slowest first. Empty for a
// dimension of size 1.
using Index = mlir::SmallVector<Digit, 2>;

// The whole range of a symbol.
Index wholeRange(int symbol, int64_t size);

// An element of `value`, as a function of symbols.
struct Access {
  mlir::Value value;
  mlir::SmallVector<Index> dims;  // one per dimension

  // All digits, slowest first, with neighbours merged.
  Index digits() const;
  // The same element of an operand of an elementwise operation.
  Access operand(unsigned i) const;
};

// Looks through reshapes, transposes, broadcasts and slices.
Access peel(Access access);

// The element if it is a known integer, or a known float.
std::optional<int64_t> integerAt(const Access& access);
std::optional<double> floatAt(const Access& access);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_INDEX_MAP_H_
