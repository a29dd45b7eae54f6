// The three kernels of attention's gradient on tensor cores.
//
// With weights P, the result's gradient G and d = sum(G * result) of each row:
//
//   dS = P * (G v^T - d)   q_grad = scale dS k   k_grad = dS^T (scale q)
//   v_grad = P^T G         bias_grad = dS
//
// Weights are recomputed from q k^T and the logarithm of their sum in each row,
// as in Dao (2023). Unlike there, no two kernels add to the same result, so the
// results are the same in every run.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_MMA_GRAD_PARTS_H_
#define PARTITA_COMPILER_KERNELS_EMIT_MMA_GRAD_PARTS_H_

#include "compiler/kernels/codegen.h"
#include "compiler/kernels/emit_attention_grad.h"
#include "compiler/kernels/emit_mma_tiles.h"
#include "compiler/kernels/emit_nest.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// Rows (queries or keys) of a block: 16 for each warp.
inline constexpr int64_t kGradRows = 16 * kBlock / kWarp;

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType()).getShape();
}

inline mlir::Type elementOf(mlir::Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType()).getElementType();
}
inline int64_t bytesOf(mlir::Type element) {
  return element.getIntOrFloatBitWidth() / 8;
}

// Shared by the three parts.
class MmaGradTiles : protected MmaTiles {
 protected:
  MmaGradTiles(Emitter& emitter, nn::AttentionGradOp op,
               llvm::ArrayRef<Output> outputs, mlir::Value memory,
               int64_t bytes)
      : MmaTiles(emitter, op, kGradRows, bytes), op_(op), memory_(memory) {
    for (const Output& output : outputs)
      for (auto [i, result] : llvm::enumerate(op->getResults()))
        if (output.value == result) {
          buffers_[i] = output.buffer;
          outputs_[i] = output;
        }
    blocks_ = (queries_ + kGradRows - 1) / kGradRows;
  }

  // Statistics of each query. kLogarithm is the binary logarithm of the sum of
  // 2^(scaled scores). It is infinity for queries that do not exist or see no
  // key, so that their weights are 0. kMean is d.
  enum RowStatistic { kLogarithm, kMean };
  // Position of this statistic in memory_.
  mlir::Value placeOf(RowStatistic what, mlir::Value query) {
    Index row = (batch_ * heads_ + head_) * (blocks_ * kGradRows);
    return add(add(number(row), query),
               what * batches_ * heads_ * blocks_ * kGradRows);
  }
  // Loads this statistic of `count` queries.
  mlir::Value loadStatistic(RowStatistic what, mlir::Value query,
                            int64_t count) {
    auto load = mlir::vector::LoadOp::create(
        builder_, mlir::VectorType::get({count}, type_), memory_,
        placeOf(what, query));
    load.setAlignmentAttr(builder_.getI64IntegerAttr(4 * count));
    return load;
  }
  // weight * (product - mean)
  mlir::Value scoreGrad(mlir::Value weight, mlir::Value product,
                        mlir::Value mean) {
    return mlir::arith::MulFOp::create(
        builder_, weight, mlir::arith::SubFOp::create(builder_, product, mean));
  }
  // Elements of a tile of kGradRows before this warp's rows.
  mlir::Value warpShift(const Tile& tile) {
    return multiply(fragments_.warp(), 16 * tile.stride());
  }
  // This thread's first row in the block.
  mlir::Value threadRow() {
    return add(multiply(fragments_.warp(), 16), fragments_.g());
  }
  // Stores this warp's rows of sums, times `scale`, as result `i`. Overwrites
  // `tile`, which no thread may still read.
  mlir::LogicalResult storeSums(llvm::ArrayRef<mlir::Value> sums, double scale,
                                const Tile& tile, int i, const Index& head,
                                mlir::Value first) {
    mlir::Value factor = emitter_.constant(type_, scale, 4);
    for (auto [column, sum] : llvm::enumerate(sums))
      fragments_.put(scale == 1 ? sum
                                : mlir::Value(mlir::arith::MulFOp::create(
                                      builder_, sum, factor)),
                     tile, warpShift(tile), 8 * column);
    fragments_.sync();
    if (mlir::failed(fragments_.drain(
            tile, outputs_[i].buffer, shapeOf(op_->getResult(i))[2],
            placeStrides(outputs_[i]), outputs_[i].begin, {batch_, head},
            first)))
      return mlir::failure();
    fragments_.sync();
    return mlir::success();
  }

  nn::AttentionGradOp op_;
  mlir::Value memory_;
  Buffer buffers_[4];  // of the results; null memref: not needed
  Output outputs_[4];
  int64_t blocks_;  // blocks of queries
};

mlir::FailureOr<int64_t> emitMmaGradRows(Emitter& emitter,
                                         nn::AttentionGradOp op,
                                         llvm::ArrayRef<Output> outputs,
                                         mlir::Value memory, mlir::Value begin,
                                         mlir::Value end);
mlir::FailureOr<int64_t> emitMmaGradKeys(Emitter& emitter,
                                         nn::AttentionGradOp op,
                                         llvm::ArrayRef<Output> outputs,
                                         mlir::Value memory, mlir::Value begin,
                                         mlir::Value end);
mlir::FailureOr<int64_t> emitMmaGradBias(Emitter& emitter,
                                         nn::AttentionGradOp op,
                                         llvm::ArrayRef<Output> outputs,
                                         mlir::Value memory, mlir::Value begin,
                                         mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_MMA_GRAD_PARTS_H_
