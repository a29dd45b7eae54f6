// Walks the launches of a step in order, with calls flattened, as the runtime
// does, and lists the states that each uses.
#include "compiler/driver/state_buffers.h"

#include <algorithm>
#include <set>
#include <vector>

#include "dialects/exec/dialect.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/SymbolTable.h"
#include "runtime/program/state_windows.h"

namespace partita::driver {
namespace {

using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

class StateUnits {
 public:
  explicit StateUnits(const exec::Entry& entry)
      : symbols_(entry.main->getParentOfType<mlir::ModuleOp>()) {
    FuncOp main = entry.main;
    const auto text = [](mlir::Attribute attribute) {
      auto found = llvm::dyn_cast_if_present<mlir::StringAttr>(attribute);
      return found ? found.getValue() : llvm::StringRef();
    };
    llvm::StringMap<int> states;
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (text(main.getArgAttr(i, nn::kKindAttr)) == "state")
        states[text(main.getArgAttr(i, nn::kNameAttr))] = -1;
    std::vector<int> arguments(main.getNumArguments(), -1),
        results(main.getNumResults(), -1);
    for (unsigned i = 0; i < main.getNumResults(); ++i) {
      const auto found =
          states.find(text(main.getResultAttr(i, nn::kUpdatesAttr)));
      const int64_t size = exec::bufferBytes(
          llvm::cast<mlir::RankedTensorType>(main.getResultTypes()[i]));
      if (found == states.end() || size == 0) continue;
      results[i] = found->second = static_cast<int>(bytes.size());
      bytes.push_back(size);
    }
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (text(main.getArgAttr(i, nn::kKindAttr)) == "state")
        arguments[i] = states.lookup(text(main.getArgAttr(i, nn::kNameAttr)));
    walk(main, arguments, results);
  }

  std::vector<int64_t> bytes;           // of each updated state
  std::vector<std::vector<int>> units;  // states of each launch or piece

 private:
  void walk(FuncOp function, const std::vector<int>& arguments,
            const std::vector<int>& results) {
    llvm::DenseMap<Value, int> states;
    const auto stateOf = [&](Value value) {
      const auto found = states.find(value);
      return found == states.end() ? -1 : found->second;
    };
    for (auto [argument, state] :
         llvm::zip_equal(function.getArguments(), arguments))
      states[argument] = state;
    for (mlir::Operation& op : function.front().without_terminator()) {
      if (auto view = llvm::dyn_cast<exec::ViewOp>(op)) {
        states[view.getResult()] = stateOf(view.getInput());
        continue;
      }
      place(op, results, states);
      if (auto call = llvm::dyn_cast<CallOp>(op)) {
        std::vector<int> inputs, outputs;
        for (Value operand : call.getOperands())
          inputs.push_back(stateOf(operand));
        for (Value result : call.getResults())
          outputs.push_back(stateOf(result));
        walk(symbols_.lookup<FuncOp>(call.getCallee()), inputs, outputs);
        continue;
      }
      auto pieces = llvm::dyn_cast<exec::LaunchPiecesOp>(op);
      const size_t count = pieces ? pieces.getRanges().size() : 1;
      for (size_t piece = 0; piece < count; ++piece) {
        std::set<int> used;
        for (Value operand : pieces ? pieces.getOperandsOf(piece)
                                    : mlir::OperandRange(op.getOperands()))
          used.insert(stateOf(operand));
        for (mlir::OpResult result : op.getResults())
          if (!pieces || pieces.getPieceOf(result) == piece)
            used.insert(stateOf(result));
        used.erase(-1);
        if (!used.empty()) units.emplace_back(used.begin(), used.end());
      }
    }
  }

  // Results that are in the memory of states.
  static void place(mlir::Operation& op, const std::vector<int>& results,
                    llvm::DenseMap<Value, int>& states) {
    if (auto launch = llvm::dyn_cast<exec::LaunchOp>(op);
        launch && !launch.getInto().empty()) {
      for (auto [result, begun] :
           llvm::zip_equal(launch.getResults(), launch.getInto())) {
        const auto found = states.find(begun);
        const int state = found == states.end() ? -1 : found->second;
        states[result] = state;
      }
      return;
    }
    if (auto offsets =
            op.getAttrOfType<mlir::DenseI64ArrayAttr>(exec::kOffsetsAttr))
      for (auto [result, offset] :
           llvm::zip_equal(op.getResults(), offsets.asArrayRef()))
        if (offset < 0)
          states[result] = results[static_cast<size_t>(-1 - offset)];
  }

  mlir::SymbolTable symbols_;
};

}  // namespace

void countStateFiles(const exec::Entry& entry, int64_t buffers,
                     memory::MemoryTable& table) {
  const StateUnits states(entry);
  for (const int64_t bytes : states.bytes) {
    table.host -= bytes;
    table.files += program::RoundToPage(bytes);
  }
  table.host +=
      program::PlanStateWindows(states.units, states.bytes, buffers).Bytes();
}

mlir::LogicalResult checkStateBuffers(mlir::ModuleOp module,
                                      const plan::Plan& plan) {
  const int64_t found = plan.state_files ? plan.state_files->buffers : 0;
  if (found == 0) return mlir::success();
  int64_t needed = 0;
  for (const exec::Entry& entry : exec::entriesOf(module)) {
    const StateUnits states(entry);
    needed = std::max(
        needed,
        program::PlanStateWindows(states.units, states.bytes, found).Bytes());
  }
  if (needed <= found) return mlir::success();
  const auto field = plan.fields.find("offload");
  return mlir::emitError(mlir::UnknownLoc::get(module.getContext()))
         << (field == plan.fields.end()
                 ? ""
                 : plan::Where(plan, field->second) + ": ")
         << "offload: buffers: expected at least " << needed << " bytes ("
         << program::kStateBuffers
         << " times the states of the largest tensor), found " << found
         << "; raise it, or leave it out";
}

}  // namespace partita::driver
