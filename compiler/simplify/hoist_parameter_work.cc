// Moves work on stored tensors out of layer functions to their callers, and
// from @main to @init; see passes.td.
#include "compiler/simplify/passes.h"
#include "compiler/simplify/stored_values.h"
#include "compiler/simplify/view.h"
#include "dialects/nn/byte_convolution.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

namespace partita::simplify {

#define GEN_PASS_DEF_HOISTPARAMETERWORKPASS
#include "compiler/simplify/passes.h.inc"

namespace {

using mlir::Operation;
using mlir::SmallVector;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;
namespace arith = mlir::arith;

// An elementwise result may exceed the largest stored tensor that it depends on
// by at most this factor.
constexpr int64_t kMaxGrowth = 2;

// True for operations that cost less at their use than storing their result
// would.
bool staysBehind(Operation* op) {
  return mlir::isa<nn::BroadcastOp, nn::ReshapeOp, nn::IotaOp,
                   arith::ConstantOp, arith::ExtFOp, arith::ExtSIOp,
                   arith::ExtUIOp>(op) ||
         (mlir::isa<arith::SIToFPOp>(op) &&
          tensorType(op->getResult(0)).getNumElements() == 1);
}

int64_t bytesOf(Value value) {
  const mlir::RankedTensorType type = tensorType(value);
  return type.getNumElements() *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

// The operations that compute some values from arguments, in program order.
class Slice {
 public:
  explicit Slice(mlir::ArrayRef<Value> values) {
    for (Value value : values) add(value);
    llvm::sort(operations_, [](Operation* a, Operation* b) {
      return a->isBeforeInBlock(b);
    });
  }

  mlir::ArrayRef<Operation*> operations() const { return operations_; }
  mlir::ArrayRef<mlir::BlockArgument> arguments() const {
    return arguments_.getArrayRef();
  }

  void cloneInto(mlir::OpBuilder& builder, mlir::IRMapping& mapping) const {
    for (Operation* op : operations_) builder.clone(*op, mapping);
  }

 private:
  void add(Value value) {
    if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value)) {
      arguments_.insert(argument);
    } else if (seen_.insert(value.getDefiningOp()).second) {
      operations_.push_back(value.getDefiningOp());
      for (Value operand : value.getDefiningOp()->getOperands()) add(operand);
    }
  }

  SmallVector<Operation*> operations_;
  llvm::SetVector<mlir::BlockArgument> arguments_;
  llvm::DenseSet<Operation*> seen_;
};

// True if computing `value` once and storing it is better than computing it in
// every run.
bool isWorthKeeping(Value value) {
  const Slice slice({value});
  int64_t largest_source = 0;
  for (Value argument : slice.arguments())
    largest_source = std::max(largest_source, bytesOf(argument));
  bool elementwise = true;
  for (Operation* op : slice.operations()) {
    // Products read the packed weight.
    if (mlir::isa<nn::DequantizeOp>(op)) return false;
    if (mlir::isa<arith::ConstantOp>(op)) {
      // A splat stores one element.
      auto dense = mlir::dyn_cast<mlir::DenseElementsAttr>(
          mlir::cast<arith::ConstantOp>(op).getValue());
      if (dense && !dense.isSplat())
        largest_source = std::max(largest_source, bytesOf(op->getResult(0)));
    }
    elementwise &=
        staysBehind(op) || mlir::OpTrait::hasElementwiseMappableTraits(op);
  }
  if (!elementwise) return true;
  return !slice.arguments().empty() &&
         bytesOf(value) <= kMaxGrowth * largest_source;
}

// True if a convolution reads the value as its weight. Libraries pack stored
// weights. On CPUs they read the integers of a stored weight themselves.
bool isConvWeight(Value value, bool gpu) {
  return llvm::any_of(value.getUses(), [gpu](mlir::OpOperand& use) {
    auto conv = mlir::dyn_cast<nn::ConvOp>(use.getOwner());
    return conv && conv.getWeight() == use.get() &&
           (gpu || !nn::matchByteConvolution(conv));
  });
}

// The stored values of a function that are worth storing and that operations
// outside of the stored set use.
class Frontier {
 public:
  Frontier(FuncOp function, const StoredValues& stored, bool gpu)
      : stored_(stored), gpu_(gpu) {
    for (Operation& op : function.front()) {
      const bool is_stored =
          op.getNumResults() > 0 && stored.contains(op.getResult(0));
      if (is_stored) continue;
      for (Value operand : op.getOperands()) consider(operand);
    }
  }

