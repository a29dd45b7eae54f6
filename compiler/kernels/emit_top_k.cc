// Top-k by row. One thread inserts into a sorted list for a small k, and sorts
// by merging for a large one. A team runs a tournament of its threads.
#include "compiler/kernels/emit_top_k.h"

#include "compiler/kernels/emit_team.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace partita::kernels {
namespace {

using namespace mlir;

constexpr int64_t kFew = 64;  // largest k for which insertion is faster

// True if `a` ranks before `b`. NaN counts as the largest.
Value ranksBefore(ImplicitLocOpBuilder& builder, bool largest, Value a,
                  Value b) {
  if (isa<FloatType>(a.getType())) {
    Value ordered = arith::CmpFOp::create(
        builder,
        largest ? arith::CmpFPredicate::UGT : arith::CmpFPredicate::ULT, a, b);
    Value other = largest ? b : a;
    Value number =
        arith::CmpFOp::create(builder, arith::CmpFPredicate::ORD, other, other);
    return arith::AndIOp::create(builder, ordered, number);
  }
  bool truth = a.getType().isInteger(1);
  arith::CmpIPredicate predicate =
      largest ? (truth ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt)
              : (truth ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt);
  return arith::CmpIOp::create(builder, predicate, a, b);
}

class TopKEmitter {
 public:
  TopKEmitter(Emitter& emitter, nn::TopKOp op, ArrayRef<Output> outputs)
      : emitter_(emitter),
        builder_(emitter.builder()),
        op_(op),
        outputs_(outputs) {
    auto type = cast<RankedTensorType>(op.getInput().getType());
    shape_ = type.getShape();
    size_ = shape_.back();
    count_ = op.getValues().getType().getShape().back();
    element_ = type.getElementType();
    row_ = emitter.scratch(element_, size_);
    order_ = emitter.scratch(builder_.getI64Type(), size_ + 1);
    if (count_ > kFew) other_ = emitter.scratch(builder_.getI64Type(), size_);
  }

  FailureOr<Values> emitRow(const Symbol* row) {
    IndexVector index = emitter_.delinearize(Index(row), shape_.drop_back());
    index.push_back(Index());
    FailureOr<Values> read = emitter_.laneLoop(
        size_, emitter_.nativeLanes(), {},
        [&](const Symbol* lane, ValueRange) -> FailureOr<Values> {
          index.back() = Index(lane);
          FailureOr<Lanes> element = emitter_.element(op_.getInput(), index);
          if (failed(element)) return failure();
          emitter_.store(row_, Index(lane), *element);
          return Values();
        });
    if (failed(read)) return failure();
    Value sorted = count_ <= kFew ? insertAll() : mergeSort();
    return emitter_.loop(
        count_, {}, [&](const Symbol* i, ValueRange) -> FailureOr<Values> {
          Value from = memref::LoadOp::create(builder_, sorted, i->value);
          Symbol place;
          place.value = arith::IndexCastOp::create(
              builder_, builder_.getIndexType(), from);
          place.extent = size_;
          Lanes value = emitter_.load(row_, Index(emitter_.newSymbol(place)));
          for (const Output& output : outputs_) {
            Index to = Index(row) * count_ + Index(i);
            if (output.value == op_.getValues())
              emitter_.store(output.buffer, to, value);
            else
              emitter_.store(output.buffer, to,
                             {asIndexElement(from, output.buffer.element), 0});
          }
          return Values();
        });
  }

