// Rebuilds the model for one microbatch; see passes.td.
#include "compiler/sharding/dims.h"
#include "compiler/sharding/passes.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/sharding_rule.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::sharding {

#define GEN_PASS_DEF_SPLITBATCHPASS
#include "compiler/sharding/passes.h.inc"

namespace {

using llvm::SmallVector;
using mlir::failure;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;
using mlir::func::FuncOp;

bool carriesBatch(const Dim& dim) {
  return llvm::any_of(dim.segments, [](const DimSegment& segment) {
    return llvm::StringRef(segment.name).rtrim('\'') == "B";
  });
}

struct SplitBatchPass : public impl::SplitBatchPassBase<SplitBatchPass> {
  using SplitBatchPassBase::SplitBatchPassBase;

  void runOnOperation() override {
    if (microbatches < 1) {
      getOperation().emitError("microbatches: expected at least 1, found ")
          << microbatches.getValue();
      return signalPassFailure();
    }
    if (microbatches > 1 && mlir::failed(run(getOperation())))
      signalPassFailure();
  }

 private:
  LogicalResult run(mlir::ModuleOp module) {
    auto main = module.lookupSymbol<FuncOp>("main");
    if (!main)
      return module.emitError("expected a function named 'main', found none");
    if (mlir::failed(checkInputs(main))) return failure();
    for (FuncOp function : module.getOps<FuncOp>())
      if (!function.isExternal() && mlir::failed(split(function)))
        return failure();
    return success();
  }

  // Reports errors on the inputs, which users know.
  LogicalResult checkInputs(FuncOp main) {
    bool any = false;
    for (mlir::BlockArgument argument : main.getArguments()) {
      const unsigned index = argument.getArgNumber();
      const auto text = [&](llvm::StringRef name) {
        auto attr = main.getArgAttrOfType<mlir::StringAttr>(index, name);
        return attr ? attr.getValue() : llvm::StringRef();
      };
      auto dims = dimsOf(argument);
      if (!dims) continue;
      for (auto [i, dim] : llvm::enumerate(*dims)) {
        if (!carriesBatch(dim)) continue;
        any = true;
        const int64_t size =
            llvm::cast<RankedTensorType>(argument.getType()).getDimSize(i);
        const auto refuse = [&] {
          return main.emitError()
                 << "microbatches: expected " << text(nn::kKindAttr) << " '"
                 << text(nn::kNameAttr) << "' ";
        };
        if (text(nn::kKindAttr) != "input")
          return refuse() << "not to have the batch as a dimension, found B as "
                             "dimension "
                          << i;
        if (i != 0 || !dim.isNamed("B"))
          return refuse() << "to have the batch first, found dimension " << i
                          << " to be B";
        if (size % microbatches != 0)
          return refuse() << "to have a batch that divides by "
                          << microbatches.getValue() << ", found " << size
                          << "; choose another number of microbatches, or "
                             "import the model with another batch";
      }
    }
    if (any) return success();
    return main.emitError(
        "microbatches: expected inputs with a batch, found no dimension named "
        "B; name it with --name \"INPUT:DIMENSION=B\", or, if the batch is of "
        "one row, import the model with more");
  }

  LogicalResult split(FuncOp function) {
    // Names are parsed with the sizes of the types, so compute all new types
    // before changing any.
    SmallVector<std::pair<Value, RankedTensorType>> changed;
    const auto note = [&](Value value) {
      if (RankedTensorType type = splitType(value); type != value.getType())
        changed.push_back({value, type});
    };
    mlir::Block& body = function.front();
    for (mlir::BlockArgument argument : body.getArguments()) note(argument);
    for (Operation& op : body) {
      if (mlir::failed(checkAttributes(&op)) ||
          mlir::failed(checkRows(function, &op)))
        return failure();
      for (Value result : op.getResults()) note(result);
    }
    for (auto [value, type] : changed) {
      value.setType(type);
      if (auto constant = value.getDefiningOp<mlir::arith::ConstantOp>())
        constant.setValueAttr(
            llvm::cast<mlir::SplatElementsAttr>(constant.getValue())
                .resizeSplat(type));
    }
    function.setType(
        mlir::FunctionType::get(&getContext(), body.getArgumentTypes(),
                                body.getTerminator()->getOperandTypes()));
    return success();
  }

  RankedTensorType splitType(Value value) {
    auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
    auto dims = dimsOf(value);
    if (!type || !dims) return type;
    SmallVector<int64_t> shape(type.getShape());
    for (auto [size, dim] : llvm::zip_equal(shape, *dims))
      if (carriesBatch(dim)) size /= microbatches;
    return type.clone(shape);
  }

  // Requires each row to be computed independently. Exceptions are batch norms
  // and ranges of activations that are rounded, which are statistics of a
  // microbatch, and sums that the loss adds up.
  LogicalResult checkRows(FuncOp function, Operation* op) {
    std::optional<nn::ShardingRule> rule = nn::shardingRuleOf(op);
    if (!rule || llvm::isa<nn::BatchNormOp>(op) || isRange(function, op) ||
        addsUpToResults(function, op->getResult(0)))
      return success();
    size_t ruled = 0;
    for (Value operand : op->getOperands()) {
      auto dims = dimsOf(operand);
      if (ruled == rule->operands.size()) break;
      const nn::TensorFactors& factors = rule->operands[ruled++];
      if (!dims || factors.size() != dims->size()) continue;
      for (auto [dim, parts] : llvm::zip_equal(*dims, factors))
        if (carriesBatch(dim) && !parts.empty() &&
            rule->factors[parts.front()].kind != nn::FactorKind::kCarried)
          return op->emitOpError(
              "microbatches: expected each row of the batch to be computed by "
              "itself, or by a batch norm, found one that depends on others; "
              "leave microbatches out");
    }
    return success();
  }

