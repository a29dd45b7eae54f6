// Entries of a plan that apply to a part of the model only.
#ifndef PARTITA_COMPILER_SHARDING_SCOPES_H_
#define PARTITA_COMPILER_SHARDING_SCOPES_H_

#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "compiler/sharding/problem.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// The part of the model that an entry applies to.
struct Scope {
  std::vector<std::string> at;  // layer patterns; empty: all layers
  std::string what;             // "p.yaml:2:3: shard at", for diagnostics
  // Pipeline stages, as marked in @main (`nn.stage`); empty: all stages.
  std::vector<int> stages = {};
};

// Returns the scopes of a plan's entries.
std::vector<Scope> scopesOf(const plan::Plan& plan);

// Copies each function whose calls are in different scopes, so that each
// operation is in the same scopes at every call. Fails with a diagnostic if a
// scope matches nothing in the model.
mlir::LogicalResult splitByScope(mlir::ModuleOp module,
                                 llvm::ArrayRef<Scope> scopes);

// Returns, for each operation of @main except the terminator, which scopes
// contain it. Considers layers alone, not stages. A call belongs to the layer
// of its parameters. No function is split. Fails with a diagnostic if a scope
// matches nothing.
mlir::FailureOr<std::vector<std::vector<bool>>> scopesInMain(
    mlir::ModuleOp module, llvm::ArrayRef<Scope> scopes);

// Calls `visitor` for each operation reachable from @main, with the scopes that
// contain it. Results are in the scopes of their operation, constants in the
// scopes of all their users. The functions must have been split.
using ScopeVisitor =
    llvm::function_ref<void(mlir::Operation*, const std::vector<bool>&)>;
void visitScopes(mlir::ModuleOp module, llvm::ArrayRef<Scope> scopes,
                 ScopeVisitor visitor);

// Bars each scoped entry from the operations and values outside of its scope.
// The priority of entry i is `first` + i. Arguments are in the scopes of all
// their users, but updated arguments only in the stage that updates them. The
// functions must have been split.
void barOutside(mlir::ModuleOp module, const plan::Plan& plan, int first,
                Problem& problem);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_SCOPES_H_
