// Emits the ring: barriers, and the waits at them.
#include "compiler/kernels/emit_tile_ring.h"

#include "compiler/kernels/codegen.h"
#include "compiler/kernels/emit_team.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace partita::kernels {

using namespace mlir;

namespace {

constexpr int64_t kElementBytes = 2;
// Addresses and strides are multiples of this number of bytes. Strides are less
// than 2^40, and sizes at most 2^32 (CUDA driver API, cuTensorMapEncodeTiled).
constexpr int64_t kUnit = 16;
constexpr int64_t kMostStride = int64_t{1} << 40, kMostSize = int64_t{1} << 32;
constexpr int kRank = 4;

// Position of an element of `tensor` in terms of these symbols, one for each
// dimension. None if the tensor is not in one piece of memory.
std::optional<Index> positionOf(Emitter& emitter, Value tensor,
                                SmallVectorImpl<const Symbol*>& symbols) {
  const auto shape = cast<RankedTensorType>(tensor.getType()).getShape();
  FailureOr<Emitter::Recording> recording =
      emitter.investigate([&]() -> FailureOr<Values> {
        IndexVector index;
        for (int i = 0; i < kRank; ++i) {
          Symbol symbol;
          symbol.value = emitter.indexConstant(0);
          symbol.extent = shape[i];
          if (i == kRank - 1) symbol.lanes = kUnit / kElementBytes;
          symbols.push_back(emitter.newSymbol(symbol));
          index.push_back(Index(symbols.back()));
        }
        if (failed(emitter.element(tensor, index))) return failure();
        return Values();
      });
  if (failed(recording) || recording->accesses.size() != 1) return std::nullopt;
  return recording->accesses.front();
}

}  // namespace

std::optional<TensorMap> boxesOf(Emitter& emitter, Value tensor, int64_t rows) {
  const auto type = cast<RankedTensorType>(tensor.getType());
  BlockArgument argument = movedArgument(tensor);
  if (!argument || type.getRank() != kRank ||
      type.getElementTypeBitWidth() != 8 * kElementBytes)
    return std::nullopt;
  SmallVector<const Symbol*> symbols;
  const std::optional<Index> position = positionOf(emitter, tensor, symbols);
  if (!position) return std::nullopt;
  int64_t strides[kRank] = {};  // 0: not known
  for (const Term& term : position->terms()) {
    const auto* symbol = llvm::find(symbols, term.symbol);
    if (symbol == symbols.end() || term.divisor != 1 || term.modulus != 0 ||
        term.scale < 1 ||
        std::exchange(strides[symbol - symbols.begin()],
                      term.scale * kElementBytes) != 0)
      return std::nullopt;
  }
  TensorMap map;
  map.argument = argument.getArgNumber();
  map.offset = position->offset() * kElementBytes;
  map.shape.assign(type.getShape().begin(), type.getShape().end());
  map.box = {1, 1, rows, kPanel};
  if (map.offset % kUnit != 0 || strides[kRank - 1] != kElementBytes)
    return std::nullopt;
  for (int i = 0; i < kRank; ++i) {
    if (map.shape[i] < 1 || map.shape[i] > kMostSize) return std::nullopt;
    if (i == kRank - 1) break;
    // A dimension of size 1 may have any stride.
    if (map.shape[i] == 1) strides[i] = kPanel * kElementBytes;
    if (strides[i] % kUnit != 0 || strides[i] == 0 || strides[i] >= kMostStride)
      return std::nullopt;
    map.strides.push_back(strides[i]);
  }
  return map;
}

TileRing::TileRing(Emitter& emitter, Value base, int64_t stages,
                   int64_t stage_elements, ArrayRef<Part> parts,
                   bool starts_later, const Buffer& list)
    : emitter_(emitter),
      builder_(emitter.builder()),
      base_(base),
      stages_(stages),
      stage_elements_(stage_elements),
      barriers_(emitter.reserveScratch(kBarrierBytes * stages)),
      starts_later_(starts_later),
      list_(list),
      origin_(emitter.scratch(builder_.getI32Type(), starts_later ? 3 : 2)) {
  for (const Part& part : parts) {
    tiles_.push_back(part.tile);
    maps_.push_back(emitter.addMap(part.map));
  }
}

