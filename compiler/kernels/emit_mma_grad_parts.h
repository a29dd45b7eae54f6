// The kernels of attention's gradient on tensor cores.
//
// With weights P, the result's gradient G and d = sum(G * result) of each row:
//
//   dS = P * (G v^T - d)   q_grad = scale dS k   k_grad = dS^T (scale q)
//   v_grad = P^T G         bias_grad = dS
//
// Weights are recomputed from q k^T and the logarithm of their sum in each row,
// as in Dao (2023). A block of keys computes the gradients of its keys and
// values, and adds its part to q_grad of all queries that see it. Unlike there,
// blocks of keys add to a tile of queries in their own order (emit_turns.h), so
// the results are the same in every run.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_MMA_GRAD_PARTS_H_
#define PARTITA_COMPILER_KERNELS_EMIT_MMA_GRAD_PARTS_H_

#include <optional>

#include "compiler/kernels/codegen.h"
#include "compiler/kernels/emit_attention_grad.h"
#include "compiler/kernels/emit_mma_tiles.h"
#include "compiler/kernels/emit_nest.h"
#include "compiler/kernels/emit_turns.h"
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

// Shared memory of the part for blocks of keys. Keys and values stay there
// (`resident`) if q_grad is wanted, whose products read keys as a tile, or if
// heads are large. Otherwise they are kept as fragments, and loaded through the
// second buffer of queries.
struct KeysPlan {
  KeysPlan(nn::AttentionGradOp op, bool with_queries);

  bool resident;
  Tile key, value, query, given;
  Tile grads;       // gradients of a tile's scores, by keys and queries
  int64_t buffer;   // elements of `query` and `given`
  int64_t buffers;  // 2: while one is read, the next one is filled
  int64_t bytes;
};

// Device memory that the parts share, in floats: statistics of each query, then
// the sums of q_grad, then the turns of blocks of keys at each tile of queries.
//
// Sums are stored as the threads hold them: 16 x 16 parts of a tile, row by
// row; of each part two halves of eight columns, with four floats per lane.
struct GradMemory {
  GradMemory(nn::AttentionGradOp op, bool with_queries, bool warpgroups);

  int64_t blocks;       // blocks of kGradRows queries
  int64_t tile;         // queries of a tile
  int64_t tiles;        // of a head
  int64_t statistics;   // floats of one statistic
  int64_t sums, turns;  // first floats; without q_grad both are the end
  int64_t floats;
};

// The gradient of which kernels compute parts. `memory` has the floats of a
// GradMemory. `warpgroups`: warpgroups compute the part for blocks of keys.
struct GradKernel {
  nn::AttentionGradOp op;
  llvm::ArrayRef<Output> outputs;
  mlir::Value memory;
  bool warpgroups = false;
};

// Shared by the parts. `read_by_warpgroups`: warpgroups read this part's tiles.
class MmaGradTiles : protected MmaTiles {
 protected:
  MmaGradTiles(Emitter& emitter, const GradKernel& kernel, int64_t bytes,
               bool read_by_warpgroups = false)
      : MmaTiles(emitter, kernel.op, kGradRows, bytes, read_by_warpgroups),
        op_(kernel.op),
        memory_(kernel.memory) {
    for (const Output& output : kernel.outputs)
      for (auto [i, result] : llvm::enumerate(op_->getResults()))
        if (output.value == result) {
          buffers_[i] = output.buffer;
          outputs_[i] = output;
        }
    layout_.emplace(op_, wantsQueries(), kernel.warpgroups);
    if (wantsQueries()) turns_.emplace(emitter, memory_, layout_->turns);
  }

  bool wantsQueries() const { return buffers_[0].memref != nullptr; }

  // Statistics of each query. kLogarithm is the binary logarithm of the sum of
  // 2^(scaled scores). It is infinity for queries that do not exist or see no
  // key, so that their weights are 0. kMean is d.
  enum RowStatistic { kLogarithm, kMean };
  // Position of this statistic in memory_.
  mlir::Value placeOf(RowStatistic what, mlir::Value query) {
    Index row = (batch_ * heads_ + head_) * (layout_->blocks * kGradRows);
    return add(add(number(row), query), what * layout_->statistics);
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
  // --- Sums of q_grad, of which each block of keys has a part ---
  // The place of a tile of queries among the turns.
  mlir::Value turnPlaceOf(mlir::Value tile) {
    return add(multiply(number(batch_ * heads_ + head_), layout_->tiles), tile);
  }
  // The turn of the first block of keys that sees the tile. Blocks that see it
  // follow each other, so a block's turn is its own number. With lists, it is
  // the number of earlier blocks that see the tile.
  mlir::Value firstTurnOf(mlir::Value tile) {
    if (isListed() || !window_) return emitter_.indexConstant(0);
    return mlir::arith::DivUIOp::create(
        builder_, beginOfKeys(multiply(tile, layout_->tile)),
        emitter_.indexConstant(kGradRows));
  }
  // Position in memory_ of this lane's sums of a part of the tile.
  mlir::Value sumsOf(mlir::Value tile, mlir::Value band, mlir::Value column) {
    mlir::Value part = add(multiply(band, size_ / 16), column),
                lane = add(multiply(fragments_.g(), 4), fragments_.t());
    return add(add(multiply(turnPlaceOf(tile), layout_->tile * size_),
                   multiply(part, 256)),
               add(multiply(lane, 4), layout_->sums));
  }
  mlir::Value loadSums(mlir::Value position) {
    auto load = mlir::vector::LoadOp::create(
        builder_, mlir::VectorType::get({4}, type_), memory_, position);
    load.setAlignmentAttr(builder_.getI64IntegerAttr(16));
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
  std::optional<GradMemory> layout_;
  std::optional<Turns> turns_;  // if q_grad is wanted
};

// Emits a part, whose class has its range and emits an item. Returns the range.
template <typename Part>
mlir::FailureOr<int64_t> emitGradPart(Emitter& emitter,
                                      const GradKernel& kernel,
                                      mlir::Value begin, mlir::Value end) {
  Part part(emitter, kernel);
  if (mlir::failed(emitter.loop(begin, end, part.range(), {},
                                [&](const Symbol* item, mlir::ValueRange) {
                                  return part.emitItem(item);
                                })))
    return mlir::failure();
  return part.range();
}

mlir::FailureOr<int64_t> emitMmaGradStatistics(Emitter& emitter,
                                               const GradKernel& kernel,
                                               mlir::Value begin,
                                               mlir::Value end);
mlir::FailureOr<int64_t> emitMmaGradKeys(Emitter& emitter,
                                         const GradKernel& kernel,
                                         mlir::Value begin, mlir::Value end);
// The same part by warpgroups.
mlir::FailureOr<int64_t> emitGroupGradKeys(Emitter& emitter,
                                           const GradKernel& kernel,
                                           mlir::Value begin, mlir::Value end);
mlir::FailureOr<int64_t> emitMmaGradQueries(Emitter& emitter,
                                            const GradKernel& kernel,
                                            mlir::Value begin, mlir::Value end);
mlir::FailureOr<int64_t> emitMmaGradBias(Emitter& emitter,
                                         const GradKernel& kernel,
                                         mlir::Value begin, mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_MMA_GRAD_PARTS_H_
