// Reference of one device's part of an operation. It slices the operands by
// factors, clones the operation on the slices' shapes, and corrects the few
// attributes and values that depend on the part's position.
#include "dialects/nn/shard_reference.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "dialects/nn/attention_mask.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/shard_experts.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Verifier.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::FailureOr;
using mlir::Operation;
using mlir::SmallVector;

using Rows = std::vector<int64_t>;  // of one dimension, ascending

mlir::RankedTensorType typeOf(mlir::Type like, const std::vector<Rows>& rows) {
  SmallVector<int64_t> shape;
  for (const Rows& dim : rows) shape.push_back(dim.size());
  return mlir::cast<mlir::RankedTensorType>(like).clone(shape);
}

// The elements of `tensor` at these rows of each dimension.
Tensor sliceOf(const Tensor& tensor, const std::vector<Rows>& rows) {
  Tensor slice(typeOf(tensor.type(), rows));
  for (int64_t i = 0; i < slice.size(); ++i) {
    SmallVector<int64_t> index = slice.index(i);
    for (size_t dim = 0; dim < rows.size(); ++dim)
      index[dim] = rows[dim][index[dim]];
    slice.copyFrom(i, tensor, tensor.position(index));
  }
  return slice;
}

// The index of each of `rows` in `all`.
std::vector<Rows> placesIn(const std::vector<Rows>& all,
                           const std::vector<Rows>& rows) {
  std::vector<Rows> places = rows;
  for (size_t dim = 0; dim < rows.size(); ++dim) {
    for (int64_t& row : places[dim])
      row = std::lower_bound(all[dim].begin(), all[dim].end(), row) -
            all[dim].begin();
  }
  return places;
}

// A sliding window along one dimension.
struct Window {
  int64_t size, stride, dilation, low;
};

// The window of dimension `dim`, if the operation has one there.
std::optional<Window> windowOf(Operation* op, int64_t dim) {
  const auto ofPool = [dim](auto pool) {
    return Window{pool.getWindow()[dim], pool.getStrides()[dim],
                  pool.getDilations()[dim], pool.getLow()[dim]};
  };
  const auto ofConv = [dim](auto conv,
                            mlir::Value weight) -> std::optional<Window> {
    const int64_t i = dim - (conv.getChannelsLast() ? 1 : 2);
    if (i < 0 || i >= static_cast<int64_t>(conv.getStrides().size()))
      return std::nullopt;
    return Window{
        mlir::cast<mlir::RankedTensorType>(weight.getType()).getDimSize(2 + i),
        conv.getStrides()[i], conv.getDilations()[i], conv.getLow()[i]};
  };
  return llvm::TypeSwitch<Operation*, std::optional<Window>>(op)
      .Case([&](ReduceWindowOp pool) { return ofPool(pool); })
      .Case([&](ReduceWindowGradOp pool) { return ofPool(pool); })
      .Case([&](ConvOp conv) { return ofConv(conv, conv.getWeight()); })
      .Case(
          [&](ConvInputGradOp conv) { return ofConv(conv, conv.getWeight()); })
      .Case(
          [&](ConvWeightGradOp conv) { return ofConv(conv, conv.getResult()); })
      .Default([](Operation*) { return std::nullopt; });
}

bool isEmpty(mlir::Type type) {
  return mlir::cast<mlir::RankedTensorType>(type).getNumElements() == 0;
}

class Shard {
 public:
  Shard(Operation* op, const ShardingRule& rule, ArrayRef<FactorRange> ranges)
      : op_(op), rule_(rule), ranges_(ranges) {}

  // Must be called before the other functions. Returns the reason if it fails.
  std::string findRows();
  // The clone on this shard's types. Null, with `error` set, if the types do
  // not fit.
  Operation* makeLocalOp(mlir::Block& block, std::string& error);
  ShardResults evaluate(ArrayRef<Tensor> operands);

 private:
  Rows rowsOf(const DimFactors& factors) const;
  std::string findHaloRows(int64_t dim, int factor);
  void findInputRows(int64_t dim, const Window& window, FactorRange range);
  void findGradRows(int64_t dim, const Window& window, FactorRange range);
  bool holdsNothing() const;
  void adjustAttributes(Operation* local);
  void adjustWindow(Operation* local);
  void adjustGroups(Operation* local);
  template <typename Op>
  void adjustBlocks(Op attention);
  FailureOr<SmallVector<Tensor>> evaluateGather(GatherOp local,
                                                ArrayRef<Tensor> operands);
  FailureOr<SmallVector<Tensor>> evaluateScatter(ScatterOp local,
                                                 ArrayRef<Tensor> operands);

