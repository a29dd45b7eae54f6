// Attention on the CPU, after Dao et al. (2022): for a few queries at a time,
// scores of a block of keys, their running softmax, and the weighted sum of
// values, all in cache.
//
// Keys are packed transposed, one panel [head size][lanes] per vector of keys,
// and values as rows padded to whole vectors, both once per batch and head; so
// fused transposes, slices and bias additions of q, k, v cost one pass.
#include "compiler/kernels/emit_attention.h"

#include "compiler/kernels/emit_matmul.h"
#include "compiler/kernels/emit_reduction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace partita::kernels {
namespace {

using namespace mlir;

constexpr int64_t kQueries = 8;       // rows of the register tile
constexpr int64_t kScoreVectors = 3;  // columns of the register tile for scores
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

class AttentionEmitter {
 public:
  AttentionEmitter(Emitter& emitter, nn::AttentionOp op,
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

  int64_t range() const { return range_; }

  LogicalResult emit(Value begin, Value end) {
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

 private:
  using Body = llvm::function_ref<FailureOr<Values>(const Symbol*, ValueRange)>;

  FailureOr<Values> emitItem(const Symbol* item) {
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

  // --- Packing ---

  // The element at lanes of the head dimension, for a row that is clamped into
  // the tensor.
  FailureOr<Lanes> rowElement(Value tensor, const Index& head, Value row,
                              int64_t rows, const Symbol* lane) {
    Symbol symbol;
    symbol.value = emitter_.smaller(row, rows - 1);
    symbol.extent = rows;
    return emitter_.element(
        tensor, {batch_, head, Index(emitter_.newSymbol(symbol)), Index(lane)});
  }

  // True if neighbouring elements of a head lie next to each other in memory,
  // as they do unless k is stored transposed.
  FailureOr<bool> isDenseAlongHead(Value tensor) {
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

  // Panel p holds keys p * lanes ..., as [head size][lanes].
  LogicalResult packKeys() {
    FailureOr<bool> dense = isDenseAlongHead(op_.getK());
    if (failed(dense)) return failure();
    int64_t panels = (keys_ + lanes_ - 1) / lanes_;
    return emitter_.loop(
        panels, {}, [&](const Symbol* panel, ValueRange) -> FailureOr<Values> {
          return *dense ? packPanelByRows(panel) : packPanelByColumns(panel);
        });
  }

  FailureOr<Values> packPanelByRows(const Symbol* panel) {
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

  FailureOr<Values> packPanelByColumns(const Symbol* panel) {
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

  LogicalResult packValues() {
    return emitter_.loop(
        keys_, {}, [&](const Symbol* key, ValueRange) -> FailureOr<Values> {
          return emitter_.laneLoop(
              value_size_, lanes_, {},
              [&](const Symbol* lane, ValueRange) -> FailureOr<Values> {
                FailureOr<Lanes> element =
                    rowElement(op_.getV(), group_, key->value, keys_, lane);
                if (failed(element)) return failure();
                Value at =
                    add(multiply(key->value, padded_value_), lane->value);
                storeVector(emitter_.splat(*element, lanes_), packed_v_, at);
                return Values();
              });
        });
  }

  LogicalResult packQueries(Value first) {
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
                storeVector(
                    scaled, packed_q_,
                    add(multiply(row->value, padded_size_), lane->value));
                return Values();
              });
        });
  }

  // --- One block of queries ---

  FailureOr<Values> emitBlock(const Symbol* block) {
    Value first = multiply(block->value, rows_);
    if (failed(packQueries(first))) return failure();
    if (!one_block_ && failed(clearState())) return failure();
    // Keys from `visible` on are masked for all of the block.
    Value visible = emitter_.indexConstant(keys_);
    if (op_.getCausalOffset()) {
      Value last = arith::AddIOp::create(
          builder_, first,
          emitter_.indexConstant(static_cast<int64_t>(*op_.getCausalOffset()) +
                                 rows_));
      last = arith::MaxSIOp::create(builder_, last, emitter_.indexConstant(0));
      visible = arith::MinSIOp::create(builder_, last, visible);
    }
    int64_t key_blocks = (keys_ + key_block_ - 1) / key_block_;
    Value count = arith::CeilDivUIOp::create(
        builder_, visible, emitter_.indexConstant(key_block_));
    FailureOr<Values> done;
    if (one_block_) {
      done = emitKeys(first, emitter_.indexConstant(0), visible);
    } else {
      done = emitter_.loop(
          emitter_.indexConstant(0), count, key_blocks, {},
          [&](const Symbol* keys, ValueRange) {
            return emitKeys(first, multiply(keys->value, key_block_), visible);
          });
    }
    if (failed(done)) return failure();
    return emitOutputs(first);
  }

  LogicalResult clearState() {
    return emitter_.loop(
        rows_, {}, [&](const Symbol* row, ValueRange) -> FailureOr<Values> {
          Value lowest = neutralElement(emitter_, nn::ReduceKind::max, type_);
          memref::StoreOp::create(builder_, lowest, largest_.memref,
                                  row->value);
          memref::StoreOp::create(builder_, emitter_.constant(type_, 0),
                                  weight_.memref, row->value);
          for (int64_t v = 0; v < padded_value_; v += lanes_)
            storeVector(emitter_.constant(type_, 0, lanes_), sums_,
                        add(multiply(row->value, padded_value_), v));
          return Values();
        });
  }

  // Keys from `begin` to the end of its block.
  FailureOr<Values> emitKeys(Value begin, Value first_key, Value visible) {
    Value end =
        arith::MinUIOp::create(builder_, add(first_key, key_block_), visible);
    // Whole vectors, or up to the last key.
    end = multiply(arith::CeilDivUIOp::create(builder_, end,
                                              emitter_.indexConstant(lanes_)),
                   lanes_);
    end = emitter_.smaller(end, keys_);
    Value count = arith::SubIOp::create(builder_, end, first_key);
    emitScores(first_key, count);
    FailureOr<Values> softmax =
        emitter_.loop(rows_, {}, [&](const Symbol* row, ValueRange) {
          return emitSoftmax(begin, row, first_key, end);
        });
    if (failed(softmax)) return failure();
    emitWeightedSums(first_key, count);
    return Values();
  }

  void emitScores(Value first_key, Value count) {
    Value vectors = arith::CeilDivUIOp::create(builder_, count,
                                               emitter_.indexConstant(lanes_));
    Value panel = arith::DivUIOp::create(builder_, first_key,
                                         emitter_.indexConstant(lanes_));
    Value whole = arith::SubIOp::create(
        builder_, vectors,
        arith::RemUIOp::create(builder_, vectors,
                               emitter_.indexConstant(kScoreVectors)));
    emitScoreLoop(panel, emitter_.indexConstant(0), whole, kScoreVectors);
    emitScoreLoop(panel, whole, vectors, 1);
  }

  void emitScoreLoop(Value panel, Value begin, Value end, int64_t width) {
    auto loop =
        scf::ForOp::create(builder_, begin, end, emitter_.indexConstant(width));
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPoint(loop.getBody()->getTerminator());
    MicroMatmul matmul;
    matmul.rows = rows_;
    matmul.vectors = width;
    matmul.lanes = lanes_;
    matmul.a = packed_q_.memref;
    matmul.a_first = emitter_.indexConstant(0);
    matmul.a_row = padded_size_;
    matmul.a_k = 1;
    matmul.b = packed_k_.memref;
    matmul.b_first =
        multiply(add(panel, loop.getInductionVar()), size_ * lanes_);
    matmul.b_k = lanes_;
    matmul.b_vector = size_ * lanes_;
    matmul.depth = emitter_.indexConstant(size_);
    Values products = emitMicroMatmul(emitter_, matmul);
    for (int64_t row = 0; row < rows_; ++row)
      for (int64_t v = 0; v < width; ++v) {
        Value at = add(multiply(loop.getInductionVar(), lanes_),
                       row * key_block_ + v * lanes_);
        storeVector(products[row * width + v], scores_, at);
      }
  }

  // Turns the scores of one query into weights, and rescales what earlier key
  // blocks gave.
  FailureOr<Values> emitSoftmax(Value first, const Symbol* row, Value first_key,
                                Value end) {
    Symbol query;
    query.value = emitter_.smaller(add(first, row->value), queries_ - 1);
    query.extent = queries_;
    const Symbol* position = emitter_.newSymbol(query);
    Value offset = arith::SubIOp::create(
        builder_, multiply(row->value, key_block_), first_key);
    Value lowest = neutralElement(emitter_, nn::ReduceKind::max, type_);
    Values init = {emitter_.splat({lowest, 0}, lanes_)};
    FailureOr<Values> largest = emitter_.laneLoop(
        first_key, end, keys_, lanes_, init,
        [&](const Symbol* keys, ValueRange carried) -> FailureOr<Values> {
          Value at = add(offset, keys->value);
          Value score = loadVector(scores_, at);
          FailureOr<Value> adjusted = adjustScore(score, position, keys);
          if (failed(adjusted)) return failure();
          if (*adjusted != score) storeVector(*adjusted, scores_, at);
          return Values{larger(*adjusted, carried[0])};
        });
    if (failed(largest)) return failure();
    Value now = largestLane(largest->front()), before;
    if (!one_block_) {
      before = memref::LoadOp::create(builder_, largest_.memref, row->value);
      now = larger(now, before);
      memref::StoreOp::create(builder_, now, largest_.memref, row->value);
    }
    // A row that sees no key yet keeps weights of 0.
    Value none =
        arith::CmpFOp::create(builder_, arith::CmpFPredicate::OEQ, now, lowest);
    Value shift = arith::SelectOp::create(builder_, none,
                                          emitter_.constant(type_, 0), now);
    Value shifts = emitter_.splat({shift, 0}, lanes_);
    Values zero = {emitter_.constant(type_, 0, lanes_)};
    FailureOr<Values> weights = emitter_.laneLoop(
        first_key, end, keys_, lanes_, zero,
        [&](const Symbol* keys, ValueRange carried) -> FailureOr<Values> {
          Value at = add(offset, keys->value);
          Value difference =
              arith::SubFOp::create(builder_, loadVector(scores_, at), shifts);
          Value weight = math::ExpOp::create(builder_, difference);
          if (keys->mask)
            weight =
                arith::SelectOp::create(builder_, keys->mask, weight, zero[0]);
          storeVector(weight, scores_, at);
          return Values{arith::AddFOp::create(builder_, carried[0], weight)};
        });
    if (failed(weights)) return failure();
    Value weight =
        combineLanes(emitter_, nn::ReduceKind::sum, weights->front());
    if (!one_block_) weight = rescale(row, before, shift, weight);
    memref::StoreOp::create(builder_, weight, weight_.memref, row->value);
    return Values();
  }

  Value rescale(const Symbol* row, Value before, Value shift, Value weight) {
    Value factor = math::ExpOp::create(
        builder_, arith::SubFOp::create(builder_, before, shift));
    for (int64_t v = 0; v < padded_value_; v += lanes_) {
      Value at = add(multiply(row->value, padded_value_), v);
      Value scaled = arith::MulFOp::create(builder_, loadVector(sums_, at),
                                           emitter_.splat({factor, 0}, lanes_));
      storeVector(scaled, sums_, at);
    }
    Value old = memref::LoadOp::create(builder_, weight_.memref, row->value);
    return arith::AddFOp::create(
        builder_, arith::MulFOp::create(builder_, old, factor), weight);
  }

  // Softcap, bias and mask.
  FailureOr<Value> adjustScore(Value score, const Symbol* query,
                               const Symbol* keys) {
    if (double cap = op_.getSoftcap().convertToDouble(); cap > 0) {
      Value caps = emitter_.constant(type_, cap, lanes_);
      Value small = arith::DivFOp::create(builder_, score, caps);
      score = arith::MulFOp::create(
          builder_, math::TanhOp::create(builder_, small), caps);
    }
    if (Value bias = op_.getBias()) {
      IndexVector index = {batch_, head_, Index(query), Index(keys)};
      for (auto [i, size] : llvm::zip_equal(index, typeOf(bias).getShape()))
        if (size == 1) i = Index();
      // The next block's rows begin in pages that hardware does not foresee.
      if (typeOf(bias).getDimSize(2) != 1) {
        Symbol later = *query;
        later.value = emitter_.smaller(add(query->value, rows_), queries_ - 1);
        IndexVector next = index;
        next[2] = Index(emitter_.newSymbol(later));
        if (typeOf(bias).getDimSize(3) != 1 &&
            failed(emitter_.prefetch(bias, next)))
          return failure();
      }
      FailureOr<Lanes> element = emitter_.element(bias, index);
      if (failed(element)) return failure();
      score = arith::AddFOp::create(builder_, score,
                                    emitter_.splat(*element, lanes_));
    }
    Value lowest = emitter_.splat(
        {neutralElement(emitter_, nn::ReduceKind::max, type_), 0}, lanes_);
    if (op_.getCausalOffset()) {
      Lanes key = emitter_.number(Index(keys), builder_.getI32Type());
      Lanes last = emitter_.number(
          Index(query) + Index(static_cast<int64_t>(*op_.getCausalOffset())),
          builder_.getI32Type());
      Value sees =
          arith::CmpIOp::create(builder_, arith::CmpIPredicate::sle, key.value,
                                emitter_.splat(last, lanes_));
      score = arith::SelectOp::create(builder_, sees, score, lowest);
    }
    if (keys->mask)
      score = arith::SelectOp::create(builder_, keys->mask, score, lowest);
    return score;
  }

  void emitWeightedSums(Value first_key, Value count) {
    int64_t vectors = padded_value_ / lanes_;
    for (int64_t v = 0; v < vectors;) {
      int64_t width =
          std::min<int64_t>(vectors - v, vectors - v == 4 ? 2 : kScoreVectors);
      MicroMatmul matmul;
      matmul.rows = rows_;
      matmul.vectors = width;
      matmul.lanes = lanes_;
      matmul.a = scores_.memref;
      matmul.a_first = emitter_.indexConstant(0);
      matmul.a_row = key_block_;
      matmul.a_k = 1;
      matmul.b = packed_v_.memref;
      matmul.b_first = add(multiply(first_key, padded_value_), v * lanes_);
      matmul.b_k = padded_value_;
      matmul.b_vector = lanes_;
      matmul.depth = count;
      auto at = [&](int64_t row, int64_t i) {
        return emitter_.indexConstant(row * padded_value_ + (v + i) * lanes_);
      };
      Values sums;
      for (int64_t row = 0; row < rows_ && !one_block_; ++row)
        for (int64_t i = 0; i < width; ++i)
          sums.push_back(loadVector(sums_, at(row, i)));
      sums = emitMicroMatmul(emitter_, matmul, sums);
      for (int64_t row = 0; row < rows_; ++row)
        for (int64_t i = 0; i < width; ++i)
          storeVector(sums[row * width + i], sums_, at(row, i));
      v += width;
    }
  }

  // Divides by the weights and stores what follows from the result.
  FailureOr<Values> emitOutputs(Value first) {
    Value left = arith::SubIOp::create(builder_,
                                       emitter_.indexConstant(queries_), first);
    Value rows = emitter_.smaller(left, rows_);
    return emitter_.loop(
        emitter_.indexConstant(0), rows, rows_, {},
        [&](const Symbol* row, ValueRange) {
          Value weight =
              memref::LoadOp::create(builder_, weight_.memref, row->value);
          Value zero = emitter_.constant(type_, 0);
          Value none = arith::CmpFOp::create(
              builder_, arith::CmpFPredicate::OEQ, weight, zero);
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
                  IndexVector index = forwardIndex(
                      emitter_, output.value, op_.getResult(),
                      {batch_, head_, Index(position), Index(lane)});
                  FailureOr<Lanes> element =
                      emitter_.element(output.value, index);
                  if (failed(element)) return failure();
                  emitter_.store(
                      output.buffer,
                      linearize(index, rowMajorStrides(
                                           typeOf(output.value).getShape())),
                      *element);
                }
                return Values();
              });
        });
  }

