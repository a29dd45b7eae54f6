// Outlines each fusion group into a kernel function and launches it; see
// passes.td.
#include "compiler/kernels/fusion_groups.h"
#include "compiler/kernels/merge_late_steps.h"
#include "compiler/kernels/passes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace partita::kernels {

#define GEN_PASS_DEF_FORMKERNELSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

using llvm::SmallVector;
using mlir::Operation;
using mlir::Value;
using mlir::func::FuncOp;

bool isSplatConstant(Operation* op) {
  mlir::DenseElementsAttr value;
  return op && mlir::matchPattern(op, mlir::m_Constant(&value)) &&
         value.isSplat();
}

// Builds kernel functions and finds equal ones by their text.
class KernelLibrary {
 public:
  explicit KernelLibrary(mlir::ModuleOp module) : symbols_(module) {}

  // Takes ownership of `kernel`; returns it or an equal one.
  FuncOp intern(FuncOp kernel) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    kernel.print(
        stream, mlir::OpPrintingFlags().useLocalScope().enableDebugInfo(false));
    auto [known, is_new] = kernels_.try_emplace(text, kernel);
    if (!is_new) {
      kernel.erase();
      return known->second;
    }
    kernel.setName(("kernel_" + llvm::Twine(kernels_.size() - 1)).str());
    symbols_.insert(kernel);  // renames it if the model has such a function
    return kernel;
  }
  size_t size() const { return kernels_.size(); }

 private:
  mlir::SymbolTable symbols_;
  llvm::StringMap<FuncOp> kernels_;
};

// Outlines the groups of one function.
class FunctionOutliner {
 public:
  FunctionOutliner(FuncOp function, KernelLibrary& library)
      : function_(function),
        library_(library),
        fusion_(findFusionGroups(function.front())) {
    mergeLateSteps(function.front(), fusion_);
  }

  size_t run() {
    for (auto [index, group] : llvm::enumerate(fusion_.groups))
      for (Operation* op : group) group_of_[op] = index;
    for (auto& group : fusion_.groups) outline(group);
    eraseUnused();
    makeViews();
    orderOperations();
    return fusion_.groups.size();
  }

 private:
  bool isMovement(Operation* op) const {
    return op && fusion_.roles.lookup(op) == FusionRole::movement;
  }

  // True if an operation outside the group reads the value: another group
  // (perhaps through movement) or an operation in no group.
  bool isReadOutside(Value value, size_t group) const {
    return llvm::any_of(value.getUsers(), [&](Operation* user) {
      if (isMovement(user)) return isReadOutside(user->getResult(0), group);
      auto found = group_of_.find(user);
      return found == group_of_.end() || found->second != group;
    });
  }

  void outline(llvm::ArrayRef<Operation*> group) {
    // Movement and splat constants that lead from inputs into the group are
    // cloned with it.
    llvm::SetVector<Operation*> body;
    llvm::SetVector<Value> inputs;
    for (Operation* op : group) collect(op, group_of_[op], body, inputs);
    SmallVector<Value> outputs;
    for (Operation* op : group)
      for (Value result : op->getResults())
        if (isReadOutside(result, group_of_[op])) outputs.push_back(result);
    if (outputs.empty()) return;

    mlir::OpBuilder builder(function_.getContext());
    FuncOp kernel = build(builder, body.getArrayRef(), inputs.getArrayRef(),
                          outputs, group.back()->getLoc());
    kernel = library_.intern(kernel);
    builder.setInsertionPointAfter(group.back());
    auto launch = exec::LaunchOp::create(
        builder, group.back()->getLoc(), mlir::ValueRange(outputs).getTypes(),
        kernel.getName(), inputs.getArrayRef());
    for (auto [output, result] : llvm::zip_equal(outputs, launch.getResults()))
      output.replaceUsesWithIf(result, [&](mlir::OpOperand& use) {
        return !inside(use.getOwner(), group_of_[group.back()]);
      });
  }

  // True for the group's own operations: they keep the original value, because
  // they are erased later.
  bool inside(Operation* user, size_t group) const {
    auto found = group_of_.find(user);
    return found != group_of_.end() && found->second == group;
  }

  void collect(Operation* op, size_t group, llvm::SetVector<Operation*>& body,
               llvm::SetVector<Value>& inputs) {
    for (Value operand : op->getOperands()) {
      Operation* producer = operand.getDefiningOp();
      if (producer && body.contains(producer)) continue;
      if (isMovement(producer) || isSplatConstant(producer))
        collect(producer, group, body, inputs);
      else if (!producer || !inside(producer, group))
        inputs.insert(operand);
    }
    body.insert(op);
  }

