// Emits products of tiles, and copies of rows.
#include "compiler/kernels/emit_ordered_tiles.h"

#include "compiler/kernels/codegen.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace partita::kernels {

using namespace mlir;

namespace {

RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

}  // namespace

// Elements of f32 take twice the memory, each is held as two numbers, and their
// products take six times as long.
OrderedPlan::OrderedPlan(Type element, bool left_down, bool right_down,
                         bool warpgroups)
    : left_down(left_down), right_down(right_down) {
  const int64_t width = element.getIntOrFloatBitWidth() / 8;
  rows = width == 4 ? 64 : 128;
  columns = 128;
  depth = width == 4 ? 16 : 64;
  // Rows of floats that fragments go down are 8 banks apart, other rows 4.
  const auto tile = [&](int64_t first, int64_t across, bool down) {
    const int64_t padding = warpgroups ? 0 : down ? 8 : 16 / width;
    return down ? Tile{first, depth, across, padding, warpgroups}
                : Tile{first, across, depth, padding, warpgroups};
  };
  left = tile(0, rows, left_down);
  right = tile(left.elements(), columns, right_down);
  buffer = left.elements() + right.elements();
  result = {0, rows, columns, 8};
  bytes = width * std::max(2 * buffer, result.elements());
}

OrderedTiles::OrderedTiles(Emitter& emitter, Type element, bool left_down,
                           bool right_down, bool warpgroups)
    : IndexMath(emitter),
      element_(element),
      plan_(element, left_down, right_down, warpgroups),
      fragments_(emitter, element, plan_.bytes, warpgroups) {
  if (warpgroups) warpgroup_.emplace(builder_, element, fragments_.base());
}

LogicalResult OrderedTiles::fill(const Tile& tile, Value shift,
                                 const Source& source) {
  const int64_t pieces = tile.columns / lanes(), rows = kBlock / pieces;
  Value row = divide(emitter_.thread(), pieces),
        column = multiply(remainder(emitter_.thread(), pieces), lanes());
  for (int64_t first = 0; first < tile.rows; first += rows) {
    Symbol alone;
    alone.value = number(0);
    FailureOr<Values> filled = emitter_.withThreadSymbol(
        alone, {}, [&](const Symbol*, ValueRange) -> FailureOr<Values> {
          if (failed(fillPiece(tile, shift, source, add(row, first), column)))
            return failure();
          return Values();
        });
    if (failed(filled)) return failure();
  }
  return success();
}

LogicalResult OrderedTiles::fillPiece(const Tile& tile, Value shift,
                                      const Source& source, Value in_tile,
                                      Value in_row) {
  const int64_t columns = typeOf(source.tensor).getShape().back();
  Value to = add(elementOf(tile, in_tile, in_row), shift);
  Row row = source.row(in_tile);
  Value column = add(source.first_column, in_row);
  if (columns % lanes() != 0)
    return fillElements(to, source, row, column, columns);
  if (columns % tile.columns != 0 && source.products_along_row)
    row.exists = both(row.exists, less(column, number(columns)));
  Symbol symbol;
  symbol.value = row.number;
  symbol.extent = typeOf(source.tensor).getDimSize(source.matrix.size());
  Symbol piece;
  piece.value = columns % tile.columns == 0
                    ? column
                    : emitter_.smaller(column, columns - lanes());
  piece.extent = columns;
  piece.lanes = lanes();
  IndexVector at = source.matrix;
  at.push_back(Index(emitter_.newSymbol(symbol)));
  const Symbol* lane = emitter_.newSymbol(piece);
  at.push_back(Index(lane));
  auto direct = fragments_.directAccess(source.tensor, at, lane);
  if (!direct) return fillElements(to, source, row, column, columns);
  const auto copy = [&] {
    fragments_.copy(direct->first, direct->second, lane, to);
    return success();
  };
  if (!row.exists) return copy();
  if (failed(emitter_.branch(row.exists, copy))) return failure();
  Value zero = arith::ConstantOp::create(
      builder_, builder_.getZeroAttr(VectorType::get({lanes()}, element_)));
  Value missing = select(row.exists, number(0), number(1));
  return emitter_.branch(equal(missing, number(1)), [&] {
    storePiece(zero, to);
    return success();
  });
}