  // --- Arithmetic ---

  // One instruction: a NaN among scores need not show here, its weight is NaN.
  Value larger(Value a, Value b) {
    Value is_larger =
        arith::CmpFOp::create(builder_, arith::CmpFPredicate::OGT, a, b);
    return arith::SelectOp::create(builder_, is_larger, a, b);
  }
  Value largestLane(Value vector) {
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

  Value number(const Index& index) {
    return emitter_.number(index, builder_.getIndexType()).value;
  }
  Value add(Value a, Value b) {
    return builder_.createOrFold<arith::AddIOp>(a, b);
  }
  Value add(Value a, int64_t b) { return add(a, emitter_.indexConstant(b)); }
  Value multiply(Value a, int64_t b) {
    return builder_.createOrFold<arith::MulIOp>(a, emitter_.indexConstant(b));
  }
  Value loadVector(const Buffer& buffer, Value at) {
    return vector::LoadOp::create(builder_, VectorType::get({lanes_}, type_),
                                  buffer.memref, at);
  }
  void storeVector(Value value, const Buffer& buffer, Value at) {
    vector::StoreOp::create(builder_, value, buffer.memref, at);
  }

  Emitter& emitter_;
  ImplicitLocOpBuilder& builder_;
  nn::AttentionOp op_;
  ArrayRef<Output> outputs_;
  int64_t heads_, queries_, size_, groups_, keys_, value_size_;
  Type type_;
  int64_t lanes_, rows_, blocks_, parts_, range_, padded_size_, padded_value_,
      key_block_;
  bool one_block_;  // the scores of all keys are there at once: no running
                    // softmax
  Buffer packed_k_, packed_v_, packed_q_, scores_, sums_, largest_, weight_;
  Index batch_, head_, group_;
};

}  // namespace

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
