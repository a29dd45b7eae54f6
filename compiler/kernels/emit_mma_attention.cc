// Attention on tensor cores, after Dao (2023). A block of threads takes a block
// of queries, whose fragments stay in registers, and goes through the keys tile
// by tile, while the next tile of keys and values is copied to shared memory. A
// warp has 16 or 32 queries; their scores, running softmax and weighted sums of
// values never leave its registers.
//
// Tiles of keys that all queries of the block see come first, and need no mask.
//
// With warpgroups (emit_warpgroup.h), a block has one or two bands of 64
// queries. Products of one band are computed while the warps turn the other
// band's scores into weights, as in Shah et al. (2024). Queries then stay in
// shared memory. If the layout of keys and values allows boxes, the tensor
// memory accelerator copies them into a ring of tiles (emit_tile_ring.h).
// Otherwise each thread copies 16 bytes at a time, as for queries and as for
// warps.
#include "compiler/kernels/emit_mma_attention.h"

#include "compiler/core/attention_work.h"
#include "compiler/kernels/codegen.h"
#include "compiler/kernels/emit_attention.h"
#include "compiler/kernels/emit_mma_tiles.h"
#include "compiler/kernels/emit_warpgroup.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::kernels {
namespace {

using namespace mlir;

constexpr int64_t kWarps = kBlock / kWarp;
constexpr int64_t kMostBytes = 48 * 1024;  // shared memory per block, for warps
// For warpgroups: two blocks share the 228 KiB of a multiprocessor, of which
// the system reserves 1 KiB per block (CUDA programming guide, compute
// capability 9.0).
constexpr int64_t kMostGroupBytes = (228 / 2 - 1) * 1024;
constexpr int64_t kMostStages = 4;  // of a ring
constexpr double kLogOf2 = 0.6931471805599453;

RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

// The maps of keys and of values.
using Maps = std::optional<std::pair<TensorMap, TensorMap>>;

Maps mapsOf(Emitter& emitter, nn::AttentionOp op) {
  std::optional<TensorMap> keys = boxesOf(emitter, op.getK(), kGroupRows),
                           values = boxesOf(emitter, op.getV(), kGroupRows);
  if (!keys || !values) return std::nullopt;
  return std::pair(*keys, *values);
}

// The layout of shared memory. Tiles of keys and values come first. Queries lie
// in the tiles that are filled last, or behind all tiles for warpgroups. At the
// end, the results take the place of both.
struct Plan {
  Plan(nn::AttentionOp op, bool warpgroups, Maps keys_and_values)
      : warpgroups(warpgroups), maps(std::move(keys_and_values)) {
    const auto q = typeOf(op.getQ()).getShape(),
               v = typeOf(op.getV()).getShape();
    const Type element = typeOf(op.getQ()).getElementType();
    const KeyTiles tiles(element, q[3], v[3], warpgroups);
    const int64_t width = element.getIntOrFloatBitWidth() / 8;
    // A thread's registers limit the number of bands.
    const bool narrow = width * std::max(q[3], v[3]) <= 128;
    bands = (narrow || warpgroups) && width == 2 && q[2] > 16 * kWarps ? 2 : 1;
    rows = 16 * kWarps * bands;
    warp_rows = warpgroups ? 16 : 16 * bands;
    band_rows = warpgroups ? 16 * kWarps : 16;
    if (warpgroups) {
      query = {0, rows, q[3], 0, /*swizzled=*/true};
      const int64_t most =
          width * (kMostStages * tiles.buffer + query.elements()) + kRingBytes;
      if (maps && most <= kMostGroupBytes) stages = kMostStages;
      query.first = stages * tiles.buffer;
    } else {
      query = {tiles.buffer, rows, q[3], paddingOf(element)};
      // If there is no space for both, queries are loaded before keys.
      if (width * (tiles.buffer + query.elements()) > kMostBytes)
        query.first = 0;
    }
    // Eight floats of padding put neighbouring rows into different banks.
    result_stride = v[3] + 8;
    bytes = std::max({width * stages * tiles.buffer,
                      width * (query.first + query.elements()),
                      4 * rows * result_stride});
  }

