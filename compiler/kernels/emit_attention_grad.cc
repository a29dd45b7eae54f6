// The gradient of attention on the CPU, after Dao et al. (2022). For a few
// queries at a time, recomputes their weights for all keys, then computes the
// gradients of the weights, and from them q_grad, k_grad and v_grad, in cache.
// With weights P, the result's gradient G and d = sum(G * result) of each row:
//
//   dS = P * (G v^T - d)   q_grad = scale dS k   k_grad = dS^T (scale q)
//   v_grad = P^T G
//
// Rows past the last query have q and G of 0, so they contribute nothing.
#include "compiler/kernels/emit_attention_grad.h"

#include <functional>

#include "compiler/kernels/emit_attention_tiles.h"
#include "compiler/kernels/emit_matmul.h"
#include "compiler/kernels/emit_reduction.h"
#include "compiler/kernels/estimate_work.h"
#include "compiler/kernels/placed_gradients.h"
#include "compiler/kernels/tiled_attention.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace partita::kernels {
namespace {

using namespace mlir;

constexpr int64_t kKeys = 8;     // rows of the register tile of k's gradient
constexpr int64_t kVectors = 3;  // its columns

class AttentionGradEmitter : private AttentionTiles {
 public:
  AttentionGradEmitter(Emitter& emitter, nn::AttentionGradOp op,
                       ArrayRef<Output> outputs)
      : AttentionTiles(emitter, op), op_(op) {
    for (const Output& output : outputs)
      for (auto [i, result] : llvm::enumerate(op->getResults()))
        if (output.value == result) {
          buffers_[i] = output.buffer;
          strides_[i] = placeStrides(output);
          begins_[i] = output.begin;
        }
    // All batch elements add to one gradient of the bias, one after the other.
    adds_batches_ = buffers_[3].memref != nullptr;
    row_ = padded(keys_);
    width_ = visibleSpan();
  }

  int64_t range() const { return adds_batches_ ? groups_ : batches_ * groups_; }

  LogicalResult emit(Value begin, Value end) {
    key_panels_ = emitter_.scratch(type_, row_ * size_);
    value_panels_ = emitter_.scratch(type_, row_ * value_size_);
    key_rows_ = emitter_.scratch(type_, keys_ * padded(size_));
    key_sums_ = emitter_.scratch(type_, row_ * padded(size_));
    value_sums_ = emitter_.scratch(type_, row_ * padded(value_size_));
    query_ = emitter_.scratch(type_, rows_ * padded(size_));
    query_sums_ = emitter_.scratch(type_, rows_ * padded(size_));
    given_ = emitter_.scratch(type_, rows_ * padded(value_size_));
    mean_ = emitter_.scratch(type_, rows_);
    weights_ = emitter_.scratch(type_, rows_ * width_);
    scores_ = emitter_.scratch(type_, rows_ * width_);
    if (adds_batches_) bias_sums_ = emitter_.scratch(type_, biasSums());
    if (failed(mask_.emitStart())) return failure();
    return emitter_.loop(
        begin, end, range(), {},
        [&](const Symbol* item, ValueRange) { return emitItem(item); });
  }

 private:
  FailureOr<Values> emitItem(const Symbol* item) {
    if (!adds_batches_) {
      std::tie(batch_, group_) = emitter_.split(Index(item), groups_);
      return emitGroup();
    }
    group_ = Index(item);
    if (failed(clear(bias_sums_, biasSums())) ||
        failed(
            emitter_.loop(batches_, {}, [&](const Symbol* batch, ValueRange) {
              batch_ = Index(batch);
              return emitGroup();
            })))
      return failure();
    return storeRows(
        3, bias_sums_, shared() * queries_, keys_, [&](Index row, Index key) {
          auto [head, query] = emitter_.split(row, queries_);
          return IndexVector{Index(), group_ * shared() + head, query, key};
        });
  }

  // Heads that share keys and values.
  int64_t shared() const { return heads_ / groups_; }
  // Sums of the bias's gradient: of the heads of a group.
  int64_t biasSums() const { return shared() * queries_ * row_; }

