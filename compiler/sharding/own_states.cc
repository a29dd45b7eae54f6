// Changes types of arguments and results of @main; its operations stay.
#include "compiler/sharding/own_states.h"

#include "compiler/autodiff/device_marks.h"
#include "compiler/sharding/dims.h"
#include "compiler/sharding/problem.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/math_builder.h"
#include "dialects/nn/signature.h"

namespace partita::sharding {
namespace {

using llvm::SmallVector;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

RankedTensorType withRows(RankedTensorType type, int64_t rows) {
  SmallVector<int64_t> shape = {rows};
  llvm::append_range(shape, type.getShape());
  return type.clone(shape);
}

// The indices of the states.
SmallVector<unsigned> ownStates(FuncOp main) {
  SmallVector<unsigned> own;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr),
         name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
    if (!kind || kind.getValue() != "state" || !name) continue;
    const llvm::StringRef state = name.getValue().rsplit('/').second;
    if (state == autodiff::kLocalMomentum || state == autodiff::kLocalSum)
      own.push_back(i);
  }
  return own;
}

}  // namespace

bool hasOwnStates(FuncOp main) { return !ownStates(main).empty(); }

void giveOwnStates(FuncOp main, const DeviceRows& rows) {
  mlir::Operation* terminator = main.front().getTerminator();
  mlir::OpBuilder begin = mlir::OpBuilder::atBlockBegin(&main.front()),
                  end(terminator);
  SmallVector<mlir::Type> arguments(main.getArgumentTypes()),
      results(main.getResultTypes());
  llvm::StringMap<unsigned> updates;
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    if (auto name =
            main.getResultAttrOfType<mlir::StringAttr>(i, nn::kUpdatesAttr))
      updates[name.getValue()] = i;
  const SmallVector<unsigned> own = ownStates(main);
  for (unsigned i : own) {
    mlir::BlockArgument state = main.getArgument(i);
    const auto type = withRows(nn::MathBuilder::typeOf(state), rows.count());
    arguments[i] = type;
    state.setType(type);
    Value row = rows.ownRow(begin, state);
    state.replaceAllUsesExcept(row, row.getDefiningOp());
    const auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
    const auto update = updates.find(name.getValue());
    if (update == updates.end()) continue;
    mlir::OpOperand& result = terminator->getOpOperand(update->second);
    results[update->second] = type;
    Value shares = rows.sharesOf(end, result.get());
    rows.placeOpen(shares);
    result.set(shares);
  }
  main.setType(mlir::FunctionType::get(main.getContext(), arguments, results));
  for (unsigned i : own) {
    main.removeArgAttr(i, kDimsAttr);
    if (auto viewed = main.getArgAttrOfType<mlir::TypeAttr>(i, nn::kViewOfAttr))
      main.setArgAttr(
          i, nn::kViewOfAttr,
          mlir::TypeAttr::get(withRows(
              llvm::cast<RankedTensorType>(viewed.getValue()), rows.count())));
    rows.placeOpen(main.getArgument(i));
  }
  for (CallOp call : main.getOps<CallOp>()) {
    auto name =
        call->getAttrOfType<mlir::StringAttr>(autodiff::kOwnGradientAttr);
    if (!name) continue;
    mlir::OpBuilder builder(call);
    Value shares = rows.sharesOf(builder, call.getOperand(1));
    shares.getDefiningOp()->setAttr(kOwnShareAttr, name);
    rows.placeOpen(shares);
    call.setOperand(1, rows.ownRow(builder, shares));
    call->removeAttr(autodiff::kOwnGradientAttr);
  }
}

}  // namespace partita::sharding
