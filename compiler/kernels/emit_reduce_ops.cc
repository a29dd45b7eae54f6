// Rules of reduce, reduce_window, dot_general, conv and its gradients.
#include "compiler/kernels/emit_models.h"
#include "compiler/kernels/emit_pad.h"
#include "compiler/kernels/emit_reduction.h"
#include "compiler/kernels/emit_row_cache.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::kernels {
namespace {

using namespace mlir;

RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

template <typename Concrete, typename OpTy, KernelRole role>
struct ReductionModel : KernelOpInterface::ExternalModel<Concrete, OpTy> {
  FailureOr<Lanes> emitElement(Operation* op, Emitter& emitter, unsigned,
                               ArrayRef<Index> index) const {
    emitter.noteReduction(index);
    return Concrete::emit(cast<OpTy>(op), emitter, index);
  }
  KernelRole kernelRole(Operation*) const { return role; }
};

struct ReduceModel
    : ReductionModel<ReduceModel, nn::ReduceOp, KernelRole::reduction> {
  static FailureOr<Lanes> emit(nn::ReduceOp op, Emitter& emitter,
                               ArrayRef<Index> index) {
    RankedTensorType type = typeOf(op.getInput());
    ReductionLoops reduction = {op.getKind(),
                                emitter.computeType(type.getElementType()),
                                {},
                                laneSymbolOf(index)};
    IndexVector input(type.getRank(), Index());
    SmallVector<int64_t> kept;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      if (llvm::is_contained(op.getDims(), dim))
        reduction.sizes.push_back(type.getDimSize(dim));
      else
        input[dim] = index[kept.size()], kept.push_back(dim);
    }
    RowCache row(emitter, op, input, reduction);
    FailureOr<Lanes> result = emitReduction(
        emitter, reduction, [&](ArrayRef<Index> at) -> FailureOr<Lanes> {
          IndexVector element = input;
          for (auto [dim, i] : llvm::zip_equal(op.getDims(), at))
            element[dim] = i;
          FailureOr<Lanes> value = emitter.element(op.getInput(), element);
          if (failed(value) || failed(row.storeForReuse(element, at)))
            return failure();
          return value;
        });
    row.publish();
    return result;
  }
};

struct ReduceWindowModel : ReductionModel<ReduceWindowModel, nn::ReduceWindowOp,
                                          KernelRole::reduction> {
  static FailureOr<Lanes> emit(nn::ReduceWindowOp op, Emitter& emitter,
                               ArrayRef<Index> index) {
    Type type = emitter.computeType(typeOf(op.getInput()).getElementType());
    ReductionLoops reduction = {op.getKind(), type, {}, laneSymbolOf(index)};
    llvm::append_range(reduction.sizes, op.getWindow());
    Lanes neutral = {neutralElement(emitter, op.getKind(), type), 0};
    return emitReduction(emitter, reduction, [&](ArrayRef<Index> at) {
      IndexVector input;
      for (size_t dim = 0; dim < at.size(); ++dim)
        input.push_back(index[dim] * op.getStrides()[dim] +
                        at[dim] * op.getDilations()[dim] +
                        Index(-op.getLow()[dim]));
      return emitPadded(emitter, op.getInput(), input, neutral);
    });
  }
};

FailureOr<Lanes> multiply(Emitter& emitter, FailureOr<Lanes> a,
                          FailureOr<Lanes> b) {
  if (failed(a) || failed(b)) return failure();
  int64_t lanes = std::max(a->lanes, b->lanes);
  Value x = emitter.splat(*a, lanes), y = emitter.splat(*b, lanes);
  if (isa<FloatType>(getElementTypeOrSelf(x.getType())))
    return Lanes{arith::MulFOp::create(emitter.builder(), x, y), lanes};
  return Lanes{arith::MulIOp::create(emitter.builder(), x, y), lanes};
}

// The index of an operand of dot_general. Batch and free dimensions come from
// the result, contracted ones from the loops.
IndexVector operandIndex(int64_t rank, ArrayRef<int64_t> batch,
                         ArrayRef<int64_t> contract, ArrayRef<Index> result,
                         int64_t first_free, ArrayRef<Index> loops) {
  IndexVector index(rank, Index());
  for (auto [i, dim] : llvm::enumerate(batch)) index[dim] = result[i];
  for (auto [i, dim] : llvm::enumerate(contract)) index[dim] = loops[i];
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      index[dim] = result[first_free++];
  return index;
}

