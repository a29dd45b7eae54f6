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

#include "compiler/kernels/emit_attention_grad_block.h"
#include "compiler/kernels/emit_reduction.h"
#include "compiler/kernels/estimate_work.h"
#include "compiler/kernels/placed_gradients.h"
#include "compiler/kernels/tiled_attention.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace partita::kernels {

using namespace mlir;

AttentionGradEmitter::AttentionGradEmitter(Emitter& emitter,
                                           nn::AttentionGradOp op,
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

LogicalResult AttentionGradEmitter::emit(Value begin, Value end) {
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

FailureOr<Values> AttentionGradEmitter::emitItem(const Symbol* item) {
  if (!adds_batches_) {
    std::tie(batch_, group_) = emitter_.split(Index(item), groups_);
    return emitGroup();
  }
  group_ = Index(item);
  if (failed(clear(bias_sums_, biasSums())) ||
      failed(emitter_.loop(batches_, {}, [&](const Symbol* batch, ValueRange) {
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

FailureOr<Values> AttentionGradEmitter::emitGroup() {
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
        return emitter_.loop((queries_ + rows_ - 1) / rows_, {},
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

LogicalResult AttentionGradEmitter::clear(const Buffer& buffer, int64_t size) {
  return emitter_.loop(
      size / lanes_, {},
      [&](const Symbol* vector, ValueRange) -> FailureOr<Values> {
        storeVector(emitter_.constant(type_, 0, lanes_), buffer,
                    multiply(vector->value, lanes_));
        return Values();
      });
}

FailureOr<Values> AttentionGradEmitter::storeRows(
    int i, const Buffer& rows, int64_t count, int64_t size,
    llvm::function_ref<IndexVector(Index, Index)> index) {
  if (!buffers_[i].memref) return Values();
  return emitter_.loop(count, {}, [&](const Symbol* row, ValueRange) {
    return storeRow(i, loadsFrom(rows, multiply(row->value, padded(size))),
                    size, [&](Index lane) { return index(Index(row), lane); });
  });
}

std::function<Value(Value)> AttentionGradEmitter::loadsFrom(
    const Buffer& buffer, Value first) {
  return [this, buffer, first](Value column) {
    return loadVector(buffer, add(first, column));
  };
}

FailureOr<Values> AttentionGradEmitter::storeRow(
    int i, llvm::function_ref<Value(Value)> load, int64_t size,
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

FailureOr<Values> AttentionGradEmitter::storeQueries(Value first, Value rows) {
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

const Symbol* AttentionGradEmitter::queryAt(Value first, const Symbol* row) {
  Symbol query;
  query.value = emitter_.smaller(add(first, row->value), queries_ - 1);
  query.extent = queries_;
  return emitter_.newSymbol(query);
}

LogicalResult AttentionGradEmitter::packQueries(Value first) {
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
          value = arith::SelectOp::create(builder_, exists, value,
                                          emitter_.constant(type_, 0, lanes_));
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
              FailureOr<Lanes> g = rowElement(op_.getResultGrad(), head_, query,
                                              queries_, lane),
                               y = rowElement(op_.getResult(), head_, query,
                                              queries_, lane);
              if (failed(g) || failed(y)) return failure();
              Value given =
                  pack(lane, emitter_.splat(*g, lanes_), value_size_, given_);
              Value product = arith::MulFOp::create(builder_, given,
                                                    emitter_.splat(*y, lanes_));
              if (lane->mask)
                product = arith::SelectOp::create(builder_, lane->mask, product,
                                                  zero[0]);
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
