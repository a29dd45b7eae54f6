// Visits the values that the partitioner creates: arguments of @main, results
// of operations, and operands in another placement.
#include "compiler/partition/padding_report.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "compiler/core/propagate.h"
#include "compiler/partition/run_counts.h"
#include "compiler/sharding/convert.h"
#include "compiler/sharding/dims.h"
#include "compiler/sharding/problem.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::partition {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::Operation;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

class Lister {
 public:
  Lister(const sharding::Problem& problem,
         const std::vector<core::Sharding>& shardings)
      : problem_(problem), shardings_(shardings) {}

  // Adds the values of `function`, which runs `times` times.
  void list(FuncOp function, int64_t times) {
    times_ = times;
    // Arguments of other functions are counted at their callers.
    if (function.getName() == "main")
      for (Value argument : function.getArguments())
        add(argument, shardingOf(argument));
    for (Operation& op : function.front().without_terminator())
      if (!llvm::isa<CallOp, nn::LoopOp, mlir::arith::ConstantOp>(op))
        list(&op);
  }

  std::vector<Padding> take() {
    std::vector<Padding> paddings;
    for (auto& [key, padding] : found_)
      paddings.push_back(std::move(padding.first));
    // Equal bytes keep the map's order.
    std::vector<int> order(paddings.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      return std::make_pair(-paddings[a].bytes, a) <
             std::make_pair(-paddings[b].bytes, b);
    });
    std::vector<Padding> sorted;
    for (int i : order) sorted.push_back(std::move(paddings[i]));
    return sorted;
  }

 private:
  void list(Operation* op) {
    const core::OpSharding decided = core::Resolve(
        problem_.graph, problem_.operations.lookup(op), shardings_);
    for (auto [operand, sharding] :
         llvm::zip_equal(op->getOperands(), decided.operands))
      if (!sharding.SamePlacement(shardingOf(operand))) add(operand, sharding);
    for (auto [result, sharding] :
         llvm::zip_equal(op->getResults(), decided.results)) {
      add(result, sharding);
      if (sharding.dims != shardingOf(result).dims)
        add(result, shardingOf(result));
    }
  }

  const core::Sharding& shardingOf(Value value) const {
    return shardings_[problem_.ids.lookup(value)];
  }

  // Counts each placement of a value once, since equal reshards are shared.
  void add(Value value, const core::Sharding& sharding) {
    const int id = problem_.ids.lookup(value);
    const std::vector<int64_t>& shape = problem_.graph.values[id].shape;
    if (!core::IsUneven(shape, sharding) ||
        !seen_.insert({id, core::ToString(mesh(), sharding)}).second)
      return;
    const std::vector<int64_t> local = core::LocalShape(shape, sharding);
    int64_t bytes = problem_.graph.values[id].element_bytes;
    for (int64_t size : local) bytes *= size;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (const int64_t beyond = rowsBeyond(shape[dim], sharding.dims[dim]);
          beyond > 0)
        addDim(value, static_cast<int>(dim), sharding.dims[dim],
               bytes / local[dim] * beyond);
  }

  // The last device has the fewest rows.
  static int64_t rowsBeyond(int64_t size, const core::DimSharding& dim) {
    const int64_t block = core::BlockOf(size, dim);
    const int64_t others = core::SizeOf(dim.axes) - 1;
    return block - std::max<int64_t>(size - others * block, 0);
  }

  void addDim(Value value, int dim, const core::DimSharding& how,
              int64_t bytes) {
    const int id = problem_.ids.lookup(value);
    const int64_t size = problem_.graph.values[id].shape[dim];
    Padding padding;
    if (auto names = sharding::dimsOf(value)) {
      const sharding::Dim& name = (*names)[dim];
      padding.name = sharding::print(name);
      if (!name.segments.empty() && name.segments[0].size > 0)
        padding.unit = size / name.segments[0].size;
    }
    padding.size = size;
    padding.block = core::BlockOf(size, how);
    padding.devices = core::SizeOf(how.axes);
    padding.axes = core::ToString(mesh(), how.axes);
    padding.priority = how.axes.empty() ? 0 : how.axes.back().priority;
    auto [entry, is_new] =
        found_.try_emplace(std::make_tuple(padding.priority, padding.name, size,
                                           padding.axes, padding.block),
                           padding, 0);
    auto& [row, most] = entry->second;
    row.values += times_;
    row.bytes += bytes * times_;
    if (is_new || bytes > most) {
      most = bytes;
      row.largest = sharding::describeValue(problem_.values[id]);
      row.dim = dim;
    }
  }

  const core::Mesh& mesh() const { return problem_.graph.mesh; }

  const sharding::Problem& problem_;
  const std::vector<core::Sharding>& shardings_;
  int64_t times_ = 1;
  std::set<std::pair<int, std::string>> seen_;
  // By entry and division; with the largest padding of a single value.
  std::map<std::tuple<int, std::string, int64_t, std::string, int64_t>,
           std::pair<Padding, int64_t>>
      found_;
};

}  // namespace

FailureOr<std::vector<Padding>> listPaddings(mlir::ModuleOp module) {
  FailureOr<core::Mesh> mesh = sharding::meshOf(module);
  if (mlir::failed(mesh)) return failure();
  FailureOr<sharding::Problem> problem = sharding::buildProblem(module, *mesh);
  if (mlir::failed(problem)) return failure();
  auto shardings = sharding::readShardings(*problem);
  if (mlir::failed(shardings)) return failure();
  Lister lister(*problem, *shardings);
  for (auto [function, times] : countRuns(module)) lister.list(function, times);
  return lister.take();
}

}  // namespace partita::partition
