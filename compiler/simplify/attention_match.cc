// Walks upwards from the product with v, through softmax, biases, masks and
// scales, to the product of q and k.
#include "compiler/simplify/attention_match.h"

#include "compiler/simplify/view.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::simplify {

using mlir::SmallVector;
using mlir::Value;
namespace arith = mlir::arith;
namespace math = mlir::math;

int64_t Matrix::rows() const { return tensorType(value).getDimSize(dims.row); }
int64_t Matrix::columns() const {
  return tensorType(value).getDimSize(dims.column);
}
SmallVector<int64_t> Matrix::batchSizes() const {
  return llvm::map_to_vector(dims.batch, [&](int64_t dim) {
    return tensorType(value).getDimSize(dim);
  });
}

namespace {

// Returns the free dimension of a product's operand that has exactly one
// contracted and one free dimension; nullopt otherwise.
std::optional<int64_t> freeDim(Value value, llvm::ArrayRef<int64_t> batch,
                               llvm::ArrayRef<int64_t> contract) {
  const int64_t rank = tensorType(value).getRank();
  if (contract.size() != 1 || rank != static_cast<int64_t>(batch.size()) + 2)
    return std::nullopt;
  for (int64_t dim : llvm::seq<int64_t>(rank)) {
    if (!llvm::is_contained(batch, dim) && dim != contract.front()) return dim;
  }
  return std::nullopt;
}

// Returns the operands of a product as matrices whose columns are contracted.
std::optional<std::pair<Matrix, Matrix>> matchProduct(nn::DotGeneralOp dot) {
  const std::optional<int64_t> lhs =
      freeDim(dot.getLhs(), dot.getLhsBatch(), dot.getLhsContract());
  const std::optional<int64_t> rhs =
      freeDim(dot.getRhs(), dot.getRhsBatch(), dot.getRhsContract());
  if (!lhs || !rhs) return std::nullopt;
  return std::pair(Matrix{dot.getLhs(),
                          {llvm::to_vector(dot.getLhsBatch()), *lhs,
                           dot.getLhsContract().front()}},
                   Matrix{dot.getRhs(),
                          {llvm::to_vector(dot.getRhsBatch()), *rhs,
                           dot.getRhsContract().front()}});
}

// Returns the matrix before a transpose, a reshape of its batch dimensions, or
// a conversion between float types.
std::optional<Matrix> beforeMove(const Matrix& matrix) {
  mlir::Operation* op = matrix.value.getDefiningOp();
  if (mlir::isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(op))
    return Matrix{op->getOperand(0), matrix.dims};
  if (auto transpose = mlir::dyn_cast_or_null<nn::TransposeOp>(op)) {
    Matrix before{transpose.getInput(),
                  {{},
                   transpose.getPerm()[matrix.dims.row],
                   transpose.getPerm()[matrix.dims.column]}};
    for (int64_t dim : matrix.dims.batch)
      before.dims.batch.push_back(transpose.getPerm()[dim]);
    return before;
  }
  auto reshape = mlir::dyn_cast_or_null<nn::ReshapeOp>(op);
  if (!reshape) return std::nullopt;
  const llvm::ArrayRef<int64_t> from = reshape.getInput().getType().getShape(),
                                to = reshape.getType().getShape();
  const int64_t batch = to.size() - 2;
  const bool batch_first =
      llvm::equal(matrix.dims.batch, llvm::seq<int64_t>(batch));
  if (!batch_first || from.size() < 2 || from.take_back(2) != to.take_back(2))
    return std::nullopt;
  const int64_t moved = static_cast<int64_t>(from.size()) - to.size();
  return Matrix{reshape.getInput(),
                {llvm::to_vector(llvm::seq<int64_t>(from.size() - 2)),
                 matrix.dims.row + moved, matrix.dims.column + moved}};
}

class ScoreWalk {
 public:
  explicit ScoreWalk(AttentionMatch& match) : match_(match) {}

  // Walks up from `scores`. The softmax's operand is `scores` times `factor`,
  // plus the biases in the match so far.
  bool walk(Matrix scores, double factor) {
    noteHeads(scores);
    mlir::Operation* op = scores.value.getDefiningOp();
    if (!op) return false;
    if (auto dot = mlir::dyn_cast<nn::DotGeneralOp>(op))
      return finish(dot, scores, factor);
    if (mlir::isa<arith::AddFOp>(op)) return walkAdd(op, scores, factor);
    if (mlir::isa<arith::MulFOp, arith::DivFOp>(op))
      return walkScale(op, scores, factor);
    if (auto select = mlir::dyn_cast<arith::SelectOp>(op))
      return walkSelect(select, scores, factor);
    const std::optional<Matrix> before = beforeMove(scores);
    return before && walk(*before, factor);
  }

 private:
  void noteHeads(const Matrix& matrix) {
    const SmallVector<int64_t> sizes = matrix.batchSizes();
    if (sizes.size() == 2 && !match_.heads) match_.heads = {sizes[0], sizes[1]};
  }

