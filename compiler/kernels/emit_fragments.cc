// Emits operations of warps on fragments of matrices.
#include "compiler/kernels/emit_fragments.h"

#include "compiler/kernels/codegen.h"
#include "compiler/kernels/emit_team.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace partita::kernels {

using namespace mlir;

BlockArgument movedArgument(Value value) {
  while (Operation* op = value.getDefiningOp()) {
    if (!isa<nn::TransposeOp, nn::ReshapeOp, nn::SliceOp>(op)) return nullptr;
    value = op->getOperand(0);
  }
  return cast<BlockArgument>(value);
}

Fragments::Fragments(Emitter& emitter, Type element, int64_t bytes,
                     bool warpgroups)
    : emitter_(emitter),
      builder_(emitter.builder()),
      element_(element),
      warpgroups_(warpgroups) {
  const int64_t offset = emitter.reserveScratch(bytes);
  base_ = emitter.scratchView(offset, builder_.getI8Type(), 1);
  elements_ = emitter.scratchView(offset, element, bytes / elementBytes());
  const auto divide = [&](Value a, int64_t b) -> Value {
    return arith::DivUIOp::create(builder_, a, emitter_.indexConstant(b));
  };
  const auto remainder = [&](Value a, int64_t b) -> Value {
    return arith::RemUIOp::create(builder_, a, emitter_.indexConstant(b));
  };
  warp_ = divide(emitter.thread(), kWarp);
  Value lane = remainder(emitter.thread(), kWarp);
  g_ = divide(lane, 4);
  t_ = remainder(lane, 4);
  Value low = remainder(lane, 8), middle = remainder(divide(lane, 8), 2),
        high = divide(lane, 16);
  down_row_ = remainder(lane, 16);
  down_column_ = times(high, lanes());
  right_row_ = plus(times(high, 8), low);
  right_column_ = times(middle, lanes());
}

Value Fragments::plus(Value a, Value b) {
  return builder_.createOrFold<arith::AddIOp>(a, b);
}

Value Fragments::times(Value a, int64_t b) {
  return builder_.createOrFold<arith::MulIOp>(a, emitter_.indexConstant(b));
}

std::optional<std::pair<Buffer, Index>> Fragments::directAccess(
    Value tensor, ArrayRef<Index> index, const Symbol* lane) {
  BlockArgument argument = movedArgument(tensor);
  if (!argument) return std::nullopt;
  const Symbol* here = nullptr;
  FailureOr<Emitter::Recording> recording =
      emitter_.investigate([&]() -> FailureOr<Values> {
        // A symbol of the trial keeps the emitted code in the trial.
        here = emitter_.newSymbol(*lane);
        IndexVector moved;
        for (const Index& i : index) moved.push_back(i.replaced(lane, here));
        if (failed(emitter_.element(tensor, moved))) return failure();
        return Values();
      });
  if (failed(recording) || recording->accesses.size() != 1) return std::nullopt;
  const Index position = recording->accesses.front().replaced(here, lane);
  int whole = 0;
  for (const Term& term : position.terms()) {
    const bool has_lanes = term.symbol->lanes != 0;
    if (term.symbol == lane && term.scale == 1 && term.divisor == 1 &&
        term.modulus % lanes() == 0)
      ++whole;
    else if (term.symbol->depth > emitter_.depth() ||
             term.scale % lanes() != 0 ||
             (has_lanes &&
              (term.symbol != lane || term.divisor % lanes() != 0)))
      return std::nullopt;
  }
  if (whole != 1 || position.offset() % lanes() != 0) return std::nullopt;
  return std::pair(emitter_.bufferOf(argument), position);
}