  // Computes one key-value head of one batch element.
  FailureOr<Values> emitGroup() {
    if (failed(mask_.emitSegments(batch_)) ||
        failed(packPanels(op_.getK(), size_, key_panels_)) ||
        failed(packPanels(op_.getV(), value_size_, value_panels_)) ||
        failed(packRows(op_.getK(), size_, key_rows_)) ||
        failed(clear(key_sums_, row_ * padded(size_))) ||
        failed(clear(value_sums_, row_ * padded(value_size_))))
      return failure();
    if (failed(emitter_.loop(shared(), {}, [&](const Symbol* head, ValueRange) {
          head_ = group_ * shared() + Index(head);
          first_bias_row_ = multiply(head->value, queries_);
          return emitter_.loop(
              (queries_ + rows_ - 1) / rows_, {},
              [&](const Symbol* block, ValueRange) {
                return emitBlock(multiply(block->value, rows_));
              });
        })))
      return failure();
    const auto at = [&](Index row, Index column) {
      return IndexVector{batch_, group_, row, column};
    };
    if (failed(storeRows(1, key_sums_, keys_, size_, at))) return failure();
    return storeRows(2, value_sums_, keys_, value_size_, at);
  }

  LogicalResult clear(const Buffer& buffer, int64_t size) {
    return emitter_.loop(
        size / lanes_, {},
        [&](const Symbol* vector, ValueRange) -> FailureOr<Values> {
          storeVector(emitter_.constant(type_, 0, lanes_), buffer,
                      multiply(vector->value, lanes_));
          return Values();
        });
  }

  // Stores result `i`, if it is needed, from rows in scratch.
  FailureOr<Values> storeRows(
      int i, const Buffer& rows, int64_t count, int64_t size,
      llvm::function_ref<IndexVector(Index, Index)> index) {
    if (!buffers_[i].memref) return Values();
    return emitter_.loop(count, {}, [&](const Symbol* row, ValueRange) {
      return storeRow(i, loadsFrom(rows, multiply(row->value, padded(size))),
                      size,
                      [&](Index lane) { return index(Index(row), lane); });
    });
  }

  std::function<Value(Value)> loadsFrom(const Buffer& buffer, Value first) {
    return [this, buffer, first](Value column) {
      return loadVector(buffer, add(first, column));
    };
  }

  FailureOr<Values> storeRow(int i, llvm::function_ref<Value(Value)> load,
                             int64_t size,
                             llvm::function_ref<IndexVector(Index)> index) {
    return emitter_.laneLoop(
        size, lanes_, {},
        [&](const Symbol* lane, ValueRange) -> FailureOr<Values> {
          emitter_.store(
              buffers_[i],
              linearize(index(Index(lane)), strides_[i]) + Index(begins_[i]),
              {load(lane->value), lanes_});
          return Values();
        });
  }

  // Computes a block of queries from `first` on.
  FailureOr<Values> emitBlock(Value first) {
    Value left = arith::SubIOp::create(builder_,
                                       emitter_.indexConstant(queries_), first);
    Value rows = emitter_.smaller(left, rows_);
    if (failed(packQueries(first))) return failure();
    FailureOr<AttentionMask::Range> visible = seenKeys(first);
    if (failed(visible)) return failure();
    seen_ = *visible;
    FailureOr<Value> parts = emitParts(seen_, first);
    if (failed(parts)) return failure();
    parts_ = *parts;
    const auto multiplyKeys = [&](const Part& part,
                                  ValueRange) -> FailureOr<Values> {
      emitPanelProducts(query_, key_panels_, size_, weights_, width_,
                        part.begin, part.count, part.column);
      emitPanelProducts(given_, value_panels_, value_size_, scores_, width_,
                        part.begin, part.count, part.column);
      return Values();
    };
    if (failed(forEach({}, multiplyKeys)) ||
        failed(emitter_.loop(emitter_.indexConstant(0), rows, rows_, {},
                             [&](const Symbol* row, ValueRange) {
                               return emitRow(first, row);
                             })))
      return failure();
    const bool wants_queries = buffers_[0].memref != nullptr;
    if (parts_ && wants_queries &&
        failed(clear(query_sums_, rows_ * padded(size_))))
      return failure();
    const auto addKeys = [&](const Part& part,
                             ValueRange) -> FailureOr<Values> {
      addTransposed(weights_, given_, value_size_, value_sums_, part);
      addTransposed(scores_, query_, size_, key_sums_, part);
      if (wants_queries)
        emitWeightedSums(scores_, width_, key_rows_, size_, query_sums_,
                         /*accumulate=*/parts_ != nullptr, part.begin,
                         part.count, part.column);
      return Values();
    };
    if (failed(forEach({}, addKeys))) return failure();
    return wants_queries ? storeQueries(first, rows) : Values();
  }

