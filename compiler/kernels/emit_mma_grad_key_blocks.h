// Shared by the kernels that take a block of keys through the queries that see
// them: items, tiles of queries, and turns.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_MMA_GRAD_KEY_BLOCKS_H_
#define PARTITA_COMPILER_KERNELS_EMIT_MMA_GRAD_KEY_BLOCKS_H_

#include "compiler/kernels/emit_mma_grad_parts.h"

namespace partita::kernels {

class GradKeyBlocks : protected MmaGradTiles {
 public:
  int64_t range() const { return batches_ * groups_ * key_blocks_; }

 protected:
  // A tile has `query_rows` queries; the kernel's tiles take `bytes` of shared
  // memory.
  GradKeyBlocks(Emitter& emitter, const GradKernel& kernel, int64_t bytes,
                int64_t query_rows, bool read_by_warpgroups = false)
      : MmaGradTiles(emitter, kernel, bytes, read_by_warpgroups),
        query_rows_(query_rows),
        key_blocks_((keys_ + kGradRows - 1) / kGradRows),
        lists_by_keys_(listsOf(query_rows, kGradRows, /*by_keys=*/true)) {}

  static bool wantsQueries(const GradKernel& kernel);
  using MmaGradTiles::wantsQueries;

  // Takes the next item: sets batch_, group_ and block_. Returns the first key.
  // All threads have read the previous content of shared memory.
  mlir::FailureOr<mlir::Value> takeItem(const Symbol* item);
  // Runs `body` for each head that shares the keys. It adds to sums for keys,
  // then for values, 8 columns at a time. Returns the sums.
  mlir::FailureOr<Values> forEachHead(
      llvm::function_ref<mlir::FailureOr<Values>(Values)> body);
  // Stores the sums of this block through these tiles, which no thread may
  // still read.
  mlir::FailureOr<Values> storeResults(llvm::ArrayRef<mlir::Value> sums,
                                       mlir::Value first, const Tile& key,
                                       const Tile& value);

  // Tiles of queries, by their positions: in the list if there is one, else
  // their own numbers. Some queries do not see some keys if `masked`.
  struct Part {
    mlir::Value begin, end;
    bool masked;
  };
  // The tiles of queries of a head that see some of the keys. The first ones do
  // not see all keys, and with a window neither do the last ones.
  mlir::FailureOr<llvm::SmallVector<Part>> partsFor(mlir::Value first);
  int64_t positions() const;  // upper bound
  mlir::Value tileAt(mlir::Value position);
  // The turn of this block at a tile.
  mlir::Value turnAt(mlir::Value position);

  // --- Gradients of scores, in the order of transposed sums ---
  // Sets gradients of keys past the last one to 0.
  void hideMissingKeys(mlir::Value first_key, Values& grads);
  // True if no block of keys has added to the tile before this turn.
  mlir::Value isFirstTurn(mlir::Value tile, mlir::Value turn);
  // The sums of q_grad at a place of the memory, or 0 if `is_first`.
  mlir::Value sumsBefore(mlir::Value position, mlir::Value is_first);
  void storeSumsAt(mlir::Value sums, mlir::Value position);

  int64_t query_rows_, key_blocks_;
  std::optional<TileLists> lists_by_keys_;
  mlir::Value block_;  // number of the block of keys
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_MMA_GRAD_KEY_BLOCKS_H_
