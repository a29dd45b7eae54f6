// Scatter: copies the input, then applies the updates in order. If the result
// is the input's own memory (compiler/memory), nothing is copied.
#include "compiler/kernels/emit_scatter.h"

#include <numeric>
#include <vector>

#include "compiler/kernels/codegen.h"
#include "compiler/kernels/emit_reduction.h"
#include "compiler/kernels/emit_team.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace partita::kernels {
namespace {

using namespace mlir;

// Items of a team's range if sizes allow it. There should be several teams for
// each slot of a large GPU, yet few enough that reading all indices in each is
// cheap: 65,536 indices take 512 steps of 128, so 2 million steps in all, which
// is half a millisecond of an A100's cache bandwidth.
constexpr int64_t kTeamItems = 4096;
// Indices that each thread of a team reads before the team checks them.
constexpr int64_t kReadAtOnce = 4;
// Updates whose loads are in flight before the first is combined.
constexpr int kUpdatesAtOnce = 4;

RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

struct ScatterPlan {
  int64_t batches = 1;  // each with rows, columns and index vectors (places)
  int64_t rows = 1, columns = 1, places = 1;
  int64_t block = 1;  // rows of an item
  int64_t chunk = 1;  // columns of an item
  int64_t lanes = 1;  // of loops over columns
  bool flat = false;  // an item's elements are consecutive

  int64_t blocks() const { return llvm::divideCeil(rows, block); }
  int64_t chunks() const { return llvm::divideCeil(columns, chunk); }
  int64_t range() const { return batches * blocks() * chunks(); }
};

// `rows_first`: the elements of a row are consecutive, and so are rows. One
// thread takes a batch element at a time: on a CPU, dividing further costs as
// much as it gains, since long copies are fastest in one piece.
void chooseBlocks(ScatterPlan& plan, bool rows_first, int64_t native,
                  int64_t team) {
  plan.chunk = plan.columns;
  plan.lanes = native;
  int64_t blocks = 1;
  if (team > 1) {
    if (plan.columns <= team) plan.lanes = std::gcd(plan.columns, native);
    // One vector for each thread, so that a row with many updates is divided as
    // finely as possible.
    const int64_t vectors = team * plan.lanes;
    const int64_t most = std::max<int64_t>(1, kTeamItems / plan.batches);
    plan.chunk =
        vectors * llvm::divideCeil(llvm::divideCeil(plan.columns, vectors),
                                   std::min(most, plan.columns));
    blocks = std::max<int64_t>(1, most / plan.chunks());
  }
  plan.block = llvm::divideCeil(plan.rows, std::max<int64_t>(1, blocks));
  const bool whole_rows = plan.chunks() == 1;
  // Parts of consecutive elements begin at whole vectors.
  if (whole_rows && rows_first && plan.block < plan.rows)
    plan.block = std::min<int64_t>(
        plan.rows, llvm::alignTo(plan.block, static_cast<uint64_t>(native)));
  plan.flat = whole_rows && (rows_first || plan.block == plan.rows);
}

class ScatterEmitter {
 public:
  ScatterEmitter(Emitter& emitter, nn::ScatterOp op, const Buffer& buffer)
      : emitter_(emitter),
        builder_(emitter.builder()),
        op_(op),
        buffer_(buffer),
        type_(op.getType()),
        strides_(rowMajorStrides(type_.getShape())) {
    const int64_t batch = op.getBatchDims();
    batch_sizes_.assign(type_.getShape().begin(),
                        type_.getShape().begin() + batch);
    for (int64_t dim = batch; dim < type_.getRank(); ++dim) {
      const bool named = llvm::is_contained(op.getAxes(), dim);
      (named ? axes_ : window_).push_back(dim);
      (named ? axis_sizes_ : window_sizes_).push_back(type_.getDimSize(dim));
    }
    ArrayRef<int64_t> indices = typeOf(op.getIndices()).getShape();
    place_sizes_.assign(indices.begin() + batch, indices.end() - 1);
    plan_.batches = product(batch_sizes_);
    plan_.rows = product(axis_sizes_);
    plan_.columns = product(window_sizes_);
    plan_.places = product(place_sizes_);
    const bool rows_first =
        axes_.empty() || window_.empty() || axes_.back() < window_.front();
    chooseBlocks(plan_, rows_first, emitter.nativeLanes(), emitter.team());
  }

