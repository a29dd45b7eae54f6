// Converts parameters and activations to 16 bits; see passes.td. Finds exact
// values first, then rewrites each function in place.
#include "compiler/autodiff/exact_values.h"
#include "compiler/autodiff/passes.h"
#include "compiler/autodiff/router_operations.h"
#include "dialects/nn/math_builder.h"
#include "dialects/nn/product_epilogue.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::autodiff {

#define GEN_PASS_DEF_REDUCEPRECISIONPASS
#include "compiler/autodiff/passes.h.inc"

namespace {

using llvm::SmallVector;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

// True for operations that compute in f32 and may pass on unrounded values.
bool isComputedWide(Operation* op) {
  return op->hasTrait<mlir::OpTrait::Elementwise>() ||
         llvm::isa<nn::ReduceOp, nn::BatchNormOp>(op);
}

// True for a convolution of integers in f32, whose sums are exact there and
// become integers again.
bool convolvesIntegers(Operation* op) {
  const auto is_integers = [](Value x) {
    Operation* cast = x.getDefiningOp();
    return cast &&
           llvm::isa<mlir::arith::SIToFPOp, mlir::arith::UIToFPOp>(cast);
  };
  return llvm::isa<nn::ConvOp>(op) &&
         llvm::all_of(op->getOperands(), is_integers);
}

// Rewrites one function.
class Rewriter {
 public:
  Rewriter(FuncOp function, const ExactValues& exact, mlir::FloatType narrow)
      : function_(function),
        is_main_(function.getName() == "main"),
        exact_(exact),
        type_(narrow) {}

  void run() {
    mlir::Block& block = function_.front();
    SmallVector<Operation*> ops;
    for (Operation& op : block) ops.push_back(&op);
    wide_ = findRouterOperations(function_);
    for (Operation* op : ops)
      if (convolvesIntegers(op)) wide_.insert(op);
    do {
      findEpilogues(ops);
      findUnrounded(ops);
    } while (refuseWideResiduals());
    narrowArguments();
    for (Operation* op : ops) rewrite(op);
    setType();
  }

 private:
  static bool isF32(Value value) {
    return mlir::getElementTypeOrSelf(value.getType()).isF32();
  }
  bool isMain() const { return is_main_; }

  // Libraries round a matrix product once, after its bias and residual. Those
  // for convolutions on GPUs do not add a bias in the same kernel.
  void findEpilogues(llvm::ArrayRef<Operation*> ops) {
    finished_products_.clear();
    residuals_.clear();
    for (Operation* op : ops)
      if (llvm::isa<nn::DotGeneralOp>(op) && !wide_.contains(op))
        if (auto epilogue =
                nn::epilogueOf(op, !without_residual_.contains(op))) {
          finished_products_.insert(epilogue.last->getResult(0));
          if (epilogue.residual) residuals_.push_back({op, epilogue.residual});
        }
  }
  void findUnrounded(llvm::ArrayRef<Operation*> ops) {
    unrounded_.clear();
    for (Operation* op : llvm::reverse(ops))
      for (Value result : op->getResults())
        if (isF32(result) && !isFinishedProduct(result) &&
            llvm::all_of(result.getUsers(),
                         [&](auto* user) { return takesWide(user); }))
          unrounded_.insert(result);
  }
  // Libraries add residuals of the product's own type only. Returns true if
  // there were others, which kernels add.
  bool refuseWideResiduals() {
    const size_t before = without_residual_.size();
    for (auto [product, residual] : residuals_)
      if (unrounded_.contains(residual)) without_residual_.insert(product);
    return without_residual_.size() > before;
  }
  // True if a library writes the value. Outputs of the model are not rounded.
  bool isFinishedProduct(Value value) const {
    return finished_products_.contains(value) &&
           !llvm::any_of(value.getUsers(), [&](Operation* user) {
             return isMain() && llvm::isa<mlir::func::ReturnOp>(user);
           });
  }

  // True if an operation uses its operand unrounded.
  bool takesWide(Operation* user) const {
    if (llvm::isa<mlir::func::ReturnOp>(user)) return isMain();
    if (wide_.contains(user)) return true;
    if (llvm::isa<nn::BroadcastOp, nn::ReshapeOp>(user))
      return unrounded_.contains(user->getResult(0));
    return isComputedWide(user);
  }

  void narrowArguments() {
    for (mlir::BlockArgument argument : function_.getArguments()) {
      if (!isF32(argument) || exact_.contains(argument)) continue;
      if (!isMain() || isParameter(argument)) {
        setNarrow(argument);
      } else {  // an input: keeps its type
        mlir::OpBuilder builder =
            mlir::OpBuilder::atBlockBegin(argument.getOwner());
        round(builder, argument);
      }
    }
  }

  bool isParameter(mlir::BlockArgument argument) {
    auto kind = function_.getArgAttrOfType<mlir::StringAttr>(
        argument.getArgNumber(), nn::kKindAttr);
    return kind && kind.getValue() == "parameter";
  }

