// Finds the stores of kernels and inserts calls.
#include "compiler/kernels/report_writes.h"

#include "compiler/kernels/emit_fragments.h"
#include "compiler/kernels/emit_team.h"
#include "compiler/kernels/emit_turns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace partita::kernels {

using namespace mlir;

namespace {

constexpr char kWrote[] = "partita_wrote";

// The argument that holds `memory`; null if it is a thread's own.
BlockArgument argumentOf(Value memory) {
  while (auto view = memory.getDefiningOp<ViewLikeOpInterface>())
    memory = view.getViewSource();
  return dyn_cast<BlockArgument>(memory);
}

// `stored` is the type of the elements, or of a vector of them.
void report(Operation* store, Value memory, ValueRange indices, Type stored) {
  BlockArgument argument = argumentOf(memory);
  if (!argument) return;
  const bool is_scratch =
      argument.getArgNumber() + 1 == argument.getOwner()->getNumArguments();
  ImplicitLocOpBuilder builder(store->getLoc(), store->getContext());
  builder.setInsertionPointAfter(store);
  const auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, value);
  };
  const Type element = getElementTypeOrSelf(stored);
  const int64_t width = (element.getIntOrFloatBitWidth() + 7) / 8;
  int64_t bytes = width;
  if (auto vector = dyn_cast<VectorType>(stored))
    bytes *= vector.getNumElements();
  Value at = memref::ExtractAlignedPointerAsIndexOp::create(builder, memory)
                 .getResult();
  at = arith::AddIOp::create(
      builder, at, arith::MulIOp::create(builder, indices[0], index(width)));
  const auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        builder, builder.getI32IntegerAttr(static_cast<int32_t>(value)));
  };
  callTarget(builder, kWrote, TypeRange(),
             {arith::IndexCastOp::create(builder, builder.getI64Type(), at),
              number(bytes), number(is_scratch)});
}

}  // namespace

LogicalResult reportWrites(ModuleOp module) {
  if (!module.lookupSymbol(kFenceTiles) && !module.lookupSymbol(kPassTurn))
    return success();
  SmallVector<memref::StoreOp> scalars;
  SmallVector<vector::StoreOp> vectors;
  const WalkResult known = module.walk([&](Operation* op) {
    if (auto store = dyn_cast<memref::StoreOp>(op)) {
      scalars.push_back(store);
    } else if (auto store = dyn_cast<vector::StoreOp>(op)) {
      vectors.push_back(store);
    } else if (!isa<func::CallOp>(op) && op->getNumRegions() == 0 &&
               hasEffect<MemoryEffects::Write>(op)) {
      op->emitError("expected memref.store or vector.store");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (known.wasInterrupted()) return failure();
  for (memref::StoreOp store : scalars)
    report(store, store.getMemRef(), store.getIndices(),
           store.getValueToStore().getType());
  for (vector::StoreOp store : vectors)
    report(store, store.getBase(), store.getIndices(),
           store.getValueToStore().getType());
  return success();
}

}  // namespace partita::kernels
