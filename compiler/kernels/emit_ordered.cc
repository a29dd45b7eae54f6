// Emits products of ordered rows.
#include "compiler/kernels/emit_ordered.h"

#include "compiler/kernels/codegen.h"
#include "compiler/kernels/emit_ordered_tiles.h"
#include "dialects/nn/ordered.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::kernels {

using namespace mlir;

namespace {

// Tiles of rows that are multiplied by the same columns while these are in
// cache.
constexpr int64_t kRowTilesTogether = 8;

RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

// The memory of an order, which another kernel has computed.
Value memoryOf(Emitter& emitter, Value order) {
  return emitter.bufferOf(cast<BlockArgument>(order)).memref;
}

// Goes through a table of tiles, kRowTilesTogether rows of it at a time, column
// by column.
struct Table {
  Table(int64_t rows, int64_t columns)
      : rows(rows),
        columns(columns),
        together(std::min(rows, kRowTilesTogether)) {}

  int64_t rows, columns, together;

  int64_t items() const {
    return llvm::divideCeil(rows, together) * together * columns;
  }
};

class TableTiles : protected OrderedTiles {
 protected:
  using OrderedTiles::OrderedTiles;

  // Row and column of an item of the table. The row may be past the end.
  std::pair<Value, Value> placeOf(const Table& table, Value item) {
    Value in_turn = remainder(item, table.together);
    Value turn = divide(item, table.together);
    return {add(multiply(divide(turn, table.columns), table.together), in_turn),
            remainder(turn, table.columns)};
  }
};

// nn.ordered_dot: a tile has rows of one group. With two products of the same
// rows, the left half of a tile's columns is of the first one.
class OrderedDot : private TableTiles {
 public:
  OrderedDot(Emitter& emitter, SmallVector<nn::OrderedDotOp> ops,
             ArrayRef<Output> outputs, bool warpgroups)
      : TableTiles(emitter, typeOf(ops[0].getX()).getElementType(),
                   /*left_down=*/false,
                   /*right_down=*/ops[0].getTransposed(), warpgroups),
        ops_(ops),
        op_(ops[0]),
        outputs_(outputs),
        rows_(typeOf(op_.getX()).getDimSize(0)),
        inner_(typeOf(op_.getX()).getDimSize(1)),
        columns_(op_.getType().getDimSize(1)),
        matrices_(typeOf(op_.getW()).getDimSize(0)),
        width_(plan_.columns / static_cast<int64_t>(ops.size())),
        order_(emitter, memoryOf(emitter, op_.getOrder()), matrices_),
        table_(RowOrder::tiles(matrices_, rows_, plan_.rows),
               llvm::divideCeil(columns_, width_)),
        numbers_(emitter.scratch(builder_.getI32Type(), plan_.rows)) {}

  int64_t range() const { return table_.items(); }

  LogicalResult emit(Value begin, Value end) {
    return emitter_.loop(
        begin, end, range(), {},
        [&](const Symbol* item, ValueRange) -> FailureOr<Values> {
          const auto place = placeOf(table_, item->value);
          const RowOrder::Rows rows = order_.tileOf(place.first, plan_.rows);
          if (failed(emitter_.branch(less(rows.first, rows.end), [&] {
                return emitTile(rows, place.second);
              })))
            return failure();
          return Values();
        });
  }