  Operation* op_;
  const ShardingRule& rule_;
  ArrayRef<FactorRange> ranges_;
  std::vector<std::vector<Rows>> operand_rows_, result_rows_;
  // The rows that the shard's operation computes: a superset of `result_rows_`
  // if windows reach beyond them.
  std::vector<std::vector<Rows>> computed_rows_;
  // The padding of the windows, per dimension with a halo.
  std::vector<std::optional<std::pair<int64_t, int64_t>>> padding_;
};

// The rows whose index, split into the factors' indices, lies in all their
// ranges.
Rows Shard::rowsOf(const DimFactors& factors) const {
  Rows rows = {0};
  for (int factor : factors) {
    Rows finer;
    for (int64_t row : rows) {
      for (int64_t i = ranges_[factor].begin; i < ranges_[factor].end; ++i)
        finer.push_back(row * rule_.factors[factor].size + i);
    }
    rows = std::move(finer);
  }
  return rows;
}

namespace {

Rows rowsBetween(int64_t first, int64_t last) {
  Rows rows(last - first);
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

int64_t sizeOf(mlir::Value value, int64_t dim) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getDimSize(dim);
}

}  // namespace

std::string Shard::findHaloRows(int64_t dim, int factor) {
  const std::optional<Window> window = windowOf(op_, dim);
  if (!window)
    return "expected a halo in dimensions of nn.conv, nn.reduce_window and "
           "their gradients with a window, found it in dimension " +
           std::to_string(dim) + " of operand 0 of " +
           op_->getName().getStringRef().str();
  const FactorRange range = ranges_[factor];
  if (mlir::isa<ConvInputGradOp, ReduceWindowGradOp>(op_)) {
    findGradRows(dim, *window, range);
  } else {
    findInputRows(dim, *window, range);
  }
  return "";
}

// The rows of operand 0 that the windows of these result rows of a convolution
// need: rows inside the input, and padding outside.
void Shard::findInputRows(int64_t dim, const Window& window,
                          FactorRange range) {
  if (range.begin == range.end) {
    operand_rows_[0][dim].clear();
    padding_[dim] = {0, 0};
    return;
  }
  const int64_t size = sizeOf(op_->getOperand(0), dim),
                begin = range.begin * window.stride - window.low,
                end = (range.end - 1) * window.stride - window.low +
                      window.dilation * (window.size - 1) + 1;
  const int64_t first = std::clamp<int64_t>(begin, 0, size),
                last = std::clamp<int64_t>(end, first, size);
  operand_rows_[0][dim] = rowsBetween(first, last);
  const int64_t low = std::min(std::max<int64_t>(-begin, 0), end - begin);
  padding_[dim] = {low, end - begin - low - (last - first)};
}

// Finds the rows of the result's gradient whose windows cover these rows of a
// windowed operation's input. If the input is operand 1, the shard needs all of
// its rows under those windows and computes gradients for all of them.
void Shard::findGradRows(int64_t dim, const Window& window, FactorRange range) {
  const int64_t size = sizeOf(op_->getResult(0), dim),
                windows = sizeOf(op_->getOperand(0), dim),
                extent = window.dilation * (window.size - 1) + 1;
  // The first window that reaches range.begin, or the one after it if strides
  // leave a gap there, because padding must not be negative.
  const int64_t reach = std::max<int64_t>(
      range.begin + window.low - (extent - 1) + window.stride - 1, 0);
  const int64_t first =
      std::min({reach / window.stride,
                (range.begin + window.low) / window.stride, windows});
  const int64_t last = std::clamp<int64_t>(
      (range.end - 1 + window.low) / window.stride + 1, first, windows);
  int64_t begin = range.begin, end = range.end;
  if (op_->getNumOperands() > 1 && mlir::isa<ReduceWindowGradOp>(op_)) {
    begin = std::clamp<int64_t>(first * window.stride - window.low, 0, begin);
    if (last > first)
      end = std::clamp<int64_t>(
          (last - 1) * window.stride - window.low + extent, end, size);
    operand_rows_[1][dim] = rowsBetween(begin, end);
  }
  operand_rows_[0][dim] = rowsBetween(first, last);
  computed_rows_[0][dim] = rowsBetween(begin, end);
  const int64_t low = window.low + begin - first * window.stride;
  const int64_t covered = (last - first - 1) * window.stride + extent;
  padding_[dim] = {
      low,
      last == first ? 0 : std::max<int64_t>(covered - low - (end - begin), 0)};
}

