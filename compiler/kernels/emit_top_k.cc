// Top-k by row: a few by insertion into a sorted list, many by merge sort.
#include "compiler/kernels/emit_top_k.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace partita::kernels {
namespace {

using namespace mlir;

constexpr int64_t kFew = 64;  // up to here insertion is the faster way

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
  // Places in the row by rank, of the best `count` so far.
  Value insertAll() {
    Value zero = index(0), one = index(1);
    auto all = scf::ForOp::create(builder_, zero, index(size_), one);
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPoint(all.getBody()->getTerminator());
    Value place = all.getInductionVar();
    Value value = valueAt(place);
    Value length = arith::MinUIOp::create(builder_, place, index(count_));
    // Moves what stands behind the new element one place back; the list has a
    // place more than it needs.
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
          Value better = standsBefore(value, valueAt(previous));
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

  // Places in the row, sorted: runs of 1, 2, 4 ... are merged between two
  // lists. Stable, so the lower of equals is first.
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
                                         standsBefore(valueAt(b), valueAt(a)));
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

  // NaN counts as the largest.
  Value standsBefore(Value a, Value b) {
    bool largest = op_.getLargest();
    if (isa<FloatType>(a.getType())) {
      Value ordered = arith::CmpFOp::create(
          builder_,
          largest ? arith::CmpFPredicate::UGT : arith::CmpFPredicate::ULT, a,
          b);
      Value other = largest ? b : a;
      Value number = arith::CmpFOp::create(builder_, arith::CmpFPredicate::ORD,
                                           other, other);
      return arith::AndIOp::create(builder_, ordered, number);
    }
    bool truth = a.getType().isInteger(1);
    arith::CmpIPredicate predicate =
        largest
            ? (truth ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt)
            : (truth ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt);
    return arith::CmpIOp::create(builder_, predicate, a, b);
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
  TopKEmitter rows(emitter, op, outputs);
  return emitter.loop(
      begin, end, topKRange(op), {},
      [&](const Symbol* row, ValueRange) { return rows.emitRow(row); });
}

}  // namespace partita::kernels
