// Shared by attention and its gradient: sizes, packing, products of tiles, and
// the adjustment of scores.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_TILES_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_TILES_H_

#include <algorithm>
#include <optional>

#include "compiler/kernels/emit_attention_mask.h"
#include "compiler/kernels/emit_elements.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace partita::kernels {

class AttentionTiles {
 public:
  // `op` is nn.attention or its gradient.
  template <typename Op>
  AttentionTiles(Emitter& emitter, Op op)
      : AttentionTiles(emitter, op.getQ(), op.getV(), op.getBias(),
                       AttentionMask(emitter, op), op.getCausalOffset(),
                       op.getSoftcap().convertToDouble()) {}

 protected:
  AttentionTiles(Emitter& emitter, mlir::Value q, mlir::Value v,
                 mlir::Value bias, AttentionMask mask,
                 std::optional<int64_t> causal_offset, double softcap);

  // --- Packing ---

  // The element of `tensor` at lanes of the head dimension. `row` is clamped
  // into the tensor.
  mlir::FailureOr<Lanes> rowElement(mlir::Value tensor, const Index& head,
                                    mlir::Value row, int64_t rows,
                                    const Symbol* lane);
  // Packs k or v, whose head size is `size`. Panel p holds keys p * lanes ...,
  // as [size][lanes].
  mlir::LogicalResult packPanels(mlir::Value tensor, int64_t size,
                                 const Buffer& panels);
  // Packs the same as rows, padded to whole vectors.
  mlir::LogicalResult packRows(mlir::Value tensor, int64_t size,
                               const Buffer& rows);

  // --- Products ---

  // The keys that the block of queries from `first` may see.
  mlir::FailureOr<AttentionMask::Range> seenKeys(mlir::Value first) {
    return mask_.rangeOf(batch_, first, rows_, lanes_);
  }
  // End of the keys that it may see, without regard to segments.
  mlir::Value visibleKeys(mlir::Value first) {
    return mask_.limitsOf(first, rows_, lanes_).end;
  }
  // Upper bound on their number, with both ends rounded to whole vectors.
  int64_t visibleSpan() const {
    const int64_t span = mask_.span(rows_, lanes_);
    return std::min(padded(keys_), padded(span + lanes_ - 1));
  }
  // Calls `body` for each part of `range` that the block of queries from
  // `first` sees; once, for all of it, if the mask has no parts. `parts` is
  // what emitParts returned for it, or null.
  using PartBody = llvm::function_ref<mlir::FailureOr<Values>(
      const AttentionMask::Part&, mlir::ValueRange)>;
  mlir::FailureOr<mlir::Value> emitParts(const AttentionMask::Range& range,
                                         mlir::Value first);
  mlir::FailureOr<Values> forEachPart(const AttentionMask::Range& range,
                                      mlir::Value parts, mlir::ValueRange init,
                                      PartBody body);
  // out[row, column + key - first_key] = a[row, :size] * panels[key] for
  // `count` keys and all rows of a block. Rows of `out` have `out_row`
  // elements. A null `column` is 0.
  void emitPanelProducts(const Buffer& a, const Buffer& panels, int64_t size,
                         const Buffer& out, int64_t out_row,
                         mlir::Value first_key, mlir::Value count,
                         mlir::Value column = {});
  // sums[row] (+)= sum over `count` keys of a[row, column + key - first_key] *
  // rows[key]. Rows of `rows` have `size` elements, padded; rows of `a` have
  // `a_row`.
  void emitWeightedSums(const Buffer& a, int64_t a_row, const Buffer& rows,
                        int64_t size, const Buffer& sums, bool accumulate,
                        mlir::Value first_key, mlir::Value count,
                        mlir::Value column = {});
  // Applies the softcap, then bias and mask.
  mlir::FailureOr<mlir::Value> adjustScore(mlir::Value score,
                                           const Symbol* query,
                                           const Symbol* keys);

  // --- Arithmetic ---

  // A single instruction, which may drop a NaN: that score's weight is NaN
  // anyway.
  mlir::Value larger(mlir::Value a, mlir::Value b);
  mlir::Value largestLane(mlir::Value vector);
  int64_t padded(int64_t size) const {
    return (size + lanes_ - 1) / lanes_ * lanes_;
  }
  mlir::Value number(const Index& index) {
    return emitter_.number(index, builder_.getIndexType()).value;
  }
  mlir::Value add(mlir::Value a, mlir::Value b) {
    return builder_.createOrFold<mlir::arith::AddIOp>(a, b);
  }
  mlir::Value add(mlir::Value a, int64_t b) {
    return add(a, emitter_.indexConstant(b));
  }
  mlir::Value multiply(mlir::Value a, int64_t b) {
    return builder_.createOrFold<mlir::arith::MulIOp>(
        a, emitter_.indexConstant(b));
  }
  mlir::Value loadVector(const Buffer& buffer, mlir::Value at) {
    return mlir::vector::LoadOp::create(
        builder_, mlir::VectorType::get({lanes_}, type_), buffer.memref, at);
  }
  void storeVector(mlir::Value value, const Buffer& buffer, mlir::Value at) {
    mlir::vector::StoreOp::create(builder_, value, buffer.memref, at);
  }

  Emitter& emitter_;
  mlir::ImplicitLocOpBuilder& builder_;
  mlir::Value bias_;
  AttentionMask mask_;
  std::optional<int64_t> causal_offset_;
  double softcap_;
  int64_t batches_, heads_, queries_, size_, groups_, keys_, value_size_;
  mlir::Type type_;
  int64_t lanes_;
  int64_t rows_;  // queries per block
  Index batch_, head_, group_;

 private:
  // True if neighbouring elements of a head are neighbours in memory, as they
  // are unless k is stored transposed.
  mlir::FailureOr<bool> isDenseAlongHead(mlir::Value tensor, int64_t size);
  mlir::FailureOr<Values> packPanelByRows(mlir::Value tensor, int64_t size,
                                          const Buffer& panels,
                                          const Symbol* panel);
  mlir::FailureOr<Values> packPanelByColumns(mlir::Value tensor, int64_t size,
                                             const Buffer& panels,
                                             const Symbol* panel);
  void emitPanelLoop(const Buffer& a, const Buffer& panels, int64_t size,
                     const Buffer& out, int64_t out_row, mlir::Value panel,
                     mlir::Value begin, mlir::Value end, int64_t width,
                     mlir::Value column);
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_TILES_H_
