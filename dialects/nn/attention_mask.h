// The masks of attention: tables of blocks of keys, and all masks as a tensor,
// for code that has no other form of them.
#ifndef PARTITA_DIALECTS_NN_ATTENTION_MASK_H_
#define PARTITA_DIALECTS_NN_ATTENTION_MASK_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "dialects/nn/dialect.h"
#include "dialects/nn/math_builder.h"

namespace partita::nn {

// The blocks of keys that blocks of queries see: the attribute `blocks` of
// nn.attention with its size.
class BlockTable {
 public:
  BlockTable(mlir::DenseIntElementsAttr blocks, int64_t size);
  // Absent if `op`, nn.attention or its gradient, has no blocks.
  template <typename Op>
  static std::optional<BlockTable> of(Op op) {
    if (!op.getBlocks()) return std::nullopt;
    return BlockTable(*op.getBlocks(), *op.getBlockSize());
  }

  int64_t heads() const { return heads_; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t size() const { return size_; }  // keys or queries of a block
  bool holds(int64_t head, int64_t row, int64_t column) const {
    return visible_[(head * rows_ + row) * columns_ + column];
  }
  // True if a query at `position` sees the key. Positions outside of the table
  // are those of its nearest row, and so are heads.
  bool sees(int64_t head, int64_t position, int64_t key) const;

 private:
  int64_t heads_, rows_, columns_, size_;
  std::vector<bool> visible_;
};

// Pairs of a query and a key that it sees, by causality (the last key of query
// 0), a window and sinks, for one head. With blocks, the mean of all heads.
int64_t countVisiblePairs(int64_t queries, int64_t keys,
                          std::optional<int64_t> last,
                          std::optional<int64_t> window,
                          std::optional<int64_t> sinks = std::nullopt,
                          const BlockTable* blocks = nullptr);

// Builds an i1 tensor with the sizes of `scores`: true where a query sees a
// key. `scores` has the sizes [B, N, L, S]; N may be 1, and so may B without
// segments. Null if all queries see all keys.
mlir::Value buildVisibleKeys(MathBuilder& b, AttentionOp op,
                             mlir::RankedTensorType scores);
mlir::Value buildVisibleKeys(MathBuilder& b, AttentionGradOp op,
                             mlir::RankedTensorType scores);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_ATTENTION_MASK_H_
