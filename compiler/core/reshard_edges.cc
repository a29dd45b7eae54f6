// The single collectives that may be useful from a placement.
#include <algorithm>

#include "compiler/core/reshard_moves.h"

namespace partita::core {
namespace {

uint64_t SetOf(const std::vector<int>& atoms) {
  uint64_t set = 0;
  for (int atom : atoms) set |= uint64_t{1} << atom;
  return set;
}

std::vector<AxisRef> PartsOf(int axis, const std::vector<AxisRef>& refs) {
  std::vector<AxisRef> parts;
  for (const AxisRef& ref : refs)
    if (ref.axis == axis) parts.push_back(ref);
  return parts;
}

// Returns the parts of an axis not in `parts`, major first.
std::vector<AxisRef> Gaps(const Mesh& mesh, int axis,
                          std::vector<AxisRef> parts) {
  std::sort(parts.begin(), parts.end(),
            [](const AxisRef& a, const AxisRef& b) { return a.pre < b.pre; });
  parts.push_back({axis, mesh.axes[axis].size, 1});
  std::vector<AxisRef> gaps;
  int64_t place = 1;
  for (const AxisRef& part : parts) {
    if (part.pre > place) gaps.push_back({axis, place, part.pre / place});
    place = part.pre * part.size;
  }
  return gaps;
}

// Completes the groups of a permutation. Appends to each list the parts that
// only the other list has, because devices along them hold copies before or
// after. If an axis is split in two ways that do not nest, appends everything
// outside of `kept`.
void CompleteGroups(const Mesh& mesh, const std::vector<AxisRef>& kept,
                    std::vector<AxisRef>& from, std::vector<AxisRef>& to) {
  std::vector<AxisRef> more_from, more_to;
  for (int axis = 0; axis < static_cast<int>(mesh.axes.size()); ++axis) {
    std::vector<AxisRef> before = PartsOf(axis, from),
                         after = PartsOf(axis, to);
    std::vector<AxisRef> only_before, only_after;
    bool nest = true;
    for (const AxisRef& ref : before) {
      if (std::find(after.begin(), after.end(), ref) != after.end()) continue;
      only_before.push_back(ref);
      nest = nest && !OverlapAny(ref, after);
    }
    for (const AxisRef& ref : after)
      if (std::find(before.begin(), before.end(), ref) == before.end())
        only_after.push_back(ref);
    if (!nest) {
      for (const AxisRef& ref : PartsOf(axis, kept)) {
        before.push_back(ref);
        after.push_back(ref);
      }
      only_after = Gaps(mesh, axis, before);
      only_before = Gaps(mesh, axis, after);
    }
    more_from.insert(more_from.end(), only_after.begin(), only_after.end());
    more_to.insert(more_to.end(), only_before.begin(), only_before.end());
  }
  from.insert(from.end(), more_from.begin(), more_from.end());
  to.insert(to.end(), more_to.begin(), more_to.end());
}

}  // namespace

void ReshardProblem::AddReductions(const Layout& layout,
                                   std::vector<Move>& moves) const {
  const uint64_t pending = layout.unreduced & ~goal_.unreduced;
  if (pending == 0) return;
  std::vector<uint64_t> sets = {pending};
  for (int atom : AtomsIn(pending))
    if (uint64_t{1} << atom != pending) sets.push_back(uint64_t{1} << atom);
  for (uint64_t set : sets) {
    Move move{CollectiveKind::kAllReduce, AtomsIn(set), -1, -1, layout, 0, 0};
    move.result.unreduced &= ~set;
    Add(layout, move, moves);
  }
  for (int dim = 0; dim < static_cast<int>(shape_.size()); ++dim)
    for (const std::vector<int>& run : RunsFor(layout, dim, pending))
      for (Layout& result : Append(layout, dim, run)) {
        result.unreduced &= ~SetOf(run);
        Add(layout,
            {CollectiveKind::kReduceScatter, run, dim, -1, result, 0, 0},
            moves);
      }
}

void ReshardProblem::AddGathers(const Layout& layout,
                                std::vector<Move>& moves) const {
  for (int dim = 0; dim < static_cast<int>(shape_.size()); ++dim) {
    const std::vector<int>& atoms = layout.dims[dim];
    for (size_t count = 1; count <= atoms.size(); ++count)
      Add(layout,
          {CollectiveKind::kAllGather,
           {atoms.end() - count, atoms.end()},
           dim,
           -1,
           DropMinor(layout, dim, count),
           0,
           0},
          moves);
  }
}

void ReshardProblem::AddSlices(const Layout& layout,
                               std::vector<Move>& moves) const {
  for (int dim = 0; dim < static_cast<int>(shape_.size()); ++dim) {
    // Slicing by an atom that the goal lacks in this dimension is useless.
    uint64_t wanted = 0;
    for (int atom : goal_.dims[dim])
      if (IsFree(layout, atom)) wanted |= uint64_t{1} << atom;
    for (const std::vector<int>& run : RunsFor(layout, dim, wanted))
      for (Layout& result : Append(layout, dim, run))
        Add(layout, {CollectiveKind::kAllSlice, run, dim, -1, result, 0, 0},
            moves);
  }
}

void ReshardProblem::AddAllToAlls(const Layout& layout,
                                  std::vector<Move>& moves) const {
  const int rank = static_cast<int>(shape_.size());
  for (int source = 0; source < rank; ++source) {
    const std::vector<int>& atoms = layout.dims[source];
    for (size_t count = 1; count <= atoms.size(); ++count) {
      const std::vector<int> run(atoms.end() - count, atoms.end());
      const Layout dropped = DropMinor(layout, source, count);
      for (int dim = 0; dim < rank; ++dim) {
        if (dim == source) continue;
        for (Layout& result : Append(dropped, dim, run))
          Add(layout,
              {CollectiveKind::kAllToAll, run, dim, source, result, 0, 0},
              moves);
      }
    }
  }
}

void ReshardProblem::AddExchanges(const Layout& layout,
                                  std::vector<Move>& moves) const {
  for (int dim = 0; dim < static_cast<int>(shape_.size()); ++dim) {
    if (layout.dims[dim].empty()) continue;
    for (int64_t block : Blocks(dim, Count(layout.dims[dim]))) {
      if (block == layout.blocks[dim]) continue;
      Move move{
          CollectiveKind::kExchange, layout.dims[dim], dim, -1, layout, 0, 0};
      move.result.blocks[dim] = block;
      Add(layout, move, moves);
    }
  }
}

Move ReshardProblem::Permutation(const Layout& from, const Layout& to) const {
  // Atoms move if they change dimension or place value.
  const auto places = [&](const Layout& layout) {
    std::vector<std::pair<int, int64_t>> place(atoms_.size(), {-1, 0});
    for (size_t dim = 0; dim < layout.dims.size(); ++dim) {
      int64_t value = 1;
      for (size_t i = layout.dims[dim].size(); i-- > 0;) {
        const int atom = layout.dims[dim][i];
        place[atom] = {static_cast<int>(dim), value};
        value *= atoms_[atom].size;
      }
    }
    return place;
  };
  const auto before = places(from), after = places(to);
  Move move{CollectiveKind::kPermute, {}, -1, -1, to, 0, 0};
  std::vector<AxisRef> kept;
  for (int atom : AtomsIn(from.unreduced)) kept.push_back(atoms_[atom]);
  for (size_t i = 0; i < atoms_.size(); ++i) {
    if (before[i] != after[i]) move.atoms.push_back(static_cast<int>(i));
    if (before[i] == after[i] && before[i].first >= 0)
      kept.push_back(atoms_[i]);
  }
  const auto moved = [&](const Layout& layout) {
    std::vector<AxisRef> axes;
    for (const std::vector<int>& dim : layout.dims)
      for (int atom : dim)
        if (before[atom] != after[atom]) axes.push_back(atoms_[atom]);
    return axes;
  };
  move.axes = moved(from);
  move.to_axes = moved(to);
  CompleteGroups(mesh_, kept, move.axes, move.to_axes);
  Price(from, move);
  return move;
}

void ReshardProblem::AddPermutations(const Layout& layout,
                                     std::vector<Move>& moves) const {
  const size_t rank = shape_.size();
  bool alike =
      layout.unreduced == goal_.unreduced && layout.blocks == goal_.blocks;
  for (size_t i = 0; i < rank && alike; ++i)
    alike = Count(layout.dims[i]) == Count(goal_.dims[i]);
  if (alike) moves.push_back(Permutation(layout, goal_));

  for (size_t dim = 0; dim < rank; ++dim) {
    // Reorder the atoms within the dimension.
    if (layout.dims[dim].size() > 1 && layout.dims[dim].size() <= 4) {
      Layout result = layout;
      std::sort(result.dims[dim].begin(), result.dims[dim].end());
      do {
        if (!(result == layout)) moves.push_back(Permutation(layout, result));
      } while (std::next_permutation(result.dims[dim].begin(),
                                     result.dims[dim].end()));
    }
    for (size_t i = 0; i < layout.dims[dim].size(); ++i) {
      const int atom = layout.dims[dim][i];
      // Replace the atom by a free one of equal size.
      for (int other : goal_.dims[dim]) {
        if (atoms_[other].size != atoms_[atom].size || !IsFree(layout, other))
          continue;
        Layout result = layout;
        result.dims[dim][i] = other;
        moves.push_back(Permutation(layout, result));
      }
      // Swap two atoms of equal size.
      for (size_t later = dim + 1; later < rank; ++later)
        for (size_t j = 0; j < layout.dims[later].size(); ++j) {
          if (atoms_[layout.dims[later][j]].size != atoms_[atom].size) continue;
          Layout result = layout;
          std::swap(result.dims[dim][i], result.dims[later][j]);
          moves.push_back(Permutation(layout, result));
        }
    }
  }
}

std::vector<Move> ReshardProblem::MovesFrom(const Layout& layout) const {
  std::vector<Move> moves;
  AddReductions(layout, moves);
  AddSlices(layout, moves);
  AddGathers(layout, moves);
  AddAllToAlls(layout, moves);
  AddExchanges(layout, moves);
  AddPermutations(layout, moves);
  return moves;
}

// Returns the number of the start's atoms that can stay on `dim` while the rest
// is gathered and the goal's atoms are sliced.
size_t ReshardProblem::CommonPrefix(int dim) const {
  const std::vector<int>&from = start_.dims[dim], &to = goal_.dims[dim];
  size_t count = 0;
  while (count < from.size() && count < to.size() && from[count] == to[count])
    ++count;
  // The goal's shards must lie within the shards that stay.
  for (; count > 0; --count) {
    const Layout kept = DropMinor(start_, dim, from.size() - count);
    const int64_t more = Count({to.begin() + count, to.end()});
    if (kept.blocks[dim] == more * goal_.blocks[dim]) break;
  }
  return count;
}

std::vector<Move> ReshardProblem::FallbackMoves() const {
  std::vector<Move> moves;
  Layout now = start_;
  if (now.unreduced != goal_.unreduced) {
    Move move{CollectiveKind::kAllReduce,
              AtomsIn(now.unreduced & ~goal_.unreduced),
              -1,
              -1,
              now,
              0,
              0};
    move.result.unreduced = goal_.unreduced;
    Add(now, move, moves);
    now = moves.back().result;
  }
  // Keep only the common major atoms. Gather everything first, so that the axes
  // are free for the slices.
  for (int dim = 0; dim < static_cast<int>(shape_.size()); ++dim) {
    if (now.dims[dim] == goal_.dims[dim] &&
        now.blocks[dim] == goal_.blocks[dim])
      continue;
    const size_t kept = CommonPrefix(dim);
    if (now.dims[dim].size() == kept) continue;
    const std::vector<int> run(now.dims[dim].begin() + kept,
                               now.dims[dim].end());
    Add(now,
        {CollectiveKind::kAllGather, run, dim, -1,
         DropMinor(now, dim, run.size()), 0, 0},
        moves);
    now = moves.back().result;
  }
  for (int dim = 0; dim < static_cast<int>(shape_.size()); ++dim) {
    if (now.dims[dim] == goal_.dims[dim]) continue;
    const std::vector<int> run(goal_.dims[dim].begin() + now.dims[dim].size(),
                               goal_.dims[dim].end());
    Layout result = now;
    result.dims[dim] = goal_.dims[dim];
    result.blocks[dim] = goal_.blocks[dim];
    Add(now, {CollectiveKind::kAllSlice, run, dim, -1, result, 0, 0}, moves);
    now = result;
  }
  return moves;
}

}  // namespace partita::core
