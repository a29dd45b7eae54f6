// Sharding rules of data movement.
#include <numeric>

#include "dialects/nn/dialect.h"
#include "dialects/nn/rule_builder.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/Matchers.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;

// Walks over the dimensions of both shapes, most significant first, and splits
// each into the factors that both have in common.
class ReshapeFactors {
 public:
  ReshapeFactors(RuleBuilder& rule, ArrayRef<int64_t> input,
                 ArrayRef<int64_t> result)
      : rule_(rule), input_(input), result_(result) {}

  void addAll() {
    enterInput(0);
    enterResult(0);
    while (!atEnd()) {
      if (input_left_ == 1 && result_left_ == 1) {
        share(1);
      } else if (input_left_ == 1) {
        enterInput(input_dim_ + 1);
      } else if (result_left_ == 1) {
        enterResult(result_dim_ + 1);
      } else {
        const int64_t common = std::gcd(input_left_, result_left_);
        const bool meets = common == input_left_ || common == result_left_;
        if (common > 1) share(common);
        if (!meets) addWholeGroup();
      }
    }
  }

 private:
  bool atEnd() const {
    return input_dim_ == input_.size() || result_dim_ == result_.size();
  }
  // A dimension of size 1 without a counterpart on the other side gets no
  // factor.
  void enterInput(size_t dim) {
    input_dim_ = dim;
    input_left_ = dim < input_.size() ? input_[dim] : 1;
  }
  void enterResult(size_t dim) {
    result_dim_ = dim;
    result_left_ = dim < result_.size() ? result_[dim] : 1;
  }

  void share(int64_t size) {
    const int shared = rule_.factor(size);
    rule_.onOperand(0, input_dim_, shared);
    rule_.onResult(0, result_dim_, shared);
    input_left_ /= size;
    result_left_ /= size;
    if (input_left_ == 1) enterInput(input_dim_ + 1);
    if (result_left_ == 1) enterResult(result_dim_ + 1);
  }

  // The remainders of the two dimensions divide at different places. They
  // cannot be divided, nor can the dimensions after them up to the point where
  // both sides have the same number of elements again.
  void addWholeGroup() {
    int64_t input_count = 1, result_count = 1;
    do {
      if (input_count <= result_count) {
        rule_.onOperand(0, input_dim_,
                        rule_.factor(input_left_, FactorKind::kWhole));
        input_count *= input_left_;
        enterInput(input_dim_ + 1);
      } else {
        rule_.onResult(0, result_dim_,
                       rule_.factor(result_left_, FactorKind::kWhole));
        result_count *= result_left_;
        enterResult(result_dim_ + 1);
      }
    } while (input_count != result_count);
  }

  RuleBuilder& rule_;
  ArrayRef<int64_t> input_, result_;
  size_t input_dim_ = 0, result_dim_ = 0;
  // The remainder of each current dimension after the factors found so far.
  int64_t input_left_ = 1, result_left_ = 1;
};

std::vector<int> allOperands(mlir::Operation* op) {
  std::vector<int> operands(op->getNumOperands());
  std::iota(operands.begin(), operands.end(), 0);
  return operands;
}

// The dimensions that a gather and a scatter share: of the indexed tensor, the
// indices, and the slices read or written.
struct IndexedDims {
  int64_t batch_dims;
  int64_t index_dims;                      // of the indices, without the vector
  llvm::SmallVector<int64_t> window_dims;  // of the indexed tensor, in order

  IndexedDims(int64_t input_rank, int64_t indices_rank, ArrayRef<int64_t> axes,
              int64_t batch_dims)
      : batch_dims(batch_dims), index_dims(indices_rank - 1) {
    for (int64_t dim = batch_dims; dim < input_rank; ++dim) {
      if (!llvm::is_contained(axes, dim)) window_dims.push_back(dim);
    }
  }
};

