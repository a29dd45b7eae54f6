// Rules of reduce, reduce_window, dot_general and conv.
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
    Reduction reduction = {op.getKind(),
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
          if (failed(value) || failed(row.storeWhatIsNeededAgain(element, at)))
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
    Reduction reduction = {op.getKind(), type, {}, laneSymbolOf(index)};
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

// The index of an operand of dot_general: batch and free dimensions from the
// result, contracted ones from the loops.
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
    Reduction reduction = {nn::ReduceKind::sum,
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
    Reduction reduction = {nn::ReduceKind::sum,
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

}  // namespace

void attachReductionModels(MLIRContext& context) {
  nn::ReduceOp::attachInterface<ReduceModel>(context);
  nn::ReduceWindowOp::attachInterface<ReduceWindowModel>(context);
  nn::DotGeneralOp::attachInterface<DotGeneralModel>(context);
  nn::ConvOp::attachInterface<ConvModel>(context);
}

}  // namespace partita::kernels
