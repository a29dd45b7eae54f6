// What attention and its gradient on tensor cores share: tiles of scores as
// fragments.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_MMA_TILES_H_
#define PARTITA_COMPILER_KERNELS_EMIT_MMA_TILES_H_

#include "compiler/kernels/emit_attention_tiles.h"
#include "compiler/kernels/emit_fragments.h"
#include "compiler/kernels/emit_tile_ring.h"

namespace partita::kernels {

// Elements in 16 bytes.
inline int64_t paddingOf(mlir::Type element) {
  return 128 / element.getIntOrFloatBitWidth();
}

// Tiles of keys and values, twice or, in a ring, more often: while one is read,
// the next ones are filled.
struct KeyTiles {
  // For warps, or for warpgroups.
  KeyTiles(mlir::Type element, int64_t size, int64_t value_size,
           bool warpgroups = false);

  Tile key, value;
  int64_t buffer;  // elements of both, once
};

class MmaTiles : protected AttentionTiles {
 protected:
  // Of nn.attention or its gradient; a block's queries are `rows`, its tiles
  // take `bytes` of scratch, the first of them those of keys. `warpgroups`
  // read them, not warps.
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
        k_(op.getK()),
        v_(op.getV()) {
    rows_ = rows;
  }

  // --- Loops over keys ---
  // From now on tiles of keys and of values come in a ring of so many stages.
  void useRing(int64_t stages, const TensorMap& keys, const TensorMap& values);
  // Begins to fill the first tiles for the block of queries from `first` on, of
  // keys and of their values. A ring's tiles wait for what was there before.
  mlir::LogicalResult fillFirstKeys(mlir::Value first, bool with_values);
  // `body` for each tile of the keys that the block of queries from `first`
  // sees: where it lies, its first key, and whether some of its keys may not be
  // seen. The first tiles' filling has begun; in the end all are read, and a
  // ring is closed.
  using TileBody = llvm::function_ref<mlir::FailureOr<Values>(
      mlir::Value shift, mlir::Value first_key, bool masked, Values state)>;
  mlir::FailureOr<Values> throughKeys(mlir::Value first, bool with_values,
                                      Values state, TileBody body);

  // --- Products of tiles ---
  // `left` has the fragments of one band of 16 rows after the other, each with
  // all columns; so have the sums, 8 columns after 8 columns.

  // The left fragments of a tile, of `bands` bands.
  FragmentList leftFragments(const Tile& tile, mlir::Value shift,
                             int64_t bands);
  // left * transposed tile, which is `shift` elements further on.
  Values timesTransposed(llvm::ArrayRef<Fragment> left, const Tile& tile,
                         mlir::Value shift);
  // sums += left * tile.
  void addTimes(llvm::ArrayRef<Fragment> left, const Tile& tile,
                mlir::Value shift, llvm::MutableArrayRef<mlir::Value> sums);
  // Rounded, as a left fragment, of 16 columns after 16 columns.
  FragmentList leftOf(llvm::ArrayRef<mlir::Value> floats);
  // Scales the upper and the lower rows of sums.
  mlir::Value scaleRows(mlir::Value sums, mlir::Value upper, mlir::Value lower);

  // --- Scores ---
  // Weights are 2 to the power of `factor()` times scores, from which the
  // largest is taken.
  double factor() const;
  mlir::Value scaled(mlir::Value score);
  // From a product of a query and a key; the bias only where there is one.
  mlir::Value scoreOf(mlir::Value product, mlir::Value bias);
  // The bias of a query for two neighbouring keys, the first of which is even;
  // nulls where there is none. `masked`: the keys need not exist.
  mlir::FailureOr<Values> biasesOf(const Symbol* query, mlir::Value key,
                                   bool masked);
  mlir::FailureOr<mlir::Value> biasOf(const Symbol* query, mlir::Value key);
  // The first key that a query does not see.
  mlir::Value endOfKeys(mlir::Value query);
  // Minus infinity from `end` on.
  mlir::Value maskKey(mlir::Value score, mlir::Value key, mlir::Value end);
  // 2^(scaled score - shift)
  mlir::Value weightOf(mlir::Value score, mlir::Value shift);
  // A query, the last one for those behind it.
  const Symbol* queryAt(mlir::Value query);

  // A softmax that runs over tiles. From products of a tile, of bands of the
  // queries `rows` (two for each band), 2^(score - the largest score so far),
  // in the order of left fragments. `largest` and `sums`, this thread's part,
  // are brought up to date; what was summed up before is to be scaled by
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

 private:
  mlir::FailureOr<Lanes> bias(const Symbol* query, Symbol key);
  // maskKey of a key and an end that are 32 bits, signed.
  mlir::Value maskFrom(mlir::Value score, int64_t key, mlir::Value end);
  // How many tiles the block of queries from `first` sees keys of.
  mlir::Value tilesFor(mlir::Value first);
  // Begins to fill tiles, `shift` elements further on, with keys from `first`
  // on, and with their values.
  mlir::LogicalResult fillKeys(mlir::Value first, mlir::Value shift,
                               bool with_values);
  // Elements before the tiles with this number.
  mlir::Value bufferOf(mlir::Value tile);
  mlir::FailureOr<Values> emitTile(mlir::Value tile, mlir::Value count,
                                   bool with_values, bool masked, Values state,
                                   TileBody body);
  bool isPlain() const { return !bias_ && softcap_ <= 0 && scale_ > 0; }

  mlir::Value k_, v_;
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_MMA_TILES_H_
