// Local forms of operations that use row numbers: iota, gather, scatter.
#include <optional>

#include "compiler/partition/local_form.h"
#include "compiler/partition/local_forms.h"
#include "compiler/sharding/convert.h"
#include "dialects/nn/math_builder.h"
#include "mlir/IR/Matchers.h"

namespace partita::partition {
namespace {

using llvm::SmallVector;
using mlir::FailureOr;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::arith::CmpIPredicate;

// Numbers rows from the device's first row.
struct IotaForm : LocalFormOpInterface::ExternalModel<IotaForm, nn::IotaOp> {
  FailureOr<SmallVector<Value>> buildLocal(mlir::Operation* op,
                                           const LocalForm& form) const {
    const int64_t dim = llvm::cast<nn::IotaOp>(op).getDim();
    RankedTensorType type = form.resultType(0);
    Value local = cloneLocally(form, {}, type)->getResult(0);
    const core::DimSharding& sharding = form.sharding.results[0].dims[dim];
    if (sharding.axes.empty()) return SmallVector<Value>{local};
    Value first =
        form.firstRow(form.globalShape(op->getResult(0))[dim], sharding);
    Value offset = spreadScalar(form, first, type);
    nn::MathBuilder math(form.builder, form.loc());
    return SmallVector<Value>{llvm::isa<mlir::FloatType>(type.getElementType())
                                  ? math.add(local, offset)
                                  : math.addInt(local, offset)};
  }
};

// The distance by which a gather rotates a dimension, see its sharding rule.
int64_t distanceOf(nn::GatherOp gather) {
  mlir::DenseIntElementsAttr indices;
  mlir::matchPattern(gather.getIndices(), mlir::m_Constant(&indices));
  const int64_t first =
      (*indices.getValues<llvm::APInt>().begin()).getSExtValue();
  return first == 0 ? 0 : indices.getType().getDimSize(0) - first;
}

// Rows of a divided dimension move between devices. One row per device is a
// single transfer to the device `distance` further on; otherwise a block comes
// from two places, before and after the wrap.
Value rotate(const LocalForm& form, Value input, int64_t dim, int64_t size,
             int64_t distance, const core::DimSharding& rows) {
  const int64_t block = core::BlockOf(size, rows);
  const auto axes =
      sharding::axesAttr(form.builder.getContext(), rows.axes, form.mesh);
  if (block == 1 && core::SizeOf(rows.axes) == size)
    return dist::PermuteOp::create(
        form.builder, form.loc(), input.getType(), input, axes, axes,
        form.why("rows of other devices (a rotation)"), distance);
  const auto type = llvm::cast<RankedTensorType>(input.getType());
  const auto fetch = [&](int64_t offset) -> Value {
    return dist::ExchangeOp::create(
        form.builder, form.loc(), type, input, axes, dim, size, block, offset,
        llvm::APFloat(0.0), form.why("rows beside the shard"));
  };
  core::DimSharding blocks = rows;
  blocks.block = block;
  const Value before = fetch(-distance), wrapped = fetch(size - distance);
  return nn::MathBuilder(form.builder, form.loc())
      .select(form.insideMask(type, dim, distance, blocks), wrapped, before);
}

// If an indexed dimension of the table is divided, each device looks up the
// indices in its own rows and returns 0 for the others. The results are then
// summed.
struct GatherForm
    : LocalFormOpInterface::ExternalModel<GatherForm, nn::GatherOp> {
  FailureOr<SmallVector<Value>> buildLocal(mlir::Operation* op,
                                           const LocalForm& form) const {
    auto gather = llvm::cast<nn::GatherOp>(op);
    auto table_shape = form.globalShape(gather.getInput());
    if (const auto rotated_dim = dividedRotation(gather, form)) {
      const int64_t first = *rotated_dim;
      const Value rotated =
          rotate(form, form.operands[0], first, table_shape[first],
                 distanceOf(gather), form.sharding.operands[0].dims[first]);
      // The result begins with the rotated dimension.
      SmallVector<int64_t> perm = {first};
      for (size_t dim = 0; dim < table_shape.size(); ++dim)
        if (static_cast<int64_t>(dim) != first) perm.push_back(dim);
      if (first == 0) return SmallVector<Value>{rotated};
      return SmallVector<Value>{
          nn::TransposeOp::create(form.builder, form.loc(), rotated, perm)};
    }
    nn::MathBuilder math(form.builder, form.loc());
    Value indices = form.operands[1];
    Value found;  // i1, of the indices' shape without the last dimension
    for (auto [position, axis] : llvm::enumerate(gather.getAxes())) {
      const core::DimSharding& rows = form.sharding.operands[0].dims[axis];
      if (rows.axes.empty()) continue;
      Value inside;
      indices =
          relative(form, indices, position, table_shape[axis], rows, inside);
      found = found ? math.andInt(found, inside) : inside;
    }
    RankedTensorType type = form.resultType(0);
    Value local =
        cloneLocally(form, {form.operands[0], indices}, type)->getResult(0);
    if (!found) return SmallVector<Value>{local};
    // The result begins with the dimensions of the indices.
    SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(
        0, llvm::cast<RankedTensorType>(found.getType()).getRank()));
    Value mask =
        math.broadcast(found, type.clone(form.builder.getI1Type()), dims);
    Value zero = mlir::arith::ConstantOp::create(
        form.builder, form.loc(),
        mlir::DenseElementsAttr::get(
            type, neutralOf(core::Reduction::kSum, type.getElementType())));
    return SmallVector<Value>{math.select(mask, local, zero)};
  }

