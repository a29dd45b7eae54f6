// Computes costs of each function once per mapping and mesh. Runs of functions
// add them to layers.
#include "compiler/planner/layers/step_graph.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "compiler/core/attention_work.h"
#include "compiler/core/buckets.h"
#include "compiler/core/projection.h"
#include "compiler/core/reshard.h"
#include "compiler/planner/cost/cost.h"

namespace partita::planner {
namespace {

using core::AxisRef;
using core::CollectiveKind;
using core::kBucketBytes;
using core::Precision;
using core::Sharding;

// The same axes on a mesh with other sizes.
std::vector<AxisRef> Resized(const core::Mesh& mesh,
                             const std::vector<AxisRef>& axes) {
  std::vector<AxisRef> resized;
  for (AxisRef axis : axes) {
    axis.size = mesh.axes[axis.axis].size;
    if (axis.size > 1) resized.push_back(axis);
  }
  return resized;
}

Sharding Resized(const core::Mesh& mesh, const std::vector<int64_t>& shape,
                 const std::vector<int64_t>& units, Sharding sharding) {
  for (size_t i = 0; i < sharding.dims.size(); ++i) {
    core::DimSharding& dim = sharding.dims[i];
    dim.axes = Resized(mesh, dim.axes);
    const int64_t shards = core::SizeOf(dim.axes);
    dim.block = (units[i] + shards - 1) / shards * (shape[i] / units[i]);
  }
  sharding.unreduced = Resized(mesh, sharding.unreduced);
  sharding.replicated = Resized(mesh, sharding.replicated);
  core::CanonicalizeBlocks(shape, sharding);
  return sharding;
}

// On a CPU all parameters are updated in one launch.
double UpdateLaunch(const Device& device, double bytes) {
  const double seconds = UpdateTime(device, bytes);
  return device.is_gpu ? std::max(seconds, device.launch)
                       : seconds - device.kernel;
}

// Costs of one mapping on one mesh.
class MappingCosts {
 public:
  // `graph` is the step's graph on that mesh.
  MappingCosts(const StepGraph& step, const core::Graph& graph,
               const StepMapping& mapping, const Cluster& cluster,
               Precision precision)
      : step_(step),
        graph_(graph),
        cluster_(cluster),
        device_(cluster.device),
        precision_(precision),
        mesh_(graph.mesh),
        costs_(step.layers.size()) {
    for (size_t v = 0; v < graph_.values.size(); ++v)
      shardings_.push_back(Resized(mesh_, graph_.values[v].shape, step.units[v],
                                   mapping.shardings[v]));
  }

  std::vector<LayerCost> Run() {
    AddRuns();
    for (const StepMove& move : step_.moves)
      if (!move.gradient)
        costs_[move.layer].collectives +=
            Reshard(move.from, shardings_[move.from], shardings_[move.to]);
    AddGradients();
    for (const StepHeld& held : step_.held)
      costs_[held.layer].memory += LocalBytes(held.value);
    return std::move(costs_);
  }

  const std::vector<Sharding>& shardings() const { return shardings_; }

  // Seconds to reshard a value.
  double Reshard(int value, const Sharding& from, const Sharding& to) {
    double seconds = 0;
    for (const Transfer& step : TransfersOf(value, from, to))
      seconds += TimeOf(step);
    return seconds;
  }

 private:
  struct FunctionCost {
    std::vector<double> works, ops;  // seconds per work and per operation
  };
  // A collective, and the bytes that determine its time.
  struct Transfer {
    CollectiveKind kind = CollectiveKind::kAllReduce;
    std::vector<AxisRef> axes;
    double bytes = 0;
  };

