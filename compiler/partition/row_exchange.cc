#include "compiler/partition/row_exchange.h"

#include <algorithm>
#include <cmath>

#include "compiler/sharding/convert.h"
#include "dialects/nn/math_builder.h"

namespace partita::partition {
namespace {

using mlir::RankedTensorType;
using mlir::Value;
using mlir::arith::CmpIPredicate;

constexpr int kIds = 1;  // operand of the experts

// The index of the holder of each expert, [T, k] of i64; -1 for none.
Value holdersOf(const LocalForm& form, Value ids, int64_t count,
                int64_t block) {
  nn::MathBuilder math(form.builder, form.loc());
  const auto type = math.typeOf(ids).clone(math.i64());
  if (ids.getType() != type)
    ids = mlir::arith::ExtSIOp::create(form.builder, form.loc(), type, ids);
  const Value is_inside = mlir::arith::AndIOp::create(
      form.builder, form.loc(),
      math.compare(CmpIPredicate::sge, ids, math.constantInt(type, 0)),
      math.compare(CmpIPredicate::slt, ids, math.constantInt(type, count)));
  const Value holder = mlir::arith::DivSIOp::create(
      form.builder, form.loc(), ids, math.constantInt(type, block));
  return math.select(is_inside, holder, math.constantInt(type, -1));
}

}  // namespace

ExpertRows::ExpertRows(const LocalForm& form, int64_t count,
                       const core::DimSharding& held)
    : form_(form),
      axes_(
          sharding::axesAttr(form.builder.getContext(), held.axes, form.mesh)) {
  nn::MathBuilder math(form.builder, form.loc());
  ids_ = form.operands[kIds];
  const RankedTensorType type = math.typeOf(ids_);
  const mlir::TypedAttr none =
      mlir::IntegerAttr::get(type.getElementType(), -1);
  const auto shape = form.globalShape(form.op->getOperand(kIds));
  for (auto [dim, rows] : llvm::enumerate(form.sharding.operands[kIds].dims))
    if (!rows.axes.empty())
      ids_ = form.cleanRows(ids_, dim, shape[dim], rows, none);
  choices_ = type.getShape().back();
  rows_ = type.getNumElements() / std::max<int64_t>(choices_, 1);
  to_ = holdersOf(form, math.reshape(ids_, {rows_, choices_}), count,
                  core::BlockOf(count, held));
  const int64_t share = rows_ * choices_;
  capacity_ = share * core::SizeOf(held.axes);
  if (form.rows.bound > 0)
    capacity_ =
        std::min(capacity_, static_cast<int64_t>(std::ceil(
                                form.rows.bound * static_cast<double>(share))));
}

mlir::StringAttr ExpertRows::why(const char* what) const {
  std::string text = what;
  if (form_.rows.gathered_bytes > 0)
    text += " (the exchange moves " + std::to_string(form_.rows.sent_bytes) +
            " bytes, gathering rows would move " +
            std::to_string(form_.rows.gathered_bytes) + ")";
  return form_.why(text);
}

Value ExpertRows::sendTo(Value rows, Value to, double fill) {
  nn::MathBuilder math(form_.builder, form_.loc());
  const RankedTensorType type = math.typeOf(rows);
  return dist::SendRowsOp::create(
      form_.builder, form_.loc(), type.clone({capacity_, type.getDimSize(1)}),
      rows, to, axes_, llvm::APFloat(fill),
      why("each row travels to the devices that have its experts"));
}

Value ExpertRows::send(Value rows, double fill) {
  nn::MathBuilder math(form_.builder, form_.loc());
  return sendTo(
      math.reshape(rows, {rows_, math.typeOf(rows).getShape().back()}), to_,
      fill);
}

Value ExpertRows::sendChoices(Value elements, double fill) {
  nn::MathBuilder math(form_.builder, form_.loc());
  const int64_t pairs = rows_ * choices_;
  return sendTo(math.reshape(elements, {pairs, 1}),
                math.reshape(to_, {pairs, 1}), fill);
}

Value ExpertRows::returned(Value rows) {
  nn::MathBuilder math(form_.builder, form_.loc());
  const RankedTensorType type = math.typeOf(rows);
  return dist::ReturnRowsOp::create(
      form_.builder, form_.loc(),
      type.clone({rows_ * choices_, type.getDimSize(1)}), rows, to_, axes_,
      why("results return to the devices that their rows came from"));
}

Value ExpertRows::returnSum(Value rows, Value weights, RankedTensorType type) {
  nn::MathBuilder math(form_.builder, form_.loc());
  const int64_t width = type.getShape().back();
  Value all =
      math.widen(math.reshape(returned(rows), {rows_, choices_, width}));
  if (weights)
    all = math.multiply(
        all,
        math.broadcast(math.widen(math.reshape(weights, {rows_, choices_})),
                       math.typeOf(all), {0, 1}));
  const Value sum = math.reduce(nn::ReduceKind::sum, all, {1});
  return math.narrow(math.reshape(sum, type.getShape()), type);
}

Value ExpertRows::returnChoices(Value elements, RankedTensorType type) {
  nn::MathBuilder math(form_.builder, form_.loc());
  return math.reshape(returned(elements), type.getShape());
}

Value ExpertRows::ones(mlir::Type element) {
  return nn::MathBuilder(form_.builder, form_.loc())
      .constant(RankedTensorType::get({capacity_, 1}, element), 1);
}

}  // namespace partita::partition
