// Emits register-tiled matrix products and in-register transposes.
#include "compiler/kernels/emit_matmul.h"

#include "compiler/kernels/estimate_work.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace partita::kernels {

using namespace mlir;

Values emitMicroMatmul(Emitter& emitter, const MicroMatmul& matmul,
                       Values accumulators) {
  ImplicitLocOpBuilder& builder = emitter.builder();
  Type element = cast<MemRefType>(matmul.a.getType()).getElementType();
  auto type = VectorType::get({matmul.lanes}, element);
  if (accumulators.empty())
    accumulators.assign(matmul.rows * matmul.vectors,
                        emitter.constant(element, 0, matmul.lanes));
  auto plus = [&](Value base, int64_t offset) {
    return builder.createOrFold<arith::AddIOp>(base,
                                               emitter.indexConstant(offset));
  };
  auto loop =
      scf::ForOp::create(builder, emitter.indexConstant(0), matmul.depth,
                         emitter.indexConstant(1), accumulators);
  loop->setAttr(kTripsAttr, builder.getI64IntegerAttr(matmul.expected_depth));
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(loop.getBody());
    auto at = [&](Value first, int64_t stride) -> Value {
      Value step = arith::MulIOp::create(builder, loop.getInductionVar(),
                                         emitter.indexConstant(stride));
      return arith::AddIOp::create(builder, first, step);
    };
    Value a_base = at(matmul.a_first, matmul.a_k),
          b_base = at(matmul.b_first, matmul.b_k);
    Values row_of_b, next;
    for (int64_t v = 0; v < matmul.vectors; ++v)
      row_of_b.push_back(vector::LoadOp::create(
          builder, type, matmul.b, plus(b_base, v * matmul.b_vector)));
    for (int64_t row = 0; row < matmul.rows; ++row) {
      Value scalar = memref::LoadOp::create(builder, matmul.a,
                                            plus(a_base, row * matmul.a_row));
      Value a = vector::BroadcastOp::create(builder, type, scalar);
      for (int64_t v = 0; v < matmul.vectors; ++v)
        next.push_back(vector::FMAOp::create(
            builder, a, row_of_b[v],
            loop.getRegionIterArg(row * matmul.vectors + v)));
    }
    scf::YieldOp::create(builder, next);
  }
  return Values(loop.getResults());
}

Values transposeInRegisters(Emitter& emitter, Values rows) {
  int64_t size = rows.size();
  // Swaps the off-diagonal halves of 2x2 blocks of ever larger squares
  // (Eklundh, 1972).
  for (int64_t step = 1; step < size; step *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t j = 0; j < size; ++j) {
      bool second = (j & step) != 0;
      low.push_back(second ? size + j - step : j);
      high.push_back(second ? size + j : j + step);
    }
    for (int64_t i = 0; i < size; ++i) {
      if ((i & step) != 0) continue;
      Value a = rows[i], b = rows[i + step];
      rows[i] = vector::ShuffleOp::create(emitter.builder(), a, b, low);
      rows[i + step] = vector::ShuffleOp::create(emitter.builder(), a, b, high);
    }
  }
  return rows;
}

}  // namespace partita::kernels