LogicalResult Fragments::fill(const Tile& tile, Value shift, Value tensor,
                              ArrayRef<Index> index, Value first) {
  const int64_t rows = cast<RankedTensorType>(tensor.getType()).getDimSize(2);
  FailureOr<Values> filled = emitter_.laneLoop(
      tile.rows * tile.columns, lanes(), {},
      [&](const Symbol* lane, ValueRange) -> FailureOr<Values> {
        auto [row, column] = emitter_.split(Index(lane), tile.columns);
        Value in_tile = emitter_.number(row, builder_.getIndexType()).value;
        Symbol clamped;
        clamped.value = emitter_.smaller(plus(first, in_tile), rows - 1);
        clamped.extent = rows;
        IndexVector at(index.begin(), index.end());
        at.push_back(Index(emitter_.newSymbol(clamped)));
        at.push_back(column);
        Value to = elementAt(tile, lane, in_tile);
        if (shift) to = plus(to, shift);
        if (auto direct = directAccess(tensor, at, lane)) {
          copy(direct->first, direct->second, lane, to);
          return Values();
        }
        FailureOr<Lanes> loaded = emitter_.element(tensor, at);
        if (failed(loaded)) return failure();
        auto store = vector::StoreOp::create(
            builder_,
            emitter_.fromCompute(emitter_.splat(*loaded, lanes()), element_),
            elements_, to);
        store.setAlignmentAttr(builder_.getI64IntegerAttr(16));
        return Values();
      });
  return success(succeeded(filled));
}

Value Fragments::elementAt(const Tile& tile, const Symbol* lane,
                           Value in_tile) {
  const auto divide = [&](Value a, int64_t b) -> Value {
    return arith::DivUIOp::create(builder_, a, emitter_.indexConstant(b));
  };
  const auto remainder = [&](Value a, int64_t b) -> Value {
    return arith::RemUIOp::create(builder_, a, emitter_.indexConstant(b));
  };
  Value column = remainder(lane->value, tile.columns), at;
  if (tile.swizzled) {
    Value part = arith::XOrIOp::create(
        builder_, remainder(divide(column, 8), 8), remainder(in_tile, 8));
    at = plus(times(divide(column, kPanel), tile.rows * kPanel),
              plus(times(in_tile, kPanel), times(part, 8)));
  } else {
    at = plus(times(in_tile, tile.stride()), column);
  }
  return plus(at, emitter_.indexConstant(tile.first));
}

LogicalResult Fragments::drain(const Tile& tile, const Buffer& to, int64_t rows,
                               ArrayRef<int64_t> strides, int64_t begin,
                               ArrayRef<Index> index, Value first) {
  Value left =
      arith::SubIOp::create(builder_, emitter_.indexConstant(rows), first);
  left = emitter_.smaller(left, tile.rows);
  const int64_t extent = tile.rows * tile.columns;
  FailureOr<Values> drained = emitter_.laneLoop(
      emitter_.indexConstant(0), times(left, tile.columns), extent, extent,
      lanes(), {}, [&](const Symbol* lane, ValueRange) -> FailureOr<Values> {
        auto [row, column] = emitter_.split(Index(lane), tile.columns);
        Value in_tile = emitter_.number(row, builder_.getIndexType()).value;
        auto load = vector::LoadOp::create(
            builder_, VectorType::get({lanes()}, element_), elements_,
            elementAt(tile, lane, in_tile));
        load.setAlignmentAttr(builder_.getI64IntegerAttr(16));
        Symbol position;
        position.value = plus(first, in_tile);
        position.extent = rows;
        IndexVector at(index.begin(), index.end());
        at.push_back(Index(emitter_.newSymbol(position)));
        at.push_back(column);
        emitter_.store(to, linearize(at, strides) + Index(begin),
                       {load, lanes()});
        return Values();
      });
  return success(succeeded(drained));
}

void Fragments::put(Value sums, const Tile& tile, Value shift, int64_t column) {
  const auto scalar = [&](int64_t i) -> Value {
    return vector::ExtractOp::create(builder_, sums, i);
  };
  for (int64_t half = 0; half < 2; ++half) {
    Value at =
        plus(times(g_, tile.swizzled ? kPanel : tile.stride()), times(t_, 2));
    if (shift) at = plus(at, shift);
    if (tile.swizzled) {
      Value part = arith::XOrIOp::create(
          builder_, times(g_, 8), emitter_.indexConstant(column % kPanel));
      at = plus(plus(at, part),
                emitter_.indexConstant(tile.first + 8 * half * kPanel +
                                       column / kPanel * tile.rows * kPanel));
    } else {
      at = plus(at, emitter_.indexConstant(tile.first +
                                           8 * half * tile.stride() + column));
    }
    auto store = vector::StoreOp::create(
        builder_, round(scalar(2 * half), scalar(2 * half + 1)), elements_, at);
    store.setAlignmentAttr(builder_.getI64IntegerAttr(2 * elementBytes()));
  }
}

