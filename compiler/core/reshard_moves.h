// The graph that PlanReshard searches. Nodes are placements of one tensor,
// edges are single collectives. Internal to compiler/core.
#ifndef PARTITA_COMPILER_CORE_RESHARD_MOVES_H_
#define PARTITA_COMPILER_CORE_RESHARD_MOVES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/core/mesh.h"
#include "compiler/core/reshard.h"
#include "compiler/core/sharding.h"

namespace partita::core {

// A placement in terms of atoms: the parts of axes that neither sharding splits
// further. Atoms are numbered as in ReshardProblem::atoms_.
struct Layout {
  std::vector<std::vector<int>> dims;  // most significant first
  std::vector<int64_t> blocks;         // rows per shard; the full size if whole
  uint64_t unreduced = 0;              // one bit per atom

  bool operator==(const Layout& other) const {
    return dims == other.dims && blocks == other.blocks &&
           unreduced == other.unreduced;
  }
  // A string that is equal only for equal layouts.
  std::string Key() const;
};

struct Move {
  CollectiveKind kind = CollectiveKind::kAllSlice;
  std::vector<int> atoms;  // the group
  int dim = -1, other_dim = -1;
  Layout result;
  int64_t bytes = 0;
  double seconds = 0;
  std::vector<AxisRef> axes = {}, to_axes = {};  // kPermute: see Collective
};

class ReshardProblem {
 public:
  ReshardProblem(const Mesh& mesh, const std::vector<int64_t>& shape,
                 int64_t element_bytes, const Sharding& from,
                 const Sharding& to, const Link& link);

  const Layout& start() const { return start_; }
  const Layout& goal() const { return goal_; }

  // Returns all single collectives that may be useful from this layout.
  std::vector<Move> MovesFrom(const Layout& layout) const;
  // Returns the fallback sequence, which always exists: reduce, gather and
  // slice every difference.
  std::vector<Move> FallbackMoves() const;
  // Returns one permutation between two layouts of the same local shape.
  Move Permutation(const Layout& from, const Layout& to) const;

  // Lower bound on the seconds to the goal: missing rows must be sent.
  double MinSeconds(const Layout& layout) const;

  Sharding ToSharding(const Layout& layout) const;
  std::vector<AxisRef> ToAxes(const std::vector<int>& atoms) const;

 private:
  void MakeAtoms(const Sharding& from, const Sharding& to);
  Layout ToLayout(const Sharding& sharding) const;
  std::vector<int> AtomsOf(const AxisRef& ref) const;

  int64_t Count(const std::vector<int>& atoms) const;
  int64_t LocalBytes(const Layout& layout) const;
  bool IsFree(const Layout& layout, int atom) const;
  std::vector<int> AtomsIn(uint64_t set) const;

  // Returns the possible rows per shard if `dim` is divided `count` times.
  std::vector<int64_t> Blocks(int dim, int64_t count) const;
  // Returns the layouts after `run` is appended to `dim`, one per fitting
  // block.
  std::vector<Layout> Append(const Layout& layout, int dim,
                             const std::vector<int>& run) const;
  Layout DropMinor(const Layout& layout, int dim, size_t count) const;
  // Returns runs of atoms to append to `dim`: prefixes of the goal's next
  // atoms, and single atoms. All atoms are in `candidates`.
  std::vector<std::vector<int>> RunsFor(const Layout& layout, int dim,
                                        uint64_t candidates) const;

  size_t CommonPrefix(int dim) const;

  void Price(const Layout& from, Move& move) const;
  int64_t BytesOf(const Layout& from, const Move& move) const;
  void Add(const Layout& from, Move move, std::vector<Move>& moves) const;

  void AddReductions(const Layout& layout, std::vector<Move>& moves) const;
  void AddGathers(const Layout& layout, std::vector<Move>& moves) const;
  void AddSlices(const Layout& layout, std::vector<Move>& moves) const;
  void AddAllToAlls(const Layout& layout, std::vector<Move>& moves) const;
  void AddExchanges(const Layout& layout, std::vector<Move>& moves) const;
  void AddPermutations(const Layout& layout, std::vector<Move>& moves) const;

  const Mesh& mesh_;
  const std::vector<int64_t>& shape_;
  const int64_t element_bytes_;
  const Link& link_;
  std::vector<AxisRef> atoms_;
  std::vector<uint64_t> conflicts_;  // per atom: the atoms that it overlaps
  Layout start_, goal_;
  int64_t devices_ = 1;  // that the atoms distinguish
};

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_RESHARD_MOVES_H_
