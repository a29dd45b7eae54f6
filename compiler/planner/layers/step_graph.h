// A training step as a graph of compiler/core, with the kind of work and the
// layer of each operation. From it come the costs of each layer under each
// mapping, on meshes of any size. The operations' sharding rules decide how
// they divide and which values are reduced, exchanged and gathered.
#ifndef PARTITA_COMPILER_PLANNER_LAYERS_STEP_GRAPH_H_
#define PARTITA_COMPILER_PLANNER_LAYERS_STEP_GRAPH_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "compiler/core/precision.h"
#include "compiler/core/propagate.h"
#include "compiler/planner/cluster/cluster.h"
#include "compiler/planner/layers/layers.h"

namespace partita::planner {

// Work that runs as one launch. kStream is a kernel bound by its reads and
// writes.
enum class WorkKind { kProduct, kConvolution, kAttention, kExperts, kStream };

struct StepWork {
  WorkKind kind = WorkKind::kStream;
  int op = -1;            // in graph.ops; -1 for kStream
  bool backward = false;  // kAttention, kExperts: whether it is the gradient
  double seen = 1;        // kAttention: share of visible query-key pairs
  std::vector<int> reads, writes;  // values, with repetitions
  bool float8 = false;             // kProduct: factors are rounded to 8 bits
};

// Rows of its first operand that a shard of an operation needs from its
// neighbours if this factor is divided.
struct StepHalo {
  int op = 0, factor = 0;
  int64_t rows = 0;
};

// A function of the program: @main, or the function shared by equal layers.
struct StepFunction {
  std::vector<StepWork> works;
  std::vector<int> ops;  // in graph.ops
  // The function updates a parameter. On a CPU all such launches are one
  // kernel.
  bool joined = false;
  bool is_main = false;
  std::string name;
};

// A call of a function, with the layer of each of its works and operations.
struct StepRun {
  int function = 0;
  bool backward = false;  // after the loss
  std::vector<int> layer_of_work, layer_of_op;
};

// A value passed into or out of a call. On the way it may be reduced, gathered
// or divided.
struct StepMove {
  int from = 0, to = 0;  // values
  int layer = 0;
  bool gradient = false;  // of parameters: only their update waits for it
};

// A value kept from forward to backward, or from step to step.
struct StepHeld {
  int value = 0, layer = 0;
};

// A value that one layer takes from another, or the gradient it gives back. If
// the layers are not adjacent, it counts at the boundary before the later one.
struct StepCrossing {
  int value = 0;
  int from = 0, to = 0;  // layers
};

// One way to use the inner axis: the names it divides, and the resulting
// shardings of all values on a mesh of 2 x 2. The outer axis of that mesh
// divides B.
struct StepMapping {
  std::vector<std::string> names;  // empty: all devices compute the same
  std::vector<core::Sharding> shardings;
  bool of_batch = false;  // names are B: all devices must divide the batch
};

struct StepGraph {
  core::Graph graph;  // on a mesh of 2 x 2
  // [value][dimension]: number of indivisible units, e.g. the heads of heads x
  // 8.
  std::vector<std::vector<int64_t>> units;
  std::vector<StepFunction> functions;
  std::vector<StepRun> runs;
  std::vector<StepMove> moves;
  std::vector<StepHalo> halos;
  std::vector<StepHeld> held;
  std::vector<StepCrossing> crossings;
  std::vector<std::string> layers;          // names as in a plan's scopes
  std::vector<std::set<std::string>> dims;  // [layer]: names to divide by
  std::vector<StepMapping> mappings;        // the first divides the batch
  int64_t batch = 1;
};

// Estimates the costs of all layers under all mappings on `data` x `inner`
// devices, which must be all devices of the cluster. If `inner` is 1, only the
// first mapping is offered. Products of 16-bit elements use `precision`. With
// kF8, only products of factors that are rounded to 8 bits do, and others use
// bf16. The estimates leave out operations that dividing adds.
LayerTable TabulateStep(const StepGraph& step, const Cluster& cluster,
                        core::Precision precision, int data, int inner);

// Tables of all meshes of the cluster's devices whose outer axis divides the
// batch.
std::vector<LayerTable> TabulateMeshes(const StepGraph& step,
                                       const Cluster& cluster,
                                       core::Precision precision);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_LAYERS_STEP_GRAPH_H_