void Fragments::copy(const Buffer& from, const Index& position,
                     const Symbol* lane, Value to) {
  // The first lane's position, as a number.
  Symbol first = *lane;
  first.lanes = 0;
  const Index scalar = position.replaced(lane, emitter_.newSymbol(first));
  Type i64 = builder_.getI64Type();
  Value at = emitter_.number(scalar, builder_.getIndexType()).value;
  Value address = plus(
      memref::ExtractAlignedPointerAsIndexOp::create(builder_, from.memref),
      times(at, elementBytes()));
  callTarget(
      builder_, kCopy, TypeRange(),
      {base_,
       arith::IndexCastOp::create(builder_, i64, times(to, elementBytes())),
       arith::IndexCastOp::create(builder_, i64, address)});
}

void Fragments::waitForTiles() {
  callTarget(builder_, kWaitForCopies, TypeRange(), {});
  shareTiles();
}

void Fragments::shareTiles() {
  if (warpgroups_) callTarget(builder_, kFenceTiles, TypeRange(), {});
  sync();
}

void Fragments::sync() { teamSync(builder_, kBlock); }

Fragment Fragments::load(StringRef function, const Tile& tile, Value shift,
                         int64_t row, int64_t column, Value lane_row,
                         Value lane_column) {
  Value at = plus(times(lane_row, tile.stride()), lane_column);
  if (shift) at = plus(at, shift);
  at = times(at, elementBytes());
  Fragment fragment;
  auto words = VectorType::get({4}, builder_.getI32Type());
  for (int64_t half = 0; half < (isF32() ? 2 : 1); ++half) {
    // Constants are added last, so that they become part of the access.
    const int64_t first = tile.first + row * tile.stride() + column + 8 * half;
    Value offset = arith::IndexCastOp::create(
        builder_, builder_.getI64Type(),
        plus(at, emitter_.indexConstant(elementBytes() * first)));
    Value loaded = callTarget(builder_, function, words, {base_, offset})[0];
    if (isF32())
      loaded = vector::BitCastOp::create(
          builder_, words.clone(builder_.getF32Type()), loaded);
    fragment.halves[half] = loaded;
  }
  return fragment;
}

Fragment Fragments::left(const Tile& tile, Value shift, int64_t row,
                         int64_t column) {
  return load(kLoadMatrices, tile, shift, row, column, down_row_, down_column_);
}

Fragment Fragments::rightTransposed(const Tile& tile, Value shift, int64_t row,
                                    int64_t column) {
  return load(kLoadMatrices, tile, shift, row, column, right_row_,
              right_column_);
}

Fragment Fragments::right(const Tile& tile, Value shift, int64_t row,
                          int64_t column) {
  if (isF32()) return rightOfFloats(tile, shift, row, column);
  return load(kLoadTransposed, tile, shift, row, column, down_row_,
              down_column_);
}

Fragment Fragments::rightOfFloats(const Tile& tile, Value shift, int64_t row,
                                  int64_t column) {
  Value at = plus(times(t_, 2 * tile.stride()), g_);
  if (shift) at = plus(at, shift);
  SmallVector<std::pair<int64_t, int64_t>> places;
  for (int64_t i = 0; i < 8; ++i)
    places.push_back({row + 8 * (i / 4) + i % 2, column + 8 * (i / 2 % 2)});
  return halvesOf(tile, at, places);
}

Fragment Fragments::rightInOrder(const Tile& tile, Value shift, int64_t row,
                                 int64_t column) {
  if (!isF32()) return right(tile, shift, row, column);
  Value at = plus(times(t_, tile.stride()), g_);
  if (shift) at = plus(at, shift);
  SmallVector<std::pair<int64_t, int64_t>> places;
  for (int64_t i = 0; i < 8; ++i)
    places.push_back(
        {row + 8 * (i / 4) + 4 * (i % 2), column + 8 * (i / 2 % 2)});
  return halvesOf(tile, at, places);
}