struct DotGeneralModel
    : ReductionModel<DotGeneralModel, nn::DotGeneralOp, KernelRole::single> {
  static FailureOr<Lanes> emit(nn::DotGeneralOp op, Emitter& emitter,
                               ArrayRef<Index> index) {
    RankedTensorType lhs = typeOf(op.getLhs()), rhs = typeOf(op.getRhs());
    ReductionLoops reduction = {nn::ReduceKind::sum,
                                emitter.computeType(lhs.getElementType()),
                                {},
                                laneSymbolOf(index)};
    for (int64_t dim : op.getLhsContract())
      reduction.sizes.push_back(lhs.getDimSize(dim));
    int64_t rhs_free = lhs.getRank() - op.getLhsContract().size();
    return emitReduction(emitter, reduction, [&](ArrayRef<Index> at) {
      IndexVector l =
          operandIndex(lhs.getRank(), op.getLhsBatch(), op.getLhsContract(),
                       index, op.getLhsBatch().size(), at);
      IndexVector r = operandIndex(rhs.getRank(), op.getRhsBatch(),
                                   op.getRhsContract(), index, rhs_free, at);
      FailureOr<Lanes> left = emitter.element(op.getLhs(), l);
      return multiply(emitter, left, emitter.element(op.getRhs(), r));
    });
  }
};

struct ConvModel : ReductionModel<ConvModel, nn::ConvOp, KernelRole::single> {
  static FailureOr<Lanes> emit(nn::ConvOp op, Emitter& emitter,
                               ArrayRef<Index> index) {
    RankedTensorType type = typeOf(op.getInput()),
                     weight = typeOf(op.getWeight());
    ReductionLoops reduction = {nn::ReduceKind::sum,
                                emitter.computeType(type.getElementType()),
                                {},
                                laneSymbolOf(index)};
    llvm::append_range(
        reduction.sizes,
        weight.getShape().drop_front());  // channels of the group, kernel
    int64_t channel_dim = op.getChannelsLast() ? type.getRank() - 1 : 1,
            spatial = op.getChannelsLast() ? 1 : 2;
    int64_t per_group = weight.getDimSize(0) / op.getGroups();
    Index channel = index[channel_dim];
    Index group = emitter.split(channel, per_group).first;
    if (op.getGroups() == 1) group = Index();
    Lanes zero = {emitter.constant(reduction.type, 0), 0};
    return emitReduction(emitter, reduction, [&](ArrayRef<Index> at) {
      IndexVector input(type.getRank(), Index()), kernel = {channel};
      input[0] = index[0];
      input[channel_dim] = group * weight.getDimSize(1) + at[0];
      for (size_t i = 0; i + 1 < at.size(); ++i)
        input[spatial + i] = index[spatial + i] * op.getStrides()[i] +
                             at[i + 1] * op.getDilations()[i] +
                             Index(-op.getLow()[i]);
      kernel.append(at.begin(), at.end());
      FailureOr<Lanes> left = emitPadded(emitter, op.getInput(), input, zero);
      return multiply(emitter, left, emitter.element(op.getWeight(), kernel));
    });
  }
};