  bool warpgroups;     // use warpgroups, not warps
  Maps maps;           // of keys and values; none: threads copy them
  int64_t stages = 2;  // of tiles of keys and values
  int64_t bands;       // of 16 queries, per warp
  int64_t rows;        // queries per block
  int64_t warp_rows;   // from a warp's first query to the next warp's
  int64_t band_rows;   // from a band's first query to the next band's
  Tile query;
  int64_t result_stride;  // floats
  int64_t bytes;
};

class MmaAttentionEmitter : private MmaTiles {
 public:
  MmaAttentionEmitter(Emitter& emitter, nn::AttentionOp op,
                      ArrayRef<Output> outputs, bool warpgroups)
      : MmaAttentionEmitter(
            emitter, op, outputs,
            Plan(op, warpgroups, warpgroups ? mapsOf(emitter, op) : Maps())) {}

  int64_t range() const { return batches_ * heads_ * blocks_; }

  LogicalResult emit(Value begin, Value end) {
    results_ = {emitter_.scratchView(0, type_, plan_.bytes / 4), type_};
    return emitter_.loop(
        begin, end, range(), {},
        [&](const Symbol* item, ValueRange) { return emitItem(item); });
  }

 private:
  MmaAttentionEmitter(Emitter& emitter, nn::AttentionOp op,
                      ArrayRef<Output> outputs, const Plan& plan)
      : MmaTiles(emitter, op, plan.rows, plan.bytes, plan.warpgroups),
        op_(op),
        outputs_(outputs),
        plan_(plan),
        blocks_((queries_ + plan.rows - 1) / plan.rows),
        values_(value_size_ / 8) {
    if (plan.warpgroups)
      warpgroup_.emplace(builder_, typeOf(op.getQ()).getElementType(),
                         fragments_.base());
    if (plan.maps) useRing(plan.stages, plan.maps->first, plan.maps->second);
  }

  FailureOr<Values> emitItem(const Symbol* item) {
    Index pair, block;
    // Heads that share keys are consecutive. Blocks that see more keys come
    // first.
    if (causal_offset_) {
      std::tie(block, pair) = emitter_.split(Index(item), batches_ * heads_);
      block = block * -1 + Index(blocks_ - 1);
    } else {
      std::tie(pair, block) = emitter_.split(Index(item), blocks_);
    }
    std::tie(batch_, head_) = emitter_.split(pair, heads_);
    group_ = emitter_.split(head_, heads_ / groups_).first;
    Value first = multiply(number(block), rows_);
    // Wait until the previous item's tiles have been read; a ring waits itself.
    if (!ring_) fragments_.sync();
    const bool together = plan_.query.first > 0;
    if (together && failed(fillFirstKeys(first, /*with_values=*/true)))
      return failure();
    if (failed(fragments_.fill(plan_.query, Value(), op_.getQ(),
                               {batch_, head_}, first)))
      return failure();
    fragments_.waitForTiles();
    loadQueries(first);
    if (!together) {
      fragments_.sync();
      if (failed(fillFirstKeys(first, /*with_values=*/true))) return failure();
    }
    FailureOr<Values> sums = emitTiles(first);
    if (failed(sums)) return failure();
    if (failed(storeLse(first, *sums))) return failure();
    storeSums(*sums);
    return emitOutputs(first);
  }

  void loadQueries(Value first) {
    Value row = multiply(fragments_.warp(), plan_.warp_rows);
    if (!plan_.warpgroups)
      query_ = leftFragments(plan_.query, multiply(row, plan_.query.stride()),
                             plan_.bands);
    positions_.clear();
    for (int64_t eight = 0; eight < 2 * plan_.bands; ++eight)
      positions_.push_back(queryAt(add(first, rowOf(eight))));
  }

  // The query of a row of sums, counted in its block.
  Value rowOf(int64_t eight) {
    return add(
        add(multiply(fragments_.warp(), plan_.warp_rows), fragments_.g()),
        plan_.band_rows * (eight / 2) + 8 * (eight % 2));
  }

  // Goes through all keys. Returns the weighted sums of values of each query,
  // and then, for each half of a band, the largest score and this thread's part
  // of the sum of weights.
  FailureOr<Values> emitTiles(Value first) {
    const int64_t sums = plan_.bands * values_, rows = 2 * plan_.bands;
    Values state(sums, fragments_.zero());
    state.append(rows, f32(-std::numeric_limits<double>::infinity()));
    state.append(rows, f32(0));
    return throughKeys(
        first, /*with_values=*/true, state,
        [&](Value shift, Value first_key, bool masked,
            Values carried) -> FailureOr<Values> {
          const MutableArrayRef<Value> all(carried);
          if (plan_.warpgroups) {
            if (failed(emitGroupTile(shift, first_key, masked, all)))
              return failure();
            return carried;
          }
          FailureOr<Values> weights = runningWeights(
              timesTransposed(query_, tiles_.key, shift), positions_, first_key,
              masked,
              {all.slice(sums, rows), all.slice(sums + rows, rows),
               MutableArrayRef<Value>(scales_).take_front(rows)});
          if (failed(weights)) return failure();
          scaleSums(all);
          addTimes(leftOf(*weights), tiles_.value, shift, all.take_front(sums));
          return carried;
        });
  }