// True if a gather takes all rows of one dimension in turn, moved by one
// distance: row i of the result is row (i - distance) mod n of the input.
bool isRotation(GatherOp op) {
  const auto type = op.getIndices().getType();
  if (op.getAxes().size() != 1 || op.getBatchDims() != 0 ||
      type.getRank() != 2 ||
      type.getDimSize(0) != op.getInput().getType().getDimSize(op.getAxes()[0]))
    return false;
  mlir::DenseIntElementsAttr indices;
  if (!mlir::matchPattern(op.getIndices(), mlir::m_Constant(&indices)))
    return false;
  const int64_t size = type.getDimSize(0);
  int64_t distance = -1, row = 0;
  for (const llvm::APInt& index : indices.getValues<llvm::APInt>()) {
    if (index.isNegative() || index.uge(size)) return false;
    const int64_t found = (row++ - index.getSExtValue() + size) % size;
    if (distance < 0) distance = found;
    if (found != distance) return false;
  }
  return true;
}

}  // namespace

ShardingRule BroadcastOp::getShardingRule() {
  RuleBuilder rule(*this);
  for (int64_t dim = 0; dim < rule.resultRank(); ++dim) {
    const int factor = rule.factor(rule.resultSize(0, dim));
    rule.onResult(0, dim, factor);
    const auto* source = llvm::find(getDims(), dim);
    if (source == getDims().end()) continue;
    const int64_t input_dim = source - getDims().begin();
    if (rule.operandSize(0, input_dim) == rule.resultSize(0, dim))
      rule.onOperand(0, input_dim, factor);
  }
  rule.linear({0});
  return rule.take();
}

ShardingRule ReshapeOp::getShardingRule() {
  RuleBuilder rule(*this);
  const auto input = getInput().getType(), result = getType();
  if (input.getNumElements() > 0) {
    ReshapeFactors(rule, input.getShape(), result.getShape()).addAll();
  } else {
    for (int64_t dim = 0; dim < input.getRank(); ++dim)
      rule.wholeOperand(0, dim);
    for (int64_t dim = 0; dim < result.getRank(); ++dim)
      rule.wholeResult(0, dim);
  }
  rule.linear({0});
  return rule.take();
}

ShardingRule TransposeOp::getShardingRule() {
  RuleBuilder rule(*this);
  for (auto [dim, source] : llvm::enumerate(getPerm())) rule.carry(source, dim);
  rule.linear({0});
  return rule.take();
}

ShardingRule SliceOp::getShardingRule() {
  RuleBuilder rule(*this);
  for (int64_t dim = 0; dim < rule.resultRank(); ++dim) {
    if (rule.operandSize(0, dim) == rule.resultSize(0, dim) &&
        getStarts()[dim] == 0 && getStrides()[dim] == 1) {
      rule.carry(dim, dim);
    } else {
      rule.wholeOperand(0, dim);
      rule.wholeResult(0, dim);
    }
  }
  rule.linear({0});
  return rule.take();
}

ShardingRule PadOp::getShardingRule() {
  RuleBuilder rule(*this);
  for (int64_t dim = 0; dim < rule.resultRank(); ++dim) {
    if (getLow()[dim] == 0 && getHigh()[dim] == 0) {
      rule.carry(dim, dim);
    } else {
      rule.wholeOperand(0, dim);
      rule.wholeResult(0, dim);
    }
  }
  rule.linear({0, 1});
  return rule.take();
}

ShardingRule ConcatOp::getShardingRule() {
  RuleBuilder rule(*this);
  const int operands = getNumOperands();
  for (int64_t dim = 0; dim < rule.resultRank(); ++dim) {
    if (dim == static_cast<int64_t>(getAxis())) {
      for (int i = 0; i < operands; ++i) rule.wholeOperand(i, dim);
      rule.wholeResult(0, dim);
      continue;
    }
    const int factor = rule.factor(rule.resultSize(0, dim));
    for (int i = 0; i < operands; ++i) rule.onOperand(i, dim, factor);
    rule.onResult(0, dim, factor);
  }
  rule.linear(allOperands(*this));
  return rule.take();
}

