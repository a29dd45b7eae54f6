// Orders the operations of a function by their dependences, and numbers their
// kinds.
#include "compiler/simplify/layer_steps.h"

#include <map>

#include "compiler/simplify/stored_values.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

namespace partita::simplify {

using mlir::Operation;
using mlir::SmallVector;
using mlir::Value;
using mlir::func::FuncOp;

namespace {

// A larger constant counts as a parameter: layers with different values of it
// are still equal.
constexpr int64_t kMaxFreeElements = 16;

// True for constants, and for parts of an argument, such as a layer's rows of
// parameters that are stacked. Layers take them from outside.
bool isOutside(Operation* op) {
  if (auto slice = mlir::dyn_cast<nn::SliceOp>(op))
    return mlir::isa<mlir::BlockArgument>(slice.getInput());
  return mlir::isa<mlir::arith::ConstantOp>(op);
}

bool isMajor(Operation* op) {
  return mlir::isa<nn::DotGeneralOp, nn::ConvOp, nn::AttentionOp, nn::ExpertsOp,
                   nn::GroupedDotOp>(op);
}

void collectSources(Value value, SmallVector<Value>& sources) {
  Operation* op = value.getDefiningOp();
  if (!op || !isFree(op)) {
    sources.push_back(value);
    return;
  }
  for (Value operand : op->getOperands()) collectSources(operand, sources);
}

void collectFree(Value value, llvm::SetVector<Operation*>& found) {
  Operation* op = value.getDefiningOp();
  if (!op || !isFree(op) || found.contains(op)) return;
  for (Value operand : op->getOperands()) collectFree(operand, found);
  found.insert(op);
}

class StepOrder {
 public:
  explicit StepOrder(FuncOp function) : function_(function) {}

  LayerSteps run() {
    giveOwnCopies();
    for (Operation& op : function_.front()) {
      if (isFree(&op) || isOutside(&op)) continue;
      kind_[&op] = kindOf(&op);
      classify(&op);
      for (auto [slot, source] : llvm::enumerate(sourcesOf(&op))) {
        if (Operation* producer = source.getDefiningOp())
          readers_[producer].push_back({&op, slot});
      }
    }
    emitAll();
    moveIntoOrder();
    return describe();
  }

 private:
  struct Reader {
    Operation* op;
    size_t slot;
  };

  void giveOwnCopies() {
    for (Operation& op : llvm::make_early_inc_range(function_.front())) {
      if (isFree(&op)) continue;
      mlir::OpBuilder builder(&op);
      mlir::IRMapping mapping;
      for (Operation* free : freeOperationsOf(&op))
        builder.clone(*free, mapping);
      for (mlir::OpOperand& operand : op.getOpOperands())
        operand.set(mapping.lookupOrDefault(operand.get()));
    }
    for (Operation& op :
         llvm::make_early_inc_range(llvm::reverse(function_.front()))) {
      if (isFree(&op) && op.use_empty()) op.erase();
    }
  }

  void classify(Operation* op) {
    bool stored = true, light = true;
    for (Value source : sourcesOf(op)) {
      Operation* producer = source.getDefiningOp();
      if (!producer) {
        stored &= isStoredArgument(
            function_, mlir::cast<mlir::BlockArgument>(source).getArgNumber());
      } else if (!isOutside(producer)) {
        stored &= stored_[producer];
        light &= light_[producer];
      } else if (auto slice = mlir::dyn_cast<nn::SliceOp>(producer)) {
        stored &= isStoredArgument(
            function_,
            mlir::cast<mlir::BlockArgument>(slice.getInput()).getArgNumber());
      }
    }
    const bool is_call = mlir::isa<mlir::func::CallOp>(op);
    stored_[op] = stored && !is_call;
    light_[op] = !is_call && (stored_[op] || (light && !isMajor(op)));
  }

  // Returns a number for an operation's kind: its name, attributes and types,
  // and the same of its free operands.
  int64_t kindOf(Operation* op) {
    std::vector<const void*> key;
    appendKey(op, key);
    return kinds_.try_emplace(key, kinds_.size()).first->second;
  }

  void appendKey(Operation* op, std::vector<const void*>& key) {
    key.push_back(op->getName().getAsOpaquePointer());
    key.push_back(op->getAttrDictionary().getAsOpaquePointer());
    for (mlir::Type type : op->getResultTypes())
      key.push_back(type.getAsOpaquePointer());
    for (Value operand : op->getOperands()) {
      Operation* producer = operand.getDefiningOp();
      if (producer && isFree(producer)) {
        appendKey(producer, key);
      } else {
        key.push_back(operand.getType().getAsOpaquePointer());
      }
    }
  }