  const std::vector<Transfer>& TransfersOf(int value, const Sharding& from,
                                           const Sharding& to) {
    const core::Value& plain = graph_.values[value];
    const auto key =
        std::make_tuple(plain.shape, core::ToString(mesh_, from),
                        core::ToString(mesh_, to), plain.element_bytes);
    const auto [known, is_new] = transfers_.try_emplace(key);
    std::vector<Transfer>& transfers = known->second;
    if (!is_new || from.SamePlacement(to)) return transfers;
    const core::ReshardPlan plan =
        core::PlanReshard(mesh_, plain.shape, plain.element_bytes, from, to);
    double before = Bytes(value, from);
    for (const core::Collective& step : plan.steps) {
      const double after = Bytes(value, step.result);
      transfers.push_back({step.kind, step.axes,
                           step.kind == CollectiveKind::kExchange
                               ? static_cast<double>(step.bytes)
                               : std::max(before, after)});
      before = after;
    }
    return transfers;
  }

  double TimeOf(const Transfer& step) {
    if (step.kind == CollectiveKind::kAllSlice)
      return MemoryBoundTime(device_, step.bytes);
    return CollectiveTime(cluster_, step.kind, step.bytes, GroupOf(step.axes));
  }

  // Small gradient sums share buckets.
  void AddGradients() {
    struct Sum {
      int layer;
      double bytes;
    };
    std::map<std::string, std::pair<Transfer, std::vector<Sum>>> buckets;
    for (const StepMove& move : step_.moves) {
      if (!move.gradient) continue;
      for (const Transfer& step :
           TransfersOf(move.from, shardings_[move.from], shardings_[move.to])) {
        if (step.kind != CollectiveKind::kAllReduce ||
            step.bytes >= kBucketBytes) {
          costs_[move.layer].gradients += TimeOf(step);
          continue;
        }
        auto& [joint, sums] = buckets[core::ToString(mesh_, step.axes)];
        joint.axes = step.axes;
        joint.bytes += step.bytes;
        sums.push_back({move.layer, step.bytes});
      }
    }
    for (auto& [axes, group] : buckets) {
      auto& [joint, sums] = group;
      joint.bytes /= std::max(1.0, std::round(joint.bytes / kBucketBytes));
      const double seconds_per_byte = TimeOf(joint) / joint.bytes;
      for (const Sum& sum : sums) {
        LayerCost& cost = costs_[sum.layer];
        cost.gradients += sum.bytes * seconds_per_byte;
        // A kernel copies the gradient into the bucket, and another copies it
        // out.
        if (sums.size() > 1)
          cost.compute +=
              MemoryBoundTime(device_, 2 * sum.bytes) - device_.kernel +
              std::max(device_.launch, MemoryBoundTime(device_, 2 * sum.bytes));
      }
    }
  }

  double Bytes(int value, const Sharding& sharding) const {
    double bytes = static_cast<double>(graph_.values[value].element_bytes);
    for (int64_t size : core::LocalShape(graph_.values[value].shape, sharding))
      bytes *= static_cast<double>(size);
    return bytes;
  }
  double LocalBytes(int value) const { return Bytes(value, shardings_[value]); }

  // The group of rank 0. All groups along the same axes have its shape.
  const GroupShape& GroupOf(const std::vector<AxisRef>& axes) {
    const auto [known, is_new] =
        groups_.try_emplace(core::ToString(mesh_, axes));
    if (is_new) {
      const std::vector<int64_t> ranks = core::GroupAlong(mesh_, axes, 0);
      known->second =
          ShapeOfRanks(cluster_, std::vector<int>(ranks.begin(), ranks.end()));
    }
    return known->second;
  }

  void AddRuns() {
    std::vector<FunctionCost> functions;
    for (const StepFunction& function : step_.functions)
      functions.push_back(CostOf(function));
    for (const StepRun& run : step_.runs) {
      const FunctionCost& function = functions[run.function];
      for (size_t i = 0; i < function.works.size(); ++i) {
        LayerCost& cost = costs_[run.layer_of_work[i]];
        cost.compute += function.works[i];
        if (run.backward && device_.overlaps) cost.hiding += function.works[i];
      }
      for (size_t i = 0; i < function.ops.size(); ++i)
        costs_[run.layer_of_op[i]].collectives += function.ops[i];
    }
  }

