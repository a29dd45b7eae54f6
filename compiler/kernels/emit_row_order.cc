// Puts rows in order of their matrices: a stable counting sort, in which a
// block of threads counts and places the rows of one group.
#include "compiler/kernels/emit_row_order.h"

#include "compiler/kernels/codegen.h"
#include "compiler/kernels/emit_team.h"
#include "dialects/nn/ordered.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace partita::kernels {

using namespace mlir;

Value IndexMath::add(Value a, Value b) {
  return builder_.createOrFold<arith::AddIOp>(a, b);
}
Value IndexMath::subtract(Value a, Value b) {
  return builder_.createOrFold<arith::SubIOp>(a, b);
}
Value IndexMath::multiply(Value a, int64_t b) {
  return builder_.createOrFold<arith::MulIOp>(a, number(b));
}
Value IndexMath::divide(Value a, int64_t b) {
  return builder_.createOrFold<arith::DivUIOp>(a, number(b));
}
Value IndexMath::remainder(Value a, int64_t b) {
  return builder_.createOrFold<arith::RemUIOp>(a, number(b));
}
Value IndexMath::smaller(Value a, Value b) {
  return arith::MinUIOp::create(builder_, a, b);
}
Value IndexMath::less(Value a, Value b) {
  return arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, a, b);
}
Value IndexMath::equal(Value a, Value b) {
  return arith::CmpIOp::create(builder_, arith::CmpIPredicate::eq, a, b);
}
Value IndexMath::both(Value a, Value b) {
  if (!a || !b) return a ? a : b;
  return arith::AndIOp::create(builder_, a, b);
}
Value IndexMath::select(Value condition, Value a, Value b) {
  return arith::SelectOp::create(builder_, condition, a, b);
}

Value IndexMath::loadWord(Value memref, Value at) {
  Value word = memref::LoadOp::create(builder_, memref, at);
  return arith::IndexCastUIOp::create(builder_, builder_.getIndexType(), word);
}

void IndexMath::storeWord(Value value, Value memref, Value at) {
  Value word =
      arith::IndexCastUIOp::create(builder_, builder_.getI32Type(), value);
  memref::StoreOp::create(builder_, word, memref, at);
}

RowOrder::Rows RowOrder::tileOf(Value tile, int64_t tile_rows) {
  // The last group whose first tile is not behind this one.
  Value group = number(0), begin = number(0);
  const auto firstTile = [&](Value position, Value of) {
    return add(divide(position, tile_rows), of);
  };
  for (int64_t step = llvm::bit_floor<uint64_t>(groups_ - 1); step > 0;
       step /= 2) {
    Value next = add(group, step);
    Value inside = smaller(next, number(groups_ - 1));
    Value position = this->begin(inside);
    Value moves = both(equal(next, inside),
                       less(firstTile(position, inside), add(tile, 1)));
    group = select(moves, inside, group);
    begin = select(moves, position, begin);
  }
  Value skipped = subtract(tile, firstTile(begin, group));
  return {group, add(begin, multiply(skipped, tile_rows)), end(group)};
}

namespace {

class OrderRows : private IndexMath {
 public:
  OrderRows(Emitter& emitter, nn::OrderRowsOp op, const Buffer& result)
      : IndexMath(emitter),
        ids_(op.getIds()),
        matrices_(op.getMatrices()),
        rows_(op.getIds().getType().getDimSize(0)),
        rows_of_thread_(llvm::divideCeil(rows_, kBlock)),
        order_(emitter, result.memref, matrices_),
        less_(emitter.scratch(builder_.getI32Type(), kBlock)),
        own_(emitter.scratch(builder_.getI32Type(), kBlock)) {}

  int64_t range() const { return matrices_ + 1; }

  LogicalResult emit(Value begin, Value end) {
    return emitter_.loop(
        begin, end, range(), {},
        [&](const Symbol* item, ValueRange) { return emitGroup(item->value); });
  }

