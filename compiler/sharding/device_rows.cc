// Places rows by closed shardings along the axes of B.
#include "compiler/sharding/device_rows.h"

#include "compiler/sharding/convert.h"
#include "compiler/sharding/problem.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/math_builder.h"

namespace partita::sharding {

using llvm::SmallVector;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::FuncOp;

dist::ShardingAttr DeviceRows::along(int dim, int64_t rank, bool open) const {
  core::Sharding sharding = core::Replicated(static_cast<int>(rank));
  for (core::DimSharding& divided : sharding.dims) divided.open = open;
  if (dim >= 0) {
    sharding.dims[dim].axes = axes_;
    sharding.dims[dim].open = false;
  }
  return toAttr(context_, sharding, mesh_);
}

void DeviceRows::place(Value value, int dim) const {
  setSharding(value,
              along(dim, nn::MathBuilder::typeOf(value).getRank(), false));
}

void DeviceRows::placeOpen(Value value) const {
  setSharding(value, along(0, nn::MathBuilder::typeOf(value).getRank(), true));
}

Value DeviceRows::moved(mlir::OpBuilder& builder, Value value, int dim) const {
  return dist::ConstraintOp::create(
      builder, value.getLoc(), value,
      along(dim, nn::MathBuilder::typeOf(value).getRank(), false));
}

Value DeviceRows::sharesOf(mlir::OpBuilder& builder, Value value) const {
  const auto type = nn::MathBuilder::typeOf(value);
  SmallVector<int64_t> shape = {count()};
  llvm::append_range(shape, type.getShape());
  auto shares = nn::BroadcastOp::create(
      builder, value.getLoc(), type.clone(shape), value,
      llvm::to_vector(llvm::seq<int64_t>(1, type.getRank() + 1)));
  shares->setAttr(kSharesAttr, builder.getUnitAttr());
  return shares;
}

Value DeviceRows::ownRow(mlir::OpBuilder& builder, Value rows) const {
  Value own = nn::MathBuilder(builder, rows.getLoc())
                  .reduce(nn::ReduceKind::sum, rows, {0});
  own.getDefiningOp()->setAttr(kSharesAttr, builder.getUnitAttr());
  return own;
}

Value DeviceRows::addState(FuncOp main, const std::string& name,
                           RankedTensorType type) const {
  mlir::Builder builder(context_);
  mlir::NamedAttrList attributes;
  attributes.set(nn::kKindAttr, builder.getStringAttr("state"));
  attributes.set(nn::kNameAttr, builder.getStringAttr(name));
  attributes.set(
      nn::kSourceAttr,
      nn::InitAttr::get(context_, "zeros", builder.getF64FloatAttr(0), 0));
  const unsigned index = main.getNumArguments();
  (void)main.insertArgument(index, type, attributes.getDictionary(context_),
                            main.getLoc());
  place(main.getArgument(index), 0);
  return main.getArgument(index);
}

void addUpdate(FuncOp main, Value value, const std::string& name) {
  mlir::Builder builder(main.getContext());
  const unsigned index = main.getNumResults();
  (void)main.insertResult(index, value.getType(),
                          builder.getDictionaryAttr(builder.getNamedAttr(
                              nn::kUpdatesAttr, builder.getStringAttr(name))));
  main.front().getTerminator()->insertOperands(index, value);
}

}  // namespace partita::sharding