  // Keys that a block of queries sees in one run.
  struct Part {
    Value begin, end;  // a multiple of the lanes, and one or the last key
    Value whole;       // `end` rounded up to a multiple of the lanes
    Value count;       // end - begin
    Value column;      // of a tile, for the first key; null: 0
  };

  FailureOr<Values> forEach(
      ValueRange init,
      llvm::function_ref<FailureOr<Values>(const Part&, ValueRange)> body) {
    return forEachPart(
        seen_, parts_, init,
        [&](const AttentionMask::Part& found, ValueRange carried) {
          Part part;
          part.begin = found.keys.begin;
          part.column = found.column;
          // Whole vectors; keys past the last one have weight 0.
          part.whole = multiply(
              arith::CeilDivUIOp::create(builder_, found.keys.end,
                                         emitter_.indexConstant(lanes_)),
              lanes_);
          part.end = emitter_.smaller(part.whole, keys_);
          part.count = arith::SubIOp::create(builder_, part.end, part.begin);
          return body(part, carried);
        });
  }

  // Runs over the lanes of all parts. `body` gets their keys and the place of
  // the first one in the tile's row.
  FailureOr<Values> forKeys(
      const Symbol* row, ValueRange init,
      llvm::function_ref<FailureOr<Values>(const Symbol*, Value, ValueRange)>
          body) {
    return forEach(init, [&](const Part& part, ValueRange carried) {
      // Tiles begin with the first key that is seen.
      Value offset = arith::SubIOp::create(
          builder_, multiply(row->value, width_), part.begin);
      if (part.column) offset = add(offset, part.column);
      return emitter_.laneLoop(
          part.begin, part.end, keys_, width_, lanes_, carried,
          [&](const Symbol* keys, ValueRange values) {
            return body(keys, add(offset, keys->value), values);
          });
    });
  }

  FailureOr<Values> storeQueries(Value first, Value rows) {
    Value scale =
        emitter_.constant(type_, op_.getScale().convertToDouble(), lanes_);
    return emitter_.loop(
        emitter_.indexConstant(0), rows, rows_, {},
        [&](const Symbol* row, ValueRange) {
          const auto load =
              loadsFrom(query_sums_, multiply(row->value, padded(size_)));
          const Index position(queryAt(first, row));
          return storeRow(
              0,
              [&](Value column) -> Value {
                return arith::MulFOp::create(builder_, load(column), scale);
              },
              size_,
              [&](Index lane) {
                return IndexVector{batch_, head_, position, lane};
              });
        });
  }

  const Symbol* queryAt(Value first, const Symbol* row) {
    Symbol query;
    query.value = emitter_.smaller(add(first, row->value), queries_ - 1);
    query.extent = queries_;
    return emitter_.newSymbol(query);
  }

