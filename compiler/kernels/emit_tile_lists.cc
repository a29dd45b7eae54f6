// Computes the lists, and emits them as constant arrays.
#include "compiler/kernels/emit_tile_lists.h"

#include <algorithm>

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace partita::kernels {

using namespace mlir;

namespace {

constexpr int64_t kMostTiles = 1 << 16, kTile = 64;

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
  for (int64_t head = 0; head < heads_; ++head) {
    std::vector<int32_t> earlier(tiles);  // blocks that have the tile
    for (int64_t block = 0; block < blocks_; ++block) {
      begins.push_back(static_cast<int32_t>(list.size()));
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t q = (by_keys ? tile : block) * grid.query_rows,
                      k = (by_keys ? block : tile) * grid.key_rows;
        if (!isSeen(table, grid, head, q,
                    std::min(q + grid.query_rows, grid.queries), k,
                    std::min(k + grid.key_rows, grid.keys)))
          continue;
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
  Value place = block;
  if (heads_ > 1) {
    Value number = emitter_.number(head, builder_.getIndexType()).value;
    if (first_head_) {
      FailureOr<Lanes> first = emitter_.element(first_head_, {});
      if (failed(first)) return failure();
      number = arith::AddIOp::create(
          builder_, number,
          arith::IndexCastOp::create(builder_, builder_.getIndexType(),
                                     first->value));
      number =
          arith::MaxSIOp::create(builder_, number, emitter_.indexConstant(0));
      number = arith::MinSIOp::create(builder_, number,
                                      emitter_.indexConstant(heads_ - 1));
    }
    place = arith::AddIOp::create(
        builder_,
        arith::MulIOp::create(builder_, number,
                              emitter_.indexConstant(blocks_)),
        place);
  }
  Value after =
      arith::AddIOp::create(builder_, place, emitter_.indexConstant(1));
  return Range{load(begins_, place), load(begins_, after)};
}

Value TileLists::tileAt(Value position) { return load(tiles_, position); }

Value TileLists::rankAt(Value position) { return load(ranks_, position); }

}  // namespace partita::kernels