 private:
  // Places in the row of the best `count` elements so far, by rank.
  Value insertAll() {
    Value zero = index(0), one = index(1);
    auto all = scf::ForOp::create(builder_, zero, index(size_), one);
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPoint(all.getBody()->getTerminator());
    Value place = all.getInductionVar();
    Value value = valueAt(place);
    Value length = arith::MinUIOp::create(builder_, place, index(count_));
    // Moves the entries that rank behind the new element back by one; the list
    // has room for one more.
    auto shift = scf::WhileOp::create(
        builder_, TypeRange{builder_.getIndexType()}, ValueRange{length},
        [&](OpBuilder& nested, Location loc, ValueRange at) {
          builder_.setInsertionPoint(nested.getInsertionBlock(),
                                     nested.getInsertionPoint());
          Value some = arith::CmpIOp::create(
              builder_, arith::CmpIPredicate::ugt, at[0], zero);
          Value before = arith::MaxUIOp::create(builder_, at[0], one);
          Value previous = placeAt(
              order_.memref, arith::SubIOp::create(builder_, before, one));
          Value better = ranksBefore(value, valueAt(previous));
          scf::ConditionOp::create(
              builder_, arith::AndIOp::create(builder_, some, better), at);
        },
        [&](OpBuilder& nested, Location loc, ValueRange at) {
          builder_.setInsertionPoint(nested.getInsertionBlock(),
                                     nested.getInsertionPoint());
          Value before = arith::SubIOp::create(builder_, at[0], one);
          Value moved = memref::LoadOp::create(builder_, order_.memref, before);
          memref::StoreOp::create(builder_, moved, order_.memref, at[0]);
          scf::YieldOp::create(builder_, ValueRange{before});
        });
    builder_.setInsertionPointAfter(shift);
    memref::StoreOp::create(builder_, asI64(place), order_.memref,
                            shift.getResult(0));
    return order_.memref;
  }

  // Places in the row, sorted. Runs of 1, 2, 4 ... are merged between two
  // lists. The sort is stable, so the lower place of equal elements comes
  // first.
  Value mergeSort() {
    Value zero = index(0), one = index(1);
    {
      auto fill = scf::ForOp::create(builder_, zero, index(size_), one);
      OpBuilder::InsertionGuard guard(builder_);
      builder_.setInsertionPoint(fill.getBody()->getTerminator());
      memref::StoreOp::create(builder_, asI64(fill.getInductionVar()),
                              order_.memref, fill.getInductionVar());
    }
    Value from = order_.memref, to = other_.memref;
    for (int64_t run = 1; run < size_; run *= 2) {
      mergeRuns(from, to, run);
      std::swap(from, to);
    }
    return from;
  }

  void mergeRuns(Value from, Value to, int64_t run) {
    Value zero = index(0), one = index(1);
    auto pairs =
        scf::ForOp::create(builder_, zero, index(size_), index(2 * run));
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPoint(pairs.getBody()->getTerminator());
    Value low = pairs.getInductionVar();
    Value middle = emitter_.smaller(
        arith::AddIOp::create(builder_, low, index(run)), size_);
    Value high = emitter_.smaller(
        arith::AddIOp::create(builder_, low, index(2 * run)), size_);
    auto merge =
        scf::ForOp::create(builder_, low, high, one, ValueRange{low, middle});
    builder_.setInsertionPointToEnd(merge.getBody());
    Value left = merge.getRegionIterArg(0), right = merge.getRegionIterArg(1);
    Value a = placeAt(from, emitter_.smaller(left, size_ - 1)),
          b = placeAt(from, emitter_.smaller(right, size_ - 1));
    Value left_over = arith::CmpIOp::create(builder_, arith::CmpIPredicate::uge,
                                            left, middle);
    Value right_left =
        arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, right, high);
    Value better = arith::AndIOp::create(builder_, right_left,
                                         ranksBefore(valueAt(b), valueAt(a)));
    Value take_right = arith::OrIOp::create(builder_, left_over, better);
    Value taken = arith::SelectOp::create(builder_, take_right, b, a);
    memref::StoreOp::create(builder_, asI64(taken), to,
                            merge.getInductionVar());
    Value next_left = arith::AddIOp::create(builder_, left, one),
          next_right = arith::AddIOp::create(builder_, right, one);
    scf::YieldOp::create(
        builder_,
        ValueRange{
            arith::SelectOp::create(builder_, take_right, left, next_left),
            arith::SelectOp::create(builder_, take_right, next_right, right)});
  }

  Value ranksBefore(Value a, Value b) {
    return kernels::ranksBefore(builder_, op_.getLargest(), a, b);
  }

  Value index(int64_t value) { return emitter_.indexConstant(value); }
  Value asI64(Value index) {
    return arith::IndexCastOp::create(builder_, builder_.getI64Type(), index);
  }
  Value placeAt(Value list, Value at) {
    Value place = memref::LoadOp::create(builder_, list, at);
    return arith::IndexCastOp::create(builder_, builder_.getIndexType(), place);
  }
  Value valueAt(Value place) {
    return emitter_.toCompute(
        memref::LoadOp::create(builder_, row_.memref, place), row_.element);
  }
  Value asIndexElement(Value place, Type type) {
    if (type.isInteger(64)) return place;
    return arith::TruncIOp::create(builder_, type, place);
  }

