// Attention on the CPU, after Dao et al. (2022): for a few queries at a time,
// scores of a block of keys, their running softmax, and the weighted sum of
// values, all in cache.
//
// Keys are packed transposed, one panel [head size][lanes] per vector of keys,
// and values as rows padded to whole vectors, both once per batch and head; so
// fused transposes, slices and bias additions of q, k, v cost one pass.
#include "compiler/kernels/emit_attention.h"

#include "compiler/kernels/emit_attention_block.h"
#include "compiler/kernels/emit_matmul.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace partita::kernels {
namespace {

using namespace mlir;

constexpr int64_t kQueries = 8;     // rows of the register tile
constexpr int64_t kKeyBlock = 512;  // keys whose scores are in cache at a time
constexpr int64_t kFewestItems =
    8;  // of the range, if there is work for so many

int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

// The index that `value` has where `attention`'s result has `index`, if it
// follows by movements and elementwise operations; nothing otherwise. Without
// an emitter only whether it does.
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
    : emitter_(emitter),
      builder_(emitter.builder()),
      op_(op),
      outputs_(outputs) {
  ArrayRef<int64_t> q = typeOf(op.getQ()).getShape(),
                    v = typeOf(op.getV()).getShape();
  heads_ = q[1];
  queries_ = q[2];
  size_ = q[3];
  groups_ = v[1];
  keys_ = v[2];
  value_size_ = v[3];
  type_ = emitter.computeType(typeOf(op.getQ()).getElementType());
  lanes_ = emitter.nativeLanes() * 32 / type_.getIntOrFloatBitWidth();
  rows_ = std::min(kQueries, queries_);
  blocks_ = (queries_ + rows_ - 1) / rows_;
  parts_ =
      std::min(blocks_, (kFewestItems + q[0] * heads_ - 1) / (q[0] * heads_));
  range_ = q[0] * heads_ * parts_;
  padded_size_ = roundUp(size_, lanes_);
  padded_value_ = roundUp(value_size_, lanes_);
  key_block_ = std::min(kKeyBlock, roundUp(keys_, lanes_));
  one_block_ = keys_ <= key_block_;
}

LogicalResult AttentionEmitter::emit(Value begin, Value end) {
  packed_k_ = emitter_.scratch(type_, roundUp(keys_, lanes_) * size_);
  packed_v_ = emitter_.scratch(type_, keys_ * padded_value_);
  packed_q_ = emitter_.scratch(type_, rows_ * padded_size_);
  scores_ = emitter_.scratch(type_, rows_ * key_block_);
  sums_ = emitter_.scratch(type_, rows_ * padded_value_);
  largest_ = emitter_.scratch(type_, rows_);
  weight_ = emitter_.scratch(type_, rows_);
  return emitter_.loop(
      begin, end, range_, {},
      [&](const Symbol* item, ValueRange) { return emitItem(item); });
}

FailureOr<Values> AttentionEmitter::emitItem(const Symbol* item) {
  Index pair, part;
  std::tie(pair, part) = emitter_.split(Index(item), parts_);
  std::tie(batch_, head_) = emitter_.split(pair, heads_);
  group_ = emitter_.split(head_, heads_ / groups_).first;
  if (failed(packKeys()) || failed(packValues())) return failure();
  int64_t per_part = (blocks_ + parts_ - 1) / parts_;
  Value first = number(part * per_part),
        last = emitter_.smaller(number(part * per_part + Index(per_part)),
                                blocks_);
  return emitter_.loop(
      emitter_.smaller(first, blocks_), last, blocks_, {},
      [&](const Symbol* block, ValueRange) { return emitBlock(block); });
}

FailureOr<Lanes> AttentionEmitter::rowElement(Value tensor, const Index& head,
                                              Value row, int64_t rows,
                                              const Symbol* lane) {
  Symbol symbol;
  symbol.value = emitter_.smaller(row, rows - 1);
  symbol.extent = rows;
  return emitter_.element(
      tensor, {batch_, head, Index(emitter_.newSymbol(symbol)), Index(lane)});
}

FailureOr<bool> AttentionEmitter::isDenseAlongHead(Value tensor) {
  const Symbol* lane = nullptr;
  FailureOr<Emitter::Recording> recording =
      emitter_.investigate([&]() -> FailureOr<Values> {
        return emitter_.laneLoop(
            size_, lanes_, {},
            [&](const Symbol* symbol, ValueRange) -> FailureOr<Values> {
              lane = symbol;
              if (failed(rowElement(tensor, group_, emitter_.indexConstant(0),
                                    keys_, symbol)))
                return failure();
              return Values();
            });
      });
  if (failed(recording)) return failure();
  for (const Index& access : recording->accesses)
    for (const Term& term : access.terms())
      if (term.symbol == lane && (term.scale != 1 || term.divisor != 1))
        return false;
  return true;
}

LogicalResult AttentionEmitter::packKeys() {
  FailureOr<bool> dense = isDenseAlongHead(op_.getK());
  if (failed(dense)) return failure();
  int64_t panels = (keys_ + lanes_ - 1) / lanes_;
  return emitter_.loop(
      panels, {}, [&](const Symbol* panel, ValueRange) -> FailureOr<Values> {
        return *dense ? packPanelByRows(panel) : packPanelByColumns(panel);
      });
}

FailureOr<Values> AttentionEmitter::packPanelByRows(const Symbol* panel) {
  return emitter_.laneLoop(
      size_, lanes_, {},
      [&](const Symbol* lane, ValueRange) -> FailureOr<Values> {
        Values rows;
        for (int64_t i = 0; i < lanes_; ++i) {
          Value key = add(multiply(panel->value, lanes_), i);
          FailureOr<Lanes> row =
              rowElement(op_.getK(), group_, key, keys_, lane);
          if (failed(row)) return failure();
          rows.push_back(emitter_.splat(*row, lanes_));
        }
        rows = transposeInRegisters(emitter_, rows);
        Value first = add(multiply(panel->value, size_ * lanes_),
                          multiply(lane->value, lanes_));
        int64_t count = lane->mask ? size_ % lanes_ : lanes_;
        for (int64_t j = 0; j < count; ++j)
          storeVector(rows[j], packed_k_, add(first, j * lanes_));
        return Values();
      });
}

FailureOr<Values> AttentionEmitter::packPanelByColumns(const Symbol* panel) {
  return emitter_.loop(
      size_, {}, [&](const Symbol* column, ValueRange) -> FailureOr<Values> {
        // Lanes behind the last key read the last key again.
        Symbol keys;
        keys.extent = keys_;
        keys.lanes = lanes_;
        keys.value = multiply(panel->value, lanes_);
        if (keys_ % lanes_ != 0) {
          Value left = arith::SubIOp::create(
              builder_, emitter_.indexConstant(keys_), keys.value);
          keys.mask = vector::CreateMaskOp::create(
              builder_, VectorType::get({lanes_}, builder_.getI1Type()),
              ValueRange(left));
        }
        const Symbol* symbol = emitter_.newSymbol(keys);
        FailureOr<Lanes> element = emitter_.element(
            op_.getK(), {batch_, group_, Index(symbol), Index(column)});
        if (failed(element)) return failure();
        Value at = add(multiply(panel->value, size_ * lanes_),
                       multiply(column->value, lanes_));
        storeVector(emitter_.splat(*element, lanes_), packed_k_, at);
        return Values();
      });
}

LogicalResult AttentionEmitter::packValues() {
  return emitter_.loop(
      keys_, {}, [&](const Symbol* key, ValueRange) -> FailureOr<Values> {
        return emitter_.laneLoop(
            value_size_, lanes_, {},
            [&](const Symbol* lane, ValueRange) -> FailureOr<Values> {
              FailureOr<Lanes> element =
                  rowElement(op_.getV(), group_, key->value, keys_, lane);
              if (failed(element)) return failure();
              Value at = add(multiply(key->value, padded_value_), lane->value);
              storeVector(emitter_.splat(*element, lanes_), packed_v_, at);
              return Values();
            });
      });
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
        emitter_.cache(op_.getResult(),
                       {{batch_, head_, Index(position), Index()},
                        {-1, -1, -1, 1},
                        Index(row) * padded_value_,
                        sums_});
        return emitter_.laneLoop(
            value_size_, lanes_, {},
            [&](const Symbol* lane, ValueRange) -> FailureOr<Values> {
              for (const Output& output : outputs_) {
                IndexVector index =
                    forwardIndex(emitter_, output.value, op_.getResult(),
                                 {batch_, head_, Index(position), Index(lane)});
                FailureOr<Lanes> element =
                    emitter_.element(output.value, index);
                if (failed(element)) return failure();
                emitter_.store(
                    output.buffer,
                    linearize(index,
                              rowMajorStrides(typeOf(output.value).getShape())),
                    *element);
              }
              return Values();
            });
      });
}

