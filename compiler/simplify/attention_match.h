// Matches attention as exporters write it; the result is built elsewhere.
#ifndef PARTITA_COMPILER_SIMPLIFY_ATTENTION_MATCH_H_
#define PARTITA_COMPILER_SIMPLIFY_ATTENTION_MATCH_H_

#include <optional>

#include "compiler/simplify/view.h"
#include "dialects/nn/dialect.h"

namespace partita::simplify {

// The batch, row and column dimensions of a tensor. Batch dimensions are in the
// order in which they are flattened.
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

// A modification of the scores between the two products.
struct ScoreBias {
  enum class Kind {
    add,      // adds value * factor
    visible,  // an i1 tensor; where false, a large negative number replaces
              // the score
    hidden,   // an i1 tensor; where true, the same
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
  // Sizes of batch and heads, if some tensor on the way has exactly these two
  // batch dimensions.
  std::optional<std::pair<int64_t, int64_t>> heads;
  // True if the product's result is [batch..., features, queries] instead of
  // [batch..., queries, features].
  bool result_transposed = false;
};

// A number at or below this hides a score that it is added to: its exp in f32
// is 0 compared with any score of a network.
inline constexpr double kHidingScore = -1e4;

// Matches attention whose product with v is `root`.
std::optional<AttentionMatch> matchAttention(nn::DotGeneralOp root);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_ATTENTION_MATCH_H_
