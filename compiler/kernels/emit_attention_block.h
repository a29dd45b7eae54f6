// The emitter of attention kernels, whose two jobs are two files: packing and
// output (emit_attention.cc), and a block of queries against blocks of keys
// (emit_attention_block.cc).
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_BLOCK_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_BLOCK_H_

#include "compiler/kernels/emit_attention.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace partita::kernels {

// Emits what emit_attention.cc describes.
class AttentionEmitter {
 public:
  AttentionEmitter(Emitter& emitter, nn::AttentionOp op,
                   llvm::ArrayRef<Output> outputs);
  int64_t range() const { return range_; }
  mlir::LogicalResult emit(mlir::Value begin, mlir::Value end);

 private:
  mlir::FailureOr<Values> emitItem(const Symbol* item);
  // --- Packing ---

  // The element at lanes of the head dimension, for a row that is clamped into
  // the tensor.
  mlir::FailureOr<Lanes> rowElement(mlir::Value tensor, const Index& head,
                                    mlir::Value row, int64_t rows,
                                    const Symbol* lane);
  // True if neighbouring elements of a head lie next to each other in memory,
  // as they do unless k is stored transposed.
  mlir::FailureOr<bool> isDenseAlongHead(mlir::Value tensor);
  // Panel p holds keys p * lanes ..., as [head size][lanes].
  mlir::LogicalResult packKeys();
  mlir::FailureOr<Values> packPanelByRows(const Symbol* panel);
  mlir::FailureOr<Values> packPanelByColumns(const Symbol* panel);
  mlir::LogicalResult packValues();
  mlir::LogicalResult packQueries(mlir::Value first);
  // --- One block of queries ---

  mlir::FailureOr<Values> emitBlock(const Symbol* block);
  mlir::LogicalResult clearState();
  // Keys from `begin` to the end of its block.
  mlir::FailureOr<Values> emitKeys(mlir::Value begin, mlir::Value first_key,
                                   mlir::Value visible);
  void emitScores(mlir::Value first_key, mlir::Value count);
  void emitScoreLoop(mlir::Value panel, mlir::Value begin, mlir::Value end,
                     int64_t width);
  // Turns the scores of one query into weights, and rescales what earlier key
  // blocks gave.
  mlir::FailureOr<Values> emitSoftmax(mlir::Value first, const Symbol* row,
                                      mlir::Value first_key, mlir::Value end);
  mlir::Value rescale(const Symbol* row, mlir::Value before, mlir::Value shift,
                      mlir::Value weight);
  // Softcap, bias and mask.
  mlir::FailureOr<mlir::Value> adjustScore(mlir::Value score,
                                           const Symbol* query,
                                           const Symbol* keys);
  void emitWeightedSums(mlir::Value first_key, mlir::Value count);
  // Divides by the weights and stores what follows from the result.
  mlir::FailureOr<Values> emitOutputs(mlir::Value first);
  // --- Arithmetic ---

  // One instruction: a NaN among scores need not show here, its weight is NaN.
  mlir::Value larger(mlir::Value a, mlir::Value b);
  mlir::Value largestLane(mlir::Value vector);
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
  nn::AttentionOp op_;
  llvm::ArrayRef<Output> outputs_;
  int64_t heads_, queries_, size_, groups_, keys_, value_size_;
  mlir::Type type_;
  int64_t lanes_, rows_, blocks_, parts_, range_, padded_size_, padded_value_,
      key_block_;
  // The scores of all keys are there at once: no running softmax.
  bool one_block_;
  Buffer packed_k_, packed_v_, packed_q_, scores_, sums_, largest_, weight_;
  Index batch_, head_, group_;
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_BLOCK_H_
