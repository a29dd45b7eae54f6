// Local forms of sliding windows: convolution and reduce_window. A device
// fetches the rows that its result rows read, as intervals of global rows, so
// that stride, dilation, padding, uneven blocks and halos wider than a shard
// are one case.
#include "compiler/partition/local_form.h"
#include "compiler/partition/local_forms.h"
#include "compiler/sharding/convert.h"

namespace partita::partition {
namespace {

using llvm::SmallVector;
using mlir::FailureOr;
using mlir::RankedTensorType;
using mlir::Value;

struct Window {
  int64_t size, stride, dilation, low;
};

// The rows of dimension `dim` of operand 0 that the device's rows of the result
// read; `padding` fills what lies outside. Afterwards the window needs no
// padding.
Value fetchRows(const LocalForm& form, Value input, int64_t dim,
                const Window& window, double padding) {
  const core::DimSharding& rows = form.sharding.operands[0].dims[dim];
  const core::DimSharding& made = form.sharding.results[0].dims[dim];
  const int64_t size = form.globalShape(form.op->getOperand(0))[dim];
  const int64_t block = core::BlockOf(size, rows);
  const int64_t made_size = form.globalShape(form.op->getResult(0))[dim];
  const int64_t made_block = core::BlockOf(made_size, made);
  const int64_t step = made_block * window.stride;
  const int64_t needed = (made_block - 1) * window.stride +
                         (window.size - 1) * window.dilation + 1;
  // Rows beyond the end are no padding: where the last result rows read there,
  // padding must be fetched.
  const bool reads_beyond = (made_size - 1) * window.stride +
                                (window.size - 1) * window.dilation + 1 -
                                window.low >
                            size;
  if (window.low == 0 && step == block && needed <= block && !reads_beyond)
    return input;
  auto type = llvm::cast<RankedTensorType>(input.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = needed;
  return dist::ExchangeOp::create(
      form.builder, form.loc(), type.clone(shape), input,
      sharding::axesAttr(form.builder.getContext(), rows.axes, form.mesh), dim,
      size, step, -window.low, llvm::APFloat(padding),
      form.why("rows beside the shard"));
}

struct ConvForm : LocalFormOpInterface::ExternalModel<ConvForm, nn::ConvOp> {
  FailureOr<SmallVector<Value>> buildLocal(mlir::Operation* op,
                                           const LocalForm& form) const {
    auto conv = llvm::cast<nn::ConvOp>(op);
    Value input = form.cleanOperand(0), weight = form.cleanOperand(1);
    SmallVector<int64_t> low(conv.getLow()), high(conv.getHigh());
    for (size_t i = 0; i < low.size(); ++i) {
      const int64_t dim = conv.getChannelsLast() ? i + 1 : i + 2;
      if (form.sharding.operands[0].dims[dim].axes.empty()) continue;
      input = fetchRows(form, input, dim,
                        {form.globalShape(conv.getWeight())[i + 2],
                         conv.getStrides()[i], conv.getDilations()[i], low[i]},
                        0);
      low[i] = high[i] = 0;
    }
    auto local = llvm::cast<nn::ConvOp>(
        cloneLocally(form, {input, weight}, form.resultType(0)));
    local.setLow(low);
    local.setHigh(high);
    const int64_t channels =
        llvm::cast<RankedTensorType>(input.getType())
            .getDimSize(conv.getChannelsLast() ? low.size() + 1 : 1);
    // Whole groups stay together; each has C / groups input channels.
    if (conv.getGroups() > 1)
      local.setGroups(channels / form.globalShape(conv.getWeight())[1]);
    return SmallVector<Value>{local.getResult()};
  }
};

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
                        padding(reduce.getKind()));
      low[dim] = high[dim] = 0;
    }
    auto local = llvm::cast<nn::ReduceWindowOp>(
        cloneLocally(form, {input}, form.resultType(0)));
    local.setLow(low);
    local.setHigh(high);
    return SmallVector<Value>{local.getResult()};
  }

  static double padding(nn::ReduceKind kind) {
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
};

}  // namespace

void registerWindowForms(mlir::MLIRContext* context) {
  nn::ConvOp::attachInterface<ConvForm>(*context);
  nn::ReduceWindowOp::attachInterface<ReduceWindowForm>(*context);
}

}  // namespace partita::partition
