// For a block of queries: rounds the sums of q_grad.
#include "compiler/kernels/emit_mma_grad_parts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::kernels {
namespace {

using namespace mlir;

Tile tileOf(nn::AttentionGradOp op) {
  return {0, kGradRows, shapeOf(op.getQ())[3], paddingOf(elementOf(op.getQ()))};
}

int64_t bytesOfTile(nn::AttentionGradOp op) {
  return bytesOf(elementOf(op.getQ())) * tileOf(op).elements();
}

class GradQueries : private MmaGradTiles {
 public:
  GradQueries(Emitter& emitter, const GradKernel& kernel)
      : MmaGradTiles(emitter, kernel, bytesOfTile(kernel.op)),
        tile_(tileOf(kernel.op)) {}

  int64_t range() const { return batches_ * heads_ * layout_->blocks; }

  FailureOr<Values> emitItem(const Symbol* item) {
    auto [pair, block] = emitter_.split(Index(item), layout_->blocks);
    std::tie(batch_, head_) = emitter_.split(pair, heads_);
    // A warp has a band of 16 queries of one of the block's tiles.
    const int64_t bands = layout_->tile / 16, tiles = kGradRows / layout_->tile;
    Value tile = add(multiply(number(block), tiles),
                     arith::DivUIOp::create(builder_, fragments_.warp(),
                                            emitter_.indexConstant(bands))),
          band = arith::RemUIOp::create(builder_, fragments_.warp(),
                                        emitter_.indexConstant(bands));
    // No block of keys has added to queries that see no key.
    Value is_summed = arith::CmpIOp::create(builder_, arith::CmpIPredicate::ne,
                                            turns_->turnOf(turnPlaceOf(tile)),
                                            firstTurnOf(tile));
    Values sums;
    for (int64_t column = 0; column < size_ / 16; ++column)
      for (int64_t half = 0; half < 2; ++half) {
        Value position = sumsOf(tile, band, emitter_.indexConstant(column));
        sums.push_back(arith::SelectOp::create(
            builder_, is_summed, loadSums(add(position, 128 * half)),
            fragments_.zero()));
      }
    fragments_.sync();  // the previous content has been read
    Value first = multiply(number(block), kGradRows);
    if (failed(storeSums(sums, scale_, tile_, 0, head_, first)))
      return failure();
    return Values();
  }

 private:
  Tile tile_;
};

}  // namespace

FailureOr<int64_t> emitMmaGradQueries(Emitter& emitter,
                                      const GradKernel& kernel, Value begin,
                                      Value end) {
  return emitGradPart<GradQueries>(emitter, kernel, begin, end);
}

}  // namespace partita::kernels
