// Local forms of sliding windows and their gradients. A device fetches the rows
// that its result rows read, as intervals of global rows. This covers stride,
// dilation, padding, uneven blocks, and halos wider than a shard.
#include "compiler/partition/local_form.h"
#include "compiler/partition/local_forms.h"
#include "compiler/sharding/convert.h"

namespace partita::partition {
namespace {

using llvm::SmallVector;
using mlir::FailureOr;
using mlir::RankedTensorType;
using mlir::Value;

// A window along one dimension. The input has positions, the result has rows.
// Row o reads the positions o * stride - low + k * dilation, k < size.
struct Window {
  int64_t size, stride, dilation, low;

  int64_t reach() const { return (size - 1) * dilation; }
};

// Fetches rows [r * step + first, ... + count) for the device with index r
// along `rows`, which divides dimension `dim` of `size` rows. `fill` is used
// for rows that do not exist.
Value exchangeRows(const LocalForm& form, Value input, int64_t dim,
                   const core::DimSharding& rows, int64_t size, int64_t step,
                   int64_t first, int64_t count, double fill) {
  auto type = llvm::cast<RankedTensorType>(input.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = count;
  return dist::ExchangeOp::create(
      form.builder, form.loc(), type.clone(shape), input,
      sharding::axesAttr(form.builder.getContext(), rows.axes, form.mesh), dim,
      size, step, first, llvm::APFloat(fill),
      form.why("rows beside the shard"));
}

// Fetches the positions of dimension `dim` of operand 0 that the device's
// result rows read. The results have `made_size` rows, divided as `made`.
// `padding` fills positions outside. The window needs no padding afterwards.
Value fetchRows(const LocalForm& form, Value input, int64_t dim,
                const Window& window, const core::DimSharding& made,
                int64_t made_size, double padding) {
  const core::DimSharding& rows = form.sharding.operands[0].dims[dim];
  const int64_t size = form.globalShape(form.op->getOperand(0))[dim];
  const int64_t block = core::BlockOf(size, rows);
  const int64_t made_block = core::BlockOf(made_size, made);
  const int64_t step = made_block * window.stride;
  const int64_t needed = (made_block - 1) * window.stride + window.reach() + 1;
  // Rows beyond the end are not padding: if the last result rows read there,
  // padding must be fetched.
  const bool reads_beyond =
      (made_size - 1) * window.stride + window.reach() + 1 - window.low > size;
  if (window.low == 0 && step == block && needed <= block && !reads_beyond)
    return input;
  return exchangeRows(form, input, dim, rows, size, step, -window.low, needed,
                      padding);
}

// The gradient: fetches the rows that a device needs for the gradients of a
// block of positions. Blocks are multiples of the stride, so that all devices'
// windows are aligned equally. If the input's blocks are not, they are cut
// again afterwards.
class GradientWindow {
 public:
  // Dimension `dim` of result 0 has the positions, of operand 0 the rows.
  GradientWindow(const LocalForm& form, int64_t dim, const Window& window)
      : form_(form),
        dim_(dim),
        window_(window),
        size_(form.globalShape(form.op->getResult(0))[dim]),
        block_(core::BlockOf(size_, axes())),
        aligned_(llvm::alignTo(block_, window.stride)) {
    const int64_t lowest = window.low - window.reach();
    first_ = -llvm::divideFloorSigned(-lowest, window.stride);
    // A window that begins after the block's first position has no padding.
    if (low() < 0) --first_;
    count_ = llvm::divideFloorSigned(aligned_ - 1 + window.low, window.stride) -
             first_ + 1;
  }

  // Padding of the window over a block of `aligned` positions.
  int64_t low() const { return window_.low - first_ * window_.stride; }
  int64_t high() const {
    return std::max<int64_t>(0, read() - low() - aligned_);
  }
  int64_t aligned() const { return aligned_; }
  // Positions that the fetched rows read, and all positions of the block.
  int64_t positions() const { return std::max(read(), low() + aligned_); }

  // Rows beyond the end must contribute nothing.
  Value fetchRows(Value gradient) const {
    const core::DimSharding& rows = form_.sharding.operands[0].dims[dim_];
    const int64_t size = form_.globalShape(form_.op->getOperand(0))[dim_];
    const int64_t step = aligned_ / window_.stride;
    if (first_ != 0 || step != count_ || step != core::BlockOf(size, rows))
      return exchangeRows(form_, gradient, dim_, rows, size, step, first_,
                          count_, 0);
    auto type = llvm::cast<RankedTensorType>(gradient.getType());
    return form_.cleanRows(
        gradient, dim_, size, rows,
        neutralOf(core::Reduction::kSum, type.getElementType()));
  }
  Value fetchPositions(Value input, double padding) const {
    return exchangeRows(form_, input, dim_, axes(), size_, aligned_, -low(),
                        positions(), padding);
  }
  // Cuts the device's block out of `aligned` positions.
  Value cut(Value gradient) const {
    if (aligned_ == block_) return gradient;
    return exchangeRows(form_, gradient, dim_, axes(), size_, block_, 0, block_,
                        0);
  }

 private:
  int64_t read() const {
    return (count_ - 1) * window_.stride + window_.reach() + 1;
  }
  const core::DimSharding& axes() const {
    return form_.sharding.results[0].dims[dim_];
  }

  const LocalForm& form_;
  int64_t dim_;
  Window window_;
  int64_t size_, block_, aligned_, first_, count_;
};

RankedTensorType withSize(RankedTensorType type, int64_t dim, int64_t size) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  return type.clone(shape);
}

// Groups stay whole.
template <typename Op>
void setLocalGroups(Op local, Value with_channels, int64_t channels_per_group) {
  auto type = llvm::cast<RankedTensorType>(with_channels.getType());
  if (local.getGroups() > 1)
    local.setGroups(
        type.getDimSize(local.getChannelsLast() ? type.getRank() - 1 : 1) /
        channels_per_group);
}

template <typename Op>
int64_t spatialDim(Op conv, size_t i) {
  return static_cast<int64_t>(i) + (conv.getChannelsLast() ? 1 : 2);
}

template <typename Op>
Window windowOf(Op conv, llvm::ArrayRef<int64_t> weight, size_t i) {
  return {weight[i + 2], conv.getStrides()[i], conv.getDilations()[i],
          conv.getLow()[i]};
}

struct ConvForm : LocalFormOpInterface::ExternalModel<ConvForm, nn::ConvOp> {
  FailureOr<SmallVector<Value>> buildLocal(mlir::Operation* op,
                                           const LocalForm& form) const {
    auto conv = llvm::cast<nn::ConvOp>(op);
    Value input = form.cleanOperand(0), weight = form.cleanOperand(1);
    const auto weight_shape = form.globalShape(conv.getWeight());
    SmallVector<int64_t> low(conv.getLow()), high(conv.getHigh());
    for (size_t i = 0; i < low.size(); ++i) {
      const int64_t dim = spatialDim(conv, i);
      if (form.sharding.operands[0].dims[dim].axes.empty()) continue;
      input = fetchRows(form, input, dim, windowOf(conv, weight_shape, i),
                        form.sharding.results[0].dims[dim],
                        form.globalShape(conv.getResult())[dim], 0);
      low[i] = high[i] = 0;
    }
    auto local = llvm::cast<nn::ConvOp>(
        cloneLocally(form, {input, weight}, form.resultType(0)));
    local.setLow(low);
    local.setHigh(high);
    setLocalGroups(local, input, weight_shape[1]);
    return SmallVector<Value>{local.getResult()};
  }
};

struct ConvInputGradForm
    : LocalFormOpInterface::ExternalModel<ConvInputGradForm,
                                          nn::ConvInputGradOp> {
  FailureOr<SmallVector<Value>> buildLocal(mlir::Operation* op,
                                           const LocalForm& form) const {
    auto grad = llvm::cast<nn::ConvInputGradOp>(op);
    Value rows = form.cleanOperand(0), weight = form.cleanOperand(1);
    const auto weight_shape = form.globalShape(grad.getWeight());
    SmallVector<int64_t> low(grad.getLow()), high(grad.getHigh());
    RankedTensorType type = form.resultType(0);
    SmallVector<GradientWindow> ways;
    for (size_t i = 0; i < low.size(); ++i) {
      const int64_t dim = spatialDim(grad, i);
      if (form.sharding.results[0].dims[dim].axes.empty()) continue;
      const GradientWindow& way =
          ways.emplace_back(form, dim, windowOf(grad, weight_shape, i));
      rows = way.fetchRows(rows);
      low[i] = way.low();
      high[i] = way.high();
      type = withSize(type, dim, way.aligned());
    }
    auto local = llvm::cast<nn::ConvInputGradOp>(
        cloneLocally(form, {rows, weight}, type));
    local.setLow(low);
    local.setHigh(high);
    Value result = local.getResult();
    setLocalGroups(local, result, weight_shape[1]);
    for (const GradientWindow& way : ways) result = way.cut(result);
    return SmallVector<Value>{result};
  }
};

struct ConvWeightGradForm
    : LocalFormOpInterface::ExternalModel<ConvWeightGradForm,
                                          nn::ConvWeightGradOp> {
  FailureOr<SmallVector<Value>> buildLocal(mlir::Operation* op,
                                           const LocalForm& form) const {
    auto grad = llvm::cast<nn::ConvWeightGradOp>(op);
    Value input = form.cleanOperand(0), rows = form.cleanOperand(1);
    const auto weight_shape = form.globalShape(grad.getResult());
    SmallVector<int64_t> low(grad.getLow()), high(grad.getHigh());
    for (size_t i = 0; i < low.size(); ++i) {
      const int64_t dim = spatialDim(grad, i);
      if (form.sharding.operands[0].dims[dim].axes.empty()) continue;
      input = fetchRows(form, input, dim, windowOf(grad, weight_shape, i),
                        form.sharding.operands[1].dims[dim],
                        form.globalShape(grad.getResultGrad())[dim], 0);
      low[i] = high[i] = 0;
    }
    auto local = llvm::cast<nn::ConvWeightGradOp>(
        cloneLocally(form, {input, rows}, form.resultType(0)));
    local.setLow(low);
    local.setHigh(high);
    setLocalGroups(local, input, weight_shape[1]);
    return SmallVector<Value>{local.getResult()};
  }
};

double paddingOf(nn::ReduceKind kind) {
  switch (kind) {
    case nn::ReduceKind::sum:
      return 0;
    case nn::ReduceKind::prod:
      return 1;
    case nn::ReduceKind::max:
      return -std::numeric_limits<double>::infinity();
    case nn::ReduceKind::min:
      return std::numeric_limits<double>::infinity();
  }
}

struct ReduceWindowForm
    : LocalFormOpInterface::ExternalModel<ReduceWindowForm,
                                          nn::ReduceWindowOp> {
  FailureOr<SmallVector<Value>> buildLocal(mlir::Operation* op,
                                           const LocalForm& form) const {
    auto reduce = llvm::cast<nn::ReduceWindowOp>(op);
    Value input = form.cleanOperand(0);
    SmallVector<int64_t> low(reduce.getLow()), high(reduce.getHigh());
    for (size_t dim = 0; dim < low.size(); ++dim) {
      if (form.sharding.operands[0].dims[dim].axes.empty()) continue;
      input = fetchRows(form, input, dim,
                        {reduce.getWindow()[dim], reduce.getStrides()[dim],
                         reduce.getDilations()[dim], low[dim]},
                        form.sharding.results[0].dims[dim],
                        form.globalShape(reduce.getResult())[dim],
                        paddingOf(reduce.getKind()));
      low[dim] = high[dim] = 0;
    }
    auto local = llvm::cast<nn::ReduceWindowOp>(
        cloneLocally(form, {input}, form.resultType(0)));
    local.setLow(low);
    local.setHigh(high);
    return SmallVector<Value>{local.getResult()};
  }
};

// The windows of the fetched rows need all positions that they read, to find
// the largest element.
struct ReduceWindowGradForm
    : LocalFormOpInterface::ExternalModel<ReduceWindowGradForm,
                                          nn::ReduceWindowGradOp> {
  FailureOr<SmallVector<Value>> buildLocal(mlir::Operation* op,
                                           const LocalForm& form) const {
    auto grad = llvm::cast<nn::ReduceWindowGradOp>(op);
    Value rows = form.cleanOperand(0);
    Value input = grad.getInput() ? form.operands[1] : Value();
    SmallVector<int64_t> low(grad.getLow()), high(grad.getHigh());
    RankedTensorType type = form.resultType(0), kept = type;
    SmallVector<int64_t> begin(type.getRank(), 0);
    SmallVector<GradientWindow> ways;
    for (size_t i = 0; i < low.size(); ++i) {
      if (form.sharding.results[0].dims[i].axes.empty() ||
          form.sharding.operands[0].dims[i].axes.empty())
        continue;
      const GradientWindow& way =
          ways.emplace_back(form, i,
                            Window{grad.getWindow()[i], grad.getStrides()[i],
                                   grad.getDilations()[i], low[i]});
      rows = way.fetchRows(rows);
      if (input) input = way.fetchPositions(input, paddingOf(grad.getKind()));
      kept = withSize(kept, i, way.aligned());
      type = withSize(type, i, way.positions());
      begin[i] = way.low();
      low[i] = high[i] = 0;
    }
    SmallVector<Value> operands = {rows};
    if (input) operands.push_back(input);
    auto local =
        llvm::cast<nn::ReduceWindowGradOp>(cloneLocally(form, operands, type));
    local.setLow(low);
    local.setHigh(high);
    Value result = local.getResult();
    if (type != kept)
      result =
          nn::SliceOp::create(form.builder, form.loc(), kept, result, begin,
                              SmallVector<int64_t>(kept.getRank(), 1));
    for (const GradientWindow& way : ways) result = way.cut(result);
    return SmallVector<Value>{result};
  }
};

}  // namespace

void registerWindowForms(mlir::MLIRContext* context) {
  nn::ConvOp::attachInterface<ConvForm>(*context);
  nn::ConvInputGradOp::attachInterface<ConvInputGradForm>(*context);
  nn::ConvWeightGradOp::attachInterface<ConvWeightGradForm>(*context);
  nn::ReduceWindowOp::attachInterface<ReduceWindowForm>(*context);
  nn::ReduceWindowGradOp::attachInterface<ReduceWindowGradForm>(*context);
}

}  // namespace partita::partition
