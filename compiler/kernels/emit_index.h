// Symbolic index arithmetic of generated code: the place of an element, as a
// function of loop variables.
//
// An Index is offset + sum of scale * ((symbol / divisor) % modulus). Symbols
// are loop variables (or values computed at run time, such as a looked-up row)
// with a known extent, so that reshapes, transposes and slices compose without
// any code: splitting an index by a size and joining the parts again gives the
// original. An index that has no such form becomes a new symbol.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_INDEX_H_
#define PARTITA_COMPILER_KERNELS_EMIT_INDEX_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Value.h"

namespace partita::kernels {

// A run-time quantity in [0, extent).
struct Symbol {
  // Has type index. With lanes: the first lane's value, a multiple of `lanes`;
  // if `irregular`, a vector of all lanes.
  mlir::Value value;
  int64_t extent = 1;
  int64_t lanes = 0;  // 0: the same in all lanes; otherwise lane k has value +
                      // k (or value[k])
  bool irregular = false;
  mlir::Value mask;  // lanes that exist; null: all
  // The symbol of which some lanes are masked off; null: none.
  const Symbol* unmasked = nullptr;
  int depth = 0;  // the scope that defines it
  int id = 0;     // in order of creation
};

struct Term {
  int64_t scale = 1;
  const Symbol* symbol = nullptr;
  int64_t divisor = 1;
  int64_t modulus = 0;  // 0: none

  // Number of values that (symbol / divisor) % modulus takes.
  int64_t count() const;
  bool operator==(const Term& other) const {
    return scale == other.scale && symbol == other.symbol &&
           divisor == other.divisor && modulus == other.modulus;
  }
};

class Index {
 public:
  Index() = default;
  /*implicit*/ Index(int64_t offset) : offset_(offset) {}
  /*implicit*/ Index(const Symbol* symbol);

  int64_t offset() const { return offset_; }
  // Sorted and joined: equal indices of loop variables have equal terms.
  llvm::ArrayRef<Term> terms() const { return terms_; }
  bool isConstant() const { return terms_.empty(); }
  bool operator==(const Index& other) const {
    return offset_ == other.offset_ && terms_ == other.terms_;
  }

  // Depth of the innermost scope whose symbols the index needs.
  int depth() const;
  // A symbol with lanes, or null. All symbols with lanes have the same number.
  const Symbol* laneSymbol() const;
  // True if the index is known to lie in [0, size).
  bool within(int64_t size) const;
  // The index with `to` in place of `from`.
  Index replaced(const Symbol* from, const Symbol* to) const;

  Index operator+(const Index& other) const;
  Index operator*(int64_t factor) const;
  // Quotient and remainder by `size`, if both have symbolic form.
  std::optional<std::pair<Index, Index>> trySplit(int64_t size) const;

 private:
  void normalize();

  int64_t offset_ = 0;
  llvm::SmallVector<Term, 2> terms_;
};

using IndexVector = llvm::SmallVector<Index, 4>;

llvm::SmallVector<int64_t> rowMajorStrides(llvm::ArrayRef<int64_t> shape);
int64_t product(llvm::ArrayRef<int64_t> sizes);
Index linearize(llvm::ArrayRef<Index> index, llvm::ArrayRef<int64_t> strides);
int depthOf(llvm::ArrayRef<Index> index);
const Symbol* laneSymbolOf(llvm::ArrayRef<Index> index);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_INDEX_H_
