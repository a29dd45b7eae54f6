// What a plan says of a part of the model only.
#ifndef PARTITA_COMPILER_SHARDING_SCOPES_H_
#define PARTITA_COMPILER_SHARDING_SCOPES_H_

#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "compiler/sharding/problem.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// Where something that a plan says holds.
struct Scope {
  std::vector<std::string> at;  // globs of layers; empty: everywhere
  std::string what;             // "p.yaml:2:3: shard at", for a refusal
  // Of a pipeline, marked in @main (`nn.stage`); empty: all.
  std::vector<int> stages = {};
};

// Those of the entries of a plan.
std::vector<Scope> scopesOf(const plan::Plan& plan);

// Copies each function that is called where different scopes hold, so that the
// same scopes hold each of its operations wherever it is called. Fails, with a
// diagnostic, where a scope holds nothing of the model.
mlir::LogicalResult splitByScope(mlir::ModuleOp module,
                                 llvm::ArrayRef<Scope> scopes);

// Which of the scopes, of layers alone, hold each operation of @main, in order
// and without the terminator; a call is where its parameters are. No function
// is split. Fails, with a diagnostic, where a scope holds none.
mlir::FailureOr<std::vector<std::vector<bool>>> scopesInMain(
    mlir::ModuleOp module, llvm::ArrayRef<Scope> scopes);

// Tells of each operation that @main leads to which of the scopes hold it.
// Results are where their operation is; constants, where any operation that
// uses them is. The functions have been split.
using ScopeVisitor =
    llvm::function_ref<void(mlir::Operation*, const std::vector<bool>&)>;
void visitScopes(mlir::ModuleOp module, llvm::ArrayRef<Scope> scopes,
                 ScopeVisitor visitor);

// Bars each scoped entry, whose priority is its number plus `first`, from the
// operations and values outside of its scope. Arguments are where any operation
// that uses them is, but what is updated in the stage that does it. The
// functions have been split.
void barOutside(mlir::ModuleOp module, const plan::Plan& plan, int first,
                Problem& problem);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_SCOPES_H_