  // The dimension that the gather rotates, if it is divided.
  static std::optional<int64_t> dividedRotation(nn::GatherOp gather,
                                                const LocalForm& form) {
    if (gather.getAxes().size() != 1) return std::nullopt;
    const int64_t dim = gather.getAxes()[0];
    for (int factor : form.rule.operands[0][dim])
      if (core::IsHalo(form.rule.factors[factor].kind) &&
          !form.sharding.operands[0].dims[dim].axes.empty())
        return dim;
    return std::nullopt;
  }

  // Returns component `position` of the indices relative to the device's first
  // row. Indices are clamped first, as in the undivided gather. `inside` is
  // true for indices in the device's rows.
  static Value relative(const LocalForm& form, Value indices, int64_t position,
                        int64_t size, const core::DimSharding& rows,
                        Value& inside) {
    nn::MathBuilder math(form.builder, form.loc());
    auto type = llvm::cast<RankedTensorType>(indices.getType());
    const int64_t last = type.getRank() - 1;
    auto constant = [&](int64_t value) {
      return math.constantInt(type, value);
    };
    Value clamped = mlir::arith::MinSIOp::create(
        form.builder, form.loc(),
        mlir::arith::MaxSIOp::create(form.builder, form.loc(), indices,
                                     constant(0)),
        constant(size - 1));
    Value moved = mlir::arith::SubIOp::create(
        form.builder, form.loc(), clamped,
        spreadScalar(form, form.firstRow(size, rows), type));
    Value good =
        math.andInt(math.compare(CmpIPredicate::sge, moved, constant(0)),
                    math.compare(CmpIPredicate::slt, moved,
                                 constant(core::BlockOf(size, rows))));
    SmallVector<int64_t> starts(type.getRank(), 0), strides(type.getRank(), 1);
    SmallVector<int64_t> column(type.getShape());
    starts[last] = position;
    column[last] = 1;
    Value one = nn::SliceOp::create(
        form.builder, form.loc(),
        RankedTensorType::get(column, form.builder.getI1Type()), good, starts,
        strides);
    inside = math.reshape(one, llvm::ArrayRef(column).drop_back());
    if (type.getDimSize(last) == 1) return moved;
    // Other components stay unchanged.
    Value which = math.compare(CmpIPredicate::eq, math.iota(type, last),
                               constant(position));
    return math.select(which, moved, indices);
  }
};

// Indices are relative to the device's first row; updates of other devices'
// rows are out of range.
struct ScatterForm
    : LocalFormOpInterface::ExternalModel<ScatterForm, nn::ScatterOp> {
  FailureOr<SmallVector<Value>> buildLocal(mlir::Operation* op,
                                           const LocalForm& form) const {
    auto scatter = llvm::cast<nn::ScatterOp>(op);
    const auto shape = form.globalShape(scatter.getInput());
    Value indices = form.operands[1];
    auto type = llvm::cast<RankedTensorType>(indices.getType());
    nn::MathBuilder math(form.builder, form.loc());
    for (auto [position, axis] : llvm::enumerate(scatter.getAxes())) {
      const core::DimSharding& rows = form.sharding.operands[0].dims[axis];
      if (rows.axes.empty()) continue;
      Value first = spreadScalar(form, form.firstRow(shape[axis], rows), type);
      if (scatter.getAxes().size() > 1)
        first = math.select(
            math.compare(CmpIPredicate::eq, math.iota(type, type.getRank() - 1),
                         math.constantInt(type, position)),
            first, math.constantInt(type, 0));
      indices =
          mlir::arith::SubIOp::create(form.builder, form.loc(), indices, first);
    }
    return SmallVector<Value>(
        cloneLocally(form, {form.operands[0], indices, form.cleanOperand(2)},
                     form.resultType(0))
            ->getResults());
  }
};

}  // namespace

void registerIndexForms(mlir::MLIRContext* context) {
  nn::IotaOp::attachInterface<IotaForm>(*context);
  nn::GatherOp::attachInterface<GatherForm>(*context);
  nn::ScatterOp::attachInterface<ScatterForm>(*context);
}

}  // namespace partita::partition