  FunctionCost CostOf(const StepFunction& function) {
    FunctionCost cost;
    // Identical reshards of a value count once.
    std::set<std::pair<int, std::string>> done;
    // Parameters, gradients and states have the same sharding.
    for (int op : function.ops)
      cost.ops.push_back(function.joined ? 0 : CollectiveSeconds(op, done));
    for (const StepWork& work : function.works)
      cost.works.push_back(function.joined
                               ? UpdateLaunch(device_, BytesOf(work))
                               : std::max(Compute(work), device_.launch));
    return cost;
  }

  const core::OpSharding& Resolved(int op) {
    const auto [known, is_new] = resolved_.try_emplace(op);
    if (is_new) known->second = core::Resolve(graph_, op, shardings_);
    return known->second;
  }

  // Seconds of the collectives around an operation: reshards of operands, halo
  // exchanges, and reductions of partial results.
  double CollectiveSeconds(int op,
                           std::set<std::pair<int, std::string>>& done) {
    const core::Op& plain = graph_.ops[op];
    const core::OpSharding& decided = Resolved(op);
    double seconds = HaloTime(op, decided);
    for (size_t i = 0; i < plain.operands.size(); ++i) {
      const int value = plain.operands[i];
      const Sharding& wanted = decided.operands[i];
      if (!shardings_[value].SamePlacement(wanted) &&
          done.insert({value, core::ToString(mesh_, wanted)}).second)
        seconds += Reshard(value, shardings_[value], wanted);
    }
    for (size_t i = 0; i < plain.results.size(); ++i)
      seconds += Reshard(plain.results[i], decided.results[i],
                         shardings_[plain.results[i]]);
    return seconds;
  }

  double HaloTime(int op, const core::OpSharding& decided) {
    double seconds = 0;
    auto halo = std::lower_bound(
        step_.halos.begin(), step_.halos.end(), op,
        [](const StepHalo& each, int number) { return each.op < number; });
    for (; halo != step_.halos.end() && halo->op == op; ++halo) {
      const std::vector<AxisRef>& axes = decided.factors[halo->factor].axes;
      if (axes.empty() || halo->rows == 0) continue;
      const int value = graph_.ops[op].operands[0];
      const core::TensorFactors& dims = graph_.ops[op].rule.operands[0];
      for (size_t d = 0; d < dims.size(); ++d) {
        if (dims[d] != core::DimFactors{halo->factor}) continue;
        const std::vector<int64_t> local =
            core::LocalShape(graph_.values[value].shape, decided.operands[0]);
        const double row = Bytes(value, decided.operands[0]) /
                           static_cast<double>(std::max<int64_t>(local[d], 1));
        seconds += TimeOf({CollectiveKind::kExchange, axes,
                           row * static_cast<double>(halo->rows)});
      }
    }
    return seconds;
  }

  double BytesOf(const StepWork& work) const {
    double bytes = 0;
    for (const std::vector<int>* values : {&work.reads, &work.writes})
      for (int value : *values) bytes += LocalBytes(value);
    return bytes;
  }

  double Compute(const StepWork& work) {
    const double stream = MemoryBoundTime(device_, BytesOf(work));
    if (work.kind == WorkKind::kStream) return stream;
    const Precision precision = PrecisionOf(work);
    if (work.kind == WorkKind::kAttention) return Attention(work, precision);
    if (work.kind == WorkKind::kExperts)
      return std::max(stream, Experts(work, precision));
    const Extents sizes = ExtentsOf(work.op);
    const double product =
        MatmulTime(device_, precision, sizes.batch, sizes.m, sizes.n, sizes.k);
    if (work.kind == WorkKind::kProduct) return product;
    // Depthwise convolutions are too thin for tiles.
    return sizes.n == 1 ? stream : std::max(stream, product);
  }