std::string Shard::findRows() {
  for (const TensorFactors& operand : rule_.operands) {
    std::vector<Rows>& rows = operand_rows_.emplace_back();
    for (const DimFactors& dim : operand) rows.push_back(rowsOf(dim));
  }
  for (const TensorFactors& result : rule_.results) {
    std::vector<Rows>& rows = result_rows_.emplace_back();
    for (const DimFactors& dim : result) rows.push_back(rowsOf(dim));
  }
  computed_rows_ = result_rows_;
  if (rule_.operands.empty()) return "";
  padding_.resize(rule_.operands[0].size());
  for (size_t operand = 0; operand < rule_.operands.size(); ++operand) {
    for (size_t dim = 0; dim < rule_.operands[operand].size(); ++dim) {
      for (int factor : rule_.operands[operand][dim]) {
        if (!IsHalo(rule_.factors[factor].kind)) continue;
        if (operand == 0) {
          const std::string error = findHaloRows(dim, factor);
          if (!error.empty()) return error;
        } else if (!mlir::isa<ReduceWindowGradOp, ConvWeightGradOp>(op_)) {
          return "expected halos in operand 0 only, found factor " +
                 terms::FactorName(factor) + " in operand " +
                 std::to_string(operand);
        }
      }
    }
  }
  return "";
}

bool Shard::holdsNothing() const {
  return llvm::all_of(result_rows_, [](const std::vector<Rows>& rows) {
    return llvm::any_of(rows, [](const Rows& dim) { return dim.empty(); });
  });
}

Operation* Shard::makeLocalOp(mlir::Block& block, std::string& error) {
  SmallVector<mlir::Value> values;
  for (size_t i = 0; i < operand_rows_.size(); ++i)
    values.push_back(block.addArgument(
        typeOf(op_->getOperand(i).getType(), operand_rows_[i]), op_->getLoc()));
  Operation* local = op_->clone();
  block.push_back(local);
  local->setOperands(values);
  for (size_t i = 0; i < result_rows_.size(); ++i)
    local->getResult(i).setType(
        typeOf(op_->getResult(i).getType(), computed_rows_[i]));
  local->removeAttr(kRuleAttr);
  adjustAttributes(local);
  mlir::ScopedDiagnosticHandler handler(
      op_->getContext(), [&](mlir::Diagnostic& diagnostic) {
        error +=
            "the operation on a shard's types is invalid: " + diagnostic.str();
        return mlir::success();
      });
  return mlir::succeeded(mlir::verify(local)) ? local : nullptr;
}

void Shard::adjustWindow(Operation* local) {
  for (size_t dim = 0; dim < padding_.size(); ++dim) {
    if (!padding_[dim]) continue;
    const auto set = [&](auto op, size_t at) {
      SmallVector<int64_t> low(op.getLow()), high(op.getHigh());
      std::tie(low[at], high[at]) = *padding_[dim];
      op.setLow(low);
      op.setHigh(high);
    };
    const auto setOfConv = [&](auto conv) {
      set(conv, dim - (conv.getChannelsLast() ? 1 : 2));
    };
    llvm::TypeSwitch<Operation*>(local)
        .Case([&](ReduceWindowOp pool) { set(pool, dim); })
        .Case([&](ReduceWindowGradOp pool) { set(pool, dim); })
        .Case([&](ConvOp conv) { setOfConv(conv); })
        .Case([&](ConvInputGradOp conv) { setOfConv(conv); })
        .Case([&](ConvWeightGradOp conv) { setOfConv(conv); });
  }
}

// The groups are the channel factor that the input and the result (or the
// gradient of either) share.
void Shard::adjustGroups(Operation* local) {
  const auto set = [&](auto conv, const TensorFactors& a,
                       const TensorFactors& b) {
    const int64_t channel = conv.getChannelsLast() ? a.size() - 1 : 1;
    int64_t groups = 1;
    for (int factor : a[channel]) {
      if (llvm::is_contained(b[channel], factor))
        groups *= ranges_[factor].end - ranges_[factor].begin;
    }
    conv.setGroups(groups);
  };
  llvm::TypeSwitch<Operation*>(local)
      .Case(
          [&](ConvOp conv) { set(conv, rule_.operands[0], rule_.results[0]); })
      .Case([&](ConvInputGradOp conv) {
        set(conv, rule_.operands[0], rule_.results[0]);
      })
      .Case([&](ConvWeightGradOp conv) {
        set(conv, rule_.operands[0], rule_.operands[1]);
      });
}