  // Computes a tile of keys by warpgroups. Products of several bands are in
  // flight: when one band's scores become weights, the scores of later bands
  // and the sums of earlier bands have begun.
  LogicalResult emitGroupTile(Value shift, Value first_key, bool masked,
                              MutableArrayRef<Value> state) {
    const int64_t bands = plan_.bands, sums = bands * values_;
    SmallVector<Values> scores;
    for (int64_t band = 0; band < bands; ++band) {
      scores.push_back(warpgroup_->timesTransposed(
          plan_.query, plan_.band_rows * band, tiles_.key, shift));
      warpgroup_->commit();
    }
    for (int64_t band = 0; band < bands; ++band) {
      FailureOr<Values> weights =
          runningWeights(warpgroup_->wait(bands - 1, scores[band]),
                         ArrayRef<const Symbol*>(positions_).slice(2 * band, 2),
                         first_key, masked,
                         {state.slice(sums + 2 * band, 2),
                          state.slice(sums + 2 * (bands + band), 2),
                          MutableArrayRef<Value>(scales_).slice(2 * band, 2)});
      if (failed(weights)) return failure();
      scaleBand(band, state);
      llvm::copy(warpgroup_->addTimes(leftOf(*weights), tiles_.value, shift,
                                      sumsOf(band, state)),
                 sumsOf(band, state).begin());
      warpgroup_->commit();
    }
    for (int64_t band = 0; band < bands; ++band)
      llvm::copy(warpgroup_->wait(0, sumsOf(band, state)),
                 sumsOf(band, state).begin());
    return success();
  }

  MutableArrayRef<Value> sumsOf(int64_t band, MutableArrayRef<Value> state) {
    return state.slice(band * values_, values_);
  }

  void scaleSums(MutableArrayRef<Value> state) {
    for (int64_t band = 0; band < plan_.bands; ++band) scaleBand(band, state);
  }

  void scaleBand(int64_t band, MutableArrayRef<Value> state) {
    for (Value& sums : sumsOf(band, state))
      sums = scaleRows(sums, scales_[2 * band], scales_[2 * band + 1]);
  }

  // Stores lse, if the kernel returns it. Four threads hold a row.
  LogicalResult storeLse(Value first, const Values& state) {
    for (const Output& output : outputs_) {
      if (output.value != op_.getLse()) continue;
      for (int64_t row = 0; row < 2 * plan_.bands; ++row) {
        Value sum =
            fragments_.sumOfRow(state[plan_.bands * (values_ + 2) + row]);
        Value none = arith::CmpFOp::create(builder_, arith::CmpFPredicate::OEQ,
                                           sum, f32(0));
        // Scaled scores are binary logarithms of weights.
        Value lse = arith::AddFOp::create(
            builder_, scaled(finite(state[plan_.bands * values_ + row])),
            math::Log2Op::create(builder_, sum));
        lse = arith::MulFOp::create(builder_, lse, f32(kLogOf2));
        lse = arith::SelectOp::create(
            builder_, none, f32(-std::numeric_limits<double>::infinity()), lse);
        Value query = add(first, rowOf(row));
        Value stores = arith::AndIOp::create(
            builder_,
            arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, query,
                                  emitter_.indexConstant(queries_)),
            arith::CmpIOp::create(builder_, arith::CmpIPredicate::eq,
                                  fragments_.t(), emitter_.indexConstant(0)));
        if (failed(emitter_.branch(stores, [&] {
              emitter_.store(
                  output.buffer,
                  linearize({batch_, head_, Index(positions_[row])},
                            rowMajorStrides(typeOf(op_.getLse()).getShape())),
                  {lse, 0});
              return success();
            })))
          return failure();
      }
    }
    return success();
  }

  // Divides the sums by the sums of weights, and stores them in shared memory.
  void storeSums(Values state) {
    for (int64_t row = 0; row < 2 * plan_.bands; ++row) {
      Value weight =
          fragments_.sumOfRow(state[plan_.bands * (values_ + 2) + row]);
      Value none = arith::CmpFOp::create(builder_, arith::CmpFPredicate::OEQ,
                                         weight, f32(0));
      Value inverse = arith::DivFOp::create(builder_, f32(1), weight);
      scales_[row] = arith::SelectOp::create(builder_, none, f32(0), inverse);
    }
    scaleSums(state);
    for (int64_t band = 0; band < plan_.bands; ++band)
      for (int64_t i = 0; i < values_; ++i)
        for (int64_t half = 0; half < 2; ++half)
          storePair(state[band * values_ + i], band, half, 8 * i);
    fragments_.sync();
  }