  bool finish(nn::DotGeneralOp dot, const Matrix& scores, double factor) {
    const auto operands = matchProduct(dot);
    const int64_t batch = dot.getLhsBatch().size();
    if (!operands || !llvm::equal(scores.dims.batch, llvm::seq<int64_t>(batch)))
      return false;
    const bool keys_last = scores.dims.row == batch;
    match_.q = keys_last ? operands->first : operands->second;
    match_.k = keys_last ? operands->second : operands->first;
    match_.scale = factor;
    return true;
  }

  bool walkAdd(mlir::Operation* op, const Matrix& scores, double factor) {
    for (unsigned operand : {0u, 1u}) {
      const AttentionMatch before = match_;
      match_.biases.push_back({ScoreBias::Kind::add,
                               viewOf(op->getOperand(1 - operand)), scores,
                               factor});
      if (walk({op->getOperand(operand), scores.dims}, factor)) return true;
      match_ = before;
    }
    return false;
  }

  bool walkScale(mlir::Operation* op, const Matrix& scores, double factor) {
    const bool divides = mlir::isa<arith::DivFOp>(op);
    for (unsigned operand : {0u, 1u}) {
      if (divides && operand == 1) break;
      const std::optional<double> number = splatOf(op->getOperand(1 - operand));
      if (!number || *number == 0) continue;
      const Matrix inner{op->getOperand(operand), scores.dims};
      const double product = divides ? factor / *number : factor * *number;
      if (auto tanh = inner.value.getDefiningOp<math::TanhOp>())
        return walkSoftcap(tanh, inner, product);
      return walk(inner, product);
    }
    return false;
  }

  // Matches cap * tanh(scores / cap).
  bool walkSoftcap(math::TanhOp tanh, const Matrix& scores, double cap) {
    const size_t biases = match_.biases.size();
    if (cap <= 0 || match_.softcap != 0) return false;
    match_.softcap = cap;
    return walk({tanh.getOperand(), scores.dims}, cap) &&
           match_.biases.size() == biases;
  }

  bool walkSelect(arith::SelectOp select, const Matrix& scores, double factor) {
    if (!mlir::isa<mlir::RankedTensorType>(select.getCondition().getType()) ||
        factor <= 0)
      return false;
    for (bool keeps_true : {true, false}) {
      const std::optional<double> fill =
          splatOf(keeps_true ? select.getFalseValue() : select.getTrueValue());
      if (!fill || *fill * factor > kHidingScore) continue;
      const auto kind =
          keeps_true ? ScoreBias::Kind::visible : ScoreBias::Kind::hidden;
      match_.biases.push_back({kind, viewOf(select.getCondition()), scores, 1});
      return walk({keeps_true ? select.getTrueValue() : select.getFalseValue(),
                   scores.dims},
                  factor);
    }
    return false;
  }

  AttentionMatch& match_;
};

// Returns the softmax whose NaN, the weights of a query without keys, become 0
// here, as in nn.attention; null without such a guard. The guard must be the
// only use.
Value beforeNanGuard(Value weights) {
  auto select = weights.getDefiningOp<arith::SelectOp>();
  if (!select || splatOf(select.getTrueValue()) != 0.0) return {};
  const Value softmax = select.getFalseValue();
  auto compare = select.getCondition().getDefiningOp<arith::CmpFOp>();
  if (!compare || compare.getPredicate() != arith::CmpFPredicate::UNO ||
      compare.getLhs() != softmax || compare.getRhs() != softmax ||
      !weights.hasOneUse() || !compare->hasOneUse())
    return {};
  const bool is_only_use = llvm::all_of(
      softmax.getUsers(),
      [&](mlir::Operation* user) { return user == select || user == compare; });
  return is_only_use ? softmax : Value();
}

}  // namespace

std::optional<AttentionMatch> matchAttention(nn::DotGeneralOp root) {
  const auto operands = matchProduct(root);
  if (!operands) return std::nullopt;
  for (bool weights_left : {true, false}) {
    Matrix weights = weights_left ? operands->first : operands->second;
    AttentionMatch match;
    match.v = weights_left ? operands->second : operands->first;
    std::swap(match.v.dims.row, match.v.dims.column);
    match.result_transposed = !weights_left;
    while (std::optional<Matrix> before = beforeMove(weights))
      weights = *before;
    const Value guarded = beforeNanGuard(weights.value);
    if (guarded) weights.value = guarded;
    auto softmax = weights.value.getDefiningOp<nn::SoftmaxOp>();
    if (!softmax || softmax.getLog() ||
        static_cast<int64_t>(softmax.getAxis()) != weights.dims.column ||
        (!guarded && !weights.value.hasOneUse())) {
      continue;
    }
    if (ScoreWalk(match).walk({softmax.getInput(), weights.dims}, 1))
      return match;
  }
  return std::nullopt;
}

}  // namespace partita::simplify