Value TileRing::i32(int64_t value) {
  return arith::ConstantOp::create(
      builder_, builder_.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value TileRing::toI32(Value index) {
  return arith::IndexCastOp::create(builder_, builder_.getI32Type(), index);
}

Value TileRing::toI64(Value index) {
  return arith::IndexCastOp::create(builder_, builder_.getI64Type(), index);
}

Value TileRing::ofStage(Value tile, int64_t scale, int64_t offset) {
  Value at = builder_.createOrFold<arith::RemUIOp>(tile, index(stages_));
  at = builder_.createOrFold<arith::MulIOp>(at, index(scale));
  return builder_.createOrFold<arith::AddIOp>(at, index(offset));
}

Value TileRing::shiftOf(Value tile) {
  return ofStage(tile, stage_elements_, 0);
}

Value TileRing::parity(Value tile, bool before) {
  Value phase = builder_.createOrFold<arith::DivUIOp>(tile, index(stages_));
  if (before) phase = builder_.createOrFold<arith::AddIOp>(phase, index(1));
  return toI32(builder_.createOrFold<arith::RemUIOp>(phase, index(2)));
}

void TileRing::call(StringRef function, ValueRange arguments) {
  callTarget(builder_, function, TypeRange(), arguments);
}

Value TileRing::isFirstOf(int64_t threads) {
  Value number =
      builder_.createOrFold<arith::RemUIOp>(emitter_.thread(), index(threads));
  return arith::CmpIOp::create(builder_, arith::CmpIPredicate::eq, number,
                               index(0));
}

LogicalResult TileRing::byOne(llvm::function_ref<void()> body) {
  if (failed(emitter_.branch(isFirstOf(kBlock), [&] {
        body();
        return success();
      })))
    return failure();
  teamSync(builder_, kWarp);
  return success();
}

LogicalResult TileRing::open(Value batch, Value head, Value count,
                             Value first) {
  const auto make = [&] {
    for (int64_t stage = 0; stage < stages_; ++stage) {
      call(kBarrierMake, {base_, toI64(full(index(stage))), i32(1)});
      call(kBarrierMake,
           {base_, toI64(empty(index(stage))), i32(kBlock / kWarp)});
    }
    memref::StoreOp::create(builder_, toI32(batch), origin_.memref, index(0));
    memref::StoreOp::create(builder_, toI32(head), origin_.memref, index(1));
    if (starts_later_)
      memref::StoreOp::create(builder_, toI32(first), origin_.memref, index(2));
  };
  if (failed(byOne(make))) return failure();
  call(kFenceTiles, {});
  teamSync(builder_, kBlock);
  for (int64_t tile = 0; tile + 1 < stages_; ++tile) fill(index(tile), count);
  return success();
}

void TileRing::fill(Value tile, Value count) {
  Value does =
      arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, tile, count);
  does = arith::AndIOp::create(builder_, does, isFirstOf(kBlock));
  does = arith::ExtUIOp::create(builder_, builder_.getI32Type(), does);
  int64_t bytes = 0;
  for (const Tile& part : tiles_) bytes += kElementBytes * part.elements();
  call(kBarrierExpect, {base_, toI64(full(tile)), i32(bytes), does});
  Value batch = memref::LoadOp::create(builder_, origin_.memref, index(0)),
        head = memref::LoadOp::create(builder_, origin_.memref, index(1)),
        first;
  if (starts_later_)
    first = memref::LoadOp::create(builder_, origin_.memref, index(2));
  Value listed = tile;
  if (list_.memref) {
    Value position =
        arith::IndexCastOp::create(builder_, builder_.getIndexType(), first);
    position = builder_.createOrFold<arith::AddIOp>(position, tile);
    listed = arith::IndexCastOp::create(
        builder_, builder_.getIndexType(),
        memref::LoadOp::create(builder_, list_.memref, position));
    first = Value();
  }
  for (auto [to, map] : llvm::zip_equal(tiles_, maps_)) {
    Value row =
        toI32(builder_.createOrFold<arith::MulIOp>(listed, index(to.rows)));
    if (first) row = arith::AddIOp::create(builder_, row, first);
    for (int64_t column = 0; column < to.columns; column += kPanel) {
      const int64_t first = to.first + column * to.rows;
      call(kCopyBox,
           {base_,
            toI64(ofStage(tile, kElementBytes * stage_elements_,
                          kElementBytes * first)),
            toI64(full(tile)), map, batch, head, row, i32(column), does});
    }
  }
}

void TileRing::await(Value tile, Value count) {
  Value last = builder_.createOrFold<arith::AddIOp>(tile, index(stages_ - 1));
  call(kBarrierWait,
       {base_, toI64(empty(last)), parity(last, /*before=*/true)});
  fill(last, count);
  call(kBarrierWait, {base_, toI64(full(tile)), parity(tile)});
}

LogicalResult TileRing::release(Value tile) {
  return emitter_.branch(isFirstOf(kWarp), [&] {
    call(kBarrierArrive, {base_, toI64(empty(tile))});
    return success();
  });
}

LogicalResult TileRing::close() {
  teamSync(builder_, kBlock);
  return byOne([&] {
    for (int64_t stage = 0; stage < stages_; ++stage) {
      call(kBarrierEnd, {base_, toI64(full(index(stage)))});
      call(kBarrierEnd, {base_, toI64(empty(index(stage)))});
    }
  });
}

}  // namespace partita::kernels
