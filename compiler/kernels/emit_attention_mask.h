// The keys that queries of attention see: limits by causality and by a window
// with sinks, segments, and tables of blocks.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_MASK_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_MASK_H_

#include <optional>

#include "compiler/kernels/emit_elements.h"
#include "dialects/nn/attention_mask.h"

namespace partita::kernels {

// The first key that a window shows a query, relative to the query's position,
// at least `lowest` and at most `highest`. Any window is allowed.
int64_t firstSeenKey(int64_t causal_offset, int64_t window, int64_t lowest,
                     int64_t highest);

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
    sinks_ = op.getSinks();
    table_ = nn::BlockTable::of(op);
    if (table_) blocks_ = *op.getBlocks();
    first_head_ = op.getFirstHead();
  }

  // Loads the shift and reserves memory. Required before everything below.
  mlir::LogicalResult emitStart();
  // Notes which segments parts of the keys have, so that rangeOf can skip keys.
  // Call in the scope in which rangeOf is called for this batch element.
  mlir::LogicalResult emitSegments(const Index& batch);
  // Upper bound on the keys that a block of `rows` queries may see: from the
  // first one to the last one or, if they have parts, in all parts. Every part
  // is counted in whole vectors.
  int64_t span(int64_t rows, int64_t lanes) const;
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

  // True if keys that queries see may lie apart: sinks before a window, and
  // blocks of keys that are whole vectors.
  bool hasParts(int64_t lanes) const {
    return table_ ? table_->size() % lanes == 0 : sinks_.has_value();
  }
  // Notes the parts of `range` that the `rows` queries of a head from `first`
  // see. Parts are in order and do not touch; each begins at a multiple of
  // `lanes`. Returns their number, at most `partsLimit`.
  mlir::FailureOr<mlir::Value> emitParts(const Range& range, const Index& head,
                                         mlir::Value first, int64_t rows,
                                         int64_t lanes);
  int64_t partsLimit() const { return table_ ? table_->columns() : 2; }
  // A noted part. Tiles of scores hold the parts one after another: `column` is
  // the tile's column of the part's first key.
  struct Part {
    Range keys;
    mlir::Value column;
  };
  Part part(mlir::Value number);

  // Replaces the scores of hidden keys by `lowest`, a vector.
  mlir::FailureOr<mlir::Value> apply(mlir::Value score, mlir::Value lowest,
                                     const Index& batch, const Index& head,
                                     const Symbol* query, const Symbol* keys);

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
  // The part of a window's keys that is sinks.
  void emitSinkParts(const Range& range, int64_t lanes);
  void storePart(mlir::Value number, mlir::Value begin, mlir::Value end,
                 mlir::Value column);
  // The number of a head in the table of blocks.
  Index tableHead(const Index& head);
  // The row of the table of a query at `position`, an index.
  const Symbol* tableRow(mlir::Value position);
  Lanes loadBlock(const Index& head, const Index& row, const Index& column);
  // The limit of a query as a vector of i32.
  mlir::Value limitOf(const Symbol* query, const Limit& limit, int64_t lanes);

  Emitter& emitter_;
  int64_t queries_, keys_;
  std::optional<int64_t> causal_offset_, window_;
  std::optional<Limit> first_, last_;  // of the keys that a query sees
  mlir::Value shift_, q_segments_, k_segments_, first_head_;
  std::optional<int64_t> sinks_;
  std::optional<nn::BlockTable> table_;
  mlir::DenseIntElementsAttr blocks_;
  mlir::Value position_, head_offset_;  // of query 0 and head 0; null: 0
  // The queries of a block see the same blocks of keys: parts hide the others.
  bool parts_are_exact_ = false;
  Buffer visible_;                  // the table
  Buffer begins_, ends_, columns_;  // of parts
  Buffer lowest_, highest_;         // segments of each part of the keys
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_MASK_H_
