// Makes functions of repeats in the steps of @main; see passes.td.
#include <map>

#include "compiler/simplify/layer_names.h"
#include "compiler/simplify/layer_steps.h"
#include "compiler/simplify/passes.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::simplify {

#define GEN_PASS_DEF_OUTLINELAYERSPASS
#include "compiler/simplify/passes.h.inc"

namespace {

using mlir::Operation;
using mlir::SmallVector;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

// Returns the name in an operation's location, or "".
std::string nameOf(mlir::Location loc) {
  if (auto name = mlir::dyn_cast<mlir::NameLoc>(loc))
    return name.getName().str();
  if (auto fused = mlir::dyn_cast<mlir::FusedLoc>(loc)) {
    for (mlir::Location part : fused.getLocations()) {
      if (const std::string name = nameOf(part); !name.empty()) return name;
    }
  }
  return "";
}

// One repeat and the signature that its segments share. A place is a step of a
// segment and the index of one of its sources or results.
class Layer {
 public:
  Layer(const LayerSteps& program, Operation* terminator, const Repeat& repeat)
      : program_(program), repeat_(repeat) {
    findArguments();
    findResults(terminator);
  }

  std::string name() const {
    std::vector<std::pair<std::string, std::string>> names;
    for (int64_t step = 0; step < repeat_.period; ++step) {
      names.push_back({nameOf(stepOf(0, step)->getLoc()),
                       nameOf(stepOf(1, step)->getLoc())});
    }
    return layerName(names);
  }

  // Builds the function from the first segment.
  FuncOp buildFunction(mlir::OpBuilder& builder) const {
    SmallVector<mlir::Type> inputs, outputs;
    for (const Place& place : arguments_)
      inputs.push_back(sourceAt(0, place).getType());
    for (const Place& place : results_)
      outputs.push_back(resultAt(0, place).getType());
    auto function = FuncOp::create(builder, stepOf(0, 0)->getLoc(), name(),
                                   builder.getFunctionType(inputs, outputs));
    function.setPrivate();
    mlir::OpBuilder body =
        mlir::OpBuilder::atBlockBegin(function.addEntryBlock());
    mlir::IRMapping produced;
    for (int64_t step = 0; step < repeat_.period; ++step)
      cloneStep(body, function, step, produced);
    SmallVector<Value> returned;
    for (const Place& place : results_)
      returned.push_back(produced.lookup(resultAt(0, place)));
    mlir::func::ReturnOp::create(body, function.getLoc(), returned);
    return function;
  }

  // Replaces each segment by a call.
  void replaceSegments(FuncOp function) const {
    for (int64_t segment = 0; segment < repeat_.count; ++segment)
      replaceSegment(function, segment);
  }

 private:
  using Place = std::pair<int64_t, int64_t>;

  Operation* stepOf(int64_t segment, int64_t step) const {
    return program_.operations[repeat_.start + segment * repeat_.period + step];
  }
  Value sourceAt(int64_t segment, const Place& place) const {
    return sourcesOf(stepOf(segment, place.first))[place.second];
  }
  Value resultAt(int64_t segment, const Place& place) const {
    return stepOf(segment, place.first)->getResult(place.second);
  }

  // Finds sources outside of their segment. Two sources that are equal in
  // every segment share an argument.
  void findArguments() {
    std::vector<std::vector<SmallVector<Value>>> sources(repeat_.count);
    for (int64_t segment = 0; segment < repeat_.count; ++segment) {
      for (int64_t step = 0; step < repeat_.period; ++step) {
        sources[segment].push_back(sourcesOf(stepOf(segment, step)));
      }
    }
    std::map<std::vector<void*>, int64_t> known;
    for (int64_t step = 0; step < repeat_.period; ++step) {
      const std::vector<ValueRef>& operands =
          program_.steps[repeat_.start + step].operands;
      for (size_t slot = 0; slot < operands.size(); ++slot) {
        if (operands[slot].step >= repeat_.start) continue;
        std::vector<void*> values;
        for (const auto& of_segment : sources)
          values.push_back(of_segment[step][slot].getAsOpaquePointer());
        const auto [found, is_new] =
            known.try_emplace(values, arguments_.size());
        if (is_new) arguments_.push_back({step, slot});
        argument_of_[{step, slot}] = found->second;
      }
    }
  }