Value OrderedTiles::elementOf(const Tile& tile, Value row, Value column) {
  Value at = add(multiply(row, tile.stride()), column);
  if (tile.swizzled) {
    Value part = arith::XOrIOp::create(
        builder_, remainder(divide(column, 8), kPanel / 8), remainder(row, 8));
    at = add(add(multiply(divide(column, kPanel), tile.rows * kPanel),
                 multiply(row, kPanel)),
             multiply(part, 8));
  }
  return add(at, tile.first);
}

LogicalResult OrderedTiles::fillElements(Value to, const Source& source,
                                         const Row& row, Value column,
                                         int64_t columns) {
  Symbol symbol;
  symbol.value = row.number;
  symbol.extent = typeOf(source.tensor).getDimSize(source.matrix.size());
  IndexVector at = source.matrix;
  at.push_back(Index(emitter_.newSymbol(symbol)));
  at.push_back(Index());
  Values elements;
  for (int64_t i = 0; i < lanes(); ++i) {
    Value own = add(column, i);
    Symbol clamped;
    clamped.value = emitter_.smaller(own, columns - 1);
    clamped.extent = columns;
    at.back() = Index(emitter_.newSymbol(clamped));
    FailureOr<Lanes> loaded = emitter_.element(source.tensor, at);
    if (failed(loaded)) return failure();
    Value exists = both(row.exists, less(own, number(columns)));
    elements.push_back(emitter_.fromCompute(
        select(exists, loaded->value,
               emitter_.constant(loaded->value.getType(), 0)),
        element_));
  }
  storePiece(vector::FromElementsOp::create(
                 builder_, VectorType::get({lanes()}, element_), elements),
             to);
  return success();
}

void OrderedTiles::storePiece(Value value, Value to) {
  auto store =
      vector::StoreOp::create(builder_, value, fragments_.elements(), to);
  store.setAlignmentAttr(builder_.getI64IntegerAttr(16));
}

Values OrderedTiles::zeroSums() {
  return Values(plan_.rows / 32 * plan_.columns / 16, fragments_.zero());
}

void OrderedTiles::multiplyTiles(Value shift, MutableArrayRef<Value> sums) {
  const int64_t bands = plan_.rows / 32, pairs = plan_.columns / 32;
  const auto partOf = [&](Value part, const Tile& tile, bool down) {
    return add(shift, down ? part : multiply(part, tile.stride()));
  };
  Value left = partOf(warpRow(), plan_.left, plan_.left_down),
        right = partOf(warpColumn(), plan_.right, plan_.right_down);
  for (int64_t depth = 0; depth < plan_.depth; depth += 16) {
    FragmentList rows;
    for (int64_t band = 0; band < bands; ++band)
      rows.push_back(
          plan_.left_down
              ? fragments_.leftTransposed(plan_.left, left, depth, 16 * band)
              : fragments_.left(plan_.left, left, 16 * band, depth));
    for (int64_t pair = 0; pair < pairs; ++pair) {
      const Fragment columns =
          plan_.right_down
              ? fragments_.rightInOrder(plan_.right, right, depth, 16 * pair)
              : fragments_.rightTransposed(plan_.right, right, 16 * pair,
                                           depth);
      for (int64_t band = 0; band < bands; ++band)
        for (int half = 0; half < 2; ++half) {
          Value& sum = sums[2 * (band * pairs + pair) + half];
          sum = fragments_.multiply(rows[band], columns, half, sum);
        }
    }
  }
}

void OrderedTiles::startProducts(Value shift, MutableArrayRef<Value> sums) {
  const int64_t bands = plan_.rows / kGroupRows,
                own = static_cast<int64_t>(sums.size()) / bands;
  for (int64_t band = 0; band < bands; ++band)
    llvm::copy(warpgroup_->addTiles({plan_.left, plan_.left_down}, band,
                                    {plan_.right, plan_.right_down}, shift,
                                    sums.slice(band * own, own)),
               sums.slice(band * own, own).begin());
  warpgroup_->commit();
}