  mlir::ArrayRef<Value> values() const { return values_; }

 private:
  void consider(Value value) {
    Operation* op = value.getDefiningOp();
    if (!op || !stored_.contains(value) ||
        !mlir::isa<mlir::RankedTensorType>(value.getType()))
      return;
    if (!seen_.insert(value).second) return;
    if (!staysBehind(op) &&
        (isWorthKeeping(value) || isConvWeight(value, gpu_))) {
      values_.push_back(value);
      return;
    }
    for (Value operand : op->getOperands()) consider(operand);
  }

  const StoredValues& stored_;
  const bool gpu_;
  SmallVector<Value> values_;
  llvm::DenseSet<Value> seen_;
};

// Replaces `value` by a new last argument of `function`.
mlir::LogicalResult replaceByArgument(FuncOp function, Value value,
                                      mlir::DictionaryAttr attributes) {
  const unsigned index = function.getNumArguments();
  if (failed(function.insertArgument(index, value.getType(), attributes,
                                     value.getLoc())))
    return mlir::failure();
  value.replaceAllUsesWith(function.getArgument(index));
  return mlir::success();
}

// Moves the frontier of a layer function to its callers.
mlir::LogicalResult hoistToCallers(FuncOp function,
                                   mlir::ArrayRef<CallOp> calls,
                                   StoredValues& stored, bool gpu) {
  const Frontier frontier(function, stored, gpu);
  if (frontier.values().empty()) return mlir::success();
  const Slice slice(frontier.values());
  for (CallOp call : calls) {
    mlir::OpBuilder builder(call);
    mlir::IRMapping mapping;
    for (mlir::BlockArgument argument : slice.arguments()) {
      mapping.map(argument, call.getOperand(argument.getArgNumber()));
    }
    slice.cloneInto(builder, mapping);
    for (Operation* op : slice.operations()) {
      for (Value result : op->getResults())
        stored.insert(mapping.lookup(result));
    }
    for (Value value : frontier.values()) {
      call.getOperandsMutable().append(mapping.lookup(value));
    }
  }
  for (Value value : frontier.values()) {
    if (failed(replaceByArgument(function, value, nullptr)))
      return mlir::failure();
    stored.insert(function.getArguments().back());
  }
  eraseDeadOperations(function);
  return mlir::success();
}

// Builds @init. Its arguments mirror arguments of @main.
class InitFunction {
 public:
  InitFunction(mlir::ModuleOp module, FuncOp main) : main_(main) {
    function_ = module.lookupSymbol<FuncOp>("init");
    if (!function_) create();
    return_ =
        mlir::cast<mlir::func::ReturnOp>(function_.front().getTerminator());
    for (mlir::BlockArgument argument : main.getArguments()) {
      const auto kind = main.getArgAttrOfType<mlir::StringAttr>(
          argument.getArgNumber(), nn::kKindAttr);
      if (kind && kind.getValue() == "derived")
        mapping_.map(argument, return_.getOperand(derived_++));
    }
  }

