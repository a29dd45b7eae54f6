// Extends shardings through a graph of operations to a fixed point.
//
// The algorithm follows Shardy (openxla.org/shardy). The rule of each operation
// defines which dimensions are one factor, and axes travel along factors
// between operands and results. Each entry of a plan is a round with a
// priority. A later round never removes an axis that an earlier round placed.
#ifndef PARTITA_COMPILER_CORE_PROPAGATE_H_
#define PARTITA_COMPILER_CORE_PROPAGATE_H_

#include <cstdint>
#include <limits>
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
  // Priorities of entries whose axes this value does not take.
  std::vector<int> barred;
  // True for zeros, which are a partial sum over any axes.
  bool is_zero = false;
};

enum class Direction { kBoth, kForward, kBackward, kNone };

// Attention over a sequence that is divided.
enum class LongAttention {
  kGather,   // every device has all keys and values
  kUlysses,  // queries, keys and values move from rows to heads, and the result
             // moves back (DeepSpeed-Ulysses, Jacobs et al., 2023)
  kRing      // keys and values travel from device to device, and partial
             // results are merged (Ring Attention, Liu et al., 2023). The keys'
             // factor is then the queries' (AsRing)
};

// Experts whose axes also divide the rows that choose them.
enum class ExpertExchange {
  kGather,  // every device has all rows, and partial results are summed
  kRows     // each row travels to the devices that have its experts, and the
            // results travel back (GShard, Lepikhin et al., 2020)
};

struct RowExchange {
  ExpertExchange way = ExpertExchange::kGather;
  // For kRows: upper bound on the rows that a device receives, as a factor over
  // the even share; 0: all rows of the group.
  double bound = 0;
  // For explanations: bytes that each way moves; 0: not compared.
  int64_t gathered_bytes = 0, sent_bytes = 0;
};

struct Op {
  ShardingRule rule;
  std::vector<int> operands, results;  // indices into Graph::values
  Direction direction = Direction::kBoth;
  // Round within one priority, lower first: 0 for elementwise operations and
  // data movement, which carry every factor; 1 for all others.
  int round = 1;
  // True for a tie from a function's result to the result of one call.
  bool is_tie = false;
  // True for an operation between the values of devices and rows, one row per
  // device. If its linear operand is partial over exactly the axes that divide
  // the result's first dimension, each device's row is its summand, and the
  // result is not partial. A sum over a first dimension of rows gives each
  // device its own row; the result is not partial either, although it differs
  // between devices.
  bool takes_shares = false;
  // For attention: how it is computed where axes divide its queries.
  LongAttention attention = LongAttention::kGather;
  // For experts (ShardingRule::experts).
  RowExchange rows;
  std::string name;  // for explanations
  // Priorities of entries whose scope excludes this operation. Their axes do
  // not travel through it, and it does not compute with them.
  std::vector<int> barred;
};

struct Graph {
  Mesh mesh;
  std::vector<Value> values;
  std::vector<Op> ops;
  std::vector<std::vector<int>> groups;  // values that are sharded alike
  // For explanations: texts of the plan's entries, priority 1 first.
  std::vector<std::string> entries;
  // Axes from this priority on divide stored values (ZeRO): no factor keeps
  // them against an earlier axis.
  int storage_priority = std::numeric_limits<int>::max();
};

// A factor of an operation's rule, with the sharding that one tensor has.
struct Contender {
  int factor = -1;
  int tensor = -1;            // operands first, then results
  AxisRef axis;               // conflicting axis, with its priority
  std::vector<AxisRef> axes;  // all axes of the factor in this tensor
  int64_t bytes = 0;          // of all tensors with this sharding
};

enum class ConflictKind {
  kContested,      // two factors use one axis
  kDisagreement,   // two tensors divide one factor differently
  kOutOfScope,     // the operation is outside the entry's scope
  kWhole,          // the operation needs the factor whole
  kComposite,      // as kWhole, until it is decomposed
  kInexpressible,  // no shards of a merged dimension express it
  kToHeads         // attention divides its heads instead of its queries
};

// A sharding of a tensor that the operation does not compute with. Describe in
// conflict.h explains it.
struct Conflict {
  ConflictKind kind = ConflictKind::kContested;
  int op = -1;     // index into Graph::ops
  Contender kept;  // for kContested, kDisagreement; else factor -1
  Contender lost;
};

// Propagates axes with at most `priority`, starting from `shardings` (one per
// value), and extends these.
//
// Axes are appended to open dimensions only. They travel in order: an axis of a
// later priority holds back the axes after it. Added axes keep their priority.
// Blocks travel with the axes: the rows per shard of a factor are equal
// everywhere, except across kHalo, where each tensor has its even share. A
// chosen block replaces the default block of an open dimension. So do the rows
// of its first factor: heads x 8 over 3 shards has block 16, not 11. In a
// dimension of several factors, a factor can be divided if all factors before
// it are divided to single rows (or have size 1).
void Propagate(const Graph& graph, int priority,
               std::vector<Sharding>& shardings);

// How one operation is computed, derived from the shardings of its operands and
// results. If two factors use one axis, one that keeps axes (keeps_axes) keeps
// it, else the factor with the lower priority number. At equal priority, the
// factor that is more expensive to reshard keeps it.
struct OpSharding {
  // Per factor: axes and rows per shard. kWhole and kDecompose have none.
  std::vector<DimSharding> factors;
  // Shardings that the operation computes with. Results are unreduced over the
  // axes of the reduced factors.
  std::vector<Sharding> operands, results;
  std::vector<Conflict> conflicts;
};
OpSharding Resolve(const Graph& graph, int op,
                   const std::vector<Sharding>& shardings);

// Returns the axes that operands have on kDecompose factors of the operation.
// If not empty, the decomposed operation can be computed divided.
std::vector<AxisRef> AxesNeedingDecomposition(
    const Graph& graph, int op, const std::vector<Sharding>& shardings);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_PROPAGATE_H_