// Gradients are sums over the dimensions that their results do not have.
struct ConvInputGradModel
    : ReductionModel<ConvInputGradModel, nn::ConvInputGradOp,
                     KernelRole::single> {
  static FailureOr<Lanes> emit(nn::ConvInputGradOp op, Emitter& emitter,
                               ArrayRef<Index> index) {
    RankedTensorType type = typeOf(op.getResultGrad()),
                     weight = typeOf(op.getWeight());
    ReductionLoops reduction = {nn::ReduceKind::sum,
                                emitter.computeType(type.getElementType()),
                                {},
                                laneSymbolOf(index)};
    // Filters of the group, then dimensions of the kernel.
    reduction.sizes.push_back(weight.getDimSize(0) / op.getGroups());
    llvm::append_range(reduction.sizes, weight.getShape().drop_front(2));
    int64_t channel_dim = op.getChannelsLast() ? type.getRank() - 1 : 1,
            spatial = op.getChannelsLast() ? 1 : 2;
    std::pair<Index, Index> channels =
        emitter.split(index[channel_dim], weight.getDimSize(1));
    Index group = channels.first, channel = channels.second;
    if (op.getGroups() == 1) group = Index();
    Lanes zero = {emitter.constant(reduction.type, 0), 0};
    return emitReduction(emitter, reduction, [&](ArrayRef<Index> at) {
      Index filter = group * reduction.sizes[0] + at[0];
      IndexVector grad(type.getRank(), Index()), kernel = {filter, channel};
      grad[0] = index[0];
      grad[channel_dim] = filter;
      for (size_t i = 0; i + 1 < at.size(); ++i) {
        // The window that has this row at place at[i + 1]. If there is none, a
        // remainder moves the index far outside. The offset keeps the index
        // from being negative before it is split.
        int64_t stride = op.getStrides()[i];
        int64_t reach = op.getDilations()[i] * (weight.getDimSize(2 + i) - 1);
        int64_t before = (reach + stride - 1) / stride;
        auto [window, remainder] = emitter.split(
            index[spatial + i] + at[i + 1] * -op.getDilations()[i] +
                Index(op.getLow()[i] + before * stride),
            stride);
        grad[spatial + i] = window + Index(-before);
        if (stride > 1) {
          constexpr int64_t kFarOutside = int64_t{1} << 40;
          grad[spatial + i] = grad[spatial + i] + remainder * kFarOutside;
        }
      }
      kernel.append(at.begin() + 1, at.end());
      FailureOr<Lanes> left =
          emitPadded(emitter, op.getResultGrad(), grad, zero);
      return multiply(emitter, left, emitter.element(op.getWeight(), kernel));
    });
  }
};

struct ConvWeightGradModel
    : ReductionModel<ConvWeightGradModel, nn::ConvWeightGradOp,
                     KernelRole::single> {
  static FailureOr<Lanes> emit(nn::ConvWeightGradOp op, Emitter& emitter,
                               ArrayRef<Index> index) {
    RankedTensorType type = typeOf(op.getInput()),
                     grad = typeOf(op.getResultGrad());
    ReductionLoops reduction = {nn::ReduceKind::sum,
                                emitter.computeType(type.getElementType()),
                                {},
                                laneSymbolOf(index)};
    int64_t rank = type.getRank();
    int64_t channel_dim = op.getChannelsLast() ? rank - 1 : 1,
            spatial = op.getChannelsLast() ? 1 : 2;
    // Batch, then places of the window.
    reduction.sizes.push_back(type.getDimSize(0));
    llvm::append_range(reduction.sizes,
                       grad.getShape().slice(spatial, rank - 2));
    int64_t per_group = grad.getDimSize(channel_dim) / op.getGroups();
    Index group = emitter.split(index[0], per_group).first;
    if (op.getGroups() == 1) group = Index();
    Lanes zero = {emitter.constant(reduction.type, 0), 0};
    return emitReduction(emitter, reduction, [&](ArrayRef<Index> at) {
      IndexVector input(rank, Index()), out(rank, Index());
      input[0] = out[0] = at[0];
      input[channel_dim] =
          group * typeOf(op.getResult()).getDimSize(1) + index[1];
      out[channel_dim] = index[0];
      for (int64_t i = 0; i < rank - 2; ++i) {
        out[spatial + i] = at[i + 1];
        input[spatial + i] = at[i + 1] * op.getStrides()[i] +
                             index[i + 2] * op.getDilations()[i] +
                             Index(-op.getLow()[i]);
      }
      FailureOr<Lanes> left = emitPadded(emitter, op.getInput(), input, zero);
      return multiply(emitter, left, emitter.element(op.getResultGrad(), out));
    });
  }
};

}  // namespace

void attachReductionModels(MLIRContext& context) {
  nn::ReduceOp::attachInterface<ReduceModel>(context);
  nn::ReduceWindowOp::attachInterface<ReduceWindowModel>(context);
  nn::DotGeneralOp::attachInterface<DotGeneralModel>(context);
  nn::ConvOp::attachInterface<ConvModel>(context);
  nn::ConvInputGradOp::attachInterface<ConvInputGradModel>(context);
  nn::ConvWeightGradOp::attachInterface<ConvWeightGradModel>(context);
}

}  // namespace partita::kernels