 private:
  LogicalResult emitTile(const RowOrder::Rows& rows, Value column) {
    sync();  // the previous content has been read
    if (failed(
            emitter_.branch(less(emitter_.thread(), number(plan_.rows)), [&] {
              Value last = subtract(rows.end, number(1));
              Value at = smaller(add(rows.first, emitter_.thread()), last);
              storeWord(order_.row(at), numbers_.memref, emitter_.thread());
              return success();
            })))
      return failure();
    sync();
    Value first_column = multiply(column, width_);
    const auto row = [&](Value in_tile) {
      return Row{loadWord(numbers_.memref, in_tile), {}};
    };
    Symbol matrix;
    matrix.value = emitter_.smaller(rows.group, matrices_ - 1);
    matrix.extent = matrices_;
    const IndexVector index = {Index(emitter_.newSymbol(matrix))};
    // Rows of no matrix have no products.
    const int64_t most_steps = llvm::divideCeil(inner_, plan_.depth);
    Value steps = select(equal(rows.group, number(matrices_)), number(0),
                         number(most_steps));
    FailureOr<Values> sums = sumSteps(
        steps, most_steps, [&](Value step, Value shift) -> LogicalResult {
          Value depth = multiply(step, plan_.depth);
          if (failed(
                  fill(plan_.left, shift, {op_.getX(), {}, row, depth, true})))
            return failure();
          for (auto [i, op] : llvm::enumerate(ops_))
            if (failed(fill(partOf(i), shift,
                            weights(op, index, depth, first_column))))
              return failure();
          return success();
        });
    if (failed(sums)) return failure();
    Value count = subtract(rows.end, rows.first);
    if (outputs_.size() == 1 && outputs_[0].value == op_.getResult())
      return storeSums(
          *sums, outputs_[0].buffer,
          [&](Value in_tile) {
            return Row{multiply(row(in_tile).number, columns_),
                       less(in_tile, count)};
          },
          first_column, columns_);
    putSums(*sums);
    return storeOutputs(count, column);
  }

  // The part of the right tile that a product's matrices take.
  Tile partOf(int64_t i) const {
    Tile tile = plan_.right;
    if (ops_.size() == 1) return tile;
    if (!plan_.right_down) {
      tile.first += i * width_ * tile.stride();
      tile.rows = width_;
    } else if (tile.swizzled) {
      tile.first += i * tile.rows * width_;  // a panel
      tile.columns = width_;
    } else {
      tile.first += i * width_;
      tile.padding += tile.columns - width_;
      tile.columns = width_;
    }
    return tile;
  }

  Source weights(nn::OrderedDotOp op, const IndexVector& matrix, Value depth,
                 Value first_column) {
    if (op.getTransposed()) {
      const auto row = [=](Value in_tile) {
        Value at = add(depth, in_tile);
        if (inner_ % plan_.depth == 0) return Row{at, {}};
        return Row{emitter_.smaller(at, inner_ - 1), less(at, number(inner_))};
      };
      return {op.getW(), matrix, row, first_column, false};
    }
    // Columns past the end of the result are not stored.
    const auto row = [=](Value in_tile) {
      return Row{emitter_.smaller(add(first_column, in_tile), columns_ - 1),
                 {}};
    };
    return {op.getW(), matrix, row, depth, true};
  }

  // Stores the outputs that follow from the products in the result tile, whose
  // first `count` rows exist.
  LogicalResult storeOutputs(Value count, Value column) {
    const int64_t pieces = width_ / lanes(), rows = kBlock / pieces;
    Value row = divide(emitter_.thread(), pieces),
          in_row = multiply(remainder(emitter_.thread(), pieces), lanes());
    FailureOr<Values> stored = emitter_.loop(
        plan_.rows / rows, {},
        [&](const Symbol* turn, ValueRange) -> FailureOr<Values> {
          Value in_tile = add(row, multiply(turn->value, rows));
          // Whole pieces, or single elements if pieces would not be aligned.
          const int64_t width = columns_ % lanes() == 0 ? lanes() : 1;
          for (int64_t i = 0; i < lanes(); i += width) {
            Value at = add(in_row, i);
            Value exists =
                both(less(in_tile, count),
                     less(add(multiply(column, width_), at), number(columns_)));
            if (failed(emitter_.branch(exists, [&] {
                  return storePiece(in_tile, column, at, width);
                })))
              return failure();
          }
          return Values();
        });
    return success(succeeded(stored));
  }

