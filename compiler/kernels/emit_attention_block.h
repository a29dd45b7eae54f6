// The emitter of attention kernels. emit_attention.cc packs operands and stores
// outputs; emit_attention_block.cc computes a block of queries against blocks
// of keys; emit_attention_row.cc computes a single query against keys where
// they lie.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_BLOCK_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_BLOCK_H_

#include "compiler/kernels/emit_attention.h"
#include "compiler/kernels/emit_attention_tiles.h"

namespace partita::kernels {

// The algorithm is described in emit_attention.cc.
class AttentionEmitter : private AttentionTiles {
 public:
  AttentionEmitter(Emitter& emitter, nn::AttentionOp op,
                   llvm::ArrayRef<Output> outputs);
  int64_t range() const { return range_; }
  mlir::LogicalResult emit(mlir::Value begin, mlir::Value end);

 private:
  // `begin` is the first item of this call.
  mlir::FailureOr<Values> emitItem(const Symbol* item, mlir::Value begin);
  mlir::LogicalResult packQueries(mlir::Value first);
  // --- One block of queries ---

  mlir::FailureOr<Values> emitBlock(const Symbol* block);
  mlir::LogicalResult clearState();
  // Computes the block of queries from `first` on with these keys.
  mlir::FailureOr<Values> emitRange(mlir::Value first,
                                    const AttentionMask::Range& keys);
  // Computes the block of keys from `first_key` on, of which those below
  // `visible` are seen. `first` is the block's first query.
  mlir::FailureOr<Values> emitKeys(mlir::Value first, mlir::Value first_key,
                                   mlir::Value visible);
  // Turns the scores of one query into weights, and rescales the sums of
  // earlier key blocks.
  mlir::FailureOr<Values> emitSoftmax(mlir::Value first, const Symbol* row,
                                      mlir::Value first_key, mlir::Value end);
  mlir::Value rescale(const Symbol* row, mlir::Value before, mlir::Value shift,
                      mlir::Value weight);
  // --- A single query ---

  mlir::FailureOr<Values> emitRow();
  // Stores the scores of the keys from `begin` to `end`, in whole vectors.
  mlir::FailureOr<Values> emitRowScores(mlir::Value begin, mlir::Value end);
  // Stores the sums of these keys' values, times their weights.
  mlir::LogicalResult emitRowSums(mlir::Value begin, mlir::Value end);
  // The element of k or v at lanes of the head dimension.
  mlir::FailureOr<mlir::Value> keyElement(mlir::Value tensor, const Symbol* key,
                                          const Symbol* lane);

  // Stores lse, if the kernel returns it.
  void storeLse(const Symbol* row, const Symbol* query, mlir::Value weight);
  // Divides the sums by the sums of weights, and stores the outputs.
  mlir::FailureOr<Values> emitOutputs(mlir::Value first);

  nn::AttentionOp op_;
  llvm::ArrayRef<Output> outputs_;
  int64_t blocks_, parts_, range_, padded_size_, padded_value_, key_block_;
  // One block holds the scores of all keys, so the softmax is not a running
  // one.
  bool one_block_;
  // There is one query: keys and values are read once, without packing.
  bool is_row_;
  Buffer packed_k_, packed_v_, packed_q_, scores_, sums_, largest_, weight_;
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_BLOCK_H_
