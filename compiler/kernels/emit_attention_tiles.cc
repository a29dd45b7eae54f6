// Tiles of attention: packs keys as panels, [head size][lanes] for each vector
// of keys, or as rows; multiplies tiles with sums in registers.
#include "compiler/kernels/emit_attention_tiles.h"

#include "compiler/kernels/emit_matmul.h"
#include "compiler/kernels/emit_reduction.h"
#include "compiler/kernels/estimate_work.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace partita::kernels {

using namespace mlir;

namespace {

constexpr int64_t kQueries = 8;  // rows of the register tile
constexpr int64_t kVectors = 3;  // columns of the register tile

RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

}  // namespace

AttentionTiles::AttentionTiles(Emitter& emitter, Value q, Value v, Value bias,
                               AttentionMask mask,
                               std::optional<int64_t> causal_offset,
                               double softcap)
    : emitter_(emitter),
      builder_(emitter.builder()),
      bias_(bias),
      mask_(mask),
      causal_offset_(causal_offset),
      softcap_(softcap) {
  ArrayRef<int64_t> of_q = typeOf(q).getShape(), of_v = typeOf(v).getShape();
  batches_ = of_q[0];
  heads_ = of_q[1];
  queries_ = of_q[2];
  size_ = of_q[3];
  groups_ = of_v[1];
  keys_ = of_v[2];
  value_size_ = of_v[3];
  type_ = emitter.computeType(typeOf(q).getElementType());
  lanes_ = emitter.nativeLanes() * 32 / type_.getIntOrFloatBitWidth();
  rows_ = std::min(kQueries, queries_);
}

FailureOr<Lanes> AttentionTiles::rowElement(Value tensor, const Index& head,
                                            Value row, int64_t rows,
                                            const Symbol* lane) {
  Symbol symbol;
  symbol.value = emitter_.smaller(row, rows - 1);
  symbol.extent = rows;
  return emitter_.element(
      tensor, {batch_, head, Index(emitter_.newSymbol(symbol)), Index(lane)});
}