  Emitter& emitter_;
  ImplicitLocOpBuilder& builder_;
  nn::TopKOp op_;
  ArrayRef<Output> outputs_;
  ArrayRef<int64_t> shape_;
  int64_t size_, count_;
  Type element_;
  Buffer row_, order_, other_;
};

// Top-k by a team. Thread t holds the best of the elements t, t + team, ...
// that have not been taken. The best of these is taken next; then the whole
// team finds the next best of the thread that held it. So a row of n elements
// takes n / team reads one after the other, then n / team^2 for each element
// that is taken, and no scratch.
class TeamTopKEmitter {
 public:
  TeamTopKEmitter(Emitter& emitter, nn::TopKOp op, ArrayRef<Output> outputs)
      : emitter_(emitter),
        builder_(emitter.builder()),
        op_(op),
        outputs_(outputs),
        shape_(op.getInput().getType().getShape()),
        size_(shape_.back()),
        count_(op.getValues().getType().getShape().back()),
        place_type_(
            builder_.getIntegerType(size_ < (int64_t{1} << 31) ? 32 : 64)) {}

  FailureOr<Values> emitRow(const Symbol* row) {
    row_ = emitter_.delinearize(Index(row), shape_.drop_back());
    FailureOr<Values> own = bestOf(size_, 1, emitter_.indexConstant(0), {});
    if (failed(own)) return failure();
    return emitter_.loop(
        count_, *own,
        [&](const Symbol* rank, ValueRange best) -> FailureOr<Values> {
          const Values winner = bestOfTeam(best);
          if (failed(storeResult(Index(row) * count_ + Index(rank), winner)))
            return failure();
          return replaced(best, winner);
        });
  }

 private:
  // An element is its value and its place in the row. The row's size as a place
  // means that there is no element.
  Value place(int64_t value) { return emitter_.constant(place_type_, value); }
  Value isPlace(Value a, Value b) {
    return arith::CmpIOp::create(builder_, arith::CmpIPredicate::eq, a, b);
  }
  Value isNone(ValueRange element) { return isPlace(element[1], place(size_)); }
  Value asIndex(Value place) {
    return arith::IndexCastUIOp::create(builder_, builder_.getIndexType(),
                                        place);
  }
  Values select(Value condition, ValueRange a, ValueRange b) {
    return {arith::SelectOp::create(builder_, condition, a[0], b[0]),
            arith::SelectOp::create(builder_, condition, a[1], b[1])};
  }

