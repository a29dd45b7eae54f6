// Evaluates constant expressions with the operations' references, and compares
// masks with bands of visible keys, then with sparse patterns.
#include "compiler/simplify/constant_mask.h"

#include <algorithm>

#include "compiler/simplify/sparse_mask.h"
#include "compiler/simplify/view.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::simplify {

using mlir::SmallVector;
using mlir::Value;

namespace {

// Limits on each tensor and on the whole expression.
constexpr int64_t kMaxElements = int64_t{1} << 22, kMaxOperations = 64;

std::optional<nn::Tensor> evaluate(Value value, int64_t& operations) {
  mlir::Operation* op = value.getDefiningOp();
  auto type = mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
  if (!op || !type || type.getNumElements() > kMaxElements ||
      ++operations > kMaxOperations)
    return std::nullopt;
  if (auto constant = mlir::dyn_cast<mlir::arith::ConstantOp>(op)) {
    auto dense = mlir::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
    return dense ? std::optional(nn::Tensor::fromAttr(dense)) : std::nullopt;
  }
  auto reference = mlir::dyn_cast<nn::ReferenceOpInterface>(op);
  if (!reference) return std::nullopt;
  SmallVector<nn::Tensor> operands;
  for (Value operand : op->getOperands()) {
    std::optional<nn::Tensor> tensor = evaluate(operand, operations);
    if (!tensor) return std::nullopt;
    operands.push_back(std::move(*tensor));
  }
  mlir::FailureOr<SmallVector<nn::Tensor>> results =
      reference.evaluate(operands);
  if (failed(results)) return std::nullopt;
  return (*results)[mlir::cast<mlir::OpResult>(value).getResultNumber()];
}

// Returns true if the bias hides an element, false if it leaves the score
// unchanged, nullopt otherwise.
std::optional<bool> hides(const ScoreBias& bias, const nn::Tensor& tensor,
                          int64_t position) {
  if (bias.kind == ScoreBias::Kind::visible)
    return tensor.getInt(position) == 0;
  if (bias.kind == ScoreBias::Kind::hidden) return tensor.getInt(position) != 0;
  const double summand = tensor.getFloat(position) * bias.factor;
  if (summand == 0) return false;
  return summand <= kHidingScore ? std::optional(true) : std::nullopt;
}

// Matches a band: the visible keys of each query are a run, whose begin and end
// move by one key from query to query where they are not the first and last
// key. `hides` is as above.
std::optional<ConstantMask> matchBand(
    int64_t queries, int64_t keys,
    llvm::function_ref<std::optional<bool>(int64_t, int64_t)> hides) {
  ConstantMask mask;
  const auto agree = [](std::optional<int64_t>& limit, int64_t found) {
    if (!limit) limit = found;
    return limit == found;
  };
  SmallVector<std::pair<int64_t, int64_t>> runs;
  for (int64_t i = 0; i < queries; ++i) {
    int64_t begin = 0, end = 0;
    for (int64_t j = 0; j < keys; ++j) {
      const std::optional<bool> hidden = hides(i, j);
      if (!hidden) return std::nullopt;
      if (*hidden) continue;
      if (begin == end) begin = end = j;
      if (end != j) return std::nullopt;
      end = j + 1;
    }
    if (begin == end || (end < keys && !agree(mask.last, end - 1 - i)) ||
        (begin > 0 && !agree(mask.first, begin - i)))
      return std::nullopt;
    runs.push_back({begin, end});
  }
  for (auto [i, run] : llvm::enumerate(runs)) {
    const int64_t query = i;
    if ((mask.first &&
         run.first != std::max<int64_t>(0, query + *mask.first)) ||
        (mask.last && run.second != std::min(keys, query + *mask.last + 1)))
      return std::nullopt;
  }
  return mask;
}

}  // namespace

std::optional<nn::Tensor> evaluateConstant(Value value) {
  int64_t operations = 0;
  return evaluate(value, operations);
}

