// Rules of operations that move elements: they map indices, and most emit no
// code.
#include "compiler/kernels/emit_elements.h"
#include "compiler/kernels/emit_models.h"
#include "compiler/kernels/emit_pad.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace partita::kernels {
namespace {

using namespace mlir;

RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

template <typename Concrete, typename OpTy>
struct MovementModel : KernelOpInterface::ExternalModel<Concrete, OpTy> {
  FailureOr<Lanes> emitElement(Operation* op, Emitter& emitter, unsigned,
                               ArrayRef<Index> index) const {
    return Concrete::emit(cast<OpTy>(op), emitter, index);
  }
  KernelRole kernelRole(Operation*) const { return KernelRole::movement; }
};

struct BroadcastModel : MovementModel<BroadcastModel, nn::BroadcastOp> {
  static FailureOr<Lanes> emit(nn::BroadcastOp op, Emitter& emitter,
                               ArrayRef<Index> index) {
    IndexVector input;
    for (auto [size, dim] :
         llvm::zip_equal(typeOf(op.getInput()).getShape(), op.getDims()))
      input.push_back(size == 1 ? Index() : index[dim]);
    return emitter.element(op.getInput(), input);
  }
};

struct ReshapeModel : MovementModel<ReshapeModel, nn::ReshapeOp> {
  static FailureOr<Lanes> emit(nn::ReshapeOp op, Emitter& emitter,
                               ArrayRef<Index> index) {
    Index position = linearize(index, rowMajorStrides(op.getType().getShape()));
    return emitter.element(
        op.getInput(),
        emitter.delinearize(position, typeOf(op.getInput()).getShape()));
  }
};

struct TransposeModel : MovementModel<TransposeModel, nn::TransposeOp> {
  static FailureOr<Lanes> emit(nn::TransposeOp op, Emitter& emitter,
                               ArrayRef<Index> index) {
    IndexVector input(index.size(), Index());
    for (auto [i, dim] : llvm::enumerate(op.getPerm())) input[dim] = index[i];
    return emitter.element(op.getInput(), input);
  }
};

struct SliceModel : MovementModel<SliceModel, nn::SliceOp> {
  static FailureOr<Lanes> emit(nn::SliceOp op, Emitter& emitter,
                               ArrayRef<Index> index) {
    IndexVector input;
    for (auto [i, start, stride] :
         llvm::zip_equal(index, op.getStarts(), op.getStrides()))
      input.push_back(i * stride + Index(start));
    return emitter.element(op.getInput(), input);
  }
};

struct PadModel : MovementModel<PadModel, nn::PadOp> {
  static FailureOr<Lanes> emit(nn::PadOp op, Emitter& emitter,
                               ArrayRef<Index> index) {
    ArrayRef<int64_t> shape = typeOf(op.getInput()).getShape();
    IndexVector input;
    for (auto [i, low] : llvm::zip_equal(index, op.getLow()))
      input.push_back(i + Index(-low));
    if (op.getMode() == nn::PadMode::constant) {
      FailureOr<Lanes> value = emitter.element(op.getValue(), {});
      if (failed(value)) return failure();
      return emitPadded(emitter, op.getInput(), input, *value);
    }
    for (auto [dim, low, high] : llvm::enumerate(op.getLow(), op.getHigh()))
      if (low != 0 || high != 0)
        input[dim] = folded(emitter, input[dim], shape[dim], op.getMode());
    return emitter.element(op.getInput(), input);
  }

  // The index of the element that padding copies to an outside `index`.
  static Index folded(Emitter& emitter, const Index& index, int64_t size,
                      nn::PadMode mode) {
    ImplicitLocOpBuilder& builder = emitter.builder();
    const Symbol* lanes = index.laneSymbol();
    Type type =
        lanes ? Type(builder.getI64Type()) : Type(builder.getIndexType());
    Lanes at = emitter.number(index, type);
    auto constant = [&](int64_t value) {
      return emitter.constant(type, value, at.lanes);
    };
    Value value = at.value;
    if (mode == nn::PadMode::wrap) {
      value = arith::RemSIOp::create(builder, value, constant(size));
      Value again = arith::AddIOp::create(builder, value, constant(size));
      Value negative = arith::CmpIOp::create(builder, arith::CmpIPredicate::slt,
                                             value, constant(0));
      value = arith::SelectOp::create(builder, negative, again, value);
    } else if (mode == nn::PadMode::reflect) {
      value = arith::MaxSIOp::create(
          builder, value, arith::SubIOp::create(builder, constant(0), value));
      value = arith::MinSIOp::create(
          builder, value,
          arith::SubIOp::create(builder, constant(2 * (size - 1)), value));
    }
    // Also clamps lanes that are masked off.
    value = arith::MaxSIOp::create(builder, value, constant(0));
    value = arith::MinSIOp::create(builder, value, constant(size - 1));
    return Index(
        emitter.opaque({value, at.lanes}, size, emitter.maskOf(index)));
  }
};

struct ConcatModel : MovementModel<ConcatModel, nn::ConcatOp> {
  static FailureOr<Lanes> emit(nn::ConcatOp op, Emitter& emitter,
                               ArrayRef<Index> index) {
    int64_t axis = op.getAxis(), offset = 0;
    Lanes result;
    for (Value input : op.getInputs()) {
      int64_t size = typeOf(input).getDimSize(axis);
      if (size == 0) continue;
      IndexVector inside(index.begin(), index.end());
      inside[axis] = inside[axis] + Index(-offset);
      offset += size;
      Lanes otherwise =
          result.value
              ? result
              : Lanes{
                    emitter.constant(
                        emitter.computeType(op.getType().getElementType()), 0),
                    0};
      FailureOr<Lanes> next = emitPadded(emitter, input, inside, otherwise);
      if (failed(next)) return failure();
      result = *next;
    }
    return result;
  }
};

struct GatherModel : MovementModel<GatherModel, nn::GatherOp> {
  static FailureOr<Lanes> emit(nn::GatherOp op, Emitter& emitter,
                               ArrayRef<Index> index) {
    RankedTensorType type = typeOf(op.getInput());
    int64_t batch = op.getBatchDims(),
            index_rank = typeOf(op.getIndices()).getRank();
    IndexVector at(index.begin(), index.begin() + index_rank - 1);
    IndexVector input(type.getRank(), Index());
    for (int64_t i = 0; i < batch; ++i) input[i] = index[i];
    int64_t next = index_rank - 1;
    for (int64_t dim = batch; dim < type.getRank(); ++dim)
      if (!llvm::is_contained(op.getAxes(), dim)) input[dim] = index[next++];
    for (auto [k, dim] : llvm::enumerate(op.getAxes())) {
      at.push_back(Index(static_cast<int64_t>(k)));
      FailureOr<Index> row =
          lookUp(emitter, op.getIndices(), at, type.getDimSize(dim));
      if (failed(row)) return failure();
      input[dim] = *row;
      at.pop_back();
    }
    return emitter.element(op.getInput(), input);
  }