  // True if two steps of different layers read the result in the same way:
  // equal steps, one of which depends on the other.
  bool isShared(Operation* op) {
    std::map<std::pair<int64_t, size_t>, Operation*> first;
    for (const Reader& reader : readers_[op]) {
      const auto [found, is_new] =
          first.try_emplace({kind_[reader.op], reader.slot}, reader.op);
      if (!is_new && dependsOn(reader.op, found->second)) return true;
    }
    return false;
  }

  static bool dependsOn(Operation* op, Operation* earlier) {
    llvm::SetVector<Operation*> reached;
    reached.insert(op);
    for (size_t i = 0; i < reached.size(); ++i) {
      for (Value source : sourcesOf(reached[i])) {
        Operation* producer = source.getDefiningOp();
        if (producer == earlier) return true;
        if (producer && !producer->isBeforeInBlock(earlier))
          reached.insert(producer);
      }
    }
    return false;
  }

  void emitAll() {
    for (Operation& op : function_.front()) {
      if (light_.lookup(&op) && isShared(&op)) emit(&op);
    }
    for (Operation& op : function_.front()) {
      if (kind_.contains(&op) && !light_[&op]) emit(&op);
    }
    emit(function_.front().getTerminator());
    for (Operation& op : function_.front()) {
      if (kind_.contains(&op)) emit(&op);
    }
  }

  // Emits the operation after operations that it needs.
  void emit(Operation* op) {
    if (!kind_.contains(op) || emitted_.contains(op)) return;
    for (Value source : sourcesOf(op)) {
      if (Operation* producer = source.getDefiningOp()) emit(producer);
    }
    emitted_.insert(op);
  }

  void moveIntoOrder() {
    mlir::Block& block = function_.front();
    Operation* terminator = block.getTerminator();
    emitted_.remove(terminator);
    for (Operation* op : emitted_) {
      for (Operation* free : freeOperationsOf(op)) free->moveBefore(terminator);
      op->moveBefore(terminator);
    }
    for (Operation* free : freeOperationsOf(terminator))
      free->moveBefore(terminator);
  }

  LayerSteps describe() {
    LayerSteps result;
    llvm::DenseMap<Operation*, int64_t> number;
    for (Operation* op : emitted_) {
      Step step{kind_[op], {}, isMajor(op)};
      for (Value source : sourcesOf(op)) {
        Operation* producer = source.getDefiningOp();
        if (!producer || isOutside(producer)) {
          step.operands.push_back({-1});
        } else {
          step.operands.push_back(
              {number.at(producer),
               mlir::cast<mlir::OpResult>(source).getResultNumber()});
        }
      }
      number[op] = result.steps.size();
      result.steps.push_back(std::move(step));
      result.operations.push_back(op);
    }
    return result;
  }

  FuncOp function_;
  llvm::DenseMap<Operation*, int64_t> kind_;
  llvm::DenseMap<Operation*, bool> stored_;  // depends on stored tensors alone
  llvm::DenseMap<Operation*, bool>
      light_;  // stored, or independent of major steps
  llvm::DenseMap<Operation*, SmallVector<Reader>> readers_;
  llvm::SetVector<Operation*> emitted_;
  std::map<std::vector<const void*>, int64_t> kinds_;
};

}  // namespace

bool isFree(Operation* op) {
  if (auto constant = mlir::dyn_cast<mlir::arith::ConstantOp>(op)) {
    auto dense = mlir::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
    return !dense || dense.isSplat() ||
           dense.getNumElements() <= kMaxFreeElements;
  }
  return mlir::isa<nn::BroadcastOp, nn::ReshapeOp, nn::IotaOp>(op);
}

SmallVector<Value> sourcesOf(Operation* op) {
  SmallVector<Value> sources;
  for (Value operand : op->getOperands()) collectSources(operand, sources);
  return sources;
}

SmallVector<Operation*> freeOperationsOf(Operation* op) {
  llvm::SetVector<Operation*> found;
  for (Value operand : op->getOperands()) collectFree(operand, found);
  return found.takeVector();
}

LayerSteps orderSteps(FuncOp function) { return StepOrder(function).run(); }

}  // namespace partita::simplify
