// Shared by nn.ordered_dot and its weight gradient on tensor cores: a product
// of two tiles in shared memory that is summed in registers, and copies between
// tiles and tensors whose rows are anywhere.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ORDERED_TILES_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ORDERED_TILES_H_

#include <functional>

#include "compiler/kernels/emit_fragments.h"
#include "compiler/kernels/emit_row_order.h"
#include "compiler/kernels/emit_warpgroup.h"

namespace partita::kernels {

// A block multiplies a left tile by a right one, `depth` products at a time.
// Two buffers hold both tiles: while one is read, the other one is filled.
struct OrderedPlan {
  // `left_down`: products go down the rows of the left tile, else along them;
  // the same for `right_down`. `warpgroups`: warpgroups multiply them, not
  // warps.
  OrderedPlan(mlir::Type element, bool left_down, bool right_down,
              bool warpgroups);

  bool left_down, right_down;
  int64_t rows, columns;  // of the result
  int64_t depth;
  Tile left, right;
  Tile result;     // in place of the buffers
  int64_t buffer;  // elements
  int64_t bytes;
};

class OrderedTiles : protected IndexMath {
 protected:
  OrderedTiles(Emitter& emitter, mlir::Type element, bool left_down,
               bool right_down, bool warpgroups);

  // A row of a tensor, and whether it exists (null: yes). Of a row that does
  // not exist a tile gets zeros.
  struct Row {
    mlir::Value number, exists;
  };
  // Source of a tile: rows and columns of the tensor's last two dimensions.
  struct Source {
    mlir::Value tensor;
    IndexVector matrix;  // index of the dimensions before
    std::function<Row(mlir::Value in_tile)> row;
    mlir::Value first_column;
    bool products_along_row;  // columns past the end must be zeros
  };
  // Begins to fill a tile. The threads share the work.
  mlir::LogicalResult fill(const Tile& tile, mlir::Value shift,
                           const Source& source);

  // The product of a buffer's tiles, added to the sums of this thread.
  void multiplyTiles(mlir::Value shift,
                     llvm::MutableArrayRef<mlir::Value> sums);
  Values zeroSums();
  // The sums over `steps` buffers, `most_steps` at most. `fill` begins to fill
  // a buffer for a step.
  mlir::FailureOr<Values> sumSteps(mlir::Value steps, int64_t most_steps,
                                   llvm::function_ref<mlir::LogicalResult(
                                       mlir::Value step, mlir::Value shift)>
                                       fill);
  // Rounds sums into the result tile.
  void putSums(llvm::ArrayRef<mlir::Value> sums);
  // Called in each step: after all threads have reached it, and at its end.
  virtual void beginStep(mlir::Value step) {}
  virtual void endStep(mlir::Value step) {}

  // Stores sums. `first` gives the place in the buffer at which a row of the
  // tile begins, and whether it exists. The rows have `columns` columns, of
  // which the tile has those from `first_column` on.
  mlir::LogicalResult storeSums(llvm::ArrayRef<mlir::Value> sums,
                                const Buffer& to,
                                std::function<Row(mlir::Value in_tile)> first,
                                mlir::Value first_column, int64_t columns);

  void sync() { fragments_.sync(); }
  int64_t lanes() const { return 128 / element_.getIntOrFloatBitWidth(); }

  mlir::Type element_;
  OrderedPlan plan_;
  Fragments fragments_;
  std::optional<Warpgroup> warpgroup_;

 private:
  // Fills one piece of 16 bytes: row `in_tile`, columns from `in_row` on.
  mlir::LogicalResult fillPiece(const Tile& tile, mlir::Value shift,
                                const Source& source, mlir::Value in_tile,
                                mlir::Value in_row);
  // The same for rows that are not made of aligned pieces.
  mlir::LogicalResult fillElements(mlir::Value to, const Source& source,
                                   const Row& row, mlir::Value column,
                                   int64_t columns);
  void storePiece(mlir::Value value, mlir::Value to);
  // The same products by the block's warpgroup. They are in flight on return,
  // until finishProducts.
  void startProducts(mlir::Value shift,
                     llvm::MutableArrayRef<mlir::Value> sums);
  void finishProducts(llvm::MutableArrayRef<mlir::Value> sums);
  // The element of a tile at a row and a column.
  mlir::Value elementOf(const Tile& tile, mlir::Value row, mlir::Value column);
  // This thread's row and column of the warps' parts of the result.
  mlir::Value warpRow() {
    return multiply(divide(fragments_.warp(), 2), plan_.rows / 2);
  }
  mlir::Value warpColumn() {
    return multiply(remainder(fragments_.warp(), 2), plan_.columns / 2);
  }
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ORDERED_TILES_H_
