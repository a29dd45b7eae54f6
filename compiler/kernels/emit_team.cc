// Emits operations that the threads of a team do together.
#include "compiler/kernels/emit_team.h"

#include "compiler/kernels/codegen.h"
#include "compiler/kernels/emit_reduction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::kernels {

using namespace mlir;

ValueRange callTarget(ImplicitLocOpBuilder& builder, StringRef name,
                      TypeRange results, ValueRange arguments) {
  auto module =
      builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  if (!module.lookupSymbol(name)) {
    OpBuilder at_end = OpBuilder::atBlockEnd(module.getBody());
    auto function = func::FuncOp::create(
        at_end, module.getLoc(), name,
        at_end.getFunctionType(arguments.getTypes(), results));
    function.setPrivate();
  }
  return func::CallOp::create(builder, name, results, arguments).getResults();
}

namespace {

Value exchangeWord(ImplicitLocOpBuilder& builder, Value word, int distance) {
  Type i32 = builder.getI32Type();
  Value far =
      arith::ConstantOp::create(builder, builder.getI32IntegerAttr(distance));
  return callTarget(builder, kTeamExchange, i32, {word, far})[0];
}

}  // namespace

// Exchanges 32 bits at a time.
Value teamExchange(ImplicitLocOpBuilder& builder, Value value, int distance) {
  Type type = value.getType();
  unsigned width = type.getIntOrFloatBitWidth();
  Type bits = builder.getIntegerType(width), i32 = builder.getI32Type();
  Value number = value;
  if (type != bits) number = arith::BitcastOp::create(builder, bits, value);
  if (width < 32) {
    number = arith::ExtUIOp::create(builder, i32, number);
    number = exchangeWord(builder, number, distance);
    number = arith::TruncIOp::create(builder, bits, number);
  } else if (width == 32) {
    number = exchangeWord(builder, number, distance);
  } else {
    Value shift =
        arith::ConstantOp::create(builder, builder.getI64IntegerAttr(32));
    Value low = arith::TruncIOp::create(builder, i32, number);
    Value high = arith::TruncIOp::create(
        builder, i32, arith::ShRUIOp::create(builder, number, shift));
    low = arith::ExtUIOp::create(builder, bits,
                                 exchangeWord(builder, low, distance));
    high = arith::ExtUIOp::create(builder, bits,
                                  exchangeWord(builder, high, distance));
    number = arith::OrIOp::create(builder, low,
                                  arith::ShLIOp::create(builder, high, shift));
  }
  if (type != bits) number = arith::BitcastOp::create(builder, type, number);
  return number;
}

Value teamThread(ImplicitLocOpBuilder& builder, int64_t team) {
  Value number = callTarget(builder, team > kWarp ? kBlockThread : kTeamThread,
                            builder.getI64Type(), {})[0];
  return arith::IndexCastOp::create(builder, builder.getIndexType(), number);
}

void teamSync(ImplicitLocOpBuilder& builder, int64_t team) {
  callTarget(builder, team > kWarp ? kBlockSync : kTeamSync, TypeRange(), {});
}

Value combineTeam(Emitter& emitter, nn::ReduceKind kind, Value value) {
  for (int64_t distance = emitter.team() / 2; distance > 0; distance /= 2)
    value = combine(emitter, kind, value,
                    teamExchange(emitter.builder(), value, distance));
  return value;
}

}  // namespace partita::kernels
