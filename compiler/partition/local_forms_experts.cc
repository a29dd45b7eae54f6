// Local forms of mixtures of experts and of grouped products. Each device
// computes with the matrices that it holds. Indices of others become invalid,
// which contributes 0.
#include "compiler/partition/local_form.h"
#include "compiler/partition/local_forms.h"
#include "compiler/partition/row_exchange.h"
#include "dialects/nn/experts.h"
#include "dialects/nn/math_builder.h"
#include "dialects/nn/row_share.h"

namespace partita::partition {
namespace {

using llvm::SmallVector;
using mlir::FailureOr;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::arith::CmpIPredicate;

// Indices of `count` matrices, relative to the first one that the device holds.
// Rows beyond the last matrix get no index.
Value relativeIds(const LocalForm& form, Value ids, int64_t count,
                  const core::DimSharding& held) {
  if (held.axes.empty()) return ids;
  nn::MathBuilder math(form.builder, form.loc());
  auto type = llvm::cast<RankedTensorType>(ids.getType());
  Value moved = mlir::arith::SubIOp::create(
      form.builder, form.loc(), ids,
      spreadScalar(form, form.firstRow(count, held), type));
  if (core::BlockOf(count, held) * core::SizeOf(held.axes) == count)
    return moved;
  return math.select(
      math.compare(CmpIPredicate::slt, ids, math.constantInt(type, count)),
      moved, math.constantInt(type, -1));
}

// The mean share of rows whose matrix the device holds, of `count` matrices.
double shareOf(int64_t count, const core::DimSharding& held) {
  if (held.axes.empty()) return 1;
  return static_cast<double>(core::BlockOf(count, held)) /
         static_cast<double>(count);
}

mlir::Operation* withShare(mlir::Operation* local, double share) {
  if (share < 1)
    local->setAttr(nn::kRowShareAttr,
                   mlir::Builder(local->getContext()).getF64FloatAttr(share));
  return local;
}

// Zeros in rows beyond the end of every divided dimension of an operand.
Value cleaned(const LocalForm& form, int operand) {
  Value local = form.operands[operand];
  const auto shape = form.globalShape(form.op->getOperand(operand));
  const mlir::TypedAttr zero =
      neutralOf(core::Reduction::kSum,
                llvm::cast<RankedTensorType>(local.getType()).getElementType());
  for (auto [dim, rows] : llvm::enumerate(form.sharding.operands[operand].dims))
    if (!rows.axes.empty())
      local = form.cleanRows(local, dim, shape[dim], rows, zero);
  return local;
}

// The experts and their gradient.
template <typename Op>
struct ExpertsForm : LocalFormOpInterface::ExternalModel<ExpertsForm<Op>, Op> {
  FailureOr<SmallVector<Value>> buildLocal(mlir::Operation* op,
                                           const LocalForm& form) const {
    const nn::ExpertParameters at(llvm::cast<Op>(op));
    const auto shape = form.globalShape(op->getOperand(at.up));
    const auto& held = form.sharding.operands[at.up].dims;
    const bool travels = form.rows.way == core::ExpertExchange::kRows;
    SmallVector<Value> operands = form.operands;
    std::optional<ExpertRows> rows;
    if (travels) {
      rows.emplace(form, shape[0], held[0]);
      operands[1] = rows->ids();
    }
    operands[1] = relativeIds(form, operands[1], shape[0], held[0]);
    // Gradients of parameters are sums over rows; the results of parameters are
    // sums over the experts and their hidden width.
    for (size_t i = 0; i < operands.size(); ++i)
      if (i != 1 &&
          (op->getNumResults() > 1 || static_cast<int>(i) >= at.first))
        operands[i] = cleaned(form, static_cast<int>(i));
    // The device with the first part of the hidden width adds the last bias.
    const bool is_shared = at.down_bias >= 0 && !held[1].axes.empty();
    if (is_shared)
      operands[at.down_bias] =
          ofFirst(form, operands[at.down_bias], shape[1], held[1]);
    SmallVector<mlir::Type> types;
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      types.push_back(form.resultType(i));
    if (rows) sendOperands(*rows, operands, types);
    SmallVector<Value> results(
        withShare(cloneLocally(form, operands, types),
                  rows ? rows->share() : shareOf(shape[0], held[0]))
            ->getResults());
    if (rows) returnResults(*rows, form, results);
    if (is_shared && results.size() > 1) {
      Value& grad = results[at.gradOf(at.down_bias)];
      grad = ofFirst(form, grad, shape[1], held[1]);
    }
    return results;
  }

