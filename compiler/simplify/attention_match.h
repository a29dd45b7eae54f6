// Attention as exporters write it: what a match found, before anything is
// built.
#ifndef PARTITA_COMPILER_SIMPLIFY_ATTENTION_MATCH_H_
#define PARTITA_COMPILER_SIMPLIFY_ATTENTION_MATCH_H_

#include <optional>

#include "compiler/simplify/view.h"
#include "dialects/nn/dialect.h"

namespace partita::simplify {

// Which dimensions of a tensor of one value per batch, row and column are
// which. Batch dimensions are in the order in which they are numbered together.
struct MatrixDims {
  mlir::SmallVector<int64_t> batch;
  int64_t row, column;
};

struct Matrix {
  mlir::Value value;
  MatrixDims dims;

  int64_t rows() const;
  int64_t columns() const;
  mlir::SmallVector<int64_t> batchSizes() const;
};

// What is done to the scores between the two products.
struct ScoreBias {
  enum class Kind {
    add,      // value * factor is added
    visible,  // an i1 tensor, false where the score is replaced by a large
              // negative number
    hidden,   // the same, true where it is replaced
  };
  Kind kind;
  View value;     // seen from the scores
  Matrix scores;  // rows are queries, columns are keys
  double factor;
};

struct AttentionMatch {
  Matrix q, k, v;  // rows are tokens, columns features
  double scale = 1, softcap = 0;
  mlir::SmallVector<ScoreBias> biases;
  // Batch and heads, where any tensor on the way has just these two batch
  // dimensions.
  std::optional<std::pair<int64_t, int64_t>> heads;
  // The product's result is [batch..., features, queries] instead of [batch...,
  // queries, features].
  bool result_transposed = false;
};

// A number at or below this, added to a score, hides it: exp of it is 0 in f32
// next to any score of a network.
inline constexpr double kHidingScore = -1e4;

// Matches with the product with v as the root.
std::optional<AttentionMatch> matchAttention(nn::DotGeneralOp root);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_ATTENTION_MATCH_H_
