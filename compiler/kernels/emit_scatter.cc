// Scatter: copies the input, then applies the updates in order.
#include "compiler/kernels/emit_scatter.h"

#include "compiler/kernels/emit_reduction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace partita::kernels {
namespace {

using namespace mlir;

RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

class ScatterEmitter {
 public:
  ScatterEmitter(Emitter& emitter, nn::ScatterOp op, const Buffer& buffer)
      : emitter_(emitter),
        op_(op),
        buffer_(buffer),
        type_(op.getType()),
        strides_(rowMajorStrides(type_.getShape())) {
    int64_t batch = op.getBatchDims();
    for (int64_t dim = batch; dim < type_.getRank(); ++dim)
      if (!llvm::is_contained(op.getAxes(), dim)) window_.push_back(dim);
    ArrayRef<int64_t> indices = typeOf(op.getIndices()).getShape();
    places_.assign(indices.begin(), indices.end() - 1);
  }

  LogicalResult emit() {
    if (failed(copyInput())) return failure();
    return emitter_.loop(
        product(places_), {},
        [&](const Symbol* place, ValueRange) -> FailureOr<Values> {
          if (failed(applyPlace(emitter_.delinearize(Index(place), places_))))
            return failure();
          return Values();
        });
  }

 private:
  LogicalResult copyInput() {
    int64_t size = type_.getNumElements();
    return emitter_.laneLoop(
        size, emitter_.nativeLanes(), {},
        [&](const Symbol* lane, ValueRange) -> FailureOr<Values> {
          FailureOr<Lanes> element = emitter_.element(
              op_.getInput(),
              emitter_.delinearize(Index(lane), type_.getShape()));
          if (failed(element)) return failure();
          emitter_.store(buffer_, Index(lane), *element);
          return Values();
        });
  }

  // One index vector: combines its window of updates, unless it points outside.
  LogicalResult applyPlace(const IndexVector& place) {
    ImplicitLocOpBuilder& builder = emitter_.builder();
    Value inside = emitter_.constant(builder.getI1Type(), 1);
    Index target;
    for (int64_t i = 0; i < static_cast<int64_t>(op_.getBatchDims()); ++i)
      target = target + place[i] * strides_[i];
    for (auto [k, axis] : llvm::enumerate(op_.getAxes())) {
      IndexVector at = place;
      at.push_back(Index(static_cast<int64_t>(k)));
      FailureOr<Lanes> value = emitter_.element(op_.getIndices(), at);
      if (failed(value)) return failure();
      Value index = arith::IndexCastOp::create(builder, builder.getIndexType(),
                                               value->value);
      // As unsigned, a negative index is large.
      Value fits =
          arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, index,
                                emitter_.indexConstant(type_.getDimSize(axis)));
      inside = arith::AndIOp::create(builder, inside, fits);
      target = target + Index(emitter_.opaque(
                            {index, 0}, type_.getDimSize(axis), Value())) *
                            strides_[axis];
    }
    return emitter_.branch(
        inside, [&]() -> LogicalResult { return applyWindow(place, target); });
  }

  LogicalResult applyWindow(const IndexVector& place, const Index& target) {
    SmallVector<int64_t> sizes;
    for (int64_t dim : window_) sizes.push_back(type_.getDimSize(dim));
    auto apply = [&](const Index& position) -> FailureOr<Values> {
      IndexVector at = emitter_.delinearize(position, sizes);
      IndexVector update = place;
      Index to = target;
      for (auto [i, dim] : llvm::zip_equal(at, window_)) {
        update.push_back(i);
        to = to + i * strides_[dim];
      }
      FailureOr<Lanes> value = emitter_.element(op_.getUpdates(), update);
      if (failed(value)) return failure();
      emitter_.store(buffer_, to, combined(*value, to));
      return Values();
    };
    if (product(sizes) == 1) return apply(Index());
    return emitter_.laneLoop(
        product(sizes), emitter_.nativeLanes(), {},
        [&](const Symbol* lane, ValueRange) { return apply(Index(lane)); });
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
  nn::ScatterOp op_;
  Buffer buffer_;
  RankedTensorType type_;
  SmallVector<int64_t> strides_, places_, window_;
};

}  // namespace

nn::ScatterOp findScatter(func::FuncOp kernel) {
  auto results = kernel.getBody().front().getTerminator()->getOperands();
  return results.size() == 1 ? results[0].getDefiningOp<nn::ScatterOp>()
                             : nullptr;
}

LogicalResult emitScatter(Emitter& emitter, nn::ScatterOp op,
                          const Output& output, Value begin, Value end) {
  return emitter.loop(
      begin, end, /*extent=*/1, {},
      [&](const Symbol*, ValueRange) -> FailureOr<Values> {
        if (failed(ScatterEmitter(emitter, op, output.buffer).emit()))
          return failure();
        return Values();
      });
}

}  // namespace partita::kernels
