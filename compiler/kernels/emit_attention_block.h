// The emitter of attention kernels, whose two jobs are two files: packing and
// output (emit_attention.cc), and a block of queries against blocks of keys
// (emit_attention_block.cc).
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_BLOCK_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_BLOCK_H_

#include "compiler/kernels/emit_attention.h"
#include "compiler/kernels/emit_attention_tiles.h"

namespace partita::kernels {

// Emits what emit_attention.cc describes.
class AttentionEmitter : private AttentionTiles {
 public:
  AttentionEmitter(Emitter& emitter, nn::AttentionOp op,
                   llvm::ArrayRef<Output> outputs);
  int64_t range() const { return range_; }
  mlir::LogicalResult emit(mlir::Value begin, mlir::Value end);

 private:
  mlir::FailureOr<Values> emitItem(const Symbol* item);
  mlir::LogicalResult packQueries(mlir::Value first);
  // --- One block of queries ---

  mlir::FailureOr<Values> emitBlock(const Symbol* block);
  mlir::LogicalResult clearState();
  // Keys from `begin` to the end of its block.
  mlir::FailureOr<Values> emitKeys(mlir::Value begin, mlir::Value first_key,
                                   mlir::Value visible);
  // Turns the scores of one query into weights, and rescales what earlier key
  // blocks gave.
  mlir::FailureOr<Values> emitSoftmax(mlir::Value first, const Symbol* row,
                                      mlir::Value first_key, mlir::Value end);
  mlir::Value rescale(const Symbol* row, mlir::Value before, mlir::Value shift,
                      mlir::Value weight);
  // Divides by the weights and stores what follows from the result.
  mlir::FailureOr<Values> emitOutputs(mlir::Value first);

  nn::AttentionOp op_;
  llvm::ArrayRef<Output> outputs_;
  int64_t blocks_, parts_, range_, padded_size_, padded_value_, key_block_;
  // The scores of all keys are there at once: no running softmax.
  bool one_block_;
  Buffer packed_k_, packed_v_, packed_q_, scores_, sums_, largest_, weight_;
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_BLOCK_H_
