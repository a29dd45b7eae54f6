// Splits calls that compute gradients in two; see passes.td.
#include <map>
#include <set>

#include "compiler/autodiff/call_marks.h"
#include "compiler/pipeline/passes.h"
#include "compiler/pipeline/split_function.h"
#include "llvm/ADT/StringExtras.h"

namespace partita::pipeline {

#define GEN_PASS_DEF_SPLITBACKWARDPASS
#include "compiler/pipeline/passes.h.inc"

namespace {

using autodiff::kBackwardAttr;
using llvm::SmallVector;
using mlir::failure;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

// True if a call computes all gradients.
bool isWhole(Operation* op) {
  return llvm::isa<CallOp>(op) &&
         op->hasAttrOfType<mlir::UnitAttr>(kBackwardAttr);
}

int64_t markOf(Operation* op, const char* name) {
  auto mark = op->getAttrOfType<mlir::IntegerAttr>(name);
  return mark ? mark.getInt() : 0;
}

class SplitBackward : public impl::SplitBackwardPassBase<SplitBackward> {
 public:
  using SplitBackwardPassBase::SplitBackwardPassBase;

  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<FuncOp>("main");
    if (!main) {
      getOperation().emitError("expected a function named 'main', found none");
      return signalPassFailure();
    }
    if (mlir::failed(readCells()) || mlir::failed(run(main)))
      signalPassFailure();
  }

 private:
  LogicalResult readCells() {
    all_ = cells == "all";
    if (all_) return success();
    for (llvm::StringRef text : llvm::split(cells.getValue(), ';')) {
      if (text.empty()) continue;
      auto [stage, microbatch] = text.split('.');
      std::pair<int64_t, int64_t> cell;
      if (stage.getAsInteger(10, cell.first) ||
          microbatch.getAsInteger(10, cell.second))
        return getOperation().emitError(
                   "expected cells to be 'all' or STAGE.MICROBATCH, separated "
                   "by ';', found '")
               << text << "'";
      chosen_.insert(cell);
    }
    return success();
  }

  LogicalResult run(FuncOp main) {
    findWaited(main);
    mlir::SymbolTable symbols(getOperation());
    SmallVector<CallOp> calls;
    for (CallOp call : main.getOps<CallOp>())
      if (isWhole(call) && isChosen(call)) calls.push_back(call);
    for (CallOp call : calls)
      if (mlir::failed(split(call, symbols))) return failure();
    // Erase functions that are no longer called.
    for (FuncOp whole : split_)
      if (mlir::SymbolTable::symbolKnownUseEmpty(whole, getOperation()))
        symbols.erase(whole);
    return success();
  }

  bool isChosen(CallOp call) const {
    return all_ || chosen_.count({markOf(call, autodiff::kStageAttr),
                                  markOf(call, autodiff::kMicrobatchAttr)});
  }

  // Finds values that lead to operands of backward calls.
  void findWaited(FuncOp main) {
    for (Operation& op : llvm::reverse(main.front().without_terminator()))
      if (op.hasAttr(kBackwardAttr) ||
          llvm::any_of(op.getResults(),
                       [&](Value value) { return waited_.contains(value); }))
        waited_.insert(op.operand_begin(), op.operand_end());
  }

  LogicalResult split(CallOp call, mlir::SymbolTable& symbols) {
    auto callee = symbols.lookup<FuncOp>(call.getCallee());
    if (!callee || callee.isExternal())
      return call.emitOpError("expected a function with a body named '")
             << call.getCallee() << "'";
    const SplitFunction& parts = partsOf(call, callee, symbols);
    if (!parts.first || !parts.second) {
      mark(call, parts.first ? autodiff::kInputGradients
                             : autodiff::kWeightGradients);
      return success();
    }
    mlir::OpBuilder builder(call);
    SmallVector<Value> operands;
    for (unsigned i : parts.first_arguments)
      operands.push_back(call.getOperand(i));
    auto first = CallOp::create(builder, call.getLoc(), parts.first, operands);
    operands.clear();
    for (unsigned i : parts.second_arguments)
      operands.push_back(call.getOperand(i));
    for (unsigned i : parts.passed) operands.push_back(first.getResult(i));
    auto second =
        CallOp::create(builder, call.getLoc(), parts.second, operands);
    for (CallOp part : {first, second})
      part->setDiscardableAttrs(call->getDiscardableAttrDictionary());
    mark(first, autodiff::kInputGradients);
    mark(second, autodiff::kWeightGradients);
    for (auto [result, source] :
         llvm::zip_equal(call.getResults(), parts.results))
      if (!result.use_empty())
        result.replaceAllUsesWith(
            (source.is_second ? second : first).getResult(source.result));
    call.erase();
    return success();
  }

  static void mark(CallOp call, const char* part) {
    call->setAttr(kBackwardAttr,
                  mlir::StringAttr::get(call.getContext(), part));
  }

  // Returns the halves of a callee, shared by calls that need the same results.
  const SplitFunction& partsOf(CallOp call, FuncOp callee,
                               mlir::SymbolTable& symbols) {
    std::vector<When> results;
    std::vector<bool> stored;
    for (Value result : call.getResults())
      results.push_back(result.use_empty()         ? When::kNever
                        : waited_.contains(result) ? When::kEarly
                                                   : When::kLate);
    for (Value operand : call.getOperands())
      stored.push_back(llvm::isa<mlir::BlockArgument>(operand));
    auto [entry, is_new] =
        known_.try_emplace({callee.getName().str(), results, stored});
    SplitFunction& parts = entry->second;
    if (!is_new) return parts;
    parts = splitFunction(callee, results,
                          SmallVector<bool>(stored.begin(), stored.end()));
    if (!parts.first || !parts.second) return parts;
    symbols.insert(parts.first);
    symbols.insert(parts.second);
    if (!llvm::is_contained(split_, callee)) split_.push_back(callee);
    ++functions;
    passed += parts.passed.size();
    return parts;
  }

  bool all_ = false;
  std::set<std::pair<int64_t, int64_t>> chosen_;  // stage and microbatch
  llvm::DenseSet<Value> waited_;
  using Key = std::tuple<std::string, std::vector<When>, std::vector<bool>>;
  std::map<Key, SplitFunction> known_;
  SmallVector<FuncOp> split_;  // functions that were split
};

}  // namespace

std::string cellsToSplit(const core::Schedule& schedule) {
  std::string text;
  for (const std::vector<core::Cell>& cells : schedule.cells)
    for (const core::Cell& cell : cells)
      if (cell.work == core::Work::kInputGrad)
        text += (text.empty() ? "" : ";") + std::to_string(cell.stage) + "." +
                std::to_string(cell.microbatch);
  return text;
}

}  // namespace partita::pipeline