  // Packs scaled queries and the result's gradient; computes the means of the
  // rows.
  LogicalResult packQueries(Value first) {
    Value scale =
        emitter_.constant(type_, op_.getScale().convertToDouble(), lanes_);
    return emitter_.loop(
        rows_, {}, [&](const Symbol* row, ValueRange) -> FailureOr<Values> {
          Value query = add(first, row->value);
          Value exists =
              arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, query,
                                    emitter_.indexConstant(queries_));
          const auto pack = [&](const Symbol* lane, Value value, int64_t size,
                                const Buffer& buffer) {
            value = arith::SelectOp::create(
                builder_, exists, value, emitter_.constant(type_, 0, lanes_));
            storeVector(value, buffer,
                        add(multiply(row->value, padded(size)), lane->value));
            return value;
          };
          FailureOr<Values> packed = emitter_.laneLoop(
              size_, lanes_, {},
              [&](const Symbol* lane, ValueRange) -> FailureOr<Values> {
                FailureOr<Lanes> q =
                    rowElement(op_.getQ(), head_, query, queries_, lane);
                if (failed(q)) return failure();
                pack(lane,
                     arith::MulFOp::create(builder_, emitter_.splat(*q, lanes_),
                                           scale),
                     size_, query_);
                return Values();
              });
          if (failed(packed)) return failure();
          Values zero = {emitter_.constant(type_, 0, lanes_)};
          FailureOr<Values> products = emitter_.laneLoop(
              value_size_, lanes_, zero,
              [&](const Symbol* lane, ValueRange sum) -> FailureOr<Values> {
                FailureOr<Lanes> g = rowElement(op_.getResultGrad(), head_,
                                                query, queries_, lane),
                                 y = rowElement(op_.getResult(), head_, query,
                                                queries_, lane);
                if (failed(g) || failed(y)) return failure();
                Value given =
                    pack(lane, emitter_.splat(*g, lanes_), value_size_, given_);
                Value product = arith::MulFOp::create(
                    builder_, given, emitter_.splat(*y, lanes_));
                if (lane->mask)
                  product = arith::SelectOp::create(builder_, lane->mask,
                                                    product, zero[0]);
                return Values{arith::AddFOp::create(builder_, sum[0], product)};
              });
          if (failed(products)) return failure();
          memref::StoreOp::create(
              builder_,
              combineLanes(emitter_, nn::ReduceKind::sum, products->front()),
              mean_.memref, row->value);
          return Values();
        });
  }

  // Turns scores into weights, and gradients of weights into gradients of
  // scores.
  FailureOr<Values> emitRow(Value first, const Symbol* row) {
    const Symbol* query = queryAt(first, row);
    FailureOr<WeightOf> weight_of =
        op_.getLse() ? weightsByLse(query) : weightsBySums(query, row);
    if (failed(weight_of)) return failure();
    Value mean = emitter_.splat(
        {memref::LoadOp::create(builder_, mean_.memref, row->value), 0},
        lanes_);
    Value bias_row = adds_batches_
                         ? multiply(add(first_bias_row_, query->value), row_)
                         : Value();
    return forKeys(
        row, {},
        [&](const Symbol* keys, Value at, ValueRange) -> FailureOr<Values> {
          FailureOr<Value> weight = (*weight_of)(keys, at);
          if (failed(weight)) return failure();
          storeVector(*weight, weights_, at);
          Value score =
              arith::SubFOp::create(builder_, loadVector(scores_, at), mean);
          score = arith::MulFOp::create(builder_, *weight, score);
          if (keys->mask)
            score =
                arith::SelectOp::create(builder_, keys->mask, score,
                                        emitter_.constant(type_, 0, lanes_));
          storeVector(score, scores_, at);
          if (bias_row) {
            Value to = add(bias_row, keys->value);
            storeVector(arith::AddFOp::create(
                            builder_, loadVector(bias_sums_, to), score),
                        bias_sums_, to);
          }
          return Values();
        });
  }

  // Emits the weights of a vector of keys, whose scores are at a place of the
  // tile.
  using WeightOf = std::function<FailureOr<Value>(const Symbol*, Value)>;