  FuncOp build(mlir::OpBuilder& builder, llvm::ArrayRef<Operation*> body,
               llvm::ArrayRef<Value> inputs, llvm::ArrayRef<Value> outputs,
               mlir::Location loc) {
    auto type = builder.getFunctionType(mlir::ValueRange(inputs).getTypes(),
                                        mlir::ValueRange(outputs).getTypes());
    FuncOp kernel = FuncOp::create(loc, "kernel", type);
    kernel.setPrivate();
    kernel->setAttr(exec::kKernelAttr, builder.getUnitAttr());
    builder.setInsertionPointToStart(kernel.addEntryBlock());
    mlir::IRMapping map;
    map.map(inputs, kernel.getArguments());
    for (Operation* op : body) builder.clone(*op, map);
    SmallVector<Value> returned;
    for (Value output : outputs) returned.push_back(map.lookup(output));
    mlir::func::ReturnOp::create(builder, loc, returned);
    return kernel;
  }

  void eraseUnused() {
    for (Operation& op :
         llvm::make_early_inc_range(llvm::reverse(function_.front())))
      if (mlir::isOpTriviallyDead(&op)) op.erase();
  }

  // A launch is created at its last operation, but operations that read its
  // results may come before. Moves it before the first of them. All others keep
  // their order, transfers included.
  void orderOperations() {
    mlir::Block& block = function_.front();
    SmallVector<Operation*> operations;
    for (Operation& op : block.without_terminator()) operations.push_back(&op);
    llvm::DenseSet<Operation*> placed;
    for (Operation* next : operations) {
      SmallVector<Operation*> open = {next};
      while (!open.empty()) {
        Operation* op = open.back();
        bool waits = false;
        for (Value operand : op->getOperands())
          if (Operation* producer = operand.getDefiningOp();
              producer && !placed.contains(producer)) {
            open.push_back(producer);
            waits = true;
          }
        if (waits) continue;
        open.pop_back();
        if (placed.insert(op).second) op->moveBefore(block.getTerminator());
      }
    }
  }

  void makeViews() {
    for (auto reshape :
         llvm::make_early_inc_range(function_.getOps<nn::ReshapeOp>())) {
      mlir::OpBuilder builder(reshape);
      auto view = exec::ViewOp::create(builder, reshape.getLoc(),
                                       reshape.getType(), reshape.getInput());
      reshape.replaceAllUsesWith(view.getResult());
      reshape.erase();
    }
  }

  FuncOp function_;
  KernelLibrary& library_;
  FusionGroups fusion_;
  llvm::DenseMap<Operation*, size_t> group_of_;
};

// True if a function only launches one kernel, as the update of a parameter
// does. Its calls become that launch.
bool isLaunch(FuncOp function) {
  if (function.isExternal() || !function.isPrivate() ||
      function->hasAttr(exec::kKernelAttr))
    return false;
  const auto isElse = [](Operation& op) {
    return !llvm::isa<exec::LaunchOp, exec::ViewOp>(op);
  };
  return llvm::range_size(function.getOps<exec::LaunchOp>()) == 1 &&
         llvm::none_of(function.front().without_terminator(), isElse);
}

void inlineCall(mlir::func::CallOp call, FuncOp function) {
  mlir::OpBuilder builder(call);
  mlir::IRMapping map;
  map.map(function.getArguments(), call.getOperands());
  for (Operation& op : function.front().without_terminator())
    builder.clone(op, map)->setLoc(call.getLoc());
  for (auto [result, value] : llvm::zip_equal(
           call.getResults(), function.front().getTerminator()->getOperands()))
    result.replaceAllUsesWith(map.lookup(value));
  call.erase();
}

void inlineLaunches(mlir::ModuleOp module) {
  // Collect these functions before inlining, which would turn other functions
  // into launches.
  llvm::StringMap<FuncOp> launches;
  for (FuncOp function : module.getOps<FuncOp>())
    if (isLaunch(function)) launches[function.getName()] = function;
  SmallVector<mlir::func::CallOp> calls;
  module.walk([&](mlir::func::CallOp call) {
    if (launches.contains(call.getCallee())) calls.push_back(call);
  });
  llvm::SetVector<FuncOp> inlined;
  for (mlir::func::CallOp call : calls) {
    FuncOp function = launches[call.getCallee()];
    inlineCall(call, function);
    inlined.insert(function);
  }
  for (FuncOp function : inlined) function.erase();
}

class FormKernels : public impl::FormKernelsPassBase<FormKernels> {
 public:
  void runOnOperation() override {
    KernelLibrary library(getOperation());
    for (FuncOp function : llvm::to_vector(getOperation().getOps<FuncOp>())) {
      if (function.isExternal() || function->hasAttr(exec::kKernelAttr))
        continue;
      launches += FunctionOutliner(function, library).run();
    }
    kernels += library.size();
    inlineLaunches(getOperation());
  }
};

}  // namespace
}  // namespace partita::kernels