Value AttentionEmitter::larger(Value a, Value b) {
  Value is_larger =
      arith::CmpFOp::create(builder_, arith::CmpFPredicate::OGT, a, b);
  return arith::SelectOp::create(builder_, is_larger, a, b);
}

Value AttentionEmitter::largestLane(Value vector) {
  for (int64_t lanes = lanes_ / 2; lanes >= 1; lanes /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < lanes; ++i) {
      low.push_back(i);
      high.push_back(lanes + i);
    }
    Value a = vector::ShuffleOp::create(builder_, vector, vector, low);
    vector =
        larger(a, vector::ShuffleOp::create(builder_, vector, vector, high));
  }
  return vector::ExtractOp::create(builder_, vector, int64_t{0});
}

nn::AttentionOp findAttention(func::FuncOp kernel) {
  SmallVector<nn::AttentionOp> found;
  kernel.walk([&](nn::AttentionOp op) { found.push_back(op); });
  if (found.size() != 1 || typeOf(found[0].getResult()).getNumElements() == 0 ||
      typeOf(found[0].getK()).getNumElements() == 0)
    return nullptr;
  for (Value result : kernel.getBody().front().getTerminator()->getOperands())
    if (!follows(result, found[0].getResult())) return nullptr;
  return found[0];
}

int64_t attentionRange(Emitter& emitter, nn::AttentionOp op) {
  return AttentionEmitter(emitter, op, {}).range();
}

LogicalResult emitAttention(Emitter& emitter, nn::AttentionOp op,
                            ArrayRef<Output> outputs, Value begin, Value end) {
  return AttentionEmitter(emitter, op, outputs).emit(begin, end);
}

}  // namespace partita::kernels