// Each shard of an indexed dimension gives the rows that it holds, and zeros
// for the others: the vocabulary-parallel embedding. A rotation moves rows
// between neighbours instead.
ShardingRule GatherOp::getShardingRule() {
  RuleBuilder rule(*this);
  const IndexedDims dims(getInput().getType().getRank(),
                         getIndices().getType().getRank(), getAxes(),
                         getBatchDims());
  const bool rotates = isRotation(*this);
  if (rotates) rule.carry(getAxes()[0], 0, FactorKind::kHalo);
  if (rotates) rule.wholeOperand(1, 0);
  for (int64_t dim = 0; dim < dims.index_dims && !rotates; ++dim) {
    const int factor = rule.factor(rule.resultSize(0, dim));
    if (dim < dims.batch_dims) rule.onOperand(0, dim, factor);
    rule.onOperand(1, dim, factor);
    rule.onResult(0, dim, factor);
  }
  for (auto [i, dim] : llvm::enumerate(dims.window_dims))
    rule.carry(dim, dims.index_dims + i);
  for (int64_t axis : getAxes()) {
    if (rotates) break;
    const int factor =
        rule.factor(rule.operandSize(0, axis), FactorKind::kReduced);
    rule.onOperand(0, axis, factor);
  }
  rule.wholeOperand(1, dims.index_dims);
  rule.linear({0});
  return rule.take();
}

ShardingRule ScatterOp::getShardingRule() {
  RuleBuilder rule(*this);
  const IndexedDims dims(getInput().getType().getRank(),
                         getIndices().getType().getRank(), getAxes(),
                         getBatchDims());
  // Updates of different devices add up, provided that the initial tensor
  // counts once.
  const bool adds_up = getKind() == ScatterKind::add &&
                       mlir::matchPattern(getInput(), mlir::m_AnyZeroFloat());
  for (int64_t dim = 0; dim < dims.index_dims; ++dim) {
    const bool is_batch = dim < dims.batch_dims;
    const int factor =
        rule.factor(rule.operandSize(1, dim), is_batch  ? FactorKind::kCarried
                                              : adds_up ? FactorKind::kReduced
                                                        : FactorKind::kWhole);
    rule.onOperand(1, dim, factor);
    rule.onOperand(2, dim, factor);
    if (!is_batch) continue;
    rule.onOperand(0, dim, factor);
    rule.onResult(0, dim, factor);
  }
  for (auto [i, dim] : llvm::enumerate(dims.window_dims)) {
    const int factor = rule.factor(rule.resultSize(0, dim));
    rule.onOperand(0, dim, factor);
    rule.onOperand(2, dims.index_dims + i, factor);
    rule.onResult(0, dim, factor);
  }
  for (int64_t axis : getAxes()) rule.carry(axis, axis);
  rule.wholeOperand(1, dims.index_dims);
  if (getKind() == ScatterKind::add) rule.linear({0, 2});
  return rule.take();
}

ShardingRule IotaOp::getShardingRule() {
  RuleBuilder rule(*this);
  for (int64_t dim = 0; dim < rule.resultRank(); ++dim)
    rule.onResult(0, dim, rule.factor(rule.resultSize(0, dim)));
  return rule.take();
}

ShardingRule TopKOp::getShardingRule() {
  RuleBuilder rule(*this);
  const int64_t last = rule.resultRank() - 1;
  for (int64_t dim = 0; dim < last; ++dim) {
    rule.carry(dim, dim);
    rule.onResult(1, dim, dim);
  }
  rule.wholeOperand(0, last);
  const int k = rule.factor(rule.resultSize(0, last), FactorKind::kWhole);
  rule.onResult(0, last, k);
  rule.onResult(1, last, k);
  return rule.take();
}

}  // namespace partita::nn