Fragment Fragments::leftTransposed(const Tile& tile, Value shift, int64_t row,
                                   int64_t column) {
  if (!isF32())
    return load(kLoadTransposed, tile, shift, row, column, right_row_,
                right_column_);
  Value at = plus(times(t_, tile.stride()), g_);
  if (shift) at = plus(at, shift);
  SmallVector<std::pair<int64_t, int64_t>> places;
  for (int64_t i = 0; i < 8; ++i)
    places.push_back({row + 4 * (i / 2), column + 8 * (i % 2)});
  return halvesOf(tile, at, places);
}

Fragment Fragments::halvesOf(const Tile& tile, Value at,
                             ArrayRef<std::pair<int64_t, int64_t>> places) {
  Fragment fragment;
  for (size_t half = 0; half < 2; ++half) {
    Values floats;
    for (auto [row, column] : places.slice(4 * half, 4)) {
      const int64_t first = tile.first + row * tile.stride() + column;
      floats.push_back(memref::LoadOp::create(
          builder_, elements_, plus(at, emitter_.indexConstant(first))));
    }
    fragment.halves[half] = vector::FromElementsOp::create(
        builder_, VectorType::get({4}, element_), floats);
  }
  return fragment;
}

Value Fragments::zero() {
  return emitter_.constant(builder_.getF32Type(), 0, 4);
}

Value Fragments::multiply(const Fragment& left, const Fragment& right, int half,
                          Value sums) {
  const StringRef function = isF32()             ? kMultiplyF32
                             : element_.isBF16() ? kMultiplyBf16
                                                 : kMultiplyF16;
  for (int i = 0; i < 2 && left.halves[i]; ++i) {
    const auto word = [&](int at) -> Value {
      return vector::ExtractOp::create(builder_, right.halves[i],
                                       int64_t{2 * half + at});
    };
    sums = callTarget(builder_, function, sums.getType(),
                      {left.halves[i], word(0), word(1), sums})[0];
  }
  return sums;
}

Fragment Fragments::leftOf(ArrayRef<Value> floats) {
  Fragment fragment;
  if (isF32()) {
    for (int half = 0; half < 2; ++half) {
      const ArrayRef<Value> four = floats.slice(4 * half, 4);
      fragment.halves[half] = vector::FromElementsOp::create(
          builder_, VectorType::get({4}, element_),
          ValueRange{four[0], four[2], four[1], four[3]});
    }
    return fragment;
  }
  Values words;
  for (int i = 0; i < 8; i += 2) {
    Value two = round(floats[i], floats[i + 1]);
    two = vector::BitCastOp::create(
        builder_, VectorType::get({1}, builder_.getI32Type()), two);
    words.push_back(vector::ExtractOp::create(builder_, two, int64_t{0}));
  }
  fragment.halves[0] = vector::FromElementsOp::create(
      builder_, VectorType::get({4}, builder_.getI32Type()), words);
  return fragment;
}

Value Fragments::round(Value a, Value b) {
  Value two = vector::FromElementsOp::create(
      builder_, VectorType::get({2}, builder_.getF32Type()), ValueRange{a, b});
  if (isF32()) return two;
  return arith::TruncFOp::create(builder_, VectorType::get({2}, element_), two);
}

Value Fragments::sumOfRow(Value value) {
  for (int distance : {1, 2})
    value = arith::AddFOp::create(builder_, value,
                                  teamExchange(builder_, value, distance));
  return value;
}

Value Fragments::largestOfRow(Value value) {
  for (int distance : {1, 2})
    value = arith::MaxNumFOp::create(builder_, value,
                                     teamExchange(builder_, value, distance));
  return value;
}

Value Fragments::exp2(Value value) {
  return callTarget(builder_, kExp2, value.getType(), value)[0];
}

}  // namespace partita::kernels
