// Kernels that put rows in order of their matrices (nn.order_rows), and the
// order that they write.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ROW_ORDER_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ROW_ORDER_H_

#include "compiler/kernels/emit_elements.h"
#include "dialects/nn/ordered.h"

namespace partita::kernels {

// Arithmetic on numbers of type index.
class IndexMath {
 public:
  explicit IndexMath(Emitter& emitter)
      : emitter_(emitter), builder_(emitter.builder()) {}

 protected:
  mlir::Value number(int64_t value) { return emitter_.indexConstant(value); }
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t b) { return add(a, number(b)); }
  mlir::Value subtract(mlir::Value a, mlir::Value b);
  mlir::Value multiply(mlir::Value a, int64_t b);
  mlir::Value divide(mlir::Value a, int64_t b);
  mlir::Value remainder(mlir::Value a, int64_t b);
  mlir::Value smaller(mlir::Value a, mlir::Value b);
  mlir::Value less(mlir::Value a,
                   mlir::Value b);  // i1, as numbers without sign
  mlir::Value equal(mlir::Value a, mlir::Value b);
  mlir::Value both(mlir::Value a, mlir::Value b);  // of i1; nulls are true
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);

  // 32-bit numbers.
  mlir::Value loadWord(mlir::Value memref, mlir::Value at);
  void storeWord(mlir::Value value, mlir::Value memref, mlir::Value at);

  Emitter& emitter_;
  mlir::ImplicitLocOpBuilder& builder_;
};

class RowOrder : private IndexMath {
 public:
  // For `matrices` matrices. The last group has the rows of none of them.
  RowOrder(Emitter& emitter, mlir::Value memory, int64_t matrices)
      : IndexMath(emitter), memory_(memory), groups_(matrices + 1) {}

  // The position at which a group begins, and the one at which it ends.
  mlir::Value begin(mlir::Value group) { return loadWord(memory_, group); }
  mlir::Value end(mlir::Value group) { return begin(add(group, 1)); }
  void setBegin(mlir::Value group, mlir::Value position) {
    storeWord(position, memory_, group);
  }
  // The row at a position.
  mlir::Value row(mlir::Value position) {
    return loadWord(memory_, add(position, groups_ + 1));
  }
  void setRow(mlir::Value position, mlir::Value row) {
    storeWord(row, memory_, add(position, groups_ + 1));
  }

  // Rows of one tile: positions first ... end - 1 of a group; none if first >=
  // end.
  struct Rows {
    mlir::Value group, first, end;
  };
  static int64_t tiles(int64_t matrices, int64_t rows, int64_t tile_rows) {
    return rows / tile_rows + matrices + 1;
  }
  // The tile with this number. Tiles past the last one are empty.
  Rows tileOf(mlir::Value tile, int64_t tile_rows);

 private:
  mlir::Value memory_;
  int64_t groups_;
};

// Emits the kernel, for teams of kBlock. Returns the range.
mlir::FailureOr<int64_t> emitOrderRows(Emitter& emitter, nn::OrderRowsOp op,
                                       const Buffer& result, mlir::Value begin,
                                       mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ROW_ORDER_H_
