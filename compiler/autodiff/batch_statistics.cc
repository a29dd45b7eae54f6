// Finds a function's statistics from the inside out: first its own batch norms,
// then the statistics that called functions return.
#include "compiler/autodiff/batch_statistics.h"

#include "dialects/nn/dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::autodiff {
namespace {

using llvm::SmallVector;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

// An argument and its value after the step.
struct Update {
  unsigned argument;
  Value value;
};
// An argument and the result that returns its new value.
struct Returned {
  unsigned argument, result;
};

class Statistics {
 public:
  FailureOr<SmallVector<Update>> updatesIn(FuncOp function) {
    SmallVector<Update> updates;
    for (mlir::Operation& op :
         llvm::make_early_inc_range(function.front().without_terminator())) {
      LogicalResult added = success();
      if (auto norm = llvm::dyn_cast<nn::BatchNormOp>(op))
        added = addNorm(norm, updates);
      else if (auto call = llvm::dyn_cast<CallOp>(op))
        added = addCall(call, updates);
      if (mlir::failed(added)) return failure();
    }
    return updates;
  }

 private:
  static LogicalResult add(mlir::Operation* op, Value before, Value after,
                           SmallVector<Update>& updates) {
    auto argument = llvm::dyn_cast<mlir::BlockArgument>(before);
    if (!argument)
      return op->emitOpError(
          "expected running statistics to be stored tensors of the model, "
          "so that a step can update them");
    updates.push_back({argument.getArgNumber(), after});
    return success();
  }

  static LogicalResult addNorm(nn::BatchNormOp norm,
                               SmallVector<Update>& updates) {
    if (!norm.getTraining()) return success();
    const Value old[] = {norm.getMean(), norm.getVariance()};
    for (auto [before, after] : llvm::zip_equal(old, norm.getNewStatistics()))
      if (mlir::failed(add(norm, before, after, updates))) return failure();
    return success();
  }

  LogicalResult addCall(CallOp call, SmallVector<Update>& updates) {
    auto callee = mlir::SymbolTable::lookupNearestSymbolFrom<FuncOp>(
        call, call.getCalleeAttr());
    if (!callee || callee.isExternal()) return success();
    FailureOr<SmallVector<Returned>> returned = returnedBy(callee);
    if (mlir::failed(returned)) return failure();
    if (returned->empty()) return success();
    mlir::OpBuilder builder(call);
    auto longer =
        CallOp::create(builder, call.getLoc(), callee, call.getOperands());
    longer->setDiscardableAttrs(call->getDiscardableAttrDictionary());
    call.replaceAllUsesWith(
        longer.getResults().take_front(call.getNumResults()));
    call.erase();
    for (const Returned& entry : *returned)
      if (mlir::failed(add(longer, longer.getOperand(entry.argument),
                           longer.getResult(entry.result), updates)))
        return failure();
    return success();
  }

  // A function is changed only at its first call.
  FailureOr<SmallVector<Returned>> returnedBy(FuncOp function) {
    auto known = returned_.find(function);
    if (known != returned_.end()) return known->second;
    FailureOr<SmallVector<Update>> updates = updatesIn(function);
    if (mlir::failed(updates)) return failure();
    SmallVector<Returned> returned;
    for (const Update& update : *updates) {
      const unsigned result = function.getNumResults();
      (void)function.insertResult(result, update.value.getType(), {});
      function.front().getTerminator()->insertOperands(result, update.value);
      returned.push_back({update.argument, result});
    }
    returned_[function] = returned;
    return returned;
  }

  llvm::DenseMap<mlir::Operation*, SmallVector<Returned>> returned_;
};

}  // namespace

LogicalResult returnStatistics(FuncOp main) {
  FailureOr<SmallVector<Update>> updates = Statistics().updatesIn(main);
  if (mlir::failed(updates)) return failure();
  mlir::Builder builder(main.getContext());
  for (const Update& update : *updates) {
    auto name =
        main.getArgAttrOfType<mlir::StringAttr>(update.argument, nn::kNameAttr);
    if (!name)
      return update.value.getDefiningOp()->emitOpError(
          "expected running statistics to be stored tensors of the model, "
          "so that a step can update them");
    const unsigned result = main.getNumResults();
    (void)main.insertResult(result, update.value.getType(),
                            builder.getDictionaryAttr(
                                builder.getNamedAttr(nn::kUpdatesAttr, name)));
    main.front().getTerminator()->insertOperands(result, update.value);
  }
  return success();
}

}  // namespace partita::autodiff
