// Finds the cheapest collectives between two shardings by A*: Dijkstra's search
// with a lower bound of the remaining cost, on the graph of reshard_moves.h.
// The fallback sequence is the upper bound.
#include "compiler/core/reshard.h"

#include <queue>
#include <tuple>
#include <unordered_map>

#include "compiler/core/reshard_moves.h"

namespace partita::core {
namespace {

// Maximum number of visited placements before the fallback is used. Meshes of
// five axes stay below it.
constexpr size_t kMaxStates = 20000;

struct Node {
  Layout layout;
  Move move;  // edge that led here
  int parent = -1;
  double seconds = 0;
};

std::vector<Move> PathTo(const std::vector<Node>& nodes, int node) {
  std::vector<Move> path;
  for (; nodes[node].parent >= 0; node = nodes[node].parent)
    path.insert(path.begin(), nodes[node].move);
  return path;
}

std::vector<Move> Search(const ReshardProblem& problem) {
  std::vector<Move> best = problem.FallbackMoves();
  double bound = 0;
  for (const Move& move : best) bound += move.seconds;
  bound *= 1 + 1e-12;

  std::vector<Node> nodes = {{problem.start(), {}, -1, 0}};
  std::unordered_map<std::string, int> index = {{problem.start().Key(), 0}};
  // Lower bound of the total cost through the node, its cost so far, and the
  // node. Ties are taken in the order found.
  using Entry = std::tuple<double, double, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
  queue.push({problem.MinSeconds(problem.start()), 0, 0});
  while (!queue.empty() && nodes.size() <= kMaxStates) {
    const auto [least, spent, current] = queue.top();
    queue.pop();
    if (spent > nodes[current].seconds)
      continue;  // a cheaper path was found since
    if (nodes[current].layout == problem.goal()) return PathTo(nodes, current);
    for (Move& move : problem.MovesFrom(nodes[current].layout)) {
      const double seconds = spent + move.seconds;
      const double through = seconds + problem.MinSeconds(move.result);
      if (through > bound) continue;
      const auto [it, is_new] =
          index.emplace(move.result.Key(), static_cast<int>(nodes.size()));
      if (is_new) nodes.emplace_back();
      Node& node = nodes[it->second];
      if (!is_new && node.seconds <= seconds) continue;
      Layout layout = move.result;
      node = {std::move(layout), std::move(move), current, seconds};
      queue.push({through, seconds, it->second});
    }
  }
  return best;
}

// Joins consecutive permutations.
void JoinPermutations(const ReshardProblem& problem, std::vector<Move>& path) {
  Layout before = problem.start();
  for (size_t i = 0; i + 1 < path.size();) {
    if (path[i].kind == CollectiveKind::kPermute &&
        path[i + 1].kind == CollectiveKind::kPermute) {
      path[i] = problem.Permutation(before, path[i + 1].result);
      path.erase(path.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    } else {
      before = path[i++].result;
    }
  }
}

}  // namespace

ReshardPlan PlanReshard(const Mesh& mesh, const std::vector<int64_t>& shape,
                        int64_t element_bytes, const Sharding& from,
                        const Sharding& to, Reduction reduction,
                        const Link& link) {
  const ReshardProblem problem(mesh, shape, element_bytes, from, to, link);
  std::vector<Move> path = Search(problem);
  JoinPermutations(problem, path);
  ReshardPlan plan;
  for (const Move& move : path) {
    Collective step{move.kind, problem.ToAxes(move.atoms), move.dim,
                    move.other_dim};
    if (move.kind == CollectiveKind::kPermute) {
      step.axes = Normalize(mesh, move.axes);
      step.to_axes = Normalize(mesh, move.to_axes);
    }
    if (move.kind == CollectiveKind::kAllReduce ||
        move.kind == CollectiveKind::kReduceScatter)
      step.reduction = reduction;
    step.result = problem.ToSharding(move.result);
    step.bytes = move.bytes;
    plan.steps.push_back(std::move(step));
    plan.seconds += move.seconds;
  }
  if (!plan.steps.empty()) {
    // Use the caller's notation, including openness and priorities.
    Sharding& last = plan.steps.back().result;
    last.dims = to.dims;
    last.replicated = to.replicated;
    if (SizeOf(last.unreduced) == SizeOf(to.unreduced))
      last.unreduced = to.unreduced;
    CanonicalizeBlocks(shape, last);
  }
  return plan;
}

}  // namespace partita::core
