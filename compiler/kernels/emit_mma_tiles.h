// Shared by attention and its gradient on tensor cores: tiles of scores as
// fragments.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_MMA_TILES_H_
#define PARTITA_COMPILER_KERNELS_EMIT_MMA_TILES_H_

#include "compiler/kernels/emit_attention_tiles.h"
#include "compiler/kernels/emit_fragments.h"
#include "compiler/kernels/emit_tile_lists.h"
#include "compiler/kernels/emit_tile_ring.h"

namespace partita::kernels {

// Elements in 16 bytes.
inline int64_t paddingOf(mlir::Type element) {
  return 128 / element.getIntOrFloatBitWidth();
}

// Tiles of keys and values, in two or, in a ring, more buffers: while one is
// read, the next ones are filled.
struct KeyTiles {
  // `warpgroups`: the tiles are for warpgroups, not for warps.
  KeyTiles(mlir::Type element, int64_t size, int64_t value_size,
           bool warpgroups = false);

  Tile key, value;
  int64_t buffer;  // elements of a key tile and a value tile
};

class MmaTiles : protected AttentionTiles {
 protected:
  // `op` is nn.attention or its gradient. A block has `rows` queries. Its tiles
  // take `bytes` of scratch, tiles of keys first. `warpgroups`: warpgroups read
  // them, not warps.
  template <typename Op>
  MmaTiles(Emitter& emitter, Op op, int64_t rows, int64_t bytes,
           bool warpgroups = false)
      : AttentionTiles(emitter, op),
        fragments_(emitter,
                   mlir::cast<mlir::RankedTensorType>(op.getQ().getType())
                       .getElementType(),
                   bytes, warpgroups),
        tiles_(mlir::cast<mlir::RankedTensorType>(op.getQ().getType())
                   .getElementType(),
               size_, value_size_, warpgroups),
        scale_(op.getScale().convertToDouble()),
        window_(op.getWindow()),
        k_(op.getK()),
        v_(op.getV()),
        table_(nn::BlockTable::of(op)),
        first_head_(op.getFirstHead()) {
    rows_ = rows;
    clampLimits();
  }

  // True if kernels visit the tiles of lists: there is a table of blocks.
  bool isListed() const { return table_.has_value(); }
  // The lists, if there is a table of blocks.
  std::optional<TileLists> listsOf(int64_t query_rows, int64_t key_rows,
                                   bool by_keys);
  std::optional<TileFlags> flagsOf(int64_t query_rows, int64_t key_rows);

  // --- Loops over keys ---
  // From now on, tiles of keys and values come in a ring of `stages` stages.
  void useRing(int64_t stages, const TensorMap& keys, const TensorMap& values);
  // Begins to fill the first tiles of keys, and of values, for the block of
  // queries from `first` on. A ring first waits for readers of the previous
  // content.
  mlir::LogicalResult fillFirstKeys(mlir::Value first, bool with_values);
  // Runs `body` for each tile of the keys that the block of queries from
  // `first` on sees. `shift` is the tile's place and `first_key` its first key;
  // if `masked`, some queries do not see some of its keys. Requires
  // fillFirstKeys. In the end all tiles have been read, and a ring is closed.
  using TileBody = llvm::function_ref<mlir::FailureOr<Values>(
      mlir::Value shift, mlir::Value first_key, bool masked, Values state)>;
  mlir::FailureOr<Values> throughKeys(mlir::Value first, bool with_values,
                                      Values state, TileBody body);

  // --- Products of tiles ---
  // A band has 16 rows. `left` holds the fragments of one band after the other,
  // each with all columns; so do the sums, 8 columns at a time.

  // The left fragments of a tile of `bands` bands.
  FragmentList leftFragments(const Tile& tile, mlir::Value shift,
                             int64_t bands);
  // left * transposed tile, which is `shift` elements further on.
  Values timesTransposed(llvm::ArrayRef<Fragment> left, const Tile& tile,
                         mlir::Value shift);
  // sums += left * tile.
  void addTimes(llvm::ArrayRef<Fragment> left, const Tile& tile,
                mlir::Value shift, llvm::MutableArrayRef<mlir::Value> sums);
  // Rounds floats to left fragments, 16 columns at a time.
  FragmentList leftOf(llvm::ArrayRef<mlir::Value> floats);
  // Scales the upper and the lower rows of sums.
  mlir::Value scaleRows(mlir::Value sums, mlir::Value upper, mlir::Value lower);

