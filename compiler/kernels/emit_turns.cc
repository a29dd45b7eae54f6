// Emits tickets and turns.
#include "compiler/kernels/emit_turns.h"

#include "compiler/kernels/codegen.h"
#include "compiler/kernels/emit_team.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace partita::kernels {

using namespace mlir;

Turns::Turns(Emitter& emitter, Value memory, int64_t first)
    : emitter_(emitter),
      builder_(emitter.builder()),
      memory_(memory),
      first_(first) {}

Value Turns::indexOf(Value place) {
  return builder_.createOrFold<arith::AddIOp>(
      place, emitter_.indexConstant(first_ + 1));
}

Value Turns::addressOf(Value index) {
  Value base =
      memref::ExtractAlignedPointerAsIndexOp::create(builder_, memory_);
  Value at =
      builder_.createOrFold<arith::MulIOp>(index, emitter_.indexConstant(4));
  return arith::IndexCastOp::create(
      builder_, builder_.getI64Type(),
      builder_.createOrFold<arith::AddIOp>(base, at));
}

Value Turns::isFirstThread() {
  return arith::CmpIOp::create(builder_, arith::CmpIPredicate::eq,
                               emitter_.thread(), emitter_.indexConstant(0));
}

Value Turns::toI32(Value index) {
  return arith::IndexCastOp::create(builder_, builder_.getI32Type(), index);
}

LogicalResult Turns::store(Value index, Value number) {
  return emitter_.branch(isFirstThread(), [&] {
    Value bits =
        arith::BitcastOp::create(builder_, builder_.getF32Type(), number);
    memref::StoreOp::create(builder_, bits, memory_, index);
    return success();
  });
}

LogicalResult Turns::start() {
  return store(emitter_.indexConstant(first_),
               toI32(emitter_.indexConstant(0)));
}

LogicalResult Turns::start(Value place, Value turn) {
  return store(indexOf(place), toI32(turn));
}

FailureOr<Value> Turns::takeTicket() {
  const Buffer ticket = emitter_.scratch(builder_.getI32Type(), 1);
  Value zero = emitter_.indexConstant(0);
  if (failed(emitter_.branch(isFirstThread(), [&] {
        Value number = callTarget(builder_, kTakeTicket, builder_.getI32Type(),
                                  addressOf(emitter_.indexConstant(first_)))[0];
        memref::StoreOp::create(builder_, number, ticket.memref, zero);
        return success();
      })))
    return failure();
  teamSync(builder_, kBlock);
  Value number = memref::LoadOp::create(builder_, ticket.memref, zero);
  return Value(
      arith::IndexCastUIOp::create(builder_, builder_.getIndexType(), number));
}

LogicalResult Turns::await(Value place, Value turn) {
  return emitter_.branch(isFirstThread(), [&] {
    callTarget(builder_, kAwaitTurn, TypeRange(),
               {addressOf(indexOf(place)), toI32(turn)});
    return success();
  });
}

LogicalResult Turns::pass(Value place, Value turn, Value does) {
  Value condition = arith::AndIOp::create(builder_, does, isFirstThread());
  return emitter_.branch(condition, [&] {
    callTarget(builder_, kPassTurn, TypeRange(),
               {addressOf(indexOf(place)), toI32(turn)});
    return success();
  });
}

Value Turns::turnOf(Value place) {
  Value bits = memref::LoadOp::create(builder_, memory_, indexOf(place));
  Value number =
      arith::BitcastOp::create(builder_, builder_.getI32Type(), bits);
  return arith::IndexCastUIOp::create(builder_, builder_.getIndexType(),
                                      number);
}

}  // namespace partita::kernels