  int64_t range() const { return plan_.range(); }

  LogicalResult emitItem(const Symbol* item) {
    const IndexVector parts = emitter_.delinearize(
        Index(item), {plan_.batches, plan_.blocks(), plan_.chunks()});
    number_of_batch_ = parts[0];
    batch_ = emitter_.delinearize(parts[0], batch_sizes_);
    first_row_ = parts[1] * plan_.block;
    first_column_ = parts[2] * plan_.chunk;
    first_ = numberOf(first_row_);
    count_ = index(plan_.block);
    if (plan_.rows % plan_.block != 0)
      count_ = arith::MinUIOp::create(
          builder_, count_,
          arith::SubIOp::create(builder_, index(plan_.rows), first_));
    const auto copy = [&]() -> LogicalResult {
      return plan_.flat ? copyFlat() : copyRows();
    };
    if (Value elsewhere = isElsewhere()) {
      if (failed(emitter_.branch(elsewhere, copy))) return failure();
    } else if (failed(copy())) {
      return failure();
    }
    if (plan_.places == 0) return success();
    if (emitter_.team() == 1) return scanAlone();
    // A thread may update elements that another one has copied.
    if (plan_.flat) teamSync(builder_, emitter_.team());
    return scanAsTeam();
  }

 private:
  Value index(int64_t value) { return emitter_.indexConstant(value); }
  Value word(int64_t value) {
    return emitter_.constant(builder_.getI32Type(), value);
  }
  Value numberOf(const Index& index) {
    return emitter_.number(index, builder_.getIndexType()).value;
  }
  Value asWord(Value index) {
    return arith::IndexCastOp::create(builder_, builder_.getI32Type(), index);
  }
  Value isNot(Value word, int64_t other) {
    return arith::CmpIOp::create(builder_, arith::CmpIPredicate::ne, word,
                                 this->word(other));
  }

  //===--------------------------------------------------------------------===//
  // The input
  //===--------------------------------------------------------------------===//

  // True if the result is not in the memory of the input. Null if the input is
  // computed, so that all elements must be written.
  Value isElsewhere() {
    auto argument = dyn_cast<BlockArgument>(op_.getInput());
    if (!argument) return Value();
    const auto address = [&](Value memref) -> Value {
      return memref::ExtractAlignedPointerAsIndexOp::create(builder_, memref);
    };
    return arith::CmpIOp::create(builder_, arith::CmpIPredicate::ne,
                                 address(emitter_.bufferOf(argument).memref),
                                 address(buffer_.memref));
  }

  LogicalResult copyFlat() {
    const int64_t size = plan_.rows * plan_.columns,
                  part = plan_.block * plan_.columns,
                  lanes = emitter_.nativeLanes();
    const auto copy = [&](const Symbol* lane, ValueRange) -> FailureOr<Values> {
      const Index position = number_of_batch_ * size + Index(lane);
      return copyElement(emitter_.delinearize(position, type_.getShape()),
                         position);
    };
    if (plan_.blocks() == 1) return emitter_.laneLoop(size, lanes, {}, copy);
    const Index begin = first_row_ * plan_.columns;
    return emitter_.laneLoop(
        numberOf(begin), emitter_.smaller(numberOf(begin + Index(part)), size),
        size, part, lanes, {}, copy);
  }

  LogicalResult copyRows() {
    return emitter_.loop(
        index(0), count_, plan_.block, {},
        [&](const Symbol* row, ValueRange) -> FailureOr<Values> {
          const IndexVector at =
              emitter_.delinearize(first_row_ + Index(row), axis_sizes_);
          return columns([&](const IndexVector& column) -> FailureOr<Values> {
            IndexVector element(type_.getRank(), Index());
            llvm::copy(batch_, element.begin());
            for (auto [i, dim] : llvm::zip_equal(at, axes_)) element[dim] = i;
            for (auto [i, dim] : llvm::zip_equal(column, window_))
              element[dim] = i;
            return copyElement(element, linearize(element, strides_));
          });
        });
  }

