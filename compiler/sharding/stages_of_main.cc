// Marks give the stages of the model and its gradients; other operations follow
// them.
#include "compiler/sharding/stages_of_main.h"

#include "compiler/autodiff/call_marks.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

namespace partita::sharding {

using mlir::Operation;
using mlir::Value;

StagesOfMain::StagesOfMain(mlir::func::FuncOp main) : main_(main) {
  for (Operation& op : main_.front().without_terminator())
    if (auto stage = op.getAttrOfType<mlir::IntegerAttr>(autodiff::kStageAttr))
      operations_[&op] = {static_cast<int>(stage.getInt())};
  placeChanging();
  placeOperations();
  placeByUsers();
}

const std::set<int>& StagesOfMain::of(Value value) const {
  if (Operation* op = value.getDefiningOp()) return of(op);
  auto found = arguments_.find(value);
  return found == arguments_.end() ? none_ : found->second;
}

const std::set<int>& StagesOfMain::of(Operation* op) const {
  auto found = operations_.find(op);
  return found == operations_.end() ? none_ : found->second;
}

void StagesOfMain::placeChanging() {
  llvm::StringSet<> changing;
  for (unsigned i = 0; i < main_.getNumResults(); ++i)
    if (auto name =
            main_.getResultAttrOfType<mlir::StringAttr>(i, nn::kUpdatesAttr))
      changing.insert(name.getValue());
  for (mlir::BlockArgument argument : main_.getArguments()) {
    auto name = main_.getArgAttrOfType<mlir::StringAttr>(
        argument.getArgNumber(), nn::kNameAttr);
    if (!name || !changing.contains(name.getValue())) continue;
    if (std::set<int> first = firstUse(argument); !first.empty())
      arguments_[argument] = std::move(first);
  }
}

// Returns the stages of the first marked operation that the value leads to.
std::set<int> StagesOfMain::firstUse(Value value) const {
  Operation* first = nullptr;
  llvm::SmallVector<Value> open = {value};
  llvm::DenseSet<Operation*> seen;
  while (!open.empty())
    for (Operation* user : open.pop_back_val().getUsers()) {
      if (!seen.insert(user).second) continue;
      if (!operations_.count(user))
        llvm::append_range(open, user->getResults());
      else if (!first || user->isBeforeInBlock(first))
        first = user;
    }
  return of(first);
}

// An update belongs to the stage of the argument that it updates.
void StagesOfMain::placeOperations() {
  for (Operation& op : main_.front().without_terminator()) {
    if (operations_.count(&op)) continue;
    std::set<int> stages;
    for (Value operand : op.getOperands()) {
      const std::set<int>& given = of(operand);
      if (given.empty()) continue;
      stages = given;
      if (!operand.getDefiningOp()) break;
    }
    if (!stages.empty()) operations_[&op] = std::move(stages);
  }
}

void StagesOfMain::placeByUsers() {
  for (Operation& op : llvm::reverse(main_.front().without_terminator())) {
    if (operations_.count(&op)) continue;
    std::set<int> stages;
    for (Value result : op.getResults()) {
      const std::set<int> users = ofUsers(result);
      stages.insert(users.begin(), users.end());
    }
    operations_[&op] = std::move(stages);
  }
  for (mlir::BlockArgument argument : main_.getArguments())
    if (!arguments_.count(argument)) {
      std::set<int> users = ofUsers(argument);
      arguments_[argument] = std::move(users);
    }
}

std::set<int> StagesOfMain::ofUsers(Value value) const {
  std::set<int> stages;
  for (Operation* user : value.getUsers()) {
    const std::set<int>& other = of(user);
    stages.insert(other.begin(), other.end());
  }
  return stages;
}

}  // namespace partita::sharding