// Writes the shard's part of the table with blocks of one query and one key. A
// shift is then relative to the shard's first query.
template <typename Op>
void Shard::adjustBlocks(Op attention) {
  const BlockTable table = *BlockTable::of(attention);
  const Rows &heads = operand_rows_[0][1], &queries = operand_rows_[0][2],
             &keys = operand_rows_[1][2];
  // Operands add to the numbers of queries and heads.
  const bool all_rows = static_cast<bool>(attention.getShift()),
             has_heads = table.heads() > 1,
             all_heads = has_heads && attention.getFirstHead();
  const int64_t own_heads = !has_heads  ? 1
                            : all_heads ? table.heads() - heads.front()
                                        : static_cast<int64_t>(heads.size()),
                rows = all_rows ? table.rows() * table.size() - queries.front()
                                : queries.size();
  mlir::SmallVector<bool> visible;
  for (int64_t head = 0; head < own_heads; ++head)
    for (int64_t row = 0; row < rows; ++row)
      for (const int64_t key : keys)
        visible.push_back(
            table.sees(!has_heads  ? 0
                       : all_heads ? heads.front() + head
                                   : heads[head],
                       all_rows ? queries.front() + row : queries[row], key));
  attention.setBlocksAttr(mlir::DenseIntElementsAttr::get(
      mlir::RankedTensorType::get(
          {own_heads, rows, static_cast<int64_t>(keys.size())},
          mlir::IntegerType::get(attention.getContext(), 1)),
      ArrayRef<bool>(visible)));
  attention.setBlockSize(1);
}

void Shard::adjustAttributes(Operation* local) {
  adjustWindow(local);
  adjustGroups(local);
  const auto adjustOffset = [&](auto attention) {
    if (attention.getCausalOffset())
      attention.setCausalOffset(*attention.getCausalOffset() +
                                operand_rows_[0][2].front());
    if (attention.getBlocks()) adjustBlocks(attention);
  };
  llvm::TypeSwitch<Operation*>(local)
      .Case([&](AttentionOp attention) { adjustOffset(attention); })
      .Case([&](AttentionGradOp attention) { adjustOffset(attention); })
      .Case([&](mlir::arith::ConstantOp constant) {
        const auto whole =
            mlir::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
        if (whole)
          constant.setValueAttr(
              sliceOf(Tensor::fromAttr(whole), result_rows_[0]).toAttr());
      });
}

// Converts indices to positions in the rows that the shard holds. An index to
// another row becomes out of range.
FailureOr<SmallVector<Tensor>> Shard::evaluateScatter(
    ScatterOp local, ArrayRef<Tensor> operands) {
  const Tensor& indices = operands[1];
  Tensor local_indices(indices.type());
  const int64_t length = local.getAxes().size();
  for (int64_t i = 0; i < indices.size(); ++i) {
    const Rows& rows = operand_rows_[0][local.getAxes()[i % length]];
    const auto place =
        std::lower_bound(rows.begin(), rows.end(), indices.getInt(i));
    const bool is_here = place != rows.end() && *place == indices.getInt(i);
    local_indices.setInt(i, is_here ? place - rows.begin() : -1);
  }
  return local.evaluate({operands[0], local_indices, operands[2]});
}

// Converts indices to positions in the rows that the shard holds. An index to
// another row gives 0.
FailureOr<SmallVector<Tensor>> Shard::evaluateGather(
    GatherOp local, ArrayRef<Tensor> operands) {
  const Tensor& indices = operands[1];
  Tensor local_indices(indices.type());
  std::vector<bool> is_here(indices.size(), true);
  const int64_t length = local.getAxes().size();
  for (int64_t i = 0; i < indices.size(); ++i) {
    const int64_t axis = local.getAxes()[i % length];
    const int64_t size =
        mlir::cast<mlir::RankedTensorType>(op_->getOperand(0).getType())
            .getDimSize(axis);
    const Rows& rows = operand_rows_[0][axis];
    const int64_t row = std::clamp<int64_t>(indices.getInt(i), 0, size - 1);
    const auto place = std::lower_bound(rows.begin(), rows.end(), row);
    is_here[i] = place != rows.end() && *place == row;
    if (is_here[i]) local_indices.setInt(i, place - rows.begin());
  }
  Tensor result(local.getType());  // zeros
  if (isEmpty(operands[0].type())) return SmallVector<Tensor>{result};
  const auto gathered = local.evaluate({operands[0], local_indices});
  if (mlir::failed(gathered)) return mlir::failure();
  const int64_t index_dims = indices.rank() - 1;
  int64_t slice = 1;  // elements of the result per index vector
  for (int64_t size : result.shape().drop_front(index_dims)) slice *= size;
  for (int64_t i = 0; i < result.size(); ++i) {
    const auto first = is_here.begin() + i / slice * length;
    if (std::all_of(first, first + length, [](bool here) { return here; }))
      result.copyFrom(i, gathered->front(), i);
  }
  return SmallVector<Tensor>{result};
}

