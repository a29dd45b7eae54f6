// Lists of the tiles of scores that attention's table of blocks shows. They are
// constants of a kernel, which visits no other tiles.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_TILE_LISTS_H_
#define PARTITA_COMPILER_KERNELS_EMIT_TILE_LISTS_H_

#include <optional>
#include <vector>

#include "compiler/kernels/emit_elements.h"
#include "dialects/nn/attention_mask.h"

namespace partita::kernels {

// Upper bound on rows and columns of a tile. All tiles have divisors of it.
inline constexpr int64_t kMostTileRows = 128;

// Tiles of a block, in ascending order: all that hold a pair of a query and a
// key which blocks, causality and a window do not hide. A tile may hold hidden
// pairs, too.
class TileLists {
 public:
  // Tables with more blocks of scores than this have no lists: their constants
  // would be large.
  static bool fits(mlir::DenseIntElementsAttr blocks, int64_t queries,
                   int64_t keys);

  struct Grid {
    int64_t queries, keys;          // of the attention
    int64_t query_rows, key_rows;   // of a tile
    std::optional<int64_t> last;    // the last key that query 0 sees
    std::optional<int64_t> window;  // with `last`; both are clamped to sizes
  };
  // Lists of tiles of keys for each block of queries or, `by_keys`, of tiles of
  // queries for each block of keys.
  TileLists(Emitter& emitter, const nn::BlockTable& table, const Grid& grid,
            bool by_keys, mlir::Value first_head);

  // Upper bound on positions.
  int64_t size() const { return size_; }
  // Positions of a block's tiles in the list. `head` is a head of the queries.
  struct Range {
    mlir::Value begin, end;
  };
  mlir::FailureOr<Range> rangeOf(const Index& head, mlir::Value block);
  // The tile at a position, an index. Up to kPadding positions past a range may
  // be read; their tiles exist, but mean nothing.
  static constexpr int64_t kPadding = 4;
  mlir::Value tileAt(mlir::Value position);
  // The number of earlier blocks that have the same tile in their lists.
  // Requires `by_keys`.
  mlir::Value rankAt(mlir::Value position);
  // The tiles in i32, one for each position.
  const Buffer& tiles() const { return tiles_; }

 private:
  Buffer constant(const std::vector<int32_t>& numbers);
  mlir::Value load(const Buffer& numbers, mlir::Value position);

  Emitter& emitter_;
  mlir::ImplicitLocOpBuilder& builder_;
  int64_t heads_, blocks_, size_ = 0;
  mlir::Value first_head_;  // null: 0
  Buffer begins_;           // of each head and block, and the end
  Buffer tiles_, ranks_;
};

// The same tiles as flags, for kernels that compute one tile after another.
// Requires TileLists::fits.
class TileFlags {
 public:
  TileFlags(Emitter& emitter, const nn::BlockTable& table,
            const TileLists::Grid& grid, mlir::Value first_head);
  // True if a pair of the block of queries and the tile of keys is seen.
  mlir::FailureOr<mlir::Value> at(const Index& head, mlir::Value block,
                                  mlir::Value tile);

 private:
  Emitter& emitter_;
  int64_t heads_, blocks_, words_;  // words of 32 tiles for each block
  mlir::Value first_head_;          // null: 0
  Buffer flags_;
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_TILE_LISTS_H_
