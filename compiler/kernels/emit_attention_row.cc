// Attention of a single query, as when a model adds a token to its cache. Keys
// and values are read once, in order, and only from the first key to the last
// one that the query may see; the rest of a cache costs nothing.
//
// A vector of keys is multiplied by the query lane by lane. The products are
// transposed in registers, so that the scores of the keys are one sum.
#include "compiler/kernels/emit_attention_block.h"
#include "compiler/kernels/emit_matmul.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace partita::kernels {

using namespace mlir;

namespace {

// Vectors of a value whose sums are in registers at a time.
constexpr int64_t kSums = 8;

}  // namespace

FailureOr<Values> AttentionEmitter::emitRow() {
  const Value first = emitter_.indexConstant(0);
  if (failed(packQueries(first))) return failure();
  FailureOr<AttentionMask::Range> seen = seenKeys(first);
  if (failed(seen)) return failure();
  const Value end = emitter_.smaller(
      multiply(arith::CeilDivUIOp::create(builder_, seen->end,
                                          emitter_.indexConstant(lanes_)),
               lanes_),
      keys_);
  if (failed(emitRowScores(seen->begin, end)) ||
      failed(emitter_.loop(1, {},
                           [&](const Symbol* row, ValueRange) {
                             return emitSoftmax(first, row, seen->begin, end);
                           })) ||
      failed(emitRowSums(seen->begin, end)))
    return failure();
  return emitOutputs(first);
}

FailureOr<Value> AttentionEmitter::keyElement(Value tensor, const Symbol* key,
                                              const Symbol* lane) {
  FailureOr<Lanes> element =
      emitter_.element(tensor, {batch_, group_, Index(key), Index(lane)});
  if (failed(element)) return failure();
  return emitter_.splat(*element, lanes_);
}

FailureOr<Values> AttentionEmitter::emitRowScores(Value begin, Value end) {
  const Value lanes = emitter_.indexConstant(lanes_);
  return emitter_.loop(
      arith::DivUIOp::create(builder_, begin, lanes),
      arith::CeilDivUIOp::create(builder_, end, lanes), padded(keys_) / lanes_,
      {}, [&](const Symbol* block, ValueRange) -> FailureOr<Values> {
        const Value first = multiply(block->value, lanes_);
        SmallVector<const Symbol*> keys;
        for (int64_t i = 0; i < lanes_; ++i) {
          Symbol key;
          key.value = add(first, i);
          // The last vector repeats the last key.
          if (keys_ % lanes_ != 0)
            key.value = emitter_.smaller(key.value, keys_ - 1);
          key.extent = keys_;
          keys.push_back(emitter_.newSymbol(key));
        }
        const Values zeros(lanes_, emitter_.constant(type_, 0, lanes_));
        FailureOr<Values> products = emitter_.laneLoop(
            size_, lanes_, zeros,
            [&](const Symbol* lane, ValueRange sums) -> FailureOr<Values> {
              const Value query = loadVector(packed_q_, lane->value);
              Values next;
              for (auto [key, sum] : llvm::zip_equal(keys, sums)) {
                FailureOr<Value> part = keyElement(op_.getK(), key, lane);
                if (failed(part)) return failure();
                Value product =
                    vector::FMAOp::create(builder_, *part, query, sum);
                // Fused producers compute something in lanes behind the head.
                if (lane->mask)
                  product = arith::SelectOp::create(builder_, lane->mask,
                                                    product, sum);
                next.push_back(product);
              }
              return next;
            });
        if (failed(products)) return failure();
        Values terms = transposeInRegisters(emitter_, *products);
        for (size_t step = 1; step < terms.size(); step *= 2)
          for (size_t i = 0; i + step < terms.size(); i += 2 * step)
            terms[i] =
                arith::AddFOp::create(builder_, terms[i], terms[i + step]);
        storeVector(terms[0], scores_,
                    arith::SubIOp::create(builder_, first, begin));
        return Values();
      });
}

LogicalResult AttentionEmitter::emitRowSums(Value begin, Value end) {
  const int64_t vectors = padded_value_ / lanes_;
  for (int64_t v = 0; v < vectors; v += kSums) {
    SmallVector<const Symbol*> lanes;
    for (int64_t i = v; i < std::min(vectors, v + kSums); ++i) {
      Symbol symbol;
      symbol.value = emitter_.indexConstant(i * lanes_);
      symbol.extent = value_size_;
      symbol.lanes = lanes_;
      if ((i + 1) * lanes_ > value_size_)
        symbol.mask = vector::CreateMaskOp::create(
            builder_, VectorType::get({lanes_}, builder_.getI1Type()),
            ValueRange(emitter_.indexConstant(value_size_ - i * lanes_)));
      lanes.push_back(emitter_.newSymbol(symbol));
    }
    const Values zeros(lanes.size(), emitter_.constant(type_, 0, lanes_));
    FailureOr<Values> sums = emitter_.loop(
        begin, end, keys_, zeros,
        [&](const Symbol* key, ValueRange carried) -> FailureOr<Values> {
          const Value weight = memref::LoadOp::create(
              builder_, scores_.memref,
              Value(arith::SubIOp::create(builder_, key->value, begin)));
          const Value weights = emitter_.splat({weight, 0}, lanes_);
          Values next;
          for (auto [lane, sum] : llvm::zip_equal(lanes, carried)) {
            FailureOr<Value> values = keyElement(op_.getV(), key, lane);
            if (failed(values)) return failure();
            next.push_back(
                vector::FMAOp::create(builder_, *values, weights, sum));
          }
          return next;
        });
    if (failed(sums)) return failure();
    for (auto [i, sum] : llvm::enumerate(*sums))
      storeVector(
          sum, sums_,
          emitter_.indexConstant((v + static_cast<int64_t>(i)) * lanes_));
  }
  return success();
}

}  // namespace partita::kernels