  // True if `a` comes before `b` in the total order by value and place, in
  // which no two elements are equal.
  Value comesBefore(ValueRange a, ValueRange b) {
    const bool largest = op_.getLargest();
    Value lower =
        arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, a[1], b[1]);
    Value not_after = arith::XOrIOp::create(
        builder_, ranksBefore(builder_, largest, b[0], a[0]),
        emitter_.constant(builder_.getI1Type(), 1));
    return arith::OrIOp::create(
        builder_, ranksBefore(builder_, largest, a[0], b[0]),
        arith::AndIOp::create(builder_, not_after, lower));
  }

  // The best element that this thread finds among `first` + i * `stride` with i
  // below `extent`, of which it takes each team-th. With `last`, only elements
  // that come after it count.
  FailureOr<Values> bestOf(int64_t extent, int64_t stride, Value first,
                           ValueRange last) {
    Values none = {emitter_.constant(valueType(), 0), place(size_)};
    return emitter_.laneLoop(
        extent, /*lanes=*/1, none,
        [&](const Symbol* i, ValueRange best) -> FailureOr<Values> {
          Value at = arith::AddIOp::create(
              builder_, first,
              arith::MulIOp::create(builder_, i->value,
                                    emitter_.indexConstant(stride)));
          Symbol symbol;
          symbol.extent = size_;
          symbol.value = emitter_.smaller(at, size_ - 1);
          return emitter_.withThreadSymbol(
              symbol, best, [&](const Symbol* place, ValueRange best) {
                return better(place, at, best, last);
              });
        });
  }

  // `best`, or the element at `place` if it comes before. With `last`, elements
  // past the row's end (`at`) are ignored.
  FailureOr<Values> better(const Symbol* place, Value at, ValueRange best,
                           ValueRange last) {
    IndexVector index = row_;
    index.push_back(Index(place));
    FailureOr<Lanes> element = emitter_.element(op_.getInput(), index);
    if (failed(element)) return failure();
    const Values found = {
        element->value,
        arith::IndexCastOp::create(builder_, place_type_, place->value)};
    // Places ascend, so the earlier of equal elements is kept.
    Value is_better = arith::OrIOp::create(
        builder_, isNone(best),
        ranksBefore(builder_, op_.getLargest(), found[0], best[0]));
    if (!last.empty()) {
      Value exists = arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult,
                                           at, emitter_.indexConstant(size_));
      is_better = arith::AndIOp::create(builder_, is_better, exists);
      is_better =
          arith::AndIOp::create(builder_, is_better, comesBefore(last, found));
    }
    return select(is_better, found, best);
  }

  Values bestOfTeam(ValueRange own) {
    Values best(own);
    for (int64_t distance = emitter_.team() / 2; distance > 0; distance /= 2) {
      Values other;
      for (Value part : best)
        other.push_back(teamExchange(builder_, part, distance));
      Value exists = arith::XOrIOp::create(
          builder_, isNone(other), emitter_.constant(builder_.getI1Type(), 1));
      Value better = arith::OrIOp::create(builder_, isNone(best),
                                          comesBefore(other, best));
      best =
          select(arith::AndIOp::create(builder_, exists, better), other, best);
    }
    return best;
  }

  // This thread's best element once the winner has been taken.
  FailureOr<Values> replaced(ValueRange best, ValueRange winner) {
    const int64_t team = emitter_.team();
    Value is_mine = isPlace(best[1], winner[1]);
    Values next = {best[0], place(size_)};
    if (size_ > team) {
      Value owner = arith::RemUIOp::create(builder_, asIndex(winner[1]),
                                           emitter_.indexConstant(team));
      FailureOr<Values> found =
          bestOf(llvm::divideCeil(size_, team), team, owner, winner);
      if (failed(found)) return failure();
      next = bestOfTeam(*found);
    }
    return select(is_mine, next, best);
  }

  LogicalResult storeResult(const Index& to, ValueRange element) {
    Value is_first =
        arith::CmpIOp::create(builder_, arith::CmpIPredicate::eq,
                              emitter_.thread(), emitter_.indexConstant(0));
    return emitter_.branch(is_first, [&]() -> LogicalResult {
      for (const Output& output : outputs_) {
        Value value = element[0];
        if (output.value != op_.getValues())
          value = arith::IndexCastOp::create(builder_, output.buffer.element,
                                             asIndex(element[1]));
        emitter_.store(output.buffer, to, {value, 0});
      }
      return success();
    });
  }

  Type valueType() {
    return emitter_.computeType(op_.getInput().getType().getElementType());
  }

  Emitter& emitter_;
  ImplicitLocOpBuilder& builder_;
  nn::TopKOp op_;
  ArrayRef<Output> outputs_;
  ArrayRef<int64_t> shape_;
  int64_t size_, count_;
  Type place_type_;
  IndexVector row_;
};

}  // namespace

nn::TopKOp findTopK(func::FuncOp kernel) {
  nn::TopKOp found;
  for (Value result : kernel.getBody().front().getTerminator()->getOperands()) {
    auto op = result.getDefiningOp<nn::TopKOp>();
    if (!op || (found && op != found)) return nullptr;
    found = op;
  }
  return found;
}

int64_t topKRange(nn::TopKOp op) {
  auto type = cast<RankedTensorType>(op.getValues().getType());
  return type.getNumElements() / type.getShape().back();
}

LogicalResult emitTopK(Emitter& emitter, nn::TopKOp op,
                       ArrayRef<Output> outputs, Value begin, Value end) {
  const auto emit = [&](auto rows) {
    return emitter.loop(
        begin, end, topKRange(op), {},
        [&](const Symbol* row, ValueRange) -> FailureOr<Values> {
          if (failed(rows.emitRow(row))) return failure();
          return Values();
        });
  };
  if (emitter.team() > 1) return emit(TeamTopKEmitter(emitter, op, outputs));
  return emit(TopKEmitter(emitter, op, outputs));
}

}  // namespace partita::kernels