FailureOr<bool> AttentionTiles::isDenseAlongHead(Value tensor, int64_t size) {
  const Symbol* lane = nullptr;
  FailureOr<Emitter::Recording> recording =
      emitter_.investigate([&]() -> FailureOr<Values> {
        return emitter_.laneLoop(
            size, lanes_, {},
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

LogicalResult AttentionTiles::packPanels(Value tensor, int64_t size,
                                         const Buffer& panels) {
  FailureOr<bool> dense = isDenseAlongHead(tensor, size);
  if (failed(dense)) return failure();
  return emitter_.loop(
      padded(keys_) / lanes_, {},
      [&](const Symbol* panel, ValueRange) -> FailureOr<Values> {
        return *dense ? packPanelByRows(tensor, size, panels, panel)
                      : packPanelByColumns(tensor, size, panels, panel);
      });
}

FailureOr<Values> AttentionTiles::packPanelByRows(Value tensor, int64_t size,
                                                  const Buffer& panels,
                                                  const Symbol* panel) {
  return emitter_.laneLoop(
      size, lanes_, {},
      [&](const Symbol* lane, ValueRange) -> FailureOr<Values> {
        Values rows;
        for (int64_t i = 0; i < lanes_; ++i) {
          Value key = add(multiply(panel->value, lanes_), i);
          FailureOr<Lanes> row = rowElement(tensor, group_, key, keys_, lane);
          if (failed(row)) return failure();
          rows.push_back(emitter_.splat(*row, lanes_));
        }
        rows = transposeInRegisters(emitter_, rows);
        Value first = add(multiply(panel->value, size * lanes_),
                          multiply(lane->value, lanes_));
        int64_t count = lane->mask ? size % lanes_ : lanes_;
        for (int64_t j = 0; j < count; ++j)
          storeVector(rows[j], panels, add(first, j * lanes_));
        return Values();
      });
}

FailureOr<Values> AttentionTiles::packPanelByColumns(Value tensor, int64_t size,
                                                     const Buffer& panels,
                                                     const Symbol* panel) {
  return emitter_.loop(
      size, {}, [&](const Symbol* column, ValueRange) -> FailureOr<Values> {
        // Lanes past the last key read the last key again.
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
            tensor, {batch_, group_, Index(symbol), Index(column)});
        if (failed(element)) return failure();
        Value at = add(multiply(panel->value, size * lanes_),
                       multiply(column->value, lanes_));
        storeVector(emitter_.splat(*element, lanes_), panels, at);
        return Values();
      });
}

LogicalResult AttentionTiles::packRows(Value tensor, int64_t size,
                                       const Buffer& rows) {
  return emitter_.loop(
      keys_, {}, [&](const Symbol* key, ValueRange) -> FailureOr<Values> {
        return emitter_.laneLoop(
            size, lanes_, {},
            [&](const Symbol* lane, ValueRange) -> FailureOr<Values> {
              FailureOr<Lanes> element =
                  rowElement(tensor, group_, key->value, keys_, lane);
              if (failed(element)) return failure();
              Value at = add(multiply(key->value, padded(size)), lane->value);
              storeVector(emitter_.splat(*element, lanes_), rows, at);
              return Values();
            });
      });
}

FailureOr<Value> AttentionTiles::emitParts(const AttentionMask::Range& range,
                                           Value first) {
  if (!mask_.hasParts(lanes_)) return Value();
  return mask_.emitParts(range, head_, first, rows_, lanes_);
}

FailureOr<Values> AttentionTiles::forEachPart(const AttentionMask::Range& range,
                                              Value parts, ValueRange init,
                                              PartBody body) {
  if (!parts) return body({range, {}}, init);
  return emitter_.loop(emitter_.indexConstant(0), parts, mask_.partsLimit(),
                       init, [&](const Symbol* number, ValueRange carried) {
                         return body(mask_.part(number->value), carried);
                       });
}

void AttentionTiles::emitPanelProducts(const Buffer& a, const Buffer& panels,
                                       int64_t size, const Buffer& out,
                                       int64_t out_row, Value first_key,
                                       Value count, Value column) {
  Value vectors = arith::CeilDivUIOp::create(builder_, count,
                                             emitter_.indexConstant(lanes_));
  Value panel = arith::DivUIOp::create(builder_, first_key,
                                       emitter_.indexConstant(lanes_));
  Value whole = arith::SubIOp::create(
      builder_, vectors,
      arith::RemUIOp::create(builder_, vectors,
                             emitter_.indexConstant(kVectors)));
  emitPanelLoop(a, panels, size, out, out_row, panel, emitter_.indexConstant(0),
                whole, kVectors, column);
  emitPanelLoop(a, panels, size, out, out_row, panel, whole, vectors, 1,
                column);
}

void AttentionTiles::emitPanelLoop(const Buffer& a, const Buffer& panels,
                                   int64_t size, const Buffer& out,
                                   int64_t out_row, Value panel, Value begin,
                                   Value end, int64_t width, Value column) {
  auto loop =
      scf::ForOp::create(builder_, begin, end, emitter_.indexConstant(width));
  int64_t vectors = out_row / lanes_;
  loop->setAttr(kTripsAttr,
                builder_.getI64IntegerAttr(width == 1 ? 1 : vectors / width));
  OpBuilder::InsertionGuard guard(builder_);
  builder_.setInsertionPoint(loop.getBody()->getTerminator());
  MicroMatmul matmul;
  matmul.rows = rows_;
  matmul.vectors = width;
  matmul.lanes = lanes_;
  matmul.a = a.memref;
  matmul.a_first = emitter_.indexConstant(0);
  matmul.a_row = padded(size);
  matmul.a_k = 1;
  matmul.b = panels.memref;
  matmul.b_first = multiply(add(panel, loop.getInductionVar()), size * lanes_);
  matmul.b_k = lanes_;
  matmul.b_vector = size * lanes_;
  matmul.depth = emitter_.indexConstant(size);
  matmul.expected_depth = size;
  Values products = emitMicroMatmul(emitter_, matmul);
  for (int64_t row = 0; row < rows_; ++row)
    for (int64_t v = 0; v < width; ++v) {
      Value at = add(multiply(loop.getInductionVar(), lanes_),
                     row * out_row + v * lanes_);
      if (column) at = add(at, column);
      storeVector(products[row * width + v], out, at);
    }
}

void AttentionTiles::emitWeightedSums(const Buffer& a, int64_t a_row,
                                      const Buffer& rows, int64_t size,
                                      const Buffer& sums_of, bool accumulate,
                                      Value first_key, Value count,
                                      Value column) {
  int64_t row_size = padded(size), vectors = row_size / lanes_;
  for (int64_t v = 0; v < vectors;) {
    int64_t width =
        std::min<int64_t>(vectors - v, vectors - v == 4 ? 2 : kVectors);
    MicroMatmul matmul;
    matmul.rows = rows_;
    matmul.vectors = width;
    matmul.lanes = lanes_;
    matmul.a = a.memref;
    matmul.a_first = column ? column : emitter_.indexConstant(0);
    matmul.a_row = a_row;
    matmul.a_k = 1;
    matmul.b = rows.memref;
    matmul.b_first = add(multiply(first_key, row_size), v * lanes_);
    matmul.b_k = row_size;
    matmul.b_vector = lanes_;
    matmul.depth = count;
    matmul.expected_depth = a_row;
    auto at = [&](int64_t row, int64_t i) {
      return emitter_.indexConstant(row * row_size + (v + i) * lanes_);
    };
    Values sums;
    for (int64_t row = 0; row < rows_ && accumulate; ++row)
      for (int64_t i = 0; i < width; ++i)
        sums.push_back(loadVector(sums_of, at(row, i)));
    sums = emitMicroMatmul(emitter_, matmul, sums);
    for (int64_t row = 0; row < rows_; ++row)
      for (int64_t i = 0; i < width; ++i)
        storeVector(sums[row * width + i], sums_of, at(row, i));
    v += width;
  }
}

FailureOr<Value> AttentionTiles::adjustScore(Value score, const Symbol* query,
                                             const Symbol* keys) {
  if (softcap_ > 0) {
    Value caps = emitter_.constant(type_, softcap_, lanes_);
    Value small = arith::DivFOp::create(builder_, score, caps);
    score = arith::MulFOp::create(builder_,
                                  math::TanhOp::create(builder_, small), caps);
  }
  if (bias_) {
    IndexVector index = {batch_, head_, Index(query), Index(keys)};
    for (auto [i, size] : llvm::zip_equal(index, typeOf(bias_).getShape()))
      if (size == 1) i = Index();
    // The next block's rows begin in pages that hardware does not prefetch.
    if (typeOf(bias_).getDimSize(2) != 1) {
      Symbol later = *query;
      later.value = emitter_.smaller(add(query->value, rows_), queries_ - 1);
      IndexVector next = index;
      next[2] = Index(emitter_.newSymbol(later));
      if (typeOf(bias_).getDimSize(3) != 1 &&
          failed(emitter_.prefetch(bias_, next)))
        return failure();
    }
    FailureOr<Lanes> element = emitter_.element(bias_, index);
    if (failed(element)) return failure();
    score = arith::AddFOp::create(builder_, score,
                                  emitter_.splat(*element, lanes_));
  }
  Value lowest = emitter_.splat(
      {neutralElement(emitter_, nn::ReduceKind::max, type_), 0}, lanes_);
  FailureOr<Value> masked =
      mask_.apply(score, lowest, batch_, head_, query, keys);
  if (failed(masked)) return failure();
  score = *masked;
  if (keys->mask)
    score = arith::SelectOp::create(builder_, keys->mask, score, lowest);
  return score;
}

Value AttentionTiles::larger(Value a, Value b) {
  Value is_larger =
      arith::CmpFOp::create(builder_, arith::CmpFPredicate::OGT, a, b);
  return arith::SelectOp::create(builder_, is_larger, a, b);
}

Value AttentionTiles::largestLane(Value vector) {
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

}  // namespace partita::kernels