  Precision PrecisionOf(const StepWork& work) const {
    if (graph_.values[graph_.ops[work.op].results[0]].element_bytes != 2)
      return Precision::kF32;
    if (precision_ != Precision::kF8) return precision_;
    return ComputedIn(device_, work.float8 ? Precision::kF8 : Precision::kBF16);
  }

  double Attention(const StepWork& work, Precision precision) {
    const core::Op& op = graph_.ops[work.op];
    const core::OpSharding& decided = Resolved(work.op);
    double pairs = work.seen;  // over all heads and images
    int64_t of_keys = 1, of_values = 1;
    for (size_t f = 0; f < op.rule.factors.size(); ++f) {
      const bool query = Holds(op.rule.operands[0], f),
                 key = Holds(op.rule.operands[1], f),
                 value = Holds(op.rule.operands[2], f);
      const int64_t size =
          core::BlockOf(op.rule.factors[f].size, decided.factors[f]);
      if (query && key && !value)
        of_keys *= size;
      else if (value && !query && !key)
        of_values *= size;
      else if (query || key || value)
        pairs *= static_cast<double>(size);
    }
    const double bytes = BytesOf(work);
    const auto time = [&](const core::AttentionProducts& products) {
      const double operations =
          2 * pairs *
          static_cast<double>(products.of_keys * of_keys +
                              products.of_values * of_values);
      return KernelTime(device_, precision, bytes, operations, work.backward);
    };
    return time(work.backward ? core::kAttentionGradient : core::kAttention);
  }

  // Products of each row with the matrices of its own experts. All experts have
  // equally many rows.
  double Experts(const StepWork& work, Precision precision) {
    const core::ShardingRule& rule = graph_.ops[work.op].rule;
    const core::OpSharding& decided = Resolved(work.op);
    const auto local = [&](const core::DimFactors& dim) {
      int64_t size = 1;
      for (int factor : dim)
        size *=
            core::BlockOf(rule.factors[factor].size, decided.factors[factor]);
      return size;
    };
    int64_t rows = 1;
    for (const core::DimFactors& dim : rule.operands[1]) rows *= local(dim);
    const core::DimFactors experts = {rule.experts};
    const int64_t all = rule.factors[rule.experts].size, own = local(experts),
                  each = (rows + all - 1) / all;
    double seconds = 0, last = 0;
    for (const core::TensorFactors& tensor : rule.operands) {
      if (tensor.size() != 3 || tensor[0] != experts) continue;
      const int64_t out = local(tensor[1]), in = local(tensor[2]);
      const auto time = [&](int64_t m, int64_t n, int64_t k) {
        return MatmulTime(device_, precision, own, m, n, k);
      };
      last = time(each, out, in);
      seconds += last;
      if (work.backward) seconds += time(each, in, out) + time(out, in, each);
    }
    // The last matrices' products are not computed again for the gradients.
    return work.backward ? seconds - last : seconds;
  }

  // Local sizes of a product on one device.
  struct Extents {
    int64_t batch = 1, m = 1, n = 1, k = 1;
  };

  Extents ExtentsOf(int op) {
    const core::ShardingRule& rule = graph_.ops[op].rule;
    const core::OpSharding& decided = Resolved(op);
    Extents sizes;
    for (size_t f = 0; f < rule.factors.size(); ++f) {
      const bool left = Holds(rule.operands[0], f),
                 right = Holds(rule.operands[1], f),
                 out = Holds(rule.results[0], f);
      int64_t& extent = left && right && out ? sizes.batch
                        : !out               ? sizes.k
                        : right              ? sizes.n
                                             : sizes.m;
      extent *= core::BlockOf(LeastSize(op, f), decided.factors[f]);
    }
    return sizes;
  }

  static bool Holds(const core::TensorFactors& tensor, size_t factor) {
    return std::any_of(
        tensor.begin(), tensor.end(), [&](const core::DimFactors& dim) {
          return std::find(dim.begin(), dim.end(), static_cast<int>(factor)) !=
                 dim.end();
        });
  }