  // Computes `values` of @main at load time and makes them arguments of @main.
  mlir::LogicalResult move(mlir::ArrayRef<Value> values) {
    const Slice slice(values);
    for (mlir::BlockArgument argument : slice.arguments()) {
      if (failed(provide(argument))) return mlir::failure();
    }
    mlir::OpBuilder builder(return_);
    slice.cloneInto(builder, mapping_);
    for (Value value : values) {
      const mlir::DictionaryAttr name =
          builder.getDictionaryAttr(builder.getNamedAttr(
              nn::kNameAttr,
              builder.getStringAttr("derived." + llvm::Twine(derived_++))));
      if (failed(function_.insertResult(function_.getNumResults(),
                                        value.getType(), name)))
        return mlir::failure();
      return_.getOperandsMutable().append(mapping_.lookup(value));
      mlir::NamedAttrList attributes(name);
      attributes.set(nn::kKindAttr, builder.getStringAttr("derived"));
      if (failed(replaceByArgument(
              main_, value, attributes.getDictionary(builder.getContext())))) {
        return mlir::failure();
      }
    }
    return mlir::success();
  }

 private:
  void create() {
    mlir::OpBuilder builder(main_);
    function_ = FuncOp::create(builder, main_.getLoc(), "init",
                               builder.getFunctionType({}, {}));
    builder.setInsertionPointToStart(function_.addEntryBlock());
    mlir::func::ReturnOp::create(builder, main_.getLoc());
  }

  // Adds the argument of @main to @init, with its attributes.
  mlir::LogicalResult provide(mlir::BlockArgument argument) {
    if (mapping_.contains(argument)) return mlir::success();
    const mlir::DictionaryAttr attributes =
        main_.getArgAttrDict(argument.getArgNumber());
    for (mlir::BlockArgument own : function_.getArguments()) {
      if (function_.getArgAttrDict(own.getArgNumber()) == attributes &&
          own.getType() == argument.getType()) {
        return mapping_.map(argument, own), mlir::success();
      }
    }
    const unsigned index = function_.getNumArguments();
    if (failed(function_.insertArgument(index, argument.getType(), attributes,
                                        argument.getLoc()))) {
      return mlir::failure();
    }
    mapping_.map(argument, function_.getArgument(index));
    return mlir::success();
  }

  FuncOp main_, function_;
  mlir::func::ReturnOp return_;
  mlir::IRMapping mapping_;  // from @main to @init
  int64_t derived_ = 0;
};

class HoistParameterWorkPass
    : public impl::HoistParameterWorkPassBase<HoistParameterWorkPass> {
 public:
  using HoistParameterWorkPassBase::HoistParameterWorkPassBase;

 private:
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<FuncOp>("main");
    if (!main || main.isExternal()) {
      getOperation().emitError(
          "expected a function @main with a body, found none");
      return signalPassFailure();
    }
    if (failed(hoist(main)) || failed(dropUnusedArguments(main)))
      signalPassFailure();
  }

  mlir::LogicalResult hoist(FuncOp main) {
    const CallGraph graph(main);
    StoredValues stored(main, graph);
    for (FuncOp function : llvm::reverse(graph.functions)) {
      if (function == main || !graph.isOnlyCalled(function)) continue;
      if (failed(
              hoistToCallers(function, graph.calls.at(function), stored, gpu)))
        return mlir::failure();
    }
    shareEqual(main);
    // Sharing erased operations, so search again.
    const StoredValues in_main(main, graph);
    const Frontier frontier(main, in_main, gpu);
    if (frontier.values().empty()) return mlir::success();
    derived += frontier.values().size();
    if (failed(InitFunction(getOperation(), main).move(frontier.values())))
      return mlir::failure();
    eraseDeadOperations(main);
    return mlir::success();
  }

  static void shareEqual(FuncOp function) {
    mlir::IRRewriter rewriter(function.getContext());
    mlir::DominanceInfo dominance(function);
    mlir::eliminateCommonSubExpressions(rewriter, dominance, function);
  }

  mlir::LogicalResult dropUnusedArguments(FuncOp main) {
    llvm::BitVector unused(main.getNumArguments());
    for (mlir::BlockArgument argument : main.getArguments()) {
      if (argument.use_empty() &&
          main.getArgAttr(argument.getArgNumber(), nn::kSourceAttr)) {
        unused.set(argument.getArgNumber());
      }
    }
    dropped += unused.count();
    return main.eraseArguments(unused);
  }
};

}  // namespace
}  // namespace partita::simplify
