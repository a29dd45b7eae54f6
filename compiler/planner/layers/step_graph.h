// A training step as compiler/core's graph, with what its operations are to a
// clock and which layer each is of; from it what layers cost in each mapping,
// on meshes of any size. What divides how, what is reduced, exchanged and
// gathered, the operations' rules say.
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

// What runs at once. kStream: a kernel bound by what it reads and writes.
enum class WorkKind { kProduct, kConvolution, kAttention, kStream };

struct StepWork {
  WorkKind kind = WorkKind::kStream;
  int op = -1;            // in graph.ops; of kStream -1
  bool backward = false;  // of kAttention: its gradient
  double seen = 1;  // of kAttention: the share of pairs that see each other
  std::vector<int> reads, writes;  // values, as often as they are
};

// Rows of its first operand that a shard of an operation needs beyond its own,
// where this factor is divided.
struct StepHalo {
  int op = 0, factor = 0;
  int64_t rows = 0;
};

// A function as it is written: @main, or that of layers that are alike.
struct StepFunction {
  std::vector<StepWork> works;
  std::vector<int> ops;  // in graph.ops
  // It updates a parameter: on a CPU what several launch is one kernel.
  bool joined = false;
  bool is_main = false;
  std::string name;
};

// A run of a function, and the layer of each of its works and operations.
struct StepRun {
  int function = 0;
  bool backward = false;  // behind the loss
  std::vector<int> layer_of_work, layer_of_op;
};

// A value that a call takes or gives: on the way it may be reduced, gathered or
// divided.
struct StepMove {
  int from = 0, to = 0;  // values
  int layer = 0;
  bool gradient = false;  // of parameters: nothing but their update waits
};

// A value that lives from forward to backward, or from step to step.
struct StepHeld {
  int value = 0, layer = 0;
};

// A value that a layer takes of another one, or the gradient that it gives
// back. Between layers that are no neighbours it counts as from the one before
// the later of both.
struct StepCrossing {
  int value = 0;
  int from = 0, to = 0;  // layers
};

// One way to use the inner axis: the names it divides, and how all values lie
// then on a mesh of 2 x 2, the outer axis of which divides B.
struct StepMapping {
  std::vector<std::string> names;  // none: every device computes the same
  std::vector<core::Sharding> shardings;
  bool of_batch = false;  // names are B: the batch must divide by all devices
};

struct StepGraph {
  core::Graph graph;  // its mesh is that of 2 x 2
  // [values][dimensions]: how many parts stay together, heads of heads x 8.
  std::vector<std::vector<int64_t>> units;
  std::vector<StepFunction> functions;
  std::vector<StepRun> runs;
  std::vector<StepMove> moves;
  std::vector<StepHalo> halos;
  std::vector<StepHeld> held;
  std::vector<StepCrossing> crossings;
  std::vector<std::string> layers;          // as a plan's scopes have them
  std::vector<std::set<std::string>> dims;  // [layers]: names to divide by
  std::vector<StepMapping> mappings;        // the first is of the batch
  int64_t batch = 1;
};

// The costs of all layers in all mappings on `data` x `inner` devices, of which
// the cluster has as many. Where `inner` is 1 the first mapping alone is
// offered. Products of 16-bit elements are of `precision`. Estimates, of
// operations as they are written, which leave out what dividing adds.
LayerTable TabulateStep(const StepGraph& step, const Cluster& cluster,
                        core::Precision precision, int data, int inner);

// Of all meshes of the cluster's devices whose outer axis divides the batch.
std::vector<LayerTable> TabulateMeshes(const StepGraph& step,
                                       const Cluster& cluster,
                                       core::Precision precision);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_LAYERS_STEP_GRAPH_H_
