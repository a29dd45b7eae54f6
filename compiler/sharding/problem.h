// Represents a module as the plain graph that compiler/core propagates through.
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

// On operations: priorities of the plan's entries that do not apply to them, as
// integers.
inline constexpr char kBarredAttr[] = "dist.barred";

// On attention, an integer: Op::attention of compiler/core/propagate.h. Keys
// are gathered without it.
inline constexpr char kLongAttentionAttr[] = "dist.long_attention";

// On experts, an f64: rows travel, and this is RowExchange::bound of
// compiler/core/propagate.h. Rows are gathered without it.
inline constexpr char kRowExchangeAttr[] = "dist.row_exchange";

// On an `nn.broadcast` along a new first dimension, a unit attribute: the rows
// may differ if their mean is the operand. If the operand is a partial sum over
// the axes that divide the rows, each device builds its row from its local
// summand. On an `nn.reduce` of sums over the first dimension: each device
// keeps its own row, so that the result differs between devices.
inline constexpr char kSharesAttr[] = "nn.shares";

// On an operation with kSharesAttr, the name of a parameter: its operand is the
// parameter's gradient and must be a partial sum, or zero.
inline constexpr char kOwnShareAttr[] = "nn.own_share";

// On the module: the texts of the plan's entries, for explanations. The first
// text belongs to priority 1.
inline constexpr char kEntriesAttr[] = "dist.entries";

// Each function appears once, whatever the number of calls. A call ties its
// operands to the function's arguments, and the function's results to the
// call's results, by identity operations. All layers that share a function are
// therefore divided alike.
struct Problem {
  core::Graph graph;                // without names; see nameTensors
  std::vector<mlir::Value> values;  // parallel to graph.values
  llvm::DenseMap<mlir::Value, int> ids;
  // Operations with a rule and their index in graph.ops; ties have no entry.
  llvm::DenseMap<mlir::Operation*, int> operations;
  // Names of dimensions, parallel to graph.values; null for unnamed ones.
  std::vector<std::shared_ptr<const llvm::SmallVector<Dim>>> dims;
};

// A problem and its solution, one sharding per value. Valid until the module
// changes.
struct Decided {
  Problem problem;
  std::vector<core::Sharding> shardings;
};

// Fails with a diagnostic if a value is not a static tensor. `before` is empty
// or an earlier problem of the same module and mesh, whose facts about existing
// operations are reused. Its `operations` and `ids` must not contain erased
// operations and their results.
mlir::FailureOr<Problem> buildProblem(mlir::ModuleOp module,
                                      const core::Mesh& mesh,
                                      Problem before = Problem());

// Sets the names of an operation, its tensors and their dimensions, for
// explanations (core/conflict.h).
void nameTensors(mlir::Operation* op, Problem& problem);

// Reads the shardings of arguments (`dist.sharding`) and operations
// (`dist.shardings`). Values without one are replicated and open.
mlir::FailureOr<std::vector<core::Sharding>> readShardings(
    const Problem& problem);
void writeShardings(const Problem& problem,
                    const std::vector<core::Sharding>& shardings);
// Writes the barred priorities of each operation, the way of attention, and how
// experts get their rows, in the form that buildProblem reads.
void writeChoices(const Problem& problem);

// Describes a value or operation for users: by the parameter's name, or by the
// operation and its location.
std::string describeValue(mlir::Value value);
std::string describeOperation(mlir::Operation* op);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_PROBLEM_H_