std::optional<ConstantMask> matchConstantMask(const ScoreBias& bias) {
  const View view = peel(bias.value);
  const MatrixDims& dims = bias.scores.dims;
  // Strides from one query or key to the next in the tensor; 0 if the tensor
  // repeats along it. `matrices` are the positions of the first elements of
  // batches and heads.
  int64_t query_step = 0, key_step = 0, step = 1;
  SmallVector<int64_t> matrices = {0};
  const llvm::ArrayRef<int64_t> shape = tensorType(view.value).getShape();
  if (tensorType(view.value).getNumElements() > kMaxElements)
    return std::nullopt;
  const bool is_splat = static_cast<bool>(splatConstant(view.value));
  for (auto [size, dim] : llvm::reverse(llvm::zip_equal(shape, view.dims))) {
    if (size == 1 || is_splat) continue;
    if (dim == dims.row || dim == dims.column) {
      (dim == dims.row ? query_step : key_step) = step;
    } else {
      const size_t inner = matrices.size();
      for (int64_t i = 1; i < size; ++i)
        for (size_t j = 0; j < inner; ++j)
          matrices.push_back(matrices[j] + i * step);
    }
    step *= size;
  }
  const std::optional<nn::Tensor> tensor = evaluateConstant(view.value);
  if (!tensor) return std::nullopt;

  const int64_t queries = bias.scores.rows(), keys = bias.scores.columns();
  const auto hidesKey = [&](int64_t query, int64_t key) -> std::optional<bool> {
    const int64_t at = query * query_step + key * key_step;
    const auto first = hides(bias, *tensor, at);
    const bool agree = llvm::all_of(matrices, [&](int64_t matrix) {
      return hides(bias, *tensor, matrix + at) == first;
    });
    return agree ? first : std::nullopt;
  };
  if (auto band = matchBand(queries, keys, hidesKey)) return band;
  return matchSparseMask(queries, keys, hidesKey);
}

bool ConstantMask::sees(int64_t query, int64_t key) const {
  if (last && key > query + *last) return false;
  if (first && key < query + *first && key >= sinks) return false;
  return block_size == 0 ||
         blocks[query / block_size * columns + key / block_size];
}

void setMask(nn::AttentionOp op, const ConstantMask& mask) {
  mlir::Builder builder(op.getContext());
  const int64_t keys = op.getK().getType().getDimSize(2);
  if (const auto offset = mask.causalOffset(keys))
    op.setCausalOffsetAttr(builder.getI64IntegerAttr(*offset));
  if (const auto window = mask.window(keys)) {
    op.setWindowAttr(builder.getI64IntegerAttr(*window));
    if (mask.sinks > 0) op.setSinksAttr(builder.getI64IntegerAttr(mask.sinks));
  }
  if (mask.block_size == 0) return;
  const SmallVector<bool> visible(mask.blocks.begin(), mask.blocks.end());
  op.setBlocksAttr(mlir::DenseIntElementsAttr::get(
      mlir::RankedTensorType::get(
          {1, static_cast<int64_t>(visible.size()) / mask.columns,
           mask.columns},
          builder.getI1Type()),
      llvm::ArrayRef<bool>(visible)));
  op.setBlockSizeAttr(builder.getI64IntegerAttr(mask.block_size));
}

std::optional<int64_t> ConstantMask::causalOffset(int64_t keys) const {
  return last || !first ? last : keys - 1;
}

std::optional<int64_t> ConstantMask::window(int64_t keys) const {
  if (!first) return std::nullopt;
  return *causalOffset(keys) - *first + 1;
}

std::optional<ConstantMask> intersect(const ConstantMask& a,
                                      const ConstantMask& b, int64_t queries,
                                      int64_t keys) {
  const auto isBand = [](const ConstantMask& mask) {
    return mask.sinks == 0 && mask.block_size == 0;
  };
  if (!isBand(b)) {
    if (!isBand(a)) return std::nullopt;
    return intersect(b, a, queries, keys);
  }
  if (!isBand(a)) {
    // A window beside sinks is not a limit for all keys.
    if (a.sinks > 0 && b.first) return std::nullopt;
    ConstantMask both = a;
    if (b.first) both.first = std::max(*b.first, a.first.value_or(*b.first));
    if (b.last) both.last = std::min(*b.last, a.last.value_or(*b.last));
    for (int64_t i = 0; i < queries; ++i) {
      int64_t key = 0;
      while (key < keys && !both.sees(i, key)) ++key;
      if (key == keys) return std::nullopt;
    }
    return both;
  }
  ConstantMask both = a;
  if (b.first) both.first = std::max(*b.first, a.first.value_or(*b.first));
  if (b.last) both.last = std::min(*b.last, a.last.value_or(*b.last));
  const bool sees_some =
      (!both.first || *both.first + queries - 1 < keys) &&
      (!both.last || *both.last >= 0) &&
      (!both.first || !both.last || *both.first <= *both.last);
  return sees_some ? std::optional(both) : std::nullopt;
}

}  // namespace partita::simplify
