// A module as the plain graph that compiler/core propagates through.
#ifndef PARTITA_COMPILER_SHARDING_PROBLEM_H_
#define PARTITA_COMPILER_SHARDING_PROBLEM_H_

#include <string>
#include <vector>

#include "compiler/core/propagate.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// Priorities of the plan's entries that do not act on an operation, as integers
// on it: what divides it comes from the others alone.
inline constexpr char kBarredAttr[] = "dist.barred";

// On an `nn.broadcast` along a new first dimension, unit: any rows will do
// whose mean is the operand. Where that is a partial sum over the axes that
// rows are divided over, each device makes its own of what it has.
inline constexpr char kSharesAttr[] = "nn.shares";

// What the plan's entries are, in words, on a module: the first is that of
// priority 1. For explanations.
inline constexpr char kEntriesAttr[] = "dist.entries";

// Functions are one each, whoever calls them: a call ties its operands to the
// function's arguments, and the function's results to its own, by operations
// that carry every dimension. So all layers of a kind are divided alike.
struct Problem {
  core::Graph graph;
  std::vector<mlir::Value> values;  // parallel to graph.values
  llvm::DenseMap<mlir::Value, int> ids;
  // Operations with a rule and their index in graph.ops; ties have none.
  llvm::DenseMap<mlir::Operation*, int> operations;
};

// Fails, with a diagnostic, where a value is no static tensor.
mlir::FailureOr<Problem> buildProblem(mlir::ModuleOp module,
                                      const core::Mesh& mesh);

// What is written on arguments (`dist.sharding`) and operations
// (`dist.shardings`); values without are replicated and open.
mlir::FailureOr<std::vector<core::Sharding>> readShardings(
    const Problem& problem);
void writeShardings(const Problem& problem,
                    const std::vector<core::Sharding>& shardings);
// Writes which operations are barred to which entries, as buildProblem reads.
void writeBarred(const Problem& problem);

// A name that a person recognises: the parameter's, or the operation's and
// where it comes from.
std::string describeValue(mlir::Value value);
std::string describeOperation(mlir::Operation* op);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_PROBLEM_H_
