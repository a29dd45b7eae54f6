// The emitter of the gradient of attention. emit_attention_grad.cc packs
// operands and stores results; emit_attention_grad_block.cc computes a block of
// queries against all keys.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_GRAD_BLOCK_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_GRAD_BLOCK_H_

#include <functional>

#include "compiler/kernels/emit_attention_grad.h"
#include "compiler/kernels/emit_attention_tiles.h"

namespace partita::kernels {

// The algorithm is described in emit_attention_grad.cc.
class AttentionGradEmitter : private AttentionTiles {
 public:
  AttentionGradEmitter(Emitter& emitter, nn::AttentionGradOp op,
                       llvm::ArrayRef<Output> outputs);

  int64_t range() const { return adds_batches_ ? groups_ : batches_ * groups_; }

  mlir::LogicalResult emit(mlir::Value begin, mlir::Value end);

 private:
  mlir::FailureOr<Values> emitItem(const Symbol* item);

  // Heads that share keys and values.
  int64_t shared() const { return heads_ / groups_; }
  // Sums of the bias's gradient: of the heads of a group.
  int64_t biasSums() const { return shared() * queries_ * row_; }

  // Computes one key-value head of one batch element.
  mlir::FailureOr<Values> emitGroup();

  mlir::LogicalResult clear(const Buffer& buffer, int64_t size);

  // Stores result `i`, if it is needed, from rows in scratch.
  mlir::FailureOr<Values> storeRows(
      int i, const Buffer& rows, int64_t count, int64_t size,
      llvm::function_ref<IndexVector(Index, Index)> index);

  std::function<mlir::Value(mlir::Value)> loadsFrom(const Buffer& buffer,
                                                    mlir::Value first);

  mlir::FailureOr<Values> storeRow(
      int i, llvm::function_ref<mlir::Value(mlir::Value)> load, int64_t size,
      llvm::function_ref<IndexVector(Index)> index);

  // Computes a block of queries from `first` on.
  mlir::FailureOr<Values> emitBlock(mlir::Value first);

  // Keys that a block of queries sees in one run.
  struct Part {
    mlir::Value begin, end;  // a multiple of the lanes, and one or the last key
    mlir::Value whole;       // `end` rounded up to a multiple of the lanes
    mlir::Value count;       // end - begin
    mlir::Value column;      // of a tile, for the first key; null: 0
  };

  mlir::FailureOr<Values> forEach(
      mlir::ValueRange init,
      llvm::function_ref<mlir::FailureOr<Values>(const Part&, mlir::ValueRange)>
          body);

  // Runs over the lanes of all parts. `body` gets their keys and the place of
  // the first one in the tile's row.
  mlir::FailureOr<Values> forKeys(
      const Symbol* row, mlir::ValueRange init,
      llvm::function_ref<mlir::FailureOr<Values>(const Symbol*, mlir::Value,
                                                 mlir::ValueRange)>
          body);

  mlir::FailureOr<Values> storeQueries(mlir::Value first, mlir::Value rows);

  const Symbol* queryAt(mlir::Value first, const Symbol* row);

  // Packs scaled queries and the result's gradient; computes the means of the
  // rows.
  mlir::LogicalResult packQueries(mlir::Value first);

  // Turns scores into weights, and gradients of weights into gradients of
  // scores.
  mlir::FailureOr<Values> emitRow(mlir::Value first, const Symbol* row);

  // Emits the weights of a vector of keys, whose scores are at a place of the
  // tile.
  using WeightOf =
      std::function<mlir::FailureOr<mlir::Value>(const Symbol*, mlir::Value)>;

  mlir::FailureOr<WeightOf> weightsByLse(const Symbol* query);

  mlir::FailureOr<WeightOf> weightsBySums(const Symbol* query,
                                          const Symbol* row);

  // Replaces the scores by exp(score - largest score). Returns their sum; 0 if
  // the query sees no key.
  mlir::FailureOr<mlir::Value> emitWeights(const Symbol* query,
                                           const Symbol* row);

  // sums[key] += sum over rows of a[row, column of key] * b[row], for the keys
  // of a part in whole vectors.
  void addTransposed(const Buffer& a, const Buffer& b, int64_t size,
                     const Buffer& sums, const Part& part);

  nn::AttentionGradOp op_;
  Buffer buffers_[4];  // of the results; null memref: not needed
  llvm::SmallVector<int64_t> strides_[4];  // of the results in their buffers
  int64_t begins_[4] = {};
  bool adds_batches_;
  int64_t row_;    // keys, padded
  int64_t width_;  // keys of a tile, padded
  // Per key-value head.
  Buffer key_panels_, value_panels_, key_rows_, key_sums_, value_sums_;
  AttentionMask::Range seen_;  // keys of the block of queries
  mlir::Value parts_;          // number of their parts; null: they are one
  // Per block of queries. `weights_` holds scores first; `scores_` holds
  // gradients of weights first, then gradients of scores.
  Buffer query_, query_sums_, given_, mean_, weights_, scores_;
  Buffer bias_sums_;            // rows of each head of the group
  mlir::Value first_bias_row_;  // of the head
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_GRAD_BLOCK_H_
