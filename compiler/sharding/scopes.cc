// Each layer path gets a mask with one bit per scope. If calls give the
// operations of a function different masks, the function is copied.
#include "compiler/sharding/scopes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "compiler/plan/glob.h"
#include "compiler/sharding/layer_paths.h"
#include "compiler/sharding/near_names.h"
#include "compiler/sharding/stages_of_main.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::sharding {
namespace {

using llvm::StringRef;
using mlir::failure;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

using Scopes = llvm::ArrayRef<Scope>;
// One bit per scope: whether the scope contains the item.
using Mask = std::vector<bool>;

bool isAnyPartial(Scopes scopes) {
  return llvm::any_of(scopes, [](const Scope& scope) {
    return !scope.at.empty() || !scope.stages.empty();
  });
}

bool isAnyOfStages(Scopes scopes) {
  return llvm::any_of(scopes,
                      [](const Scope& scope) { return !scope.stages.empty(); });
}

// Computes which scopes contain a layer path.
class Matcher {
 public:
  explicit Matcher(Scopes scopes) : scopes_(scopes) {
    for (const Scope& scope : scopes) globs_.emplace_back(scope.at);
  }

  const Mask& of(const std::string& path) {
    auto [found, added] = masks_.try_emplace(path);
    if (added)
      for (auto [scope, globs] : llvm::zip_equal(scopes_, globs_))
        found->second.push_back(scope.at.empty() || holds(globs, path));
    return found->second;
  }

  Mask nowhere() const {
    Mask mask;
    for (const Scope& scope : scopes_)
      mask.push_back(scope.at.empty() && scope.stages.empty());
    return mask;
  }

  // The masks of all paths queried so far.
  const std::map<std::string, Mask>& masks() const { return masks_; }

 private:
  // A pattern contains a layer, all its parts, and, if it ends in ".*", the
  // parent layer whose parts it names.
  static bool holds(const plan::ScopeGlobs& globs, const std::string& path) {
    if (path.empty()) return false;
    if (globs.Match(path + ".")) return true;
    for (size_t end = path.size(); end != std::string::npos && end > 0;
         end = path.rfind('.', end - 1))
      if (globs.Match(path.substr(0, end))) return true;
    return false;
  }

  const Scopes scopes_;
  std::vector<plan::ScopeGlobs> globs_;  // parallel to scopes_
  std::map<std::string, Mask> masks_;
};

// True if the operation has no layer of its own and belongs to its users.
bool belongsToUsers(Operation* op) { return op->getNumOperands() == 0; }

// Clears scopes that contain only other stages.
void keepStages(Scopes scopes, const std::set<int>& stages, Mask& mask) {
  for (auto [i, scope] : llvm::enumerate(scopes))
    if (!scope.stages.empty() && llvm::none_of(scope.stages, [&](int stage) {
          return stages.count(stage) > 0;
        }))
      mask[i] = false;
}

void merge(const Mask& from, Mask& to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = to[i] || from[i];
}

// The scopes of each operation and argument of a function, for one call.
struct Acting {
  std::vector<Mask> operations;  // in order, without the terminator
  std::vector<Mask> arguments, results;
  // The called functions, in program order.
  std::vector<Acting> calls;

  bool operator<(const Acting& other) const {
    return std::tie(operations, arguments, results, calls) <
           std::tie(other.operations, other.arguments, other.results,
                    other.calls);
  }
};

class Scoping {
 public:
  Scoping(mlir::ModuleOp module, Scopes scopes)
      : module_(module), scopes_(scopes), matcher_(scopes), paths_(module) {}

  // Computes the scopes of @main and of all functions that it calls.
  Acting run() {
    auto main = module_.lookupSymbol<FuncOp>("main");
    if (isAnyOfStages(scopes_)) stages_.emplace(main);
    return actingIn(main, paths_.inMain(), nullptr);
  }

  const Matcher& matcher() const { return matcher_; }

