// Lifetimes come from SSA, places from planArena; see passes.td.
#include <optional>

#include "compiler/memory/arena.h"
#include "compiler/memory/lifetimes.h"
#include "compiler/memory/passes.h"
#include "dialects/exec/dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::memory {

#define GEN_PASS_DEF_PLANMEMORYPASS
#include "compiler/memory/passes.h.inc"

namespace {

// Argument and result attributes of the nn dialect.
constexpr char kNameAttr[] = "nn.name";
constexpr char kUpdatesAttr[] = "nn.updates";
constexpr char kScatter[] = "nn.scatter";

using mlir::func::CallOp;
using mlir::func::FuncOp;

// Decides whether result number `result` of a call or a launch may overwrite
// the memory of operand number `operand`. It may if nothing reads the operand
// after the result was written.
class InPlace {
 public:
  explicit InPlace(mlir::SymbolTable& symbols) : symbols_(symbols) {}

  bool allowed(mlir::Operation* op, unsigned operand, unsigned result) {
    if (auto launch = llvm::dyn_cast<exec::LaunchOp>(op))
      return inKernel(symbols_.lookup<FuncOp>(launch.getKernel()), operand);
    if (auto conv = llvm::dyn_cast<exec::ConvOp>(op))
      return isAddedInPlace(conv, operand);
    auto call = llvm::dyn_cast<CallOp>(op);
    // A loop's carried value may begin in place.
    if (call && call->hasAttr(exec::kRepeatsAttr)) return operand == result;
    if (call)
      return inFunction(symbols_.lookup<FuncOp>(call.getCallee()), operand,
                        result);
    return false;
  }

  // True if `argument` is not read after the operation that computes `value`,
  // and this operation reads each element before it overwrites it.
  bool allowed(mlir::BlockArgument argument, mlir::Value value) {
    auto produced = llvm::dyn_cast<mlir::OpResult>(rootOf(value));
    if (!produced) return false;
    mlir::Operation* producer = produced.getOwner();
    for (mlir::OpOperand* use : usesOf(argument)) {
      if (use->getOwner() == producer) {
        if (!allowed(producer, use->getOperandNumber(),
                     produced.getResultNumber()))
          return false;
      } else if (!use->getOwner()->isBeforeInBlock(producer)) {
        return false;
      }
    }
    return true;
  }

 private:
  // True for the residual of a convolution that adds it before it activates
  // the sum. The library adds to the residual's memory then.
  static bool isAddedInPlace(exec::ConvOp conv, unsigned operand) {
    if (!conv.getResidual() || conv.getScale() ||
        !conv.getType().getElementType().isF32() ||
        (conv.getActivation() != exec::Activation::kNone &&
         !conv.getActivatesSum()))
      return false;
    return conv.getResidualMutable()[0].getOperandNumber() == operand;
  }

  // Uses of a value and of its views.
  static llvm::SmallVector<mlir::OpOperand*> usesOf(mlir::Value value) {
    llvm::SmallVector<mlir::OpOperand*> uses;
    for (mlir::OpOperand& use : value.getUses()) {
      if (auto view = llvm::dyn_cast<exec::ViewOp>(use.getOwner()))
        llvm::append_range(uses, usesOf(view.getResult()));
      else
        uses.push_back(&use);
    }
    return uses;
  }

  // If everything that depends on the operand is elementwise, each element is
  // read by the iteration that overwrites it. A scatter into the operand leaves
  // it in place.
  static bool inKernel(FuncOp kernel, unsigned operand) {
    if (isScatteredInto(kernel.getArgument(operand))) return true;
    llvm::SmallVector<mlir::Value> open = {kernel.getArgument(operand)};
    llvm::DenseSet<mlir::Value> seen;
    while (!open.empty()) {
      mlir::Value value = open.pop_back_val();
      if (!seen.insert(value).second) continue;
      for (mlir::Operation* user : value.getUsers()) {
        if (llvm::isa<mlir::func::ReturnOp>(user)) continue;
        if (!user->hasTrait<mlir::OpTrait::Elementwise>()) return false;
        llvm::append_range(open, user->getResults());
      }
    }
    return true;
  }

