// For a block of queries: the statistics that the other parts need. Without
// lse, goes through the keys for the sums of weights.
#include "compiler/kernels/emit_mma_grad_parts.h"
#include "compiler/kernels/emit_reduction.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace partita::kernels {
namespace {

using namespace mlir;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLog2E = 1.4426950408889634;

// Queries are loaded through the second buffer of keys.
struct Plan {
  explicit Plan(nn::AttentionGradOp op) {
    if (op.getLse()) return;  // no products
    const Type element = elementOf(op.getQ());
    const KeyTiles tiles(element, shapeOf(op.getQ())[3], shapeOf(op.getV())[3]);
    query = {tiles.buffer, kGradRows, shapeOf(op.getQ())[3],
             paddingOf(element)};
    bytes = bytesOf(element) *
            (tiles.buffer + std::max(tiles.buffer, query.elements()));
  }
  Tile query;
  int64_t bytes = 0;
};

class GradStatistics : private MmaGradTiles {
 public:
  GradStatistics(Emitter& emitter, const GradKernel& kernel)
      : MmaGradTiles(emitter, kernel, Plan(kernel.op).bytes),
        plan_(kernel.op) {}

  int64_t range() const { return batches_ * heads_ * layout_->blocks; }

  FailureOr<Values> emitItem(const Symbol* item) {
    auto [pair, block] = emitter_.split(Index(item), layout_->blocks);
    std::tie(batch_, head_) = emitter_.split(pair, heads_);
    group_ = emitter_.split(head_, heads_ / groups_).first;
    Value first = multiply(number(block), kGradRows);
    if (wantsQueries() && failed(startTurns(item->value, number(block))))
      return failure();
    FailureOr<Values> logarithms =
        op_.getLse() ? logarithmsByLse(first) : logarithmsBySums(first);
    if (failed(logarithms)) return failure();
    for (int64_t half = 0; half < 2; ++half) {
      Value query = queryOf(first, half);
      FailureOr<Value> mean = meanOf(queryAt(query));
      if (failed(mean)) return failure();
      store(kLogarithm, query, (*logarithms)[half]);
      store(kMean, query, *mean);
    }
    return Values();
  }

 private:
  Value queryOf(Value first, int64_t half) {
    return add(add(first, threadRow()), 8 * half);
  }

  // The ticket and the turns are ready when the next part begins.
  LogicalResult startTurns(Value item, Value block) {
    Value is_first = arith::CmpIOp::create(builder_, arith::CmpIPredicate::eq,
                                           item, emitter_.indexConstant(0));
    if (failed(emitter_.branch(is_first, [&] { return turns_->start(); })))
      return failure();
    const int64_t count = kGradRows / layout_->tile;
    for (int64_t i = 0; i < count; ++i) {
      Value tile = add(multiply(block, count), i);
      if (failed(turns_->start(turnPlaceOf(tile), firstTurnOf(tile))))
        return failure();
    }
    return success();
  }

  // The binary logarithms of the sums of weights of this thread's two queries.
  FailureOr<Values> logarithmsByLse(Value first) {
    Values logarithms;
    for (int64_t half = 0; half < 2; ++half) {
      Value query = queryOf(first, half);
      FailureOr<Lanes> lse = emitter_.element(
          op_.getLse(), {batch_, head_, Index(queryAt(query))});
      if (failed(lse)) return failure();
      Value sees = arith::CmpFOp::create(builder_, arith::CmpFPredicate::ONE,
                                         lse->value, f32(-kInfinity));
      logarithms.push_back(
          orInfinity(arith::MulFOp::create(builder_, lse->value, f32(kLog2E)),
                     sees, query));
    }
    return logarithms;
  }

  FailureOr<Values> logarithmsBySums(Value first) {
    const SmallVector<const Symbol*> rows = {queryAt(queryOf(first, 0)),
                                             queryAt(queryOf(first, 1))};
    fragments_.sync();  // the previous content has been read
    if (failed(fragments_.fill(plan_.query, Value(), op_.getQ(),
                               {batch_, head_}, first)))
      return failure();
    fragments_.waitForTiles();
    const FragmentList query =
        leftFragments(plan_.query, warpShift(plan_.query), 1);
    Values state(2, f32(-kInfinity));
    state.append(2, f32(0));
    if (failed(fillFirstKeys(first, /*with_values=*/false))) return failure();
    FailureOr<Values> found = throughKeys(
        first, /*with_values=*/false, state,
        [&](Value shift, Value first_key, bool masked,
            Values carried) -> FailureOr<Values> {
          const MutableArrayRef<Value> all(carried);
          Value scales[2];
          if (failed(runningWeights(
                  timesTransposed(query, tiles_.key, shift), rows, first_key,
                  masked, {all.take_front(2), all.drop_front(2), scales})))
            return failure();
          return carried;
        });
    if (failed(found)) return failure();
    Values logarithms;
    for (int64_t half = 0; half < 2; ++half) {
      Value sum = fragments_.sumOfRow((*found)[2 + half]),
            sees = arith::CmpFOp::create(builder_, arith::CmpFPredicate::OGT,
                                         sum, f32(0));
      Value logarithm =
          arith::AddFOp::create(builder_, scaled(finite((*found)[half])),
                                math::Log2Op::create(builder_, sum));
      logarithms.push_back(orInfinity(logarithm, sees, queryOf(first, half)));
    }
    return logarithms;
  }

  // Infinity if the query does not exist, or if `sees` does not hold.
  Value orInfinity(Value logarithm, Value sees, Value query) {
    Value exists =
        arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, query,
                              emitter_.indexConstant(queries_));
    return arith::SelectOp::create(
        builder_, arith::AndIOp::create(builder_, exists, sees), logarithm,
        f32(kInfinity));
  }

  void store(RowStatistic what, Value query, Value value) {
    memref::StoreOp::create(builder_, value, memory_, placeOf(what, query));
  }

  // sum(result_grad * result) of a query. Four threads hold its columns.
  FailureOr<Value> meanOf(const Symbol* query) {
    Value sum = emitter_.constant(type_, 0, 4);
    for (int64_t i = 0; i < value_size_; i += 16) {
      Symbol columns;
      columns.value = add(multiply(fragments_.t(), 4), i);
      columns.lanes = 4;
      columns.extent = value_size_;
      const IndexVector index = {batch_, head_, Index(query),
                                 Index(emitter_.newSymbol(columns))};
      FailureOr<Lanes> g = emitter_.element(op_.getResultGrad(), index),
                       y = emitter_.element(op_.getResult(), index);
      if (failed(g) || failed(y)) return failure();
      Value product = arith::MulFOp::create(builder_, emitter_.splat(*g, 4),
                                            emitter_.splat(*y, 4));
      sum = arith::AddFOp::create(builder_, sum, product);
    }
    return fragments_.sumOfRow(
        combineLanes(emitter_, nn::ReduceKind::sum, sum));
  }

  Plan plan_;
};

}  // namespace

FailureOr<int64_t> emitMmaGradStatistics(Emitter& emitter,
                                         const GradKernel& kernel, Value begin,
                                         Value end) {
  return emitGradPart<GradStatistics>(emitter, kernel, begin, end);
}

}  // namespace partita::kernels