  FailureOr<WeightOf> weightsByLse(const Symbol* query) {
    FailureOr<Lanes> lse =
        emitter_.element(op_.getLse(), {batch_, head_, Index(query)});
    if (failed(lse)) return failure();
    Value shift = lse->value, zero = emitter_.constant(shift.getType(), 0);
    // A query that sees no key has lse = -inf and weights exp(-inf - 0).
    Value none = arith::CmpFOp::create(
        builder_, arith::CmpFPredicate::OEQ, shift,
        neutralElement(emitter_, nn::ReduceKind::max, shift.getType()));
    shift = arith::SelectOp::create(builder_, none, zero, shift);
    if (shift.getType() != type_)
      shift = arith::ExtFOp::create(builder_, type_, shift);
    Value shifts = emitter_.splat({shift, 0}, lanes_);
    return WeightOf([=](const Symbol* keys, Value at) -> FailureOr<Value> {
      FailureOr<Value> score =
          adjustScore(loadVector(weights_, at), query, keys);
      if (failed(score)) return failure();
      return Value(math::ExpOp::create(
          builder_, arith::SubFOp::create(builder_, *score, shifts)));
    });
  }

  FailureOr<WeightOf> weightsBySums(const Symbol* query, const Symbol* row) {
    FailureOr<Value> sum = emitWeights(query, row);
    if (failed(sum)) return failure();
    Value zero = emitter_.constant(type_, 0);
    Value none =
        arith::CmpFOp::create(builder_, arith::CmpFPredicate::OEQ, *sum, zero);
    Value inverse =
        arith::DivFOp::create(builder_, emitter_.constant(type_, 1), *sum);
    inverse = emitter_.splat(
        {arith::SelectOp::create(builder_, none, zero, inverse), 0}, lanes_);
    return WeightOf([=](const Symbol*, Value at) -> FailureOr<Value> {
      return Value(
          arith::MulFOp::create(builder_, loadVector(weights_, at), inverse));
    });
  }

  // Replaces the scores by exp(score - largest score). Returns their sum; 0 if
  // the query sees no key.
  FailureOr<Value> emitWeights(const Symbol* query, const Symbol* row) {
    Value lowest = neutralElement(emitter_, nn::ReduceKind::max, type_);
    Values init = {emitter_.splat({lowest, 0}, lanes_)};
    FailureOr<Values> largest =
        forKeys(row, init,
                [&](const Symbol* keys, Value at,
                    ValueRange carried) -> FailureOr<Values> {
                  Value score = loadVector(weights_, at);
                  FailureOr<Value> adjusted = adjustScore(score, query, keys);
                  if (failed(adjusted)) return failure();
                  if (*adjusted != score) storeVector(*adjusted, weights_, at);
                  return Values{larger(*adjusted, carried[0])};
                });
    if (failed(largest)) return failure();
    Value shift = largestLane(largest->front());
    Value none = arith::CmpFOp::create(builder_, arith::CmpFPredicate::OEQ,
                                       shift, lowest);
    shift = arith::SelectOp::create(builder_, none, emitter_.constant(type_, 0),
                                    shift);
    Value shifts = emitter_.splat({shift, 0}, lanes_);
    Values zero = {emitter_.constant(type_, 0, lanes_)};
    FailureOr<Values> sums = forKeys(
        row, zero,
        [&](const Symbol* keys, Value at,
            ValueRange carried) -> FailureOr<Values> {
          Value weight = math::ExpOp::create(
              builder_, arith::SubFOp::create(
                            builder_, loadVector(weights_, at), shifts));
          if (keys->mask)
            weight =
                arith::SelectOp::create(builder_, keys->mask, weight, zero[0]);
          storeVector(weight, weights_, at);
          return Values{arith::AddFOp::create(builder_, carried[0], weight)};
        });
    if (failed(sums)) return failure();
    return combineLanes(emitter_, nn::ReduceKind::sum, sums->front());
  }