  // A stride makes a dimension smaller in one tensor. The product has the
  // smaller size.
  int64_t LeastSize(int op, size_t factor) const {
    const core::Op& plain = graph_.ops[op];
    int64_t least = plain.rule.factors[factor].size;
    if (!core::IsHalo(plain.rule.factors[factor].kind)) return least;
    const core::DimFactors alone = {static_cast<int>(factor)};
    for (const core::OpTensor& tensor : core::TensorsOf(plain))
      for (size_t d = 0; d < tensor.factors->size(); ++d)
        if ((*tensor.factors)[d] == alone)
          least = std::min(least, graph_.values[tensor.value].shape[d]);
    return least;
  }

  const StepGraph& step_;
  const core::Graph& graph_;
  const Cluster& cluster_;
  const Device& device_;
  const Precision precision_;
  const core::Mesh& mesh_;
  std::vector<Sharding> shardings_;
  std::map<int, core::OpSharding> resolved_;
  std::map<std::tuple<std::vector<int64_t>, std::string, std::string, int64_t>,
           std::vector<Transfer>>
      transfers_;
  std::map<std::string, GroupShape> groups_;
  std::vector<LayerCost> costs_;
};

// `graph` is a copy of the step's graph. Its mesh is changed.
LayerTable Tabulate(const StepGraph& step, const Cluster& cluster,
                    Precision precision, int data, int inner,
                    core::Graph& graph) {
  graph.mesh.axes[0].size = data;
  graph.mesh.axes[1].size = inner;
  const size_t mappings = step.mappings.size(), layers = step.layers.size();
  LayerTable table;
  table.data = data;
  table.inner = inner;
  table.costs.assign(layers, std::vector<LayerCost>(mappings));
  table.boundaries.assign(layers, std::vector<std::vector<double>>(
                                      mappings, std::vector<double>(mappings)));
  std::vector<MappingCosts> of_mapping;
  of_mapping.reserve(mappings);
  for (size_t m = 0; m < mappings; ++m) {
    const bool divides =
        !step.mappings[m].of_batch || step.batch % (int64_t{data} * inner) == 0;
    table.offered.push_back(inner == 1 ? m == 0 : divides);
    of_mapping.emplace_back(step, graph, step.mappings[m], cluster, precision);
    if (!table.offered[m]) continue;
    const std::vector<LayerCost> costs = of_mapping.back().Run();
    for (size_t i = 0; i < layers; ++i) table.costs[i][m] = costs[i];
  }
  for (const StepCrossing& crossing : step.crossings)
    for (size_t a = 0; a < mappings; ++a)
      for (size_t b = 0; b < mappings; ++b) {
        if (a == b || !table.offered[a] || !table.offered[b]) continue;
        const Sharding& early = of_mapping[a].shardings()[crossing.value];
        const Sharding& late = of_mapping[b].shardings()[crossing.value];
        table.boundaries[std::max(crossing.from, crossing.to)][a][b] +=
            crossing.from > crossing.to
                ? of_mapping[a].Reshard(crossing.value, late, early)
                : of_mapping[a].Reshard(crossing.value, early, late);
      }
  return table;
}

}  // namespace

LayerTable TabulateStep(const StepGraph& step, const Cluster& cluster,
                        Precision precision, int data, int inner) {
  core::Graph graph = step.graph;
  return Tabulate(step, cluster, precision, data, inner, graph);
}

std::vector<LayerTable> TabulateMeshes(const StepGraph& step,
                                       const Cluster& cluster,
                                       Precision precision) {
  std::vector<LayerTable> tables;
  core::Graph graph = step.graph;
  for (int inner = 1; inner <= cluster.devices; ++inner)
    if (cluster.devices % inner == 0 &&
        step.batch % (cluster.devices / inner) == 0)
      tables.push_back(Tabulate(step, cluster, precision,
                                cluster.devices / inner, inner, graph));
  return tables;
}

}  // namespace partita::planner
