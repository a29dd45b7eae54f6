// Extends shardings through a graph of operations to a fixed point.
//
// The algorithm is that of Shardy (openxla.org/shardy): each operation says, by
// its rule, which dimensions are one factor; axes travel along factors between
// operands and results. Entries of a plan are rounds, each with a priority; a
// later round never takes away what an earlier one placed.
#ifndef PARTITA_COMPILER_CORE_PROPAGATE_H_
#define PARTITA_COMPILER_CORE_PROPAGATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/core/mesh.h"
#include "compiler/core/sharding.h"
#include "compiler/core/terms.h"

namespace partita::core {

struct Value {
  std::vector<int64_t> shape;
  int64_t element_bytes = 4;
  std::string name;               // for explanations
  std::vector<std::string> dims;  // names of dimensions, for explanations
  // Priorities of entries that do not divide it: it does not take their axes.
  std::vector<int> barred;
  // Zeros are a partial sum over any axes.
  bool is_zero = false;
};

enum class Direction { kBoth, kForward, kBackward, kNone };

struct Op {
  ShardingRule rule;
  std::vector<int> operands, results;  // indices into Graph::values
  Direction direction = Direction::kBoth;
  // Rounds within one priority: lower first. Elementwise and data movement are
  // 0 (they carry every factor), all else 1.
  int round = 1;
  // From what a function returns to what one of its callers has of it.
  bool is_tie = false;
  // Where its operand, in which it is linear, is partial over just the axes of
  // its result's first dimension, a device's row of the result is its partial
  // sum: nothing is partial behind it.
  bool takes_shares = false;
  std::string name;  // for explanations
  // Priorities of entries that do not act here, being scoped to other parts of
  // the model: their axes do not travel through it, and it does not compute
  // with them.
  std::vector<int> barred;
};

struct Graph {
  Mesh mesh;
  std::vector<Value> values;
  std::vector<Op> ops;
  std::vector<std::vector<int>> groups;  // values that are sharded alike
  // For explanations: the plan's entries as they were written, priority 1
  // first.
  std::vector<std::string> entries;
};

// A factor of an operation's rule, as one of its tensors is divided.
struct Contender {
  int factor = -1;
  int tensor = -1;            // operands first, then results
  AxisRef axis;               // where it meets the other; with its priority
  std::vector<AxisRef> axes;  // all that the tensor has of the factor
  int64_t bytes = 0;          // of all tensors that are divided so
};

enum class ConflictKind {
  kContested,     // two factors want one axis
  kDisagreement,  // two tensors divide one factor otherwise
  kOutOfScope,    // the entry does not act on the operation
  kWhole,         // the operation needs the factor whole
  kComposite,     // the same, until it is decomposed
  kBehind         // no shards of a dimension of several factors are such
};

// What an operation does not compute with, though a tensor is divided so;
// conflict.h has it in words.
struct Conflict {
  ConflictKind kind = ConflictKind::kContested;
  int op = -1;     // index into Graph::ops
  Contender kept;  // of kContested and kDisagreement; else its factor is -1
  Contender lost;
};

// Propagates axes whose priority is at most `priority`, from the shardings
// given (one per value, in `shardings`), which it extends. Axes are appended to
// open dimensions only, and travel after those before them in their dimension:
// one of a later priority holds back what follows it. What it adds has the
// priority of what it came from. Blocks travel with the axes: a factor's rows
// per shard are the same everywhere, except across kHalo, where each tensor has
// its even share. The default block of an open dimension gives way to one that
// was chosen, and to the rows of its first factor: heads x 8 over 3 shards has
// block 16, not 11. Dimensions of several factors: a factor can be divided
// where all factors before it are divided to single rows (or are of size 1).
void Propagate(const Graph& graph, int priority,
               std::vector<Sharding>& shardings);

// How one operation is computed, decided from the shardings of its operands and
// results: axes per factor. Where two factors want an axis, the one that has it
// at the lower priority number keeps it, and between equals the one whose loser
// costs fewer bytes to reshard.
struct OpSharding {
  // Per factor: axes and rows per shard. kWhole and kDecompose have none.
  std::vector<DimSharding> factors;
  // What the operation computes with, and what it gives: results are unreduced
  // over the axes of the reduced factors.
  std::vector<Sharding> operands, results;
  std::vector<Conflict> conflicts;
};
OpSharding Resolve(const Graph& graph, int op,
                   const std::vector<Sharding>& shardings);

// Axes that the operands' shardings put on kDecompose factors of the op: not
// empty where decomposing it would let it be computed divided.
std::vector<AxisRef> WantsDecomposition(const Graph& graph, int op,
                                        const std::vector<Sharding>& shardings);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_PROPAGATE_H_