  void rewrite(Operation* op) {
    if (auto call = llvm::dyn_cast<CallOp>(op)) return rewriteCall(call);
    if (llvm::isa<mlir::func::ReturnOp>(op)) return rewriteReturn(op);
    if (op->hasTrait<mlir::OpTrait::ConstantLike>()) return;
    if (wide_.contains(op)) {  // users round the results if they must
      for (mlir::OpOperand& operand : op->getOpOperands()) widen(operand);
      return;
    }
    const bool all_exact = exact_.containsResults(op);
    const bool moves_wide = llvm::isa<nn::BroadcastOp, nn::ReshapeOp>(op) &&
                            isF32(op->getOperand(0)) &&
                            unrounded_.contains(op->getResult(0));
    if (all_exact || moves_wide || isComputedWide(op)) {
      for (mlir::OpOperand& operand : op->getOpOperands()) widen(operand);
      if (!all_exact) roundResults(op);
      return;
    }
    for (mlir::OpOperand& operand : op->getOpOperands()) narrow(operand);
    if (llvm::isa<nn::CrossEntropyOp>(op)) return;  // losses stay f32
    for (Value result : op->getResults())
      if (isF32(result)) setNarrow(result);
  }

  void rewriteCall(CallOp call) {
    for (mlir::OpOperand& operand : call->getOpOperands())
      if (exact_.containsArgument(call.getCallee(), operand.getOperandNumber()))
        widen(operand);
      else
        narrow(operand);
    for (mlir::OpResult result : call->getResults())
      if (isF32(result) &&
          !exact_.containsResult(call.getCallee(), result.getResultNumber()))
        setNarrow(result);
  }

  void rewriteReturn(Operation* op) {
    for (mlir::OpOperand& operand : op->getOpOperands())
      if (isMain() || exact_.containsResult(function_.getName(),
                                            operand.getOperandNumber()))
        widen(operand);
      else
        narrow(operand);
  }

  // Rounds results that have a user other than f32 arithmetic. All users then
  // use the rounded value, so that each value has one form.
  void roundResults(Operation* op) {
    mlir::OpBuilder builder(op);
    builder.setInsertionPointAfter(op);
    for (Value result : op->getResults())
      if (isF32(result) && !unrounded_.contains(result) &&
          !exact_.contains(result))
        round(builder, result);
  }

  void round(mlir::OpBuilder& builder, Value value) {
    if (value.use_empty()) return;
    Value rounded = truncated(builder, value);
    value.replaceAllUsesExcept(rounded, rounded.getDefiningOp());
    was_f32_.insert(rounded);
  }

  Value truncated(mlir::OpBuilder& builder, Value value) {
    return mlir::arith::TruncFOp::create(
        builder, value.getLoc(),
        llvm::cast<RankedTensorType>(value.getType()).clone(type_), value);
  }

  void setNarrow(Value value) {
    value.setType(llvm::cast<RankedTensorType>(value.getType()).clone(type_));
    was_f32_.insert(value);
  }

  void narrow(mlir::OpOperand& operand) {
    if (!isF32(operand.get())) return;
    Value& made = narrowed_[operand.get()];
    if (!made) {
      mlir::OpBuilder builder(operand.getOwner());
      made = truncated(builder, operand.get());
    }
    operand.set(made);
  }

  void widen(mlir::OpOperand& operand) {
    if (!was_f32_.contains(operand.get())) return;
    Value& made = widened_[operand.get()];
    if (!made) {
      mlir::OpBuilder builder(operand.getOwner());
      made =
          nn::MathBuilder(builder, operand.get().getLoc()).widen(operand.get());
    }
    operand.set(made);
  }

  void setType() {
    Operation* terminator = function_.front().getTerminator();
    function_.setType(mlir::FunctionType::get(
        function_.getContext(), function_.front().getArgumentTypes(),
        terminator->getOperandTypes()));
  }

  FuncOp function_;
  const bool is_main_;
  const ExactValues& exact_;
  const mlir::FloatType type_;
  llvm::DenseSet<Operation*> wide_;          // compute in f32
  llvm::DenseSet<Value> finished_products_;  // with bias and residual
  SmallVector<std::pair<Operation*, Value>> residuals_;  // by product
  llvm::DenseSet<Operation*> without_residual_;          // products
  llvm::DenseSet<Value> unrounded_;  // f32 results that stay unrounded
  llvm::DenseSet<Value> was_f32_;    // 16-bit values that were f32 before
  llvm::DenseMap<Value, Value> narrowed_, widened_;
};

class ReducePrecision : public impl::ReducePrecisionPassBase<ReducePrecision> {
 public:
  using ReducePrecisionPassBase::ReducePrecisionPassBase;

  void runOnOperation() override {
    mlir::Builder builder(&getContext());
    if (type != "bf16" && type != "f16") {
      getOperation().emitError("expected the type to be bf16 or f16, found '")
          << type << "'";
      return signalPassFailure();
    }
    const auto refused = getOperation().walk([&](nn::LoopOp loop) {
      loop.emitError(
          "a loop whose number of iterations depends on data keeps the "
          "precision of its values: expected precision f32, found ")
          << type.getValue() << "; leave out --precision";
      return mlir::WalkResult::interrupt();
    });
    if (refused.wasInterrupted()) return signalPassFailure();
    mlir::FloatType narrow = type == "bf16"
                                 ? mlir::FloatType(builder.getBF16Type())
                                 : mlir::FloatType(builder.getF16Type());
    const ExactValues exact(getOperation());
    for (FuncOp function : getOperation().getOps<FuncOp>())
      if (!function.isExternal()) Rewriter(function, exact, narrow).run();
  }
};

}  // namespace
}  // namespace partita::autodiff