  // True for the least or greatest of all elements of a copy of bits, through
  // which no gradient flows, that moves a range which @main keeps for the next
  // step: before + (now - before) * share (compiler/quantize/fake_quantize.cc).
  static bool isRange(FuncOp function, Operation* op) {
    auto reduce = llvm::dyn_cast<nn::ReduceOp>(op);
    if (!reduce || reduce.getType().getRank() != 0 ||
        (reduce.getKind() != nn::ReduceKind::min &&
         reduce.getKind() != nn::ReduceKind::max) ||
        !reduce.getInput().getDefiningOp<mlir::arith::BitcastOp>())
      return false;
    const Value now = reduce.getResult();
    return !now.use_empty() &&
           llvm::all_of(now.getUsers(), [&](Operation* user) {
             auto change = llvm::dyn_cast<mlir::arith::SubFOp>(user);
             return change && change.getLhs() == now &&
                    llvm::isa<mlir::BlockArgument>(change.getRhs()) &&
                    isAddedTo(function, change.getRhs(), change.getResult());
           });
  }

  // True if `change`, or a share of it, is used only to move `before`.
  static bool isAddedTo(FuncOp function, Value before, Value change) {
    return llvm::all_of(change.getUsers(), [&](Operation* user) {
      if (auto share = llvm::dyn_cast<mlir::arith::MulFOp>(user))
        return isAddedTo(function, before, share.getResult());
      return llvm::isa<mlir::arith::AddFOp>(user) &&
             llvm::is_contained(user->getOperands(), before) &&
             isUpdate(function, user->getResult(0));
    });
  }

  // True if @main returns `value` as a new number of an argument, through the
  // functions that call `function`.
  static bool isUpdate(FuncOp function, Value value) {
    Operation* terminator = function.front().getTerminator();
    for (mlir::OpOperand& use : value.getUses())
      if (use.getOwner() == terminator &&
          isUpdate(function, use.getOperandNumber()))
        return true;
    return false;
  }
  static bool isUpdate(FuncOp function, unsigned result) {
    if (function.getName() == "main")
      return function.getResultAttr(result, nn::kUpdatesAttr) != nullptr;
    bool any = false;
    for (FuncOp caller :
         function->getParentOfType<mlir::ModuleOp>().getOps<FuncOp>())
      for (auto call : caller.getOps<mlir::func::CallOp>()) {
        if (call.getCallee() != function.getName()) continue;
        if (!isUpdate(caller, call.getResult(result))) return false;
        any = true;
      }
    return any;
  }

  // True if `value` is a scalar used only for results: the loss of @main, or
  // the count of the function that counts targets.
  static bool addsUpToResults(FuncOp function, Value value) {
    auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
    if (!type || type.getRank() != 0) return false;
    return llvm::all_of(value.getUsers(), [&](Operation* user) {
      if (llvm::isa<mlir::func::ReturnOp>(user))
        return function.getName() == "main" ||
               function.getName() == "count_targets";
      return user->getNumResults() == 1 &&
             addsUpToResults(function, user->getResult(0));
    });
  }

  // Types hold the shapes. Refuses attributes that refer to the whole batch:
  // they would be wrong for a microbatch.
  LogicalResult checkAttributes(Operation* op) {
    const auto batch = [&](Value value, unsigned dim) {
      auto dims = dimsOf(value);
      return dims && carriesBatch((*dims)[dim]);
    };
    const auto sizeOf = [](Value value, unsigned dim) {
      return llvm::cast<RankedTensorType>(value.getType()).getDimSize(dim);
    };
    if (auto constant = llvm::dyn_cast<mlir::arith::ConstantOp>(op)) {
      if (llvm::isa<mlir::SplatElementsAttr>(constant.getValue()) ||
          splitType(constant) == constant.getType())
        return success();
      return op->emitOpError(
          "microbatches: expected values that differ between the rows of a "
          "batch to be inputs, found a constant");
    }
    if (auto slice = llvm::dyn_cast<nn::SliceOp>(op)) {
      for (unsigned i = 0; i < slice.getStarts().size(); ++i)
        if (batch(slice.getInput(), i) &&
            (sizeOf(slice.getInput(), i) != sizeOf(slice.getResult(), i) ||
             slice.getStarts()[i] != 0))
          return op->emitOpError(
                     "microbatches: expected all rows of a batch to be used "
                     "alike, found rows picked from dimension ")
                 << i;
    }
    if (auto pad = llvm::dyn_cast<nn::PadOp>(op)) {
      for (unsigned i = 0; i < pad.getLow().size(); ++i)
        if (batch(pad.getInput(), i) &&
            sizeOf(pad.getInput(), i) != sizeOf(pad.getResult(), i))
          return op->emitOpError(
                     "microbatches: expected a batch that keeps its size, "
                     "found rows added to dimension ")
                 << i;
    }
    return success();
  }
};

}  // namespace
}  // namespace partita::sharding
