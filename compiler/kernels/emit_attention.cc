// Attention, after Dao et al. (2022). For a few queries at a time, computes the
// scores of a block of keys, their running softmax, and the weighted sum of
// values, all in cache.
//
// Keys are packed transposed, one panel [head size][lanes] per vector of keys,
// and values as rows padded to whole vectors, both once per batch and head. So
// fused transposes, slices and bias additions of q, k, v cost one pass. A
// single query reads keys and values where they lie (emit_attention_row.cc).
#include "compiler/kernels/emit_attention.h"

#include "compiler/kernels/emit_attention_block.h"
#include "compiler/kernels/emit_matmul.h"
#include "compiler/kernels/emit_reduction.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace partita::kernels {
namespace {

using namespace mlir;

constexpr int64_t kKeyBlock = 512;  // keys whose scores are in cache at a time
// Least number of items of the range, if there is enough work.
constexpr int64_t kFewestItems = 8;

RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

// True if `value` follows from `attention` by transposes, reshapes and
// elementwise operations.
bool follows(Value value, Value attention) {
  if (value == attention) return true;
  Operation* op = value.getDefiningOp();
  if (!op) return false;
  if (isa<nn::TransposeOp, nn::ReshapeOp>(op))
    return follows(op->getOperand(0), attention);
  if (kernelRole(op) != KernelRole::elementwise) return false;
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return follows(operand, attention);
  });
}

// The index of `value` for the element of `attention`'s result at `index`.
// Requires follows().
IndexVector forwardIndex(Emitter& emitter, Value value, Value attention,
                         ArrayRef<Index> index) {
  if (value == attention) return IndexVector(index.begin(), index.end());
  Operation* op = value.getDefiningOp();
  Value from = *llvm::find_if(op->getOperands(), [&](Value operand) {
    return follows(operand, attention);
  });
  IndexVector before = forwardIndex(emitter, from, attention, index);
  if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
    IndexVector after;
    for (int64_t dim : transpose.getPerm()) after.push_back(before[dim]);
    return after;
  }
  if (auto reshape = dyn_cast<nn::ReshapeOp>(op)) {
    Index position =
        linearize(before, rowMajorStrides(typeOf(from).getShape()));
    return emitter.delinearize(position, reshape.getType().getShape());
  }
  return before;
}

}  // namespace

AttentionEmitter::AttentionEmitter(Emitter& emitter, nn::AttentionOp op,
                                   ArrayRef<Output> outputs)
    : AttentionTiles(emitter, op), op_(op), outputs_(outputs) {
  blocks_ = (queries_ + rows_ - 1) / rows_;
  int64_t pairs = batches_ * heads_;
  parts_ = std::min(blocks_, (kFewestItems + pairs - 1) / pairs);
  range_ = pairs * parts_;
  padded_size_ = padded(size_);
  padded_value_ = padded(value_size_);
  // A window's keys need not be two blocks because their ends are rounded.
  const int64_t span = visibleSpan();
  key_block_ = span <= kKeyBlock + kKeyBlock / 8 ? span : kKeyBlock;
  is_row_ = queries_ == 1 && !mask_.hasParts(lanes_);
  if (is_row_) key_block_ = span;
  one_block_ = span <= key_block_ && !mask_.hasParts(lanes_);
}

LogicalResult AttentionEmitter::emit(Value begin, Value end) {
  if (!is_row_) {
    packed_k_ = emitter_.scratch(type_, padded(keys_) * size_);
    packed_v_ = emitter_.scratch(type_, keys_ * padded_value_);
  }
  packed_q_ = emitter_.scratch(type_, rows_ * padded_size_);
  scores_ = emitter_.scratch(type_, rows_ * key_block_);
  sums_ = emitter_.scratch(type_, rows_ * padded_value_);
  largest_ = emitter_.scratch(type_, rows_);
  weight_ = emitter_.scratch(type_, rows_);
  if (failed(mask_.emitStart())) return failure();
  return emitter_.loop(
      begin, end, range_, {},
      [&](const Symbol* item, ValueRange) { return emitItem(item, begin); });
}

FailureOr<Values> AttentionEmitter::emitItem(const Symbol* item, Value begin) {
  Index pair, part;
  std::tie(pair, part) = emitter_.split(Index(item), parts_);
  std::tie(batch_, head_) = emitter_.split(pair, heads_);
  group_ = emitter_.split(head_, heads_ / groups_).first;
  if (is_row_) {
    // Segments differ between batch elements only. The items of an element
    // follow each other, and their segments stay in scratch memory.
    const auto equals = [&](Value a, Value b) -> Value {
      return arith::CmpIOp::create(builder_, arith::CmpIPredicate::eq, a, b);
    };
    const Value is_new =
        arith::OrIOp::create(builder_, equals(item->value, begin),
                             equals(number(head_), emitter_.indexConstant(0)));
    if (failed(emitter_.branch(is_new,
                               [&] { return mask_.emitSegments(batch_); })))
      return failure();
    return emitRow();
  }
  if (failed(mask_.emitSegments(batch_)) ||
      failed(packPanels(op_.getK(), size_, packed_k_)) ||
      failed(packRows(op_.getV(), value_size_, packed_v_)))
    return failure();
  int64_t per_part = (blocks_ + parts_ - 1) / parts_;
  Value first = number(part * per_part),
        last = emitter_.smaller(number(part * per_part + Index(per_part)),
                                blocks_);
  return emitter_.loop(
      emitter_.smaller(first, blocks_), last, blocks_, {},
      [&](const Symbol* block, ValueRange) { return emitBlock(block); });
}

