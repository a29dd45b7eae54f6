// A module as the plain graph that compiler/core propagates through.
#ifndef PARTITA_COMPILER_SHARDING_PROBLEM_H_
#define PARTITA_COMPILER_SHARDING_PROBLEM_H_

#include <memory>
#include <string>
#include <vector>

#include "compiler/core/propagate.h"
#include "compiler/sharding/dims.h"
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
  core::Graph graph;                // without names: nameTensors fills them in
  std::vector<mlir::Value> values;  // parallel to graph.values
  llvm::DenseMap<mlir::Value, int> ids;
  // Operations with a rule and their index in graph.ops; ties have none.
  llvm::DenseMap<mlir::Operation*, int> operations;
  // Parallel to graph.values: names of dimensions; null where there are none.
  std::vector<std::shared_ptr<const llvm::SmallVector<Dim>>> dims;
};

// A problem and its solution, one sharding per value, as they stand while the
// module stays as it is.
struct Decided {
  Problem problem;
  std::vector<core::Sharding> shardings;
};

// Fails, with a diagnostic, where a value is no static tensor. `before` is a
// problem of the same module and mesh, or empty: what it knows of operations
// that are still there is taken from it. Erased operations and their results
// must not be in its `operations` and `ids`.
mlir::FailureOr<Problem> buildProblem(mlir::ModuleOp module,
                                      const core::Mesh& mesh,
                                      Problem before = Problem());

// Fills in the names of an operation, its tensors and their dimensions, which
// explanations (core/conflict.h) read.
void nameTensors(mlir::Operation* op, Problem& problem);

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