  FailureOr<Values> copyElement(const IndexVector& at, const Index& position) {
    FailureOr<Lanes> element = emitter_.element(op_.getInput(), at);
    if (failed(element)) return failure();
    emitter_.store(buffer_, position, *element);
    return Values();
  }

  // Runs `body` for the columns of the item. A thread gets the same columns
  // each time.
  FailureOr<Values> columns(
      llvm::function_ref<FailureOr<Values>(const IndexVector&)> body) {
    const auto inside = [&](const Symbol* lane, ValueRange) {
      return body(emitter_.delinearize(Index(lane), window_sizes_));
    };
    if (plan_.columns == 1 && emitter_.team() == 1)
      return body(IndexVector(window_.size(), Index()));
    if (plan_.chunks() == 1)
      return emitter_.laneLoop(plan_.columns, plan_.lanes, {}, inside);
    const Value end = emitter_.smaller(
        numberOf(first_column_ + Index(plan_.chunk)), plan_.columns);
    return emitter_.laneLoop(numberOf(first_column_), end, plan_.columns,
                             plan_.chunk, plan_.lanes, {}, inside);
  }

  //===--------------------------------------------------------------------===//
  // The indices
  //===--------------------------------------------------------------------===//

  IndexVector placeAt(const Symbol* place) {
    IndexVector at = batch_;
    llvm::append_range(at, emitter_.delinearize(Index(place), place_sizes_));
    return at;
  }

  // The numbers in an index vector for each of `axes_`.
  FailureOr<SmallVector<Value>> readIndices(const IndexVector& place) {
    SmallVector<Value> values(axes_.size());
    for (auto [k, axis] : llvm::enumerate(op_.getAxes())) {
      IndexVector at = place;
      at.push_back(Index(static_cast<int64_t>(k)));
      FailureOr<Lanes> value = emitter_.element(op_.getIndices(), at);
      if (failed(value)) return failure();
      values[llvm::find(axes_, axis) - axes_.begin()] =
          arith::IndexCastOp::create(builder_, builder_.getIndexType(),
                                     value->value);
    }
    return values;
  }

  // True if an index vector names one of the item's rows; false if it points
  // outside. Compares unsigned numbers, so that negative ones are large.
  // Indices of up to 32 bits are compared as 32-bit words.
  Value isMine(ArrayRef<Value> indices) {
    const bool words =
        typeOf(op_.getIndices()).getElementTypeBitWidth() <= 32 &&
        plan_.rows < (int64_t{1} << 31);
    const auto narrow = [&](Value number) {
      return words ? asWord(number) : number;
    };
    const auto below = [&](Value number, Value bound) -> Value {
      return arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, number,
                                   narrow(bound));
    };
    Value row = narrow(index(0)),
          inside = emitter_.constant(builder_.getI1Type(), 1);
    for (auto [index, size, stride] :
         llvm::zip_equal(indices, axis_sizes_, rowMajorStrides(axis_sizes_))) {
      Value number = narrow(index);
      if (indices.size() > 1)
        inside = arith::AndIOp::create(builder_, inside,
                                       below(number, this->index(size)));
      row = arith::AddIOp::create(
          builder_, row,
          arith::MulIOp::create(builder_, number, narrow(this->index(stride))));
    }
    row = arith::SubIOp::create(builder_, row, narrow(first_));
    return arith::AndIOp::create(builder_, inside, below(row, count_));
  }

  LogicalResult scanAlone() {
    return emitter_.loop(
        plan_.places, {},
        [&](const Symbol* symbol, ValueRange) -> FailureOr<Values> {
          const IndexVector place = placeAt(symbol);
          FailureOr<SmallVector<Value>> indices = readIndices(place);
          if (failed(indices)) return failure();
          LogicalResult applied = emitter_.branch(isMine(*indices), [&] {
            return apply({{place, targetOf(*indices), Value()}});
          });
          if (failed(applied)) return failure();
          return Values();
        });
  }

