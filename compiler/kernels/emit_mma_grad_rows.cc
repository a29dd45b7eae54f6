// For a block of queries: goes through its keys twice, for the sums of weights
// and then for q's gradient.
#include "compiler/kernels/emit_mma_grad_parts.h"
#include "compiler/kernels/emit_reduction.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace partita::kernels {
namespace {

using namespace mlir;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Queries and the result's gradient are loaded through the second buffer of
// keys.
struct Plan {
  explicit Plan(nn::AttentionGradOp op) {
    const int64_t size = shapeOf(op.getQ())[3],
                  value_size = shapeOf(op.getV())[3];
    const Type element = elementOf(op.getQ());
    const KeyTiles tiles(element, size, value_size);
    const int64_t padding = paddingOf(element);
    query = {tiles.buffer, kGradRows, size, padding};
    given = {tiles.buffer, kGradRows, value_size, padding};
    bytes = bytesOf(element) *
            (tiles.buffer +
             std::max({tiles.buffer, query.elements(), given.elements()}));
  }
  Tile query, given;
  int64_t bytes;
};

class GradRows : private MmaGradTiles {
 public:
  GradRows(Emitter& emitter, nn::AttentionGradOp op, ArrayRef<Output> outputs,
           Value memory)
      : MmaGradTiles(emitter, op, outputs, memory, Plan(op).bytes), plan_(op) {}

  int64_t range() const { return batches_ * heads_ * blocks_; }

  LogicalResult emit(Value begin, Value end) {
    return emitter_.loop(
        begin, end, range(), {},
        [&](const Symbol* item, ValueRange) { return emitItem(item); });
  }

 private:
  FailureOr<Values> emitItem(const Symbol* item) {
    auto [pair, block] = emitter_.split(Index(item), blocks_);
    std::tie(batch_, head_) = emitter_.split(pair, heads_);
    group_ = emitter_.split(head_, heads_ / groups_).first;
    Value first = multiply(number(block), kGradRows);
    rows_of_sums_ = {queryAt(add(first, threadRow())),
                     queryAt(add(add(first, threadRow()), 8))};
    if (failed(loadRows(plan_.query, op_.getQ(), first, query_)) ||
        failed(loadRows(plan_.given, op_.getResultGrad(), first, given_)) ||
        failed(emitStatistics(first)))
      return failure();
    return buffers_[0].memref ? emitGrad(first) : Values();
  }

  // Loads this warp's rows of a tensor as fragments.
  LogicalResult loadRows(const Tile& tile, Value tensor, Value first,
                         FragmentList& left) {
    fragments_.sync();  // the previous content has been read
    if (failed(fragments_.fill(tile, Value(), tensor, {batch_, head_}, first)))
      return failure();
    fragments_.waitForTiles();
    left = leftFragments(tile, warpShift(tile), 1);
    return success();
  }

  // Computes and stores the statistics of the queries.
  LogicalResult emitStatistics(Value first) {
    Values state(2, f32(-kInfinity));
    state.append(2, f32(0));
    if (failed(fillFirstKeys(first, /*with_values=*/false))) return failure();
    FailureOr<Values> found =
        throughKeys(first, /*with_values=*/false, state,
                    [&](Value shift, Value first_key, bool masked,
                        Values carried) -> FailureOr<Values> {
                      const MutableArrayRef<Value> all(carried);
                      Value scales[2];
                      if (failed(runningWeights(
                              timesTransposed(query_, tiles_.key, shift),
                              rows_of_sums_, first_key, masked,
                              {all.take_front(2), all.drop_front(2), scales})))
                        return failure();
                      return carried;
                    });
    if (failed(found)) return failure();
    for (int64_t half = 0; half < 2; ++half) {
      FailureOr<Value> mean = meanOf(half);
      if (failed(mean)) return failure();
      means_[half] = *mean;
      Value query = add(add(first, threadRow()), 8 * half);
      logarithms_[half] = logarithmOf(
          (*found)[half], fragments_.sumOfRow((*found)[2 + half]), query);
      store(kLogarithm, query, logarithms_[half]);
      store(kMean, query, means_[half]);
    }
    return success();
  }

  void store(RowStatistic what, Value query, Value value) {
    memref::StoreOp::create(builder_, value, memory_, placeOf(what, query));
  }

  Value logarithmOf(Value largest, Value sum, Value query) {
    Value logarithm = arith::AddFOp::create(
        builder_, scaled(finite(largest)), math::Log2Op::create(builder_, sum));
    Value exists =
        arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, query,
                              emitter_.indexConstant(queries_));
    Value sees =
        arith::CmpFOp::create(builder_, arith::CmpFPredicate::OGT, sum, f32(0));
    return arith::SelectOp::create(
        builder_, arith::AndIOp::create(builder_, exists, sees), logarithm,
        f32(kInfinity));
  }

  // sum(result_grad * result) of a row. Four threads hold its columns.
  FailureOr<Value> meanOf(int64_t half) {
    Value sum = emitter_.constant(type_, 0, 4);
    for (int64_t i = 0; i < value_size_; i += 16) {
      Symbol columns;
      columns.value = add(multiply(fragments_.t(), 4), i);
      columns.lanes = 4;
      columns.extent = value_size_;
      const IndexVector index = {batch_, head_, Index(rows_of_sums_[half]),
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

  FailureOr<Values> emitGrad(Value first) {
    if (failed(fillFirstKeys(first, /*with_values=*/true))) return failure();
    const Values zeros(size_ / 8, fragments_.zero());
    FailureOr<Values> sums = throughKeys(
        first, /*with_values=*/true, zeros,
        [&](Value shift, Value first_key, bool masked,
            Values carried) -> FailureOr<Values> {
          FailureOr<Values> grads = scoreGrads(shift, first_key, masked);
          if (failed(grads)) return failure();
          addTimes(leftOf(*grads), tiles_.key, shift, carried);
          return carried;
        });
    if (failed(sums) ||
        failed(storeSums(*sums, scale_, plan_.query, 0, head_, first)))
      return failure();
    return Values();
  }

  // Gradients of a tile's scores, in the order of fragments.
  FailureOr<Values> scoreGrads(Value shift, Value first_key, bool masked) {
    const Values products = timesTransposed(query_, tiles_.key, shift),
                 given = timesTransposed(given_, tiles_.value, shift);
    Values grads;
    for (auto [eight, product] : llvm::enumerate(products))
      for (int64_t half = 0; half < 2; ++half) {
        Value key = add(add(first_key, multiply(fragments_.t(), 2)), 8 * eight);
        const Symbol* query = rows_of_sums_[half];
        FailureOr<Values> bias = biasesOf(query, key, masked);
        if (failed(bias)) return failure();
        for (int64_t i = 0; i < 2; ++i) {
          Value score = scoreOf(scalar(product, 2 * half + i), (*bias)[i]);
          if (masked) score = maskKey(score, add(key, i), query->value);
          grads.push_back(scoreGrad(weightOf(score, logarithms_[half]),
                                    scalar(given[eight], 2 * half + i),
                                    means_[half]));
        }
      }
    return grads;
  }

  Plan plan_;
  FragmentList query_, given_;  // left fragments
  SmallVector<const Symbol*> rows_of_sums_;
  Value logarithms_[2], means_[2];
};

}  // namespace

FailureOr<int64_t> emitMmaGradRows(Emitter& emitter, nn::AttentionGradOp op,
                                   ArrayRef<Output> outputs, Value memory,
                                   Value begin, Value end) {
  GradRows rows(emitter, op, outputs, memory);
  if (failed(rows.emit(begin, end))) return failure();
  return rows.range();
}

}  // namespace partita::kernels