  // The same for `width` columns of one row, from column `in_row` of the tile
  // on.
  LogicalResult storePiece(Value in_tile, Value column, Value in_row,
                           int64_t width) {
    Symbol alone;
    alone.value = number(0);
    FailureOr<Values> stored = emitter_.withThreadSymbol(
        alone, {}, [&](const Symbol*, ValueRange) -> FailureOr<Values> {
          const auto symbol = [&](Value value, int64_t extent) {
            Symbol symbol;
            symbol.value = value;
            symbol.extent = extent;
            return symbol;
          };
          Symbol lane = symbol(in_row, width_);
          if (width > 1) lane.lanes = width;
          const Index row = emitter_.newSymbol(
                          symbol(loadWord(numbers_.memref, in_tile), rows_)),
                      tile_row =
                          emitter_.newSymbol(symbol(in_tile, plan_.rows)),
                      tile_column = Index(emitter_.newSymbol(
                                        symbol(column, table_.columns))) *
                                    width_;
          const IndexVector index = {
              row, tile_column + Index(emitter_.newSymbol(lane))};
          const Buffer tile = {fragments_.elements(), element_};
          for (auto [i, op] : llvm::enumerate(ops_))
            emitter_.cache(
                op.getResult(),
                {{row, Index()},
                 {-1, 1},
                 tile_row * plan_.result.stride() +
                     Index(static_cast<int64_t>(i) * width_) + tile_column * -1,
                 tile});
          for (const Output& output : outputs_) {
            FailureOr<Lanes> element = emitter_.element(output.value, index);
            if (failed(element)) return failure();
            emitter_.store(
                output.buffer,
                linearize(index, rowMajorStrides(op_.getType().getShape())),
                *element);
          }
          return Values();
        });
    return success(succeeded(stored));
  }

  SmallVector<nn::OrderedDotOp> ops_;
  nn::OrderedDotOp op_;  // the first of them
  ArrayRef<Output> outputs_;
  int64_t rows_, inner_, columns_, matrices_;
  int64_t width_;  // columns of a tile, of each product
  RowOrder order_;
  Table table_;
  Buffer numbers_;  // the tile's rows
};

// The weight gradient: a tile is a part of one matrix, and the products go down
// the rows of its group.
class OrderedWeightGrad : private TableTiles {
 public:
  OrderedWeightGrad(Emitter& emitter, nn::OrderedDotWeightGradOp op,
                    const Buffer& result, bool warpgroups)
      : TableTiles(emitter, typeOf(op.getX()).getElementType(),
                   /*left_down=*/true, /*right_down=*/true, warpgroups),
        op_(op),
        result_(result),
        rows_(typeOf(op.getX()).getDimSize(0)),
        outer_(op.getType().getDimSize(1)),
        columns_(op.getType().getDimSize(2)),
        matrices_(op.getType().getDimSize(0)),
        order_(emitter, memoryOf(emitter, op.getOrder()), matrices_),
        table_(llvm::divideCeil(outer_, plan_.rows),
               llvm::divideCeil(columns_, plan_.columns)),
        numbers_(emitter.scratch(builder_.getI32Type(), 2 * plan_.depth)) {}

  int64_t range() const { return matrices_ * table_.items(); }

  LogicalResult emit(Value begin, Value end) {
    return emitter_.loop(
        begin, end, range(), {},
        [&](const Symbol* item, ValueRange) -> FailureOr<Values> {
          Value matrix = divide(item->value, table_.items());
          auto [row, column] =
              placeOf(table_, remainder(item->value, table_.items()));
          Value first_row = multiply(row, plan_.rows),
                first_column = multiply(column, plan_.columns);
          if (failed(emitter_.branch(less(first_row, number(outer_)), [&] {
                return emitTile(matrix, first_row, first_column);
              })))
            return failure();
          return Values();
        });
  }

