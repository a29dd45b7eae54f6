// What attention and its gradient share: sizes, packing, products of tiles, the
// adjustment of scores.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_TILES_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_TILES_H_

#include <optional>

#include "compiler/kernels/emit_elements.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace partita::kernels {

class AttentionTiles {
 public:
  // Of nn.attention or its gradient.
  template <typename Op>
  AttentionTiles(Emitter& emitter, Op op)
      : AttentionTiles(emitter, op.getQ(), op.getV(), op.getBias(),
                       op.getCausalOffset(),
                       op.getSoftcap().convertToDouble()) {}

 protected:
  AttentionTiles(Emitter& emitter, mlir::Value q, mlir::Value v,
                 mlir::Value bias, std::optional<int64_t> causal_offset,
                 double softcap);

  // --- Packing ---

  // The element at lanes of the head dimension, for a row that is clamped into
  // the tensor.
  mlir::FailureOr<Lanes> rowElement(mlir::Value tensor, const Index& head,
                                    mlir::Value row, int64_t rows,
                                    const Symbol* lane);
  // Of k or v, whose head elements are `size`. Panel p holds keys p * lanes
  // ..., as [size][lanes].
  mlir::LogicalResult packPanels(mlir::Value tensor, int64_t size,
                                 const Buffer& panels);
  // The same as rows, padded to whole vectors.
  mlir::LogicalResult packRows(mlir::Value tensor, int64_t size,
                               const Buffer& rows);

  // --- Products ---

  // The end, a multiple of the lanes or the last, of the keys that the block of
  // queries from `first` sees.
  mlir::Value visibleKeys(mlir::Value first);
  // out[row, key - first_key] = a[row, :size] * panels[key] for `count` keys,
  // of all rows of a block; rows of `out` are `out_row` long.
  void emitPanelProducts(const Buffer& a, const Buffer& panels, int64_t size,
                         const Buffer& out, int64_t out_row,
                         mlir::Value first_key, mlir::Value count);
  // sums[row] (+)= sum over `count` keys of a[row, key - first_key] *
  // rows[key], with rows of `size` elements, padded; rows of `a` are `a_row`
  // long.
  void emitWeightedSums(const Buffer& a, int64_t a_row, const Buffer& rows,
                        int64_t size, const Buffer& sums, bool accumulate,
                        mlir::Value first_key, mlir::Value count);
  // Bias and mask, and the softcap before them.
  mlir::FailureOr<mlir::Value> adjustScore(mlir::Value score,
                                           const Symbol* query,
                                           const Symbol* keys);

  // --- Arithmetic ---

  // One instruction: a NaN among scores need not show here, its weight is NaN.
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
  std::optional<int64_t> causal_offset_;
  double softcap_;
  int64_t batches_, heads_, queries_, size_, groups_, keys_, value_size_;
  mlir::Type type_;
  int64_t lanes_;
  int64_t rows_;  // of a block of queries
  Index batch_, head_, group_;

 private:
  // True if neighbouring elements of a head lie next to each other in memory,
  // as they do unless k is stored transposed.
  mlir::FailureOr<bool> isDenseAlongHead(mlir::Value tensor, int64_t size);
  mlir::FailureOr<Values> packPanelByRows(mlir::Value tensor, int64_t size,
                                          const Buffer& panels,
                                          const Symbol* panel);
  mlir::FailureOr<Values> packPanelByColumns(mlir::Value tensor, int64_t size,
                                             const Buffer& panels,
                                             const Symbol* panel);
  void emitPanelLoop(const Buffer& a, const Buffer& panels, int64_t size,
                     const Buffer& out, int64_t out_row, mlir::Value panel,
                     mlir::Value begin, mlir::Value end, int64_t width);
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_TILES_H_