  // Each thread reads some indices. If any of them names a row of the item, the
  // team goes through them together.
  LogicalResult scanAsTeam() {
    const int64_t team = emitter_.team(),
                  reads = std::min<int64_t>(
                      kReadAtOnce, llvm::divideCeil(plan_.places, team)),
                  step = reads * team;
    return emitter_.loop(
        llvm::divideCeil(plan_.places, step), {},
        [&](const Symbol* symbol, ValueRange) -> FailureOr<Values> {
          Value first = numberOf(Index(symbol) * step), found = word(0);
          for (int64_t i = 0; i < reads; ++i) {
            FailureOr<Value> mine = isForItem(
                arith::AddIOp::create(builder_, first, index(i * team)));
            if (failed(mine)) return failure();
            Value bit =
                arith::SelectOp::create(builder_, *mine, word(1 << i), word(0));
            found = arith::OrIOp::create(builder_, found, bit);
          }
          Value any = combineTeam(emitter_, nn::ReduceKind::max, found);
          LogicalResult applied =
              emitter_.branch(isNot(any, 0), [&]() -> LogicalResult {
                return applyReads(Index(symbol) * step, reads, found);
              });
          if (failed(applied)) return failure();
          return Values();
        });
  }

  // Applies the updates that are for this item, among those at the indices read
  // from `first` on. Bit i of a thread's `found` is set if its i-th index is
  // for this item.
  LogicalResult applyReads(const Index& first, int64_t reads, Value found) {
    return emitter_.loop(
        reads, {}, [&](const Symbol* read, ValueRange) -> FailureOr<Values> {
          Value bits =
              arith::ShRUIOp::create(builder_, found, asWord(read->value));
          if (failed(applyFound(numberOf(first + Index(read) * emitter_.team()),
                                bits)))
            return failure();
          return Values();
        });
  }