 private:
  FailureOr<Values> emitGroup(Value group) {
    sync();  // the previous counts have been read
    FailureOr<Values> counts = emitter_.loop(
        rows_of_thread_, Values{number(0), number(0)},
        [&](const Symbol* i, ValueRange counts) -> FailureOr<Values> {
          FailureOr<Row> row = rowAt(i->value);
          if (failed(row)) return failure();
          return Values{add(counts[0], asNumber(less(row->group, group))),
                        add(counts[1], asNumber(equal(row->group, group)))};
        });
    if (failed(counts)) return failure();
    storeWord((*counts)[0], less_.memref, emitter_.thread());
    storeWord((*counts)[1], own_.memref, emitter_.thread());
    sync();
    // Positions of the group's first row and of this thread's first row.
    FailureOr<Values> sums = emitter_.loop(
        kBlock, Values{number(0), number(0)},
        [&](const Symbol* i, ValueRange sums) -> FailureOr<Values> {
          Value own = select(less(i->value, emitter_.thread()),
                             loadWord(own_.memref, i->value), number(0));
          return Values{add(sums[0], loadWord(less_.memref, i->value)),
                        add(sums[1], own)};
        });
    if (failed(sums) || failed(storeBegin(group, (*sums)[0]))) return failure();
    FailureOr<Values> placed = emitter_.loop(
        rows_of_thread_, add((*sums)[0], (*sums)[1]),
        [&](const Symbol* i, ValueRange position) -> FailureOr<Values> {
          FailureOr<Row> row = rowAt(i->value);
          if (failed(row)) return failure();
          Value is_own = equal(row->group, group);
          if (failed(emitter_.branch(is_own, [&] {
                order_.setRow(position[0], row->number);
                return success();
              })))
            return failure();
          return Values{add(position[0], asNumber(is_own))};
        });
    if (failed(placed)) return failure();
    return Values();
  }

  LogicalResult storeBegin(Value group, Value position) {
    Value first_thread = equal(emitter_.thread(), number(0));
    if (failed(emitter_.branch(first_thread, [&] {
          order_.setBegin(group, position);
          return success();
        })))
      return failure();
    // The end of the last group.
    return emitter_.branch(both(first_thread, equal(group, number(0))), [&] {
      order_.setBegin(number(matrices_ + 1), number(rows_));
      return success();
    });
  }

  // One of this thread's rows, and its group. Rows past the last one have a
  // group behind all groups.
  struct Row {
    Value number, group;
  };
  FailureOr<Row> rowAt(Value i) {
    Value row = add(multiply(emitter_.thread(), rows_of_thread_), i);
    Symbol clamped;
    clamped.value = emitter_.smaller(row, rows_ - 1);
    clamped.extent = rows_;
    FailureOr<Lanes> id =
        emitter_.element(ids_, {Index(emitter_.newSymbol(clamped))});
    if (failed(id)) return failure();
    // A negative index becomes a large number.
    Value group = arith::IndexCastOp::create(builder_, builder_.getIndexType(),
                                             id->value);
    group = emitter_.smaller(group, matrices_);
    Value exists = less(row, number(rows_));
    return Row{row, select(exists, group, number(matrices_ + 1))};
  }

  Value asNumber(Value condition) {
    return select(condition, number(1), number(0));
  }
  void sync() { teamSync(builder_, kBlock); }

  Value ids_;
  int64_t matrices_, rows_, rows_of_thread_;
  RowOrder order_;
  Buffer less_, own_;  // of each thread: rows of earlier groups, and own rows
};

}  // namespace

FailureOr<int64_t> emitOrderRows(Emitter& emitter, nn::OrderRowsOp op,
                                 const Buffer& result, Value begin, Value end) {
  OrderRows rows(emitter, op, result);
  if (failed(rows.emit(begin, end))) return failure();
  return rows.range();
}

}  // namespace partita::kernels
