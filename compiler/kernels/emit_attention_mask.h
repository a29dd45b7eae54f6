// The keys that queries of attention see: limits by causality and by a window,
// and segments.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_MASK_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_MASK_H_

#include <optional>

#include "compiler/kernels/emit_elements.h"

namespace partita::kernels {

class AttentionMask {
 public:
  // `op` is nn.attention or its gradient.
  template <typename Op>
  AttentionMask(Emitter& emitter, Op op)
      : AttentionMask(emitter, op.getQ(), op.getK(), op.getCausalOffset(),
                      op.getWindow()) {
    shift_ = op.getShift();
    q_segments_ = op.getQSegments();
    k_segments_ = op.getKSegments();
  }

  // Loads the shift and reserves memory. Required before everything below.
  mlir::LogicalResult emitStart();
  // Notes which segments parts of the keys have, so that rangeOf can skip keys.
  // Call in the scope in which rangeOf is called for this batch element.
  mlir::LogicalResult emitSegments(const Index& batch);
  // Upper bound on the keys that a block of `rows` queries sees, from the first
  // one to the last one.
  int64_t span(int64_t rows) const;
  // Begin and end of the keys that the `rows` queries from `first` may see,
  // with 0 <= begin <= end. The begin is a multiple of `lanes`. Keys before the
  // first part and after the last part that has segments of the queries are
  // skipped: all keys of other segments if segments are sorted.
  struct Range {
    mlir::Value begin, end;
  };
  mlir::FailureOr<Range> rangeOf(const Index& batch, mlir::Value first,
                                 int64_t rows, int64_t lanes);
  // The same without regard to segments.
  Range limitsOf(mlir::Value first, int64_t rows, int64_t lanes);
  // Replaces the scores of hidden keys by `lowest`, a vector.
  mlir::FailureOr<mlir::Value> apply(mlir::Value score, mlir::Value lowest,
                                     const Index& batch, const Symbol* query,
                                     const Symbol* keys);

 private:
  // A key relative to a query's position: `fixed` + `moved`.
  struct Limit {
    int64_t fixed = 0;
    mlir::Value moved;  // an index; null without a shift
  };

  AttentionMask(Emitter& emitter, mlir::Value q, mlir::Value k,
                std::optional<int64_t> causal_offset,
                std::optional<int64_t> window);
  // The lowest and the highest segment of `count` rows of `segments` from
  // `first` on, as i64. Rows past the last one repeat it.
  mlir::FailureOr<Values> segmentsOf(mlir::Value segments, const Index& batch,
                                     mlir::Value first, int64_t count);
  // `position` + `limit`, clamped to the keys.
  mlir::Value clamped(mlir::Value position, const Limit& limit);
  // The limit of a query as a vector of i32.
  mlir::Value limitOf(const Symbol* query, const Limit& limit, int64_t lanes);

  Emitter& emitter_;
  int64_t queries_, keys_;
  std::optional<int64_t> causal_offset_, window_;
  std::optional<Limit> first_, last_;  // of the keys that a query sees
  mlir::Value shift_, q_segments_, k_segments_;
  Buffer lowest_, highest_;  // segments of each part of the keys
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_MASK_H_