  // --- Scores ---
  // A weight is 2^(scaled score - shift). A scaled score is `factor()` times
  // the score; the shift is the largest scaled score of the query.
  double factor() const;
  mlir::Value scaled(mlir::Value score);
  // The score, from the product of a query and a key; `bias` is null without a
  // bias.
  mlir::Value scoreOf(mlir::Value product, mlir::Value bias);
  // The bias of a query for two neighbouring keys, the first of which is even;
  // nulls without a bias. `masked`: the keys may not exist.
  mlir::FailureOr<Values> biasesOf(const Symbol* query, mlir::Value key,
                                   bool masked);
  mlir::FailureOr<mlir::Value> biasOf(const Symbol* query, mlir::Value key);
  // The first key that a query does not see.
  mlir::Value endOfKeys(mlir::Value query);
  // The first key that a query sees. Requires a window.
  mlir::Value beginOfKeys(mlir::Value query);
  // Minus infinity if the query does not see the key, else the score.
  mlir::Value maskKey(mlir::Value score, mlir::Value key, mlir::Value query);
  // Minus infinity if `row` < `begin` or `row` >= `end`, signed 32-bit numbers,
  // else the score. Either bound may be null.
  mlir::Value maskFrom(mlir::Value score, int64_t row, mlir::Value begin,
                       mlir::Value end);
  // 2^(scaled score - shift)
  mlir::Value weightOf(mlir::Value score, mlir::Value shift);
  // The symbol of a query, clamped to the last query.
  const Symbol* queryAt(mlir::Value query);

  // A running softmax over tiles. From products of a tile with bands of the
  // queries `rows` (two for each band), computes 2^(score - largest score so
  // far), in the order of left fragments. Updates `largest` and `sums`, this
  // thread's part of the sums of weights. Earlier sums must be multiplied by
  // `scales`.
  struct Running {
    llvm::MutableArrayRef<mlir::Value> largest, sums, scales;
  };
  mlir::FailureOr<Values> runningWeights(llvm::ArrayRef<mlir::Value> products,
                                         llvm::ArrayRef<const Symbol*> rows,
                                         mlir::Value first_key, bool masked,
                                         Running running);
  mlir::Value scalar(mlir::Value sums, int64_t i);
  mlir::Value f32(double value);
  // 0 for minus infinity, the value itself otherwise.
  mlir::Value finite(mlir::Value value);

  Fragments fragments_;
  KeyTiles tiles_;
  std::optional<TileRing> ring_;
  double scale_;
  std::optional<int64_t> window_;  // with causal_offset_

 private:
  // Makes causal_offset_ and window_ fit sums with sizes; they hide the same
  // keys then.
  void clampLimits();
  mlir::FailureOr<Lanes> bias(const Symbol* query, Symbol key);
  // The tiles with keys that the block of queries from `first` on sees. Tiles
  // have positions: in the list if there is one, else their own numbers. A null
  // `begin` is 0.
  struct Span {
    mlir::Value begin, end;
  };
  mlir::FailureOr<Span> spanOf(mlir::Value first);
  mlir::Value tileAt(mlir::Value position);
  // Creates the lists once.
  void makeLists();
  // A tile's number from `begin` on (null: 0). Buffers are counted so: the
  // first tile is in the first one, because queries pass through the second
  // one.
  mlir::Value numberOf(mlir::Value position, mlir::Value begin);
  // Begins to fill tiles, `shift` elements further on, with keys from `first`
  // on, and with their values.
  mlir::LogicalResult fillKeys(mlir::Value first, mlir::Value shift,
                               bool with_values);
  // Elements before the buffer of the tile with this number.
  mlir::Value bufferOf(mlir::Value number);
  // The tile at a position of the span.
  mlir::FailureOr<Values> emitTile(mlir::Value position, const Span& span,
                                   bool with_values, bool masked, Values state,
                                   TileBody body);
  bool isPlain() const { return !bias_ && softcap_ <= 0 && scale_ > 0; }

  mlir::Value k_, v_;
  std::optional<nn::BlockTable> table_;
  mlir::Value first_head_;
  bool has_made_lists_ = false;
  std::optional<TileLists> lists_;
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_MMA_TILES_H_