 private:
  LogicalResult emitTile(Value matrix, Value first_row, Value first_column) {
    sync();  // the previous content has been read
    first_ = order_.begin(matrix);
    end_ = order_.end(matrix);
    Value steps =
        divide(add(subtract(end_, first_), plan_.depth - 1), plan_.depth);
    for (int64_t step : {0, 1}) storeNumber(number(step), rowOf(number(step)));
    sync();
    FailureOr<Values> sums = sumSteps(
        steps, llvm::divideCeil(rows_, plan_.depth),
        [&](Value step, Value shift) {
          const auto row = [=](Value in_tile) {
            Value position =
                add(first_, add(multiply(step, plan_.depth), in_tile));
            Value at = add(multiply(remainder(step, 2), plan_.depth), in_tile);
            return Row{loadWord(numbers_.memref, at), less(position, end_)};
          };
          if (failed(fill(plan_.left, shift,
                          {op_.getResultGrad(), {}, row, first_row, false})))
            return failure();
          return fill(plan_.right, shift,
                      {op_.getX(), {}, row, first_column, false});
        });
    if (failed(sums)) return failure();
    return storeSums(
        *sums, result_,
        [&](Value in_tile) {
          Value row = add(first_row, in_tile);
          Value in_matrix = multiply(row, columns_);
          return Row{add(multiply(matrix, outer_ * columns_), in_matrix),
                     less(row, number(outer_))};
        },
        first_column, columns_);
  }

  // The numbers of a step's rows are read two steps before: the rows are
  // copied one step before.
  void beginStep(Value step) override { number_ = rowOf(add(step, 2)); }
  void endStep(Value step) override { storeNumber(step, number_); }

  // The row that this thread looks up for a step. Numbers of odd and of even
  // steps have a place each.
  Value rowOf(Value step) {
    Value in_step = remainder(emitter_.thread(), plan_.depth);
    Value position = add(first_, add(multiply(step, plan_.depth), in_step));
    return order_.row(emitter_.smaller(position, rows_ - 1));
  }
  void storeNumber(Value step, Value row) {
    Value in_step = remainder(emitter_.thread(), plan_.depth);
    Value at = add(multiply(remainder(step, 2), plan_.depth), in_step);
    Value first_ones = less(emitter_.thread(), number(plan_.depth));
    const LogicalResult stored = emitter_.branch(first_ones, [&] {
      storeWord(row, numbers_.memref, at);
      return success();
    });
    (void)stored;  // the body cannot fail
  }

  nn::OrderedDotWeightGradOp op_;
  Buffer result_;
  int64_t rows_, outer_, columns_, matrices_;
  RowOrder order_;
  Table table_;
  Buffer numbers_;  // rows of two steps
  Value first_, end_, number_;
};

}  // namespace

SmallVector<Operation*> findOrdered(func::FuncOp kernel) {
  SmallVector<Operation*> found;
  for (Operation& op : kernel.getBody().front())
    if (isa<nn::OrderRowsOp, nn::OrderedDotOp, nn::OrderedDotWeightGradOp>(op))
      found.push_back(&op);
  return found;
}

FailureOr<int64_t> emitOrdered(Emitter& emitter, ArrayRef<Operation*> ops,
                               ArrayRef<Output> outputs, Value begin, Value end,
                               bool warpgroups) {
  const auto emit = [&](auto product) -> FailureOr<int64_t> {
    if (failed(product.emit(begin, end))) return failure();
    return product.range();
  };
  const Buffer& result = outputs.front().buffer;
  if (auto order = dyn_cast<nn::OrderRowsOp>(ops.front()))
    return emitOrderRows(emitter, order, result, begin, end);
  if (typeOf(ops.front()->getResult(0)).getElementType().isF32())
    warpgroups = false;
  if (isa<nn::OrderedDotOp>(ops.front())) {
    SmallVector<nn::OrderedDotOp> products;
    for (Operation* op : ops) products.push_back(cast<nn::OrderedDotOp>(op));
    return emit(OrderedDot(emitter, products, outputs, warpgroups));
  }
  return emit(OrderedWeightGrad(emitter,
                                cast<nn::OrderedDotWeightGradOp>(ops.front()),
                                result, warpgroups));
}

}  // namespace partita::kernels
