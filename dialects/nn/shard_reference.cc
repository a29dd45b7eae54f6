// The reference of one device's part of an operation: operands sliced by
// factors, the operation cloned on the shapes of the slices, and the few
// attributes and values that depend on where the part lies put right.
#include "dialects/nn/shard_reference.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "dialects/nn/dialect.h"
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

// A sliding window along one dimension.
struct Window {
  int64_t size, stride, dilation, low;
};

// That of dimension `dim` of operand 0, if the operation has one there.
std::optional<Window> windowOf(Operation* op, int64_t dim) {
  if (auto pool = mlir::dyn_cast<ReduceWindowOp>(op))
    return Window{pool.getWindow()[dim], pool.getStrides()[dim],
                  pool.getDilations()[dim], pool.getLow()[dim]};
  auto conv = mlir::dyn_cast<ConvOp>(op);
  if (!conv) return std::nullopt;
  const int64_t i = dim - (conv.getChannelsLast() ? 1 : 2);
  if (i < 0 || i >= static_cast<int64_t>(conv.getStrides().size()))
    return std::nullopt;
  return Window{conv.getWeight().getType().getDimSize(2 + i),
                conv.getStrides()[i], conv.getDilations()[i], conv.getLow()[i]};
}

bool isEmpty(mlir::Type type) {
  return mlir::cast<mlir::RankedTensorType>(type).getNumElements() == 0;
}

class Shard {
 public:
  Shard(Operation* op, const ShardingRule& rule, ArrayRef<FactorRange> ranges)
      : op_(op), rule_(rule), ranges_(ranges) {}

  // To be called before the others; says why it cannot.
  std::string findRows();
  // The clone on this shard's types; null with `error` where those do not fit.
  Operation* makeLocalOp(mlir::Block& block, std::string& error);
  ShardResults evaluate(ArrayRef<Tensor> operands);

 private:
  Rows rowsOf(const DimFactors& factors) const;
  std::string findHaloRows(int64_t dim, int factor);
  bool holdsNothing() const;
  void adjustAttributes(Operation* local);
  void adjustWindow(Operation* local);
  void adjustGroups(ConvOp local);
  FailureOr<SmallVector<Tensor>> evaluateGather(GatherOp local,
                                                ArrayRef<Tensor> operands);

  Operation* op_;
  const ShardingRule& rule_;
  ArrayRef<FactorRange> ranges_;
  std::vector<std::vector<Rows>> operand_rows_, result_rows_;
  // Padding of operand 0, per dimension with a halo.
  std::vector<std::optional<std::pair<int64_t, int64_t>>> padding_;
};

// Rows whose index, read as the factors' indices, lies in all their ranges.
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

// What the windows of the result's rows need: inside the input rows, outside
// padding.
std::string Shard::findHaloRows(int64_t dim, int factor) {
  const std::optional<Window> window = windowOf(op_, dim);
  if (!window)
    return "expected a halo in dimensions of nn.conv and nn.reduce_window with "
           "a window, found it in dimension " +
           std::to_string(dim) + " of operand 0 of " +
           op_->getName().getStringRef().str();
  const FactorRange range = ranges_[factor];
  if (range.begin == range.end) {
    operand_rows_[0][dim].clear();
    return "";
  }
  const int64_t size = mlir::cast<mlir::RankedTensorType>(
                           op_->getOperand(0).getType())
                           .getDimSize(dim),
                begin = range.begin * window->stride - window->low,
                end = (range.end - 1) * window->stride - window->low +
                      window->dilation * (window->size - 1) + 1;
  const int64_t first = std::clamp<int64_t>(begin, 0, size),
                last = std::clamp<int64_t>(end, first, size);
  operand_rows_[0][dim].resize(last - first);
  std::iota(operand_rows_[0][dim].begin(), operand_rows_[0][dim].end(), first);
  const int64_t low = std::min(std::max<int64_t>(-begin, 0), end - begin);
  padding_[dim] = {low, end - begin - low - (last - first)};
  return "";
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
  for (size_t operand = 0; operand < rule_.operands.size(); ++operand) {
    padding_.resize(operand == 0 ? rule_.operands[0].size() : padding_.size());
    for (size_t dim = 0; dim < rule_.operands[operand].size(); ++dim) {
      for (int factor : rule_.operands[operand][dim]) {
        if (rule_.factors[factor].kind != FactorKind::kHalo) continue;
        if (operand > 0)
          return "expected halos in operand 0 only, found factor " +
                 factorName(factor) + " in operand " + std::to_string(operand);
        const std::string error = findHaloRows(dim, factor);
        if (!error.empty()) return error;
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
        typeOf(op_->getResult(i).getType(), result_rows_[i]));
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
    if (auto pool = mlir::dyn_cast<ReduceWindowOp>(local)) set(pool, dim);
    if (auto conv = mlir::dyn_cast<ConvOp>(local))
      set(conv, dim - (conv.getChannelsLast() ? 1 : 2));
  }
}

// The groups are what the channels of input and result have in common.
void Shard::adjustGroups(ConvOp local) {
  const int64_t channel =
      local.getChannelsLast() ? local.getType().getRank() - 1 : 1;
  int64_t groups = 1;
  for (int factor : rule_.operands[0][channel]) {
    if (llvm::is_contained(rule_.results[0][channel], factor))
      groups *= ranges_[factor].end - ranges_[factor].begin;
  }
  local.setGroups(groups);
}

void Shard::adjustAttributes(Operation* local) {
  adjustWindow(local);
  llvm::TypeSwitch<Operation*>(local)
      .Case([&](ConvOp conv) { adjustGroups(conv); })
      .Case([&](AttentionOp attention) {
        if (attention.getCausalOffset())
          attention.setCausalOffset(*attention.getCausalOffset() +
                                    operand_rows_[0][2].front());
      })
      .Case([&](mlir::arith::ConstantOp constant) {
        const auto whole =
            mlir::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
        if (whole)
          constant.setValueAttr(
              sliceOf(Tensor::fromAttr(whole), result_rows_[0]).toAttr());
      });
}

// Indices into the rows that the shard has; where an index lies elsewhere, the
// result is 0.
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
  if (holdsNothing()) {
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
  auto gather = mlir::dyn_cast<GatherOp>(local);
  auto results = gather
                     ? evaluateGather(gather, slices)
                     : mlir::cast<ReferenceOpInterface>(local).evaluate(slices);
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
  for (size_t i = 0; i < result_rows_.size(); ++i)
    shard.results.push_back({std::move((*results)[i]), result_rows_[i]});
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