  // True if the kernel's only result is a scatter into `argument`, which has no
  // other use.
  static bool isScatteredInto(mlir::BlockArgument argument) {
    if (!argument.hasOneUse()) return false;
    mlir::OpOperand& use = *argument.getUses().begin();
    mlir::Operation* scatter = use.getOwner();
    return scatter->getName().getStringRef() == kScatter &&
           use.getOperandNumber() == 0 && scatter->hasOneUse() &&
           llvm::isa<mlir::func::ReturnOp>(*scatter->user_begin());
  }

  bool inFunction(FuncOp function, unsigned operand, unsigned result) {
    mlir::Operation* terminator = function.front().getTerminator();
    return allowed(function.getArgument(operand),
                   terminator->getOperand(result));
  }

  mlir::SymbolTable& symbols_;
};

// True if no memory is planned for the operation's results, if it has any.
bool needsNoPlace(mlir::Operation& op) {
  auto launch = llvm::dyn_cast<exec::LaunchOp>(op);
  return (launch && !launch.getInto().empty()) ||
         llvm::isa<mlir::arith::ConstantOp, exec::ViewOp, exec::AwaitOp>(op);
}

// Plans one function whose callees are planned already.
class FunctionPlanner {
 public:
  FunctionPlanner(FuncOp function, mlir::SymbolTable& symbols,
                  llvm::DenseMap<llvm::StringRef, int64_t>& frame_bytes,
                  bool in_place)
      : function_(function),
        symbols_(symbols),
        frame_bytes_(frame_bytes),
        in_place_(in_place),
        values_(function) {}

  int64_t run() {
    assignReturned();
    collectLifetimes();
    ArenaPlan plan = planArena(lifetimes_);
    annotate(plan);
    function_->setAttr(
        exec::kFrameBytesAttr,
        mlir::Builder(function_.getContext()).getI64IntegerAttr(plan.bytes));
    frame_bytes_[function_.getName()] = plan.bytes;
    return lifetimes_.size();
  }

 private:
  // Finds results that may be written where the caller wants them. Values that
  // are returned twice, arguments and constants are copied later
  // (copy_returned.cc).
  void assignReturned() {
    for (mlir::BlockArgument argument : function_.getArguments())
      if (auto name = function_.getArgAttr(argument.getArgNumber(), kNameAttr))
        by_name_.try_emplace(name, argument);
    mlir::Operation* terminator = function_.front().getTerminator();
    for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
      mlir::Value root = rootOf(value);
      mlir::Operation* producer = root.getDefiningOp();
      if (!producer || llvm::isa<mlir::arith::ConstantOp>(producer)) continue;
      if (!mayUpdate(index, root)) continue;
      returned_.try_emplace(root, -1 - static_cast<int64_t>(index));
    }
  }

  // True if result number `result` may be written as soon as `value` is
  // computed, even if it overwrites the argument that it updates.
  bool mayUpdate(unsigned result, mlir::Value value) {
    auto updated =
        function_.getResultAttrOfType<mlir::StringAttr>(result, kUpdatesAttr);
    if (!updated) return true;
    const auto argument = by_name_.find(updated);
    return argument == by_name_.end() ||
           InPlace(symbols_).allowed(argument->second, value);
  }

  void collectLifetimes() {
    for (mlir::Operation& op : function_.front()) {
      if (needsNoPlace(op)) continue;
      const int64_t step = values_.step.lookup(&op);
      for (mlir::OpResult result : op.getResults()) {
        if (returned_.contains(result)) continue;
        if (const std::optional<size_t> replaced = replacedSlot(result)) {
          slot_[result] = *replaced;
          lifetimes_[*replaced].last = values_.end(result);
          continue;
        }
        slot_[result] = lifetimes_.size();
        lifetimes_.push_back(
            {exec::bufferBytes(
                 llvm::cast<mlir::RankedTensorType>(result.getType())),
             step, values_.end(result)});
      }
      if (auto call = llvm::dyn_cast<CallOp>(op)) {
        frame_slot_[&op] = lifetimes_.size();
        lifetimes_.push_back({call->hasAttr(exec::kRepeatsAttr)
                                  ? exec::repeatedFrameBytes(
                                        frame_bytes_.lookup(call.getCallee()),
                                        call.getResultTypes())
                                  : frame_bytes_.lookup(call.getCallee()),
                              step, step});
      }
    }
  }