  // Finds results that, in some segment, are used outside of the segment.
  void findResults(Operation* terminator) {
    std::map<Place, bool> read;
    const auto note = [&](const ValueRef& ref, int64_t reader) {
      if (ref.step < repeat_.start || ref.step >= repeat_.end()) return;
      const int64_t from = (ref.step - repeat_.start) / repeat_.period;
      const bool same_segment =
          reader < repeat_.end() && reader >= repeat_.start &&
          (reader - repeat_.start) / repeat_.period == from;
      if (!same_segment)
        read[{(ref.step - repeat_.start) % repeat_.period, ref.result}] = true;
    };
    llvm::DenseMap<Operation*, int64_t> number;
    for (const auto& [i, op] : llvm::enumerate(program_.operations))
      number[op] = i;
    for (const auto& [i, step] : llvm::enumerate(program_.steps)) {
      for (const ValueRef& ref : step.operands) note(ref, i);
    }
    for (Value source : sourcesOf(terminator)) {
      auto result = mlir::dyn_cast<mlir::OpResult>(source);
      const auto found = result ? number.find(result.getOwner()) : number.end();
      if (found != number.end())
        note({found->second, result.getResultNumber()}, program_.steps.size());
    }
    for (const auto& [place, is_read] : read) results_.push_back(place);
  }

  void cloneStep(mlir::OpBuilder& body, FuncOp function, int64_t step,
                 mlir::IRMapping& produced) const {
    Operation* op = stepOf(0, step);
    int64_t slot = 0;
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      operands.push_back(
          cloneSource(body, function, operand, step, slot, produced));
    }
    Operation* clone = body.clone(*op);
    clone->setOperands(operands);
    for (auto [result, copy] :
         llvm::zip_equal(op->getResults(), clone->getResults()))
      produced.map(result, copy);
  }

  // Counts sources as sourcesOf() does: one value may be several arguments.
  Value cloneSource(mlir::OpBuilder& body, FuncOp function, Value value,
                    int64_t step, int64_t& slot,
                    const mlir::IRMapping& produced) const {
    Operation* op = value.getDefiningOp();
    if (!op || !isFree(op)) {
      const auto argument = argument_of_.find({step, slot++});
      return argument == argument_of_.end()
                 ? produced.lookup(value)
                 : function.getArgument(argument->second);
    }
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      operands.push_back(
          cloneSource(body, function, operand, step, slot, produced));
    }
    Operation* clone = body.clone(*op);
    clone->setOperands(operands);
    return clone->getResult(
        mlir::cast<mlir::OpResult>(value).getResultNumber());
  }

  void replaceSegment(FuncOp function, int64_t segment) const {
    llvm::SetVector<Operation*> inside;
    for (int64_t step = 0; step < repeat_.period; ++step) {
      Operation* op = stepOf(segment, step);
      for (Operation* free : freeOperationsOf(op)) inside.insert(free);
      inside.insert(op);
    }
    SmallVector<Value> operands;
    for (const Place& place : arguments_)
      operands.push_back(sourceAt(segment, place));
    mlir::OpBuilder builder(inside.back()->getContext());
    builder.setInsertionPointAfter(inside.back());
    auto call =
        CallOp::create(builder, inside.front()->getLoc(), function, operands);
    for (auto [place, result] : llvm::zip_equal(results_, call.getResults())) {
      resultAt(segment, place)
          .replaceUsesWithIf(result, [&](mlir::OpOperand& use) {
            return !inside.contains(use.getOwner());
          });
    }
    for (Operation* op : llvm::reverse(inside)) op->erase();
  }

  const LayerSteps& program_;
  const Repeat repeat_;
  SmallVector<Place> arguments_, results_;
  std::map<Place, int64_t> argument_of_;
};

class OutlineLayersPass
    : public impl::OutlineLayersPassBase<OutlineLayersPass> {
 public:
  using OutlineLayersPassBase::OutlineLayersPassBase;

 private:
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<FuncOp>("main");
    if (!main || main.isExternal()) {
      getOperation().emitError(
          "expected a function @main with a body, found none");
      return signalPassFailure();
    }
    const LayerSteps program = orderSteps(main);
    mlir::SymbolTable symbols(getOperation());
    mlir::OpBuilder builder(&getContext());
    SmallVector<Layer> layers;
    for (const Repeat& repeat : findRepeats(program.steps, min_operations)) {
      layers.emplace_back(program, main.front().getTerminator(), repeat);
      calls += repeat.count;
    }
    kinds += layers.size();
    for (const Layer& layer : layers) {
      FuncOp function = layer.buildFunction(builder);
      symbols.insert(function);
      layer.replaceSegments(function);
    }
  }
};

}  // namespace
}  // namespace partita::simplify