  // sums[key] += sum over rows of a[row, column of key] * b[row], for the keys
  // of a part in whole vectors.
  void addTransposed(const Buffer& a, const Buffer& b, int64_t size,
                     const Buffer& sums, const Part& part) {
    const int64_t tile = std::min(kKeys, lanes_);
    auto loop = scf::ForOp::create(builder_, part.begin, part.whole,
                                   emitter_.indexConstant(tile));
    loop->setAttr(kTripsAttr, builder_.getI64IntegerAttr(width_ / tile));
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPoint(loop.getBody()->getTerminator());
    const int64_t vectors = padded(size) / lanes_;
    for (int64_t v = 0, width; v < vectors; v += width) {
      width = std::min<int64_t>(vectors - v, vectors - v == 4 ? 2 : kVectors);
      MicroMatmul matmul;
      matmul.rows = tile;
      matmul.vectors = width;
      matmul.lanes = lanes_;
      matmul.a = a.memref;
      matmul.a_first =
          arith::SubIOp::create(builder_, loop.getInductionVar(), part.begin);
      if (part.column) matmul.a_first = add(matmul.a_first, part.column);
      matmul.a_row = 1;
      matmul.a_k = width_;
      matmul.b = b.memref;
      matmul.b_first = emitter_.indexConstant(v * lanes_);
      matmul.b_k = padded(size);
      matmul.b_vector = lanes_;
      matmul.depth = emitter_.indexConstant(rows_);
      matmul.expected_depth = rows_;
      const auto at = [&](int64_t row, int64_t i) {
        return add(multiply(loop.getInductionVar(), padded(size)),
                   row * padded(size) + (v + i) * lanes_);
      };
      Values before;
      for (int64_t row = 0; row < tile; ++row)
        for (int64_t i = 0; i < width; ++i)
          before.push_back(loadVector(sums, at(row, i)));
      const Values after = emitMicroMatmul(emitter_, matmul, before);
      for (int64_t row = 0; row < tile; ++row)
        for (int64_t i = 0; i < width; ++i)
          storeVector(after[row * width + i], sums, at(row, i));
    }
  }

  nn::AttentionGradOp op_;
  Buffer buffers_[4];                // of the results; null memref: not needed
  SmallVector<int64_t> strides_[4];  // of the results in their buffers
  int64_t begins_[4] = {};
  bool adds_batches_;
  int64_t row_;    // keys, padded
  int64_t width_;  // keys of a tile, padded
  // Per key-value head.
  Buffer key_panels_, value_panels_, key_rows_, key_sums_, value_sums_;
  AttentionMask::Range seen_;  // keys of the block of queries
  Value parts_;                // number of their parts; null: they are one
  // Per block of queries. `weights_` holds scores first; `scores_` holds
  // gradients of weights first, then gradients of scores.
  Buffer query_, query_sums_, given_, mean_, weights_, scores_;
  Buffer bias_sums_;      // rows of each head of the group
  Value first_bias_row_;  // of the head
};

}  // namespace

nn::AttentionGradOp findAttentionGrad(func::FuncOp kernel) {
  const SmallVector<Output> results =
      gradientsOf(kernel.getBody().front().getTerminator()->getOperands(), {});
  auto op = results.empty()
                ? nullptr
                : results[0].value.getDefiningOp<nn::AttentionGradOp>();
  return op && isTiled(op) &&
                 llvm::all_of(results,
                              [&](const Output& result) {
                                return result.value.getDefiningOp() == op;
                              })
             ? op
             : nullptr;
}

SmallVector<Output> gradientsOf(ValueRange results, ArrayRef<Buffer> buffers) {
  SmallVector<Output> gradients;
  for (auto [i, result] : llvm::enumerate(results)) {
    const Buffer buffer = buffers.empty() ? Buffer() : buffers[i];
    SmallVector<PlacedGradient> parts;
    if (auto concat = result.getDefiningOp<nn::ConcatOp>())
      parts = placedGradients(concat);
    if (parts.empty()) gradients.push_back({result, buffer});
    for (PlacedGradient& part : parts)
      gradients.push_back(
          {part.gradient, buffer, 0, 0, part.begin, std::move(part.strides)});
  }
  return gradients;
}

SmallVector<int64_t> placeStrides(const Output& gradient) {
  return gradient.strides.empty()
             ? rowMajorStrides(
                   cast<RankedTensorType>(gradient.value.getType()).getShape())
             : gradient.strides;
}

FailureOr<int64_t> emitAttentionGrad(Emitter& emitter, nn::AttentionGradOp op,
                                     ArrayRef<Output> outputs, Value begin,
                                     Value end) {
  AttentionGradEmitter grad(emitter, op, outputs);
  if (failed(grad.emit(begin, end))) return failure();
  return grad.range();
}

}  // namespace partita::kernels