 private:
  // `stages` is the set of stages of the call that leads to `function`. It is
  // null in @main, whose operations have stages of their own.
  Acting actingIn(FuncOp function, const LayerPaths::Paths& paths,
                  const std::set<int>* stages) {
    Acting acting;
    llvm::DenseMap<Value, Mask> masks;
    for (Operation& op : function.front().without_terminator()) {
      Mask mask = matcher_.nowhere();
      if (op.getNumResults() > 0)
        mask = matcher_.of(paths.lookup(op.getResult(0)).path);
      const std::set<int>* own =
          stages_ && !stages ? &stages_->of(&op) : stages;
      if (own) keepStages(scopes_, *own, mask);
      acting.operations.push_back(mask);
      for (Value result : op.getResults()) masks[result] = mask;
      if (auto call = mlir::dyn_cast<CallOp>(op)) {
        acting.calls.push_back(
            actingIn(module_.lookupSymbol<FuncOp>(call.getCallee()),
                     paths_.inCallee(call, paths), own));
        for (auto [result, inside] :
             llvm::zip_equal(call.getResults(), acting.calls.back().results))
          masks[result] = inside;
      }
    }
    giveToUsers(function, acting, masks);
    for (Value argument : function.getArguments()) {
      if (stages_ && !stages)
        keepStages(scopes_, stages_->of(argument), masks[argument]);
      acting.arguments.push_back(masks.lookup(argument));
    }
    for (Value result : function.front().getTerminator()->getOperands())
      acting.results.push_back(masks.lookup(result));
    return acting;
  }

  // Arguments and constants belong to the scopes of their users.
  void giveToUsers(FuncOp function, Acting& acting,
                   llvm::DenseMap<Value, Mask>& masks) {
    llvm::DenseMap<Operation*, size_t> calls, numbers;
    for (Operation& op : function.front().without_terminator()) {
      numbers[&op] = numbers.size();
      if (mlir::isa<CallOp>(op)) calls[&op] = calls.size();
    }
    auto ofUsers = [&](Value value) {
      Mask mask = matcher_.nowhere();
      for (mlir::OpOperand& use : value.getUses()) {
        Operation* user = use.getOwner();
        if (mlir::isa<CallOp>(user))
          merge(acting.calls[calls.at(user)].arguments[use.getOperandNumber()],
                mask);
        else if (numbers.count(user))
          merge(acting.operations[numbers.at(user)], mask);
      }
      return mask;
    };
    for (Operation& op : function.front().without_terminator())
      if (belongsToUsers(&op) && op.getNumResults() > 0) {
        const Mask mask = ofUsers(op.getResult(0));
        acting.operations[numbers.at(&op)] = mask;
        for (Value result : op.getResults()) masks[result] = mask;
      }
    for (Value argument : function.getArguments())
      masks[argument] = ofUsers(argument);
  }

  mlir::ModuleOp module_;
  const Scopes scopes_;
  Matcher matcher_;
  const LayerPaths paths_;
  std::optional<StagesOfMain> stages_;  // set if a scope names stages
};

// Creates one function per distinct set of masks.
class Split {
 public:
  explicit Split(mlir::ModuleOp module) : module_(module), symbols_(module) {}

  void run(const Acting& main) {
    visit(module_.lookupSymbol<FuncOp>("main"), main);
  }

 private:
  void visit(FuncOp function, const Acting& acting) {
    if (!visited_.insert(function).second) return;
    size_t number = 0;
    function.walk([&](CallOp call) {
      const Acting& inside = acting.calls[number++];
      FuncOp callee = symbols_.lookup<FuncOp>(call.getCallee());
      FuncOp made = versionOf(callee, inside);
      call.setCallee(made.getName());
      visit(made, inside);
    });
  }

  FuncOp versionOf(FuncOp callee, const Acting& acting) {
    auto origin = origins_.find(callee);
    FuncOp first = origin == origins_.end() ? callee : origin->second;
    auto [found, added] = versions_[first].try_emplace(acting, first);
    if (added && versions_[first].size() > 1) {
      FuncOp copy = callee.clone();
      symbols_.insert(copy, std::next(callee->getIterator()));
      origins_[copy] = first;
      found->second = copy;
    }
    return found->second;
  }