LogicalResult AttentionEmitter::packQueries(Value first) {
  Value scale =
      emitter_.constant(type_, op_.getScale().convertToDouble(), lanes_);
  return emitter_.loop(
      rows_, {}, [&](const Symbol* row, ValueRange) -> FailureOr<Values> {
        return emitter_.laneLoop(
            size_, lanes_, {},
            [&](const Symbol* lane, ValueRange) -> FailureOr<Values> {
              FailureOr<Lanes> element = rowElement(
                  op_.getQ(), head_, add(first, row->value), queries_, lane);
              if (failed(element)) return failure();
              Value scaled = arith::MulFOp::create(
                  builder_, emitter_.splat(*element, lanes_), scale);
              storeVector(scaled, packed_q_,
                          add(multiply(row->value, padded_size_), lane->value));
              return Values();
            });
      });
}

FailureOr<Values> AttentionEmitter::emitOutputs(Value first) {
  Value left =
      arith::SubIOp::create(builder_, emitter_.indexConstant(queries_), first);
  Value rows = emitter_.smaller(left, rows_);
  return emitter_.loop(
      emitter_.indexConstant(0), rows, rows_, {},
      [&](const Symbol* row, ValueRange) {
        Value weight =
            memref::LoadOp::create(builder_, weight_.memref, row->value);
        Value zero = emitter_.constant(type_, 0);
        Value none = arith::CmpFOp::create(builder_, arith::CmpFPredicate::OEQ,
                                           weight, zero);
        Value inverse = arith::DivFOp::create(
            builder_, emitter_.constant(type_, 1), weight);
        inverse = arith::SelectOp::create(builder_, none, zero, inverse);
        for (int64_t v = 0; v < padded_value_; v += lanes_) {
          Value at = add(multiply(row->value, padded_value_), v);
          Value scaled =
              arith::MulFOp::create(builder_, loadVector(sums_, at),
                                    emitter_.splat({inverse, 0}, lanes_));
          storeVector(scaled, sums_, at);
        }
        Symbol query;
        query.value = add(first, row->value);
        query.extent = queries_;
        const Symbol* position = emitter_.newSymbol(query);
        storeLse(row, position, weight);
        emitter_.cache(op_.getResult(),
                       {{batch_, head_, Index(position), Index()},
                        {-1, -1, -1, 1},
                        Index(row) * padded_value_,
                        sums_});
        return emitter_.laneLoop(
            value_size_, lanes_, {},
            [&](const Symbol* lane, ValueRange) -> FailureOr<Values> {
              if (failed(storeOutputs(
                      emitter_, op_, outputs_,
                      {batch_, head_, Index(position), Index(lane)})))
                return failure();
              return Values();
            });
      });
}

void AttentionEmitter::storeLse(const Symbol* row, const Symbol* query,
                                Value weight) {
  for (const Output& output : outputs_) {
    if (output.value != op_.getLse()) continue;
    Value largest =
        memref::LoadOp::create(builder_, largest_.memref, row->value);
    // -inf for a query that sees no key, whose largest score is -inf.
    Value lse = arith::AddFOp::create(
        builder_, math::LogOp::create(builder_, weight), largest);
    lse = arith::SelectOp::create(
        builder_,
        arith::CmpFOp::create(builder_, arith::CmpFPredicate::OEQ, weight,
                              emitter_.constant(type_, 0)),
        neutralElement(emitter_, nn::ReduceKind::max, type_), lse);
    emitter_.store(output.buffer,
                   linearize({batch_, head_, Index(query)},
                             rowMajorStrides(typeOf(op_.getLse()).getShape())),
                   {lse, 0});
  }
}

nn::AttentionOp findAttention(func::FuncOp kernel) {
  SmallVector<nn::AttentionOp> found;
  kernel.walk([&](nn::AttentionOp op) { found.push_back(op); });
  if (found.size() != 1 || typeOf(found[0].getResult()).getNumElements() == 0 ||
      typeOf(found[0].getK()).getNumElements() == 0)
    return nullptr;
  for (Value result : kernel.getBody().front().getTerminator()->getOperands())
    if (result != found[0].getLse() && !follows(result, found[0].getResult()))
      return nullptr;
  return found[0];
}

int64_t attentionRange(Emitter& emitter, nn::AttentionOp op) {
  return AttentionEmitter(emitter, op, {}).range();
}

LogicalResult storeOutputs(Emitter& emitter, nn::AttentionOp op,
                           ArrayRef<Output> outputs, ArrayRef<Index> of_op) {
  for (const Output& output : outputs) {
    if (output.value == op.getLse()) continue;
    IndexVector index =
        forwardIndex(emitter, output.value, op.getResult(), of_op);
    FailureOr<Lanes> element = emitter.element(output.value, index);
    if (failed(element)) return failure();
    emitter.store(
        output.buffer,
        linearize(index, rowMajorStrides(typeOf(output.value).getShape())),
        *element);
  }
  return success();
}

LogicalResult emitAttention(Emitter& emitter, nn::AttentionOp op,
                            ArrayRef<Output> outputs, Value begin, Value end) {
  return AttentionEmitter(emitter, op, outputs).emit(begin, end);
}

}  // namespace partita::kernels