 private:
  static constexpr bool kIsGradient = std::is_same_v<Op, nn::ExpertsGradOp>;

  // Rows are weighted where they come from; the gradient of a weight needs the
  // result of its expert, so weights travel backward.
  static void sendOperands(ExpertRows& rows, SmallVector<Value>& operands,
                           SmallVector<mlir::Type>& types) {
    const auto ofHolder = [&](mlir::Type type, Value like) {
      auto tensor = llvm::cast<RankedTensorType>(type);
      const int64_t count =
          llvm::cast<RankedTensorType>(like.getType()).getDimSize(0);
      return tensor.clone({count, tensor.getShape().back()});
    };
    operands[0] = rows.send(operands[0]);
    const auto x = llvm::cast<RankedTensorType>(operands[0].getType());
    types[0] = ofHolder(types[0], operands[0]);
    if (!kIsGradient) {
      operands[2] = rows.ones(x.getElementType());
      return;
    }
    operands[2] = rows.sendChoices(operands[2]);
    operands[3] = rows.send(operands[3]);
    types[1] = operands[2].getType();
  }

  static void returnResults(ExpertRows& rows, const LocalForm& form,
                            SmallVector<Value>& results) {
    results[0] =
        rows.returnSum(results[0], kIsGradient ? Value() : form.operands[2],
                       form.resultType(0));
    if (kIsGradient)
      results[1] = rows.returnChoices(results[1], form.resultType(1));
  }

  // `value` on the device that holds the first rows, 0 on the others.
  static Value ofFirst(const LocalForm& form, Value value, int64_t size,
                       const core::DimSharding& rows) {
    nn::MathBuilder math(form.builder, form.loc());
    Value first = form.firstRow(size, rows);
    auto scalar = llvm::cast<RankedTensorType>(first.getType());
    auto type = llvm::cast<RankedTensorType>(value.getType());
    Value is_first =
        math.compare(CmpIPredicate::eq, first, math.constantInt(scalar, 0));
    return math.select(math.broadcast(is_first, type.clone(math.i1()), {}),
                       value, math.constant(type, 0));
  }
};

struct GroupedDotForm
    : LocalFormOpInterface::ExternalModel<GroupedDotForm, nn::GroupedDotOp> {
  FailureOr<SmallVector<Value>> buildLocal(mlir::Operation* op,
                                           const LocalForm& form) const {
    const int64_t count = form.globalShape(op->getOperand(2))[0];
    const core::DimSharding& held = form.sharding.operands[2].dims[0];
    Value ids = relativeIds(form, form.operands[1], count, held);
    return SmallVector<Value>(
        withShare(cloneLocally(
                      form, {form.cleanOperand(0), ids, form.cleanOperand(2)},
                      form.resultType(0)),
                  shareOf(count, held))
            ->getResults());
  }
};

struct GroupedDotWeightGradForm
    : LocalFormOpInterface::ExternalModel<GroupedDotWeightGradForm,
                                          nn::GroupedDotWeightGradOp> {
  FailureOr<SmallVector<Value>> buildLocal(mlir::Operation* op,
                                           const LocalForm& form) const {
    const int64_t count = form.globalShape(op->getResult(0))[0];
    const core::DimSharding& held = form.sharding.results[0].dims[0];
    Value ids = relativeIds(form, form.operands[1], count, held);
    return SmallVector<Value>(
        withShare(cloneLocally(
                      form, {form.cleanOperand(0), ids, form.cleanOperand(2)},
                      form.resultType(0)),
                  shareOf(count, held))
            ->getResults());
  }
};

}  // namespace

void registerExpertForms(mlir::MLIRContext* context) {
  nn::ExpertsOp::attachInterface<ExpertsForm<nn::ExpertsOp>>(*context);
  nn::ExpertsGradOp::attachInterface<ExpertsForm<nn::ExpertsGradOp>>(*context);
  nn::GroupedDotOp::attachInterface<GroupedDotForm>(*context);
  nn::GroupedDotWeightGradOp::attachInterface<GroupedDotWeightGradForm>(
      *context);
}

}  // namespace partita::partition
