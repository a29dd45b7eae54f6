// Computes the lists, and emits them as constant arrays.
#include "compiler/kernels/emit_tile_lists.h"

#include <algorithm>

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace partita::kernels {

using namespace mlir;

namespace {

constexpr int64_t kMostTiles = 1 << 16, kTile = 64;
constexpr int64_t kFlags = 32;  // of a word

// True if a pair of the query rows [q, q_end) and the keys [k, k_end) is seen.
bool isSeen(const nn::BlockTable& table, const TileLists::Grid& grid,
            int64_t head, int64_t q, int64_t q_end, int64_t k, int64_t k_end) {
  if (grid.last && k > q_end - 1 + *grid.last) return false;
  if (grid.window && k_end - 1 < q + *grid.last - *grid.window + 1)
    return false;
  const int64_t size = table.size();
  for (int64_t row = q / size; row * size < q_end; ++row)
    for (int64_t column = k / size; column * size < k_end; ++column)
      if (table.sees(head, row * size, column * size)) return true;
  return false;
}

// The same for a block of queries and a tile of keys.
bool isTileSeen(const nn::BlockTable& table, const TileLists::Grid& grid,
                int64_t head, int64_t block, int64_t tile) {
  const int64_t q = block * grid.query_rows, k = tile * grid.key_rows;
  return isSeen(table, grid, head, q,
                std::min(q + grid.query_rows, grid.queries), k,
                std::min(k + grid.key_rows, grid.keys));
}

// Number of a block of a head among the blocks of all heads of the table.
FailureOr<Value> placeOf(Emitter& emitter, const Index& head, Value block,
                         int64_t heads, int64_t blocks, Value first_head) {
  if (heads == 1) return block;
  ImplicitLocOpBuilder& builder = emitter.builder();
  Value number = emitter.number(head, builder.getIndexType()).value;
  if (first_head) {
    FailureOr<Lanes> first = emitter.element(first_head, {});
    if (failed(first)) return failure();
    number = arith::AddIOp::create(
        builder, number,
        arith::IndexCastOp::create(builder, builder.getIndexType(),
                                   first->value));
    number = arith::MaxSIOp::create(builder, number, emitter.indexConstant(0));
    number = arith::MinSIOp::create(builder, number,
                                    emitter.indexConstant(heads - 1));
  }
  return Value(arith::AddIOp::create(
      builder,
      arith::MulIOp::create(builder, number, emitter.indexConstant(blocks)),
      block));
}

}  // namespace

bool TileLists::fits(DenseIntElementsAttr blocks, int64_t queries,
                     int64_t keys) {
  const int64_t heads = cast<RankedTensorType>(blocks.getType()).getDimSize(0);
  const int64_t rows = (queries + kTile - 1) / kTile,
                columns = (keys + kTile - 1) / kTile;
  return heads * rows * columns <= kMostTiles;
}

TileLists::TileLists(Emitter& emitter, const nn::BlockTable& table,
                     const Grid& grid, bool by_keys, Value first_head)
    : emitter_(emitter),
      builder_(emitter.builder()),
      heads_(table.heads()),
      first_head_(first_head) {
  const int64_t rows = (grid.queries + grid.query_rows - 1) / grid.query_rows,
                columns = (grid.keys + grid.key_rows - 1) / grid.key_rows,
                tiles = by_keys ? rows : columns;
  blocks_ = by_keys ? columns : rows;
  std::vector<int32_t> begins, list, ranks;
  const auto shows = [&](int64_t head, int64_t block, int64_t tile) {
    return isTileSeen(table, grid, head, by_keys ? tile : block,
                      by_keys ? block : tile);
  };
  for (int64_t head = 0; head < heads_; ++head) {
    std::vector<int32_t> earlier(tiles);  // blocks that have the tile
    for (int64_t block = 0; block < blocks_; ++block) {
      begins.push_back(static_cast<int32_t>(list.size()));
      for (int64_t tile = 0; tile < tiles; ++tile) {
        if (!shows(head, block, tile)) continue;
        list.push_back(static_cast<int32_t>(tile));
        ranks.push_back(earlier[tile]++);
      }
    }
  }
  size_ = static_cast<int64_t>(list.size());
  begins.push_back(static_cast<int32_t>(size_));
  list.resize(size_ + kPadding);
  ranks.resize(size_ + kPadding);
  begins_ = constant(begins);
  tiles_ = constant(list);
  if (by_keys) ranks_ = constant(ranks);
}

Buffer TileLists::constant(const std::vector<int32_t>& numbers) {
  return emitter_.constantArray(DenseElementsAttr::get(
      RankedTensorType::get({static_cast<int64_t>(numbers.size())},
                            builder_.getI32Type()),
      ArrayRef<int32_t>(numbers)));
}

Value TileLists::load(const Buffer& numbers, Value position) {
  return arith::IndexCastOp::create(
      builder_, builder_.getIndexType(),
      memref::LoadOp::create(builder_, numbers.memref, position));
}

FailureOr<TileLists::Range> TileLists::rangeOf(const Index& head, Value block) {
  FailureOr<Value> place =
      placeOf(emitter_, head, block, heads_, blocks_, first_head_);
  if (failed(place)) return failure();
  Value after =
      arith::AddIOp::create(builder_, *place, emitter_.indexConstant(1));
  return Range{load(begins_, *place), load(begins_, after)};
}

Value TileLists::tileAt(Value position) { return load(tiles_, position); }

Value TileLists::rankAt(Value position) { return load(ranks_, position); }

TileFlags::TileFlags(Emitter& emitter, const nn::BlockTable& table,
                     const TileLists::Grid& grid, Value first_head)
    : emitter_(emitter),
      heads_(table.heads()),
      blocks_((grid.queries + grid.query_rows - 1) / grid.query_rows),
      first_head_(first_head) {
  const int64_t tiles = (grid.keys + grid.key_rows - 1) / grid.key_rows;
  words_ = (tiles + kFlags - 1) / kFlags;
  std::vector<int32_t> flags(heads_ * blocks_ * words_);
  for (int64_t place = 0; place < heads_ * blocks_; ++place)
    for (int64_t tile = 0; tile < tiles; ++tile)
      if (isTileSeen(table, grid, place / blocks_, place % blocks_, tile))
        flags[place * words_ + tile / kFlags] |=
            static_cast<int32_t>(uint32_t{1} << tile % kFlags);
  flags_ = emitter.constantArray(DenseElementsAttr::get(
      RankedTensorType::get({static_cast<int64_t>(flags.size())},
                            emitter.builder().getI32Type()),
      ArrayRef<int32_t>(flags)));
}

FailureOr<Value> TileFlags::at(const Index& head, Value block, Value tile) {
  FailureOr<Value> place =
      placeOf(emitter_, head, block, heads_, blocks_, first_head_);
  if (failed(place)) return failure();
  ImplicitLocOpBuilder& builder = emitter_.builder();
  Value width = emitter_.indexConstant(kFlags);
  Value word = arith::AddIOp::create(
      builder,
      arith::MulIOp::create(builder, *place, emitter_.indexConstant(words_)),
      arith::DivUIOp::create(builder, tile, width));
  Value bit =
      arith::IndexCastOp::create(builder, builder.getI32Type(),
                                 arith::RemUIOp::create(builder, tile, width));
  Value shifted = arith::ShRUIOp::create(
      builder, memref::LoadOp::create(builder, flags_.memref, word), bit);
  return Value(arith::TruncIOp::create(builder, builder.getI1Type(), shifted));
}

}  // namespace partita::kernels