  // True if the index at `first` + this thread's number is for this item.
  FailureOr<Value> isForItem(Value first) {
    Symbol place;
    place.extent = plan_.places;
    Value at = arith::AddIOp::create(builder_, first, emitter_.thread());
    place.value = emitter_.smaller(at, plan_.places - 1);
    Value mine;
    FailureOr<Values> read = emitter_.withThreadSymbol(
        place, {}, [&](const Symbol* symbol, ValueRange) -> FailureOr<Values> {
          FailureOr<SmallVector<Value>> indices = readIndices(placeAt(symbol));
          if (failed(indices)) return failure();
          mine = isMine(*indices);
          return Values();
        });
    if (failed(read)) return failure();
    Value exists = arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult,
                                         at, index(plan_.places));
    return Value(arith::AndIOp::create(builder_, mine, exists));
  }

  // Applies the updates at `first` + the numbers of the threads whose `found`
  // is odd, in their order.
  LogicalResult applyFound(Value first, Value found) {
    Value bit = arith::ShLIOp::create(
        builder_, arith::AndIOp::create(builder_, found, word(1)),
        asWord(emitter_.thread()));
    Value all = combineTeam(emitter_, nn::ReduceKind::sum, bit);
    Value trips =
        arith::IndexCastUIOp::create(builder_, builder_.getIndexType(),
                                     math::CtPopOp::create(builder_, all));
    trips = arith::CeilDivUIOp::create(builder_, trips, index(kUpdatesAtOnce));
    return emitter_.loop(
        index(0), trips, emitter_.team() / kUpdatesAtOnce, all,
        [&](const Symbol*, ValueRange left) -> FailureOr<Values> {
          Value rest = left.front();
          if (failed(applySome(first, rest))) return failure();
          return Values{rest};
        });
  }

  // Applies the updates of the lowest bits of `rest`, and clears these bits.
  LogicalResult applySome(Value first, Value& rest) {
    std::vector<Update> updates;
    Value lowest;
    for (int i = 0; i < kUpdatesAtOnce; ++i) {
      Value exists = i > 0 ? isNot(rest, 0) : Value();
      Value number = math::CountTrailingZerosOp::create(builder_, rest);
      // Loads an existing update in place of one that does not exist.
      lowest = i > 0 ? arith::SelectOp::create(builder_, exists, number, lowest)
                     : number;
      Value at =
          arith::AddIOp::create(builder_, first,
                                arith::IndexCastUIOp::create(
                                    builder_, builder_.getIndexType(), lowest));
      const IndexVector place =
          placeAt(emitter_.opaque({at, 0}, plan_.places, Value()));
      FailureOr<SmallVector<Value>> indices = readIndices(place);
      if (failed(indices)) return failure();
      updates.push_back({place, targetOf(*indices), exists});
      rest = arith::AndIOp::create(
          builder_, rest, arith::SubIOp::create(builder_, rest, word(1)));
    }
    return apply(updates);
  }

  //===--------------------------------------------------------------------===//
  // The updates
  //===--------------------------------------------------------------------===//

  struct Update {
    IndexVector place;
    Index target;  // position of the window's first element
    Value exists;  // null: it always exists
  };

  Index targetOf(ArrayRef<Value> indices) {
    Index target;
    for (auto [i, at] : llvm::enumerate(batch_))
      target = target + at * strides_[i];
    for (auto [value, dim] : llvm::zip_equal(indices, axes_))
      target = target + Index(emitter_.opaque({value, 0}, type_.getDimSize(dim),
                                              Value())) *
                            strides_[dim];
    return target;
  }

  // Reads all updates, then combines them one after the other for each element.
  LogicalResult apply(ArrayRef<Update> updates) {
    return columns([&](const IndexVector& column) -> FailureOr<Values> {
      SmallVector<Lanes> values;
      for (const Update& update : updates) {
        IndexVector at = update.place;
        llvm::append_range(at, column);
        FailureOr<Lanes> value = emitter_.element(op_.getUpdates(), at);
        if (failed(value)) return failure();
        values.push_back(*value);
      }
      for (auto [update, value] : llvm::zip_equal(updates, values)) {
        Index to = update.target;
        for (auto [i, dim] : llvm::zip_equal(column, window_))
          to = to + i * strides_[dim];
        const auto store = [&, value = value]() -> LogicalResult {
          emitter_.store(buffer_, to, combined(value, to));
          return success();
        };
        if (failed(update.exists ? emitter_.branch(update.exists, store)
                                 : store()))
          return failure();
      }
      return Values();
    });
  }

  Lanes combined(Lanes update, const Index& to) {
    if (op_.getKind() == nn::ScatterKind::set) return update;
    nn::ReduceKind kind =
        op_.getKind() == nn::ScatterKind::add   ? nn::ReduceKind::sum
        : op_.getKind() == nn::ScatterKind::mul ? nn::ReduceKind::prod
        : op_.getKind() == nn::ScatterKind::max ? nn::ReduceKind::max
                                                : nn::ReduceKind::min;
    Lanes old = emitter_.load(buffer_, to);
    int64_t lanes = std::max(old.lanes, update.lanes);
    return {combine(emitter_, kind, emitter_.splat(old, lanes),
                    emitter_.splat(update, lanes)),
            lanes};
  }

  Emitter& emitter_;
  ImplicitLocOpBuilder& builder_;
  nn::ScatterOp op_;
  Buffer buffer_;
  RankedTensorType type_;
  SmallVector<int64_t> strides_;
  // Dimensions of the result that indices name, and the other dimensions, in
  // memory's order.
  SmallVector<int64_t> axes_, window_;
  SmallVector<int64_t> batch_sizes_, axis_sizes_, window_sizes_, place_sizes_;
  ScatterPlan plan_;
  // The current item.
  IndexVector batch_;
  Index number_of_batch_, first_row_, first_column_;
  Value first_, count_;  // first row of the item, and number of rows
};

}  // namespace

nn::ScatterOp findScatter(func::FuncOp kernel) {
  auto results = kernel.getBody().front().getTerminator()->getOperands();
  return results.size() == 1 ? results[0].getDefiningOp<nn::ScatterOp>()
                             : nullptr;
}

FailureOr<int64_t> emitScatter(Emitter& emitter, nn::ScatterOp op,
                               const Output& output, Value begin, Value end) {
  ScatterEmitter scatter(emitter, op, output.buffer);
  FailureOr<Values> emitted =
      emitter.loop(begin, end, scatter.range(), {},
                   [&](const Symbol* item, ValueRange) -> FailureOr<Values> {
                     if (failed(scatter.emitItem(item))) return failure();
                     return Values();
                   });
  if (failed(emitted)) return failure();
  return scatter.range();
}

}  // namespace partita::kernels