  // The slot of an operand whose place the result may take.
  std::optional<size_t> replacedSlot(mlir::OpResult result) {
    mlir::Operation* op = result.getOwner();
    if (!in_place_ || !mayReplace(op)) return std::nullopt;
    const auto elementOf = [](mlir::Value value) {
      return llvm::cast<mlir::RankedTensorType>(value.getType())
          .getElementType();
    };
    const int64_t step = values_.step.lookup(op);
    const int64_t bytes =
        exec::bufferBytes(llvm::cast<mlir::RankedTensorType>(result.getType()));
    for (mlir::OpOperand& operand : op->getOpOperands()) {
      const mlir::Value root = rootOf(operand.get());
      const auto slot = slot_.find(root);
      if (slot == slot_.end() || values_.end(root) != step ||
          lifetimes_[slot->second].bytes != bytes ||
          elementOf(root) != elementOf(result) ||
          llvm::count_if(op->getOperands(), [&](mlir::Value other) {
            return rootOf(other) == root;
          }) != 1)
        continue;
      if (InPlace(symbols_).allowed(op, operand.getOperandNumber(),
                                    result.getResultNumber()))
        return slot->second;
    }
    return std::nullopt;
  }

  // Kernels with several results may read an operand again after the first
  // result, and loops keep values of their own.
  static bool mayReplace(mlir::Operation* op) {
    return op->getNumResults() == 1 && !op->hasAttr(exec::kRepeatsAttr) &&
           llvm::isa<exec::LaunchOp, exec::ConvOp, CallOp>(op);
  }

  void annotate(const ArenaPlan& plan) {
    mlir::Builder builder(function_.getContext());
    for (mlir::Operation& op : function_.front()) {
      if (needsNoPlace(op)) continue;
      llvm::SmallVector<int64_t> offsets;
      for (mlir::Value result : op.getResults()) {
        auto given = returned_.find(result);
        offsets.push_back(given != returned_.end()
                              ? given->second
                              : plan.offsets[slot_[result]]);
      }
      if (!offsets.empty())
        op.setAttr(exec::kOffsetsAttr, builder.getDenseI64ArrayAttr(offsets));
      if (auto slot = frame_slot_.find(&op); slot != frame_slot_.end())
        op.setAttr(exec::kFrameOffsetAttr,
                   builder.getI64IntegerAttr(plan.offsets[slot->second]));
    }
  }

  FuncOp function_;
  mlir::SymbolTable& symbols_;
  llvm::DenseMap<llvm::StringRef, int64_t>& frame_bytes_;
  const bool in_place_;
  const Lifetimes values_;
  llvm::DenseMap<mlir::Attribute, mlir::BlockArgument> by_name_;
  llvm::DenseMap<mlir::Value, int64_t> returned_;
  llvm::DenseMap<mlir::Value, size_t> slot_;
  llvm::DenseMap<mlir::Operation*, size_t> frame_slot_;
  std::vector<Lifetime> lifetimes_;
};

class PlanMemory : public impl::PlanMemoryPassBase<PlanMemory> {
 public:
  using PlanMemoryPassBase::PlanMemoryPassBase;

  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>())
      if (mlir::failed(plan(function))) return signalPassFailure();
  }

 private:
  mlir::LogicalResult plan(FuncOp function) {
    if (function.isExternal() || function->hasAttr(exec::kKernelAttr) ||
        frame_bytes_.contains(function.getName()))
      return mlir::success();
    if (!active_.insert(function).second)
      return function.emitError("expected a call graph without cycles");
    mlir::SymbolTable symbols(getOperation());
    for (auto call : function.getOps<CallOp>()) {
      auto callee = symbols.lookup<FuncOp>(call.getCallee());
      if (!callee)
        return call.emitOpError("expected a function named '")
               << call.getCallee() << "'";
      if (mlir::failed(plan(callee))) return mlir::failure();
    }
    buffers += FunctionPlanner(function, symbols, frame_bytes_, inPlace).run();
    return mlir::success();
  }

  llvm::DenseMap<llvm::StringRef, int64_t> frame_bytes_;
  llvm::DenseSet<mlir::Operation*> active_;
};

}  // namespace
}  // namespace partita::memory