  void storePair(Value sums, int64_t band, int64_t half, int64_t column) {
    Value pair = vector::FromElementsOp::create(
        builder_, VectorType::get({2}, type_),
        ValueRange{scalar(sums, 2 * half), scalar(sums, 2 * half + 1)});
    Value row =
        add(add(multiply(fragments_.warp(), plan_.warp_rows), fragments_.g()),
            plan_.band_rows * band + 8 * half);
    Value at = add(
        add(multiply(row, plan_.result_stride), multiply(fragments_.t(), 2)),
        column);
    auto store = vector::StoreOp::create(builder_, pair, results_.memref, at);
    store.setAlignmentAttr(builder_.getI64IntegerAttr(8));
  }

  // Stores the outputs that follow from the results in shared memory.
  FailureOr<Values> emitOutputs(Value first) {
    Value left = arith::SubIOp::create(builder_,
                                       emitter_.indexConstant(queries_), first);
    Value rows = emitter_.smaller(left, rows_);
    const int64_t extent = rows_ * value_size_;
    return emitter_.laneLoop(
        emitter_.indexConstant(0), multiply(rows, value_size_), extent, extent,
        8, {}, [&](const Symbol* lane, ValueRange) -> FailureOr<Values> {
          auto [row, column] = emitter_.split(Index(lane), value_size_);
          Symbol query;
          query.value = add(first, number(row));
          query.extent = queries_;
          const Index position(emitter_.newSymbol(query));
          emitter_.cache(op_.getResult(), {{batch_, head_, position, Index()},
                                           {-1, -1, -1, 1},
                                           row * plan_.result_stride,
                                           results_});
          if (failed(storeOutputs(emitter_, op_, outputs_,
                                  {batch_, head_, position, column})))
            return failure();
          return Values();
        });
  }

  nn::AttentionOp op_;
  ArrayRef<Output> outputs_;
  Plan plan_;
  int64_t blocks_;
  int64_t values_;  // columns of results, divided by 8
  Buffer results_;
  std::optional<Warpgroup> warpgroup_;
  FragmentList query_;                    // left fragments, band by band
  SmallVector<const Symbol*> positions_;  // queries of the rows of sums
  Value scales_[4];                       // of the rows of sums
};

}  // namespace

bool fitsMma(func::FuncOp kernel, nn::AttentionOp op) {
  return fitsMma(kernel, op, op.getQ(), op.getV());
}

namespace {

template <typename Op>
bool fitGroups(Op op) {
  const auto fits = [](Value tensor) {
    const int64_t size = typeOf(tensor).getDimSize(3);
    return size == 64 || size == 128;
  };
  return !typeOf(op.getQ()).getElementType().isF32() && !op.getBias() &&
         fits(op.getQ()) && fits(op.getV());
}

}  // namespace

bool fitsWarpgroups(nn::AttentionOp op) { return fitGroups(op); }
bool fitsWarpgroups(nn::AttentionGradOp op) { return fitGroups(op); }

bool fitsMma(func::FuncOp kernel, Operation* op, Value q, Value v) {
  Type element = typeOf(q).getElementType();
  if (!element.isBF16() && !element.isF16() && !element.isF32()) return false;
  if (!core::FitsTensorCores(typeOf(q).getDimSize(3), typeOf(v).getDimSize(3),
                             element.getIntOrFloatBitWidth() / 8,
                             /*gradient=*/false))
    return false;
  // Other reductions need teams of one warp.
  WalkResult alone = kernel.walk([&](Operation* other) {
    if (other == op || isa<func::FuncOp, func::ReturnOp>(other))
      return WalkResult::advance();
    const KernelRole role = kernelRole(other);
    return role == KernelRole::elementwise || role == KernelRole::movement
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return !alone.wasInterrupted();
}

FailureOr<int64_t> emitMmaAttention(Emitter& emitter, nn::AttentionOp op,
                                    ArrayRef<Output> outputs, Value begin,
                                    Value end, bool warpgroups) {
  MmaAttentionEmitter attention(emitter, op, outputs, warpgroups);
  if (failed(attention.emit(begin, end))) return failure();
  return attention.range();
}

}  // namespace partita::kernels