ShardResults Shard::evaluate(ArrayRef<Tensor> operands) {
  ShardResults shard;
  // Without queries or heads, attention is undefined for every operand, but its
  // gradients are empty sums.
  const bool sums_nothing = mlir::isa<AttentionGradOp>(op_) &&
                            llvm::any_of(operand_rows_[0], [](const Rows& dim) {
                              return dim.empty();
                            });
  if (holdsNothing() || sums_nothing) {
    for (size_t i = 0; i < result_rows_.size(); ++i)
      shard.results.push_back(
          {Tensor(typeOf(op_->getResult(i).getType(), result_rows_[i])),
           result_rows_[i]});
    return shard;
  }
  SmallVector<Tensor> slices;
  for (size_t i = 0; i < operands.size(); ++i)
    slices.push_back(sliceOf(operands[i], operand_rows_[i]));
  mlir::Block block;
  Operation* local = makeLocalOp(block, shard.error);
  if (!local) return shard;
  auto results =
      llvm::TypeSwitch<Operation*, FailureOr<SmallVector<Tensor>>>(local)
          .Case([&](GatherOp gather) { return evaluateGather(gather, slices); })
          .Case([&](ScatterOp scatter) {
            return evaluateScatter(scatter, slices);
          })
          .Case([&](ExpertsOp experts) {
            return evaluateExpertShard(experts, slices, operand_rows_);
          })
          .Case([&](ExpertsGradOp experts) {
            return evaluateExpertShard(experts, slices, operand_rows_);
          })
          .Case([&](GroupedDotOp dot) {
            slices[1] = positionsIn(operand_rows_[2][0], slices[1]);
            return dot.evaluate(slices);
          })
          .Case([&](GroupedDotWeightGradOp dot) {
            slices[1] = positionsIn(result_rows_[0][0], slices[1]);
            return dot.evaluate(slices);
          })
          .Default([&](Operation* other) {
            return mlir::cast<ReferenceOpInterface>(other).evaluate(slices);
          });
  if (mlir::failed(results)) {
    shard.error = "a shard has no meaning for the values of its operands";
    return shard;
  }
  if (auto iota = mlir::dyn_cast<IotaOp>(local)) {
    Tensor& counts = results->front();
    const Rows& rows = result_rows_[0][iota.getDim()];
    for (int64_t i = 0; i < counts.size(); ++i) {
      const int64_t count = rows[counts.index(i)[iota.getDim()]];
      if (counts.isFloat()) counts.setFloat(i, static_cast<double>(count));
      if (!counts.isFloat()) counts.setInt(i, count);
    }
  }
  for (size_t i = 0; i < result_rows_.size(); ++i) {
    Tensor& computed = (*results)[i];
    if (computed_rows_[i] != result_rows_[i])
      computed =
          sliceOf(computed, placesIn(computed_rows_[i], result_rows_[i]));
    shard.results.push_back({std::move(computed), result_rows_[i]});
  }
  return shard;
}

}  // namespace

ShardResults evaluateShard(Operation* op, const ShardingRule& rule,
                           ArrayRef<FactorRange> ranges,
                           ArrayRef<Tensor> operands) {
  Shard shard(op, rule, ranges);
  const std::string error = shard.findRows();
  if (!error.empty()) return {error, {}};
  return shard.evaluate(operands);
}

ShrunkenOp shrink(Operation* op, const ShardingRule& rule, int64_t max_size) {
  ShrunkenOp shrunken;
  shrunken.block = std::make_unique<mlir::Block>();
  shrunken.rule = rule;
  std::vector<FactorRange> ranges;
  for (Factor& factor : shrunken.rule.factors) {
    if (factor.kind != FactorKind::kWhole &&
        factor.kind != FactorKind::kDecompose)
      factor.size = std::min(factor.size, max_size);
    ranges.push_back({0, factor.size});
  }
  Shard shard(op, rule, ranges);
  shrunken.error = shard.findRows();
  if (shrunken.error.empty())
    shrunken.op = shard.makeLocalOp(*shrunken.block, shrunken.error);
  return shrunken;
}

}  // namespace partita::nn