  mlir::ModuleOp module_;
  mlir::SymbolTable symbols_;
  llvm::DenseSet<Operation*> visited_;
  llvm::DenseMap<Operation*, FuncOp> origins_;  // by copy
  llvm::DenseMap<Operation*, std::map<Acting, FuncOp>> versions_;
};

std::vector<std::string> layersOf(const std::map<std::string, Mask>& masks) {
  std::set<std::string> layers;
  for (const auto& [path, mask] : masks)
    for (size_t end = path.size(); end != std::string::npos && end > 0;
         end = path.rfind('.', end - 1))
      layers.insert(path.substr(0, end));
  return {layers.begin(), layers.end()};
}

LogicalResult checkScopes(mlir::ModuleOp module, Scopes scopes,
                          const Matcher& matcher) {
  for (auto [i, scope] : llvm::enumerate(scopes)) {
    if (scope.at.empty()) continue;
    const size_t number = i;
    if (llvm::any_of(matcher.masks(),
                     [&](const auto& mask) { return mask.second[number]; }))
      continue;
    const std::string near = nearNames(scope.at, layersOf(matcher.masks()));
    return mlir::emitError(module.getLoc())
           << scope.what
           << ": expected a pattern of layers of the model, found '"
           << llvm::join(scope.at, "', '") << "', which matches none; "
           << (near.empty() ? "the model has no names of layers"
                            : "similar names are " + near);
  }
  return success();
}

// Returns the priorities of the scopes whose bit is not set.
std::vector<int> barredBy(const Mask& mask, int first) {
  std::vector<int> barred;
  for (size_t i = 0; i < mask.size(); ++i)
    if (!mask[i]) barred.push_back(first + static_cast<int>(i));
  return barred;
}

void bar(mlir::ModuleOp module, FuncOp function, const Acting& acting,
         int first, llvm::DenseSet<Operation*>& visited, Problem& problem) {
  if (!visited.insert(function).second) return;
  for (auto [argument, mask] :
       llvm::zip_equal(function.getArguments(), acting.arguments))
    problem.graph.values[problem.ids.lookup(argument)].barred =
        barredBy(mask, first);
  size_t number = 0, calls = 0;
  for (Operation& op : function.front().without_terminator()) {
    const std::vector<int> barred =
        barredBy(acting.operations[number++], first);
    for (Value result : op.getResults())
      problem.graph.values[problem.ids.lookup(result)].barred = barred;
    auto call = mlir::dyn_cast<CallOp>(op);
    if (!call) {
      problem.graph.ops[problem.operations.lookup(&op)].barred = barred;
      continue;
    }
    const Acting& inside = acting.calls[calls++];
    for (auto [result, mask] :
         llvm::zip_equal(call.getResults(), inside.results))
      problem.graph.values[problem.ids.lookup(result)].barred =
          barredBy(mask, first);
    bar(module, module.lookupSymbol<FuncOp>(call.getCallee()), inside, first,
        visited, problem);
  }
}

void visit(mlir::ModuleOp module, FuncOp function, const Acting& acting,
           llvm::DenseSet<Operation*>& visited, ScopeVisitor visitor) {
  if (!visited.insert(function).second) return;
  size_t number = 0, calls = 0;
  for (Operation& op : function.front().without_terminator()) {
    visitor(&op, acting.operations[number++]);
    if (auto call = mlir::dyn_cast<CallOp>(op))
      visit(module, module.lookupSymbol<FuncOp>(call.getCallee()),
            acting.calls[calls++], visited, visitor);
  }
}

}  // namespace

std::vector<Scope> scopesOf(const plan::Plan& plan) {
  std::vector<Scope> scopes;
  for (const plan::Entry& entry : plan.shard)
    scopes.push_back({entry.at, plan::Where(plan, entry.where) + ": shard at",
                      entry.stages});
  return scopes;
}

LogicalResult splitByScope(mlir::ModuleOp module, Scopes scopes) {
  if (!isAnyPartial(scopes)) return success();
  Scoping scoping(module, scopes);
  const Acting main = scoping.run();
  if (mlir::failed(checkScopes(module, scopes, scoping.matcher())))
    return failure();
  Split(module).run(main);
  return success();
}

mlir::FailureOr<std::vector<Mask>> scopesInMain(mlir::ModuleOp module,
                                                Scopes scopes) {
  Matcher matcher(scopes);
  const LayerPaths::Paths paths = LayerPaths(module).inMain();
  std::vector<Mask> masks;
  auto main = module.lookupSymbol<FuncOp>("main");
  for (Operation& op : main.front().without_terminator())
    masks.push_back(op.getNumResults() == 0
                        ? matcher.nowhere()
                        : matcher.of(paths.lookup(op.getResult(0)).path));
  if (mlir::failed(checkScopes(module, scopes, matcher))) return failure();
  return masks;
}

void visitScopes(mlir::ModuleOp module, Scopes scopes, ScopeVisitor visitor) {
  llvm::DenseSet<Operation*> visited;
  visit(module, module.lookupSymbol<FuncOp>("main"),
        Scoping(module, scopes).run(), visited, visitor);
}

void barOutside(mlir::ModuleOp module, const plan::Plan& plan, int first,
                Problem& problem) {
  const std::vector<Scope> scopes = scopesOf(plan);
  if (!isAnyPartial(scopes)) return;
  Scoping scoping(module, scopes);
  llvm::DenseSet<Operation*> visited;
  bar(module, module.lookupSymbol<FuncOp>("main"), scoping.run(), first,
      visited, problem);
}

}  // namespace partita::sharding