  // The index stored in a tensor, clamped into [0, size). Repeated requests for
  // the same place return the same symbol.
  static FailureOr<Index> lookUp(Emitter& emitter, Value indices,
                                 ArrayRef<Index> at, int64_t size) {
    const Symbol* symbol = nullptr;
    FailureOr<Lanes> done =
        emitter.atDepth(depthOf(at), [&]() -> FailureOr<Lanes> {
          FailureOr<Lanes> value = emitter.element(indices, at);
          if (failed(value)) return failure();
          symbol = emitter.clampedSymbol(*value, size, emitter.maskOf(at));
          return value;
        });
    if (failed(done)) return failure();
    return Index(symbol);
  }
};

struct IotaModel : MovementModel<IotaModel, nn::IotaOp> {
  static FailureOr<Lanes> emit(nn::IotaOp op, Emitter& emitter,
                               ArrayRef<Index> index) {
    return emitter.number(index[op.getDim()], op.getType().getElementType());
  }
};

}  // namespace

FailureOr<Lanes> emitPadded(Emitter& emitter, Value tensor,
                            ArrayRef<Index> index, Lanes outside) {
  ImplicitLocOpBuilder& builder = emitter.builder();
  IndexVector inside(index.begin(), index.end());
  Value uniform;  // condition shared by all lanes
  Value by_lane;
  const Symbol* lanes = nullptr;
  auto both = [&](Value& truth, Value more) {
    truth = truth ? Value(arith::AndIOp::create(builder, truth, more)) : more;
  };
  for (auto [dim, size] :
       llvm::enumerate(cast<RankedTensorType>(tensor.getType()).getShape())) {
    if (index[dim].within(size)) continue;
    Lanes truth = emitter.inRange(index[dim], 0, size);
    if (truth.lanes != 0) {
      both(by_lane, truth.value);
      lanes = index[dim].laneSymbol();
      continue;
    }
    both(uniform, truth.value);
    Value number = emitter.number(index[dim], builder.getIndexType()).value;
    inside[dim] = Index(emitter.clampedSymbol({number, 0}, size, Value()));
  }
  FailureOr<Lanes> value;
  if (!by_lane) {
    value = emitter.element(tensor, inside);
  } else {
    value = emitter.underMask(inside, by_lane, [&](ArrayRef<Index> masked) {
      return emitter.element(tensor, masked);
    });
  }
  if (failed(value)) return failure();
  int64_t count = std::max(
      {value->lanes, outside.lanes, lanes ? lanes->lanes : int64_t{0}});
  Value result = emitter.splat(*value, count),
        other = emitter.splat(outside, count);
  if (by_lane)
    result = arith::SelectOp::create(builder, by_lane, result, other);
  if (uniform)
    result = arith::SelectOp::create(builder, uniform, result, other);
  return Lanes{result, count};
}

void attachMovementModels(MLIRContext& context) {
  nn::BroadcastOp::attachInterface<BroadcastModel>(context);
  nn::ReshapeOp::attachInterface<ReshapeModel>(context);
  nn::TransposeOp::attachInterface<TransposeModel>(context);
  nn::SliceOp::attachInterface<SliceModel>(context);
  nn::PadOp::attachInterface<PadModel>(context);
  nn::ConcatOp::attachInterface<ConcatModel>(context);
  nn::GatherOp::attachInterface<GatherModel>(context);
  nn::IotaOp::attachInterface<IotaModel>(context);
}

}  // namespace partita::kernels