void OrderedTiles::finishProducts(MutableArrayRef<Value> sums) {
  const int64_t bands = plan_.rows / kGroupRows,
                own = static_cast<int64_t>(sums.size()) / bands;
  for (int64_t band = 0; band < bands; ++band)
    llvm::copy(warpgroup_->wait(0, sums.slice(band * own, own)),
               sums.slice(band * own, own).begin());
}

FailureOr<Values> OrderedTiles::sumSteps(
    Value steps, int64_t most_steps,
    llvm::function_ref<LogicalResult(Value step, Value shift)> fill) {
  if (failed(fill(number(0), number(0)))) return failure();
  FailureOr<Values> sums = emitter_.loop(
      number(0), steps, most_steps, zeroSums(),
      [&](const Symbol* step, ValueRange carried) -> FailureOr<Values> {
        fragments_.waitForTiles();
        beginStep(step->value);
        Value next = add(step->value, 1);
        const auto shiftOf = [&](Value number) {
          return multiply(remainder(number, 2), plan_.buffer);
        };
        Values state(carried);
        if (warpgroup_) startProducts(shiftOf(step->value), state);
        if (failed(emitter_.branch(less(next, steps),
                                   [&] { return fill(next, shiftOf(next)); })))
          return failure();
        if (warpgroup_)
          finishProducts(state);
        else
          multiplyTiles(shiftOf(step->value), state);
        endStep(step->value);
        return state;
      });
  fragments_.waitForTiles();
  return sums;
}

void OrderedTiles::putSums(ArrayRef<Value> sums) {
  const Tile& tile = plan_.result;
  if (warpgroup_) {
    // Each warp has 16 rows of each band.
    const int64_t eights = plan_.columns / 8;
    Value corner = multiply(fragments_.warp(), 16 * tile.stride());
    for (auto [i, sum] : llvm::enumerate(sums))
      fragments_.put(sum, tile,
                     add(corner, kGroupRows * tile.stride() * (i / eights)),
                     8 * (i % eights));
    return sync();
  }
  const int64_t bands = plan_.rows / 32, pairs = plan_.columns / 32;
  Value corner = add(multiply(warpRow(), tile.stride()), warpColumn());
  for (int64_t band = 0; band < bands; ++band)
    for (int64_t eight = 0; eight < 2 * pairs; ++eight)
      fragments_.put(sums[2 * band * pairs + eight], tile,
                     add(corner, 16 * band * tile.stride()), 8 * eight);
  sync();
}

LogicalResult OrderedTiles::storeSums(ArrayRef<Value> sums, const Buffer& to,
                                      std::function<Row(Value in_tile)> first,
                                      Value first_column, int64_t columns) {
  const Tile& tile = plan_.result;
  putSums(sums);
  const int64_t pieces = tile.columns / lanes(), rows = kBlock / pieces;
  Value row = divide(emitter_.thread(), pieces),
        in_row = multiply(remainder(emitter_.thread(), pieces), lanes());
  FailureOr<Values> stored = emitter_.loop(
      tile.rows / rows, {},
      [&](const Symbol* turn, ValueRange) -> FailureOr<Values> {
        Value in_tile = add(row, multiply(turn->value, rows));
        auto load = vector::LoadOp::create(
            builder_, VectorType::get({lanes()}, element_),
            fragments_.elements(),
            add(multiply(in_tile, tile.stride()), in_row));
        load.setAlignmentAttr(builder_.getI64IntegerAttr(16));
        Row place = first(in_tile);
        Value column = add(first_column, in_row);
        Value at = add(place.number, column);
        // Whole pieces, or single elements if pieces would not be aligned.
        const int64_t width = columns % lanes() == 0 ? lanes() : 1;
        for (int64_t i = 0; i < lanes(); i += width) {
          Value exists =
              both(place.exists, less(add(column, i), number(columns)));
          if (failed(emitter_.branch(exists, [&] {
                if (width == 1) {
                  Value element = vector::ExtractOp::create(builder_, load, i);
                  memref::StoreOp::create(builder_, element, to.memref,
                                          add(at, i));
                  return success();
                }
                auto store =
                    vector::StoreOp::create(builder_, load, to.memref, at);
                store.setAlignmentAttr(builder_.getI64IntegerAttr(16));
                return success();
              })))
            return failure();
        }
        return Values();
      });
  return success(succeeded(stored));
}

}  // namespace partita::kernels
