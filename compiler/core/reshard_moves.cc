// Placements in atoms, and the cost of collectives between them. An atom is a
// part of an axis that start and goal never split. If start and goal split an
// axis in ways that do not nest, each has atoms of its own, which exclude each
// other.
#include "compiler/core/reshard_moves.h"

#include <algorithm>
#include <set>

namespace partita::core {
namespace {

// Tie-breaker: fewer steps win at equal cost.
constexpr double kStepSeconds = 1e-9;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Returns the rounds in which groups of n exchange messages.
double Rounds(CollectiveKind kind, int64_t n) {
  double rounds = 0;
  while ((int64_t{1} << static_cast<int>(rounds)) < n) rounds += 1;
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * rounds;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return rounds;
    case CollectiveKind::kExchange:
    case CollectiveKind::kPermute:
      return 1;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kSendRows:
    case CollectiveKind::kReturnRows:
      return rounds;
    case CollectiveKind::kAllSlice:
      return 0;
  }
  return 0;
}

// Returns the places where an axis is split: 1, ..., its size.
std::set<int64_t> Cuts(const Mesh& mesh, int axis,
                       const std::vector<const Sharding*>& shardings) {
  std::set<int64_t> cuts = {1, mesh.axes[axis].size};
  const auto add = [&](const AxisRef& ref) {
    if (ref.axis != axis) return;
    cuts.insert(ref.pre);
    cuts.insert(ref.pre * ref.size);
  };
  for (const Sharding* sharding : shardings) {
    for (const DimSharding& dim : sharding->dims)
      for (const AxisRef& ref : dim.axes) add(ref);
    for (const AxisRef& ref : sharding->unreduced) add(ref);
  }
  return cuts;
}

bool Nest(const std::set<int64_t>& cuts) {
  int64_t last = 1;
  for (int64_t cut : cuts) {
    if (cut % last != 0) return false;
    last = cut;
  }
  return true;
}

bool IsUsed(int axis, const Sharding& sharding) {
  for (const DimSharding& dim : sharding.dims)
    for (const AxisRef& ref : dim.axes)
      if (ref.axis == axis) return true;
  for (const AxisRef& ref : sharding.unreduced)
    if (ref.axis == axis) return true;
  return false;
}

}  // namespace

std::string Layout::Key() const {
  std::string key;
  const auto put = [&](int64_t number) {
    key.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  for (size_t i = 0; i < dims.size(); ++i) {
    put(blocks[i]);
    key.push_back(static_cast<char>(dims[i].size()));
    for (int atom : dims[i]) key.push_back(static_cast<char>(atom));
  }
  put(static_cast<int64_t>(unreduced));
  return key;
}

ReshardProblem::ReshardProblem(const Mesh& mesh,
                               const std::vector<int64_t>& shape,
                               int64_t element_bytes, const Sharding& from,
                               const Sharding& to, const Link& link)
    : mesh_(mesh), shape_(shape), element_bytes_(element_bytes), link_(link) {
  MakeAtoms(from, to);
  start_ = ToLayout(from);
  goal_ = ToLayout(to);
  goal_.unreduced &= start_.unreduced;
}

void ReshardProblem::MakeAtoms(const Sharding& from, const Sharding& to) {
  for (int axis = 0; axis < static_cast<int>(mesh_.axes.size()); ++axis) {
    if (!IsUsed(axis, from) && !IsUsed(axis, to)) continue;
    std::vector<std::set<int64_t>> ways = {Cuts(mesh_, axis, {&from, &to})};
    if (!Nest(ways[0]))
      ways = {Cuts(mesh_, axis, {&from}), Cuts(mesh_, axis, {&to})};
    for (const std::set<int64_t>& cuts : ways)
      for (auto it = cuts.begin(); std::next(it) != cuts.end(); ++it) {
        const AxisRef atom = {axis, *it, *std::next(it) / *it};
        if (std::find(atoms_.begin(), atoms_.end(), atom) == atoms_.end())
          atoms_.push_back(atom);
      }
    devices_ *= mesh_.axes[axis].size;
  }
  for (const AxisRef& a : atoms_) {
    uint64_t overlaps = 0;
    for (size_t i = 0; i < atoms_.size(); ++i)
      if (Overlap(a, atoms_[i])) overlaps |= uint64_t{1} << i;
    conflicts_.push_back(overlaps);
  }
}

std::vector<int> ReshardProblem::AtomsOf(const AxisRef& ref) const {
  // Atoms of one way to split the axis are adjacent, without gaps.
  std::vector<int> atoms;
  int64_t place = ref.pre;
  for (bool found = true; found && place < ref.pre * ref.size;) {
    found = false;
    for (size_t i = 0; i < atoms_.size() && !found; ++i)
      if (atoms_[i].axis == ref.axis && atoms_[i].pre == place &&
          ref.pre * ref.size % (place * atoms_[i].size) == 0) {
        atoms.push_back(static_cast<int>(i));
        place *= atoms_[i].size;
        found = true;
      }
  }
  return atoms;
}

Layout ReshardProblem::ToLayout(const Sharding& sharding) const {
  Layout layout;
  for (size_t i = 0; i < shape_.size(); ++i) {
    layout.dims.emplace_back();
    for (const AxisRef& ref : sharding.dims[i].axes)
      for (int atom : AtomsOf(ref)) layout.dims[i].push_back(atom);
    layout.blocks.push_back(layout.dims[i].empty()
                                ? shape_[i]
                                : BlockOf(shape_[i], sharding.dims[i]));
  }
  for (const AxisRef& ref : sharding.unreduced)
    for (int atom : AtomsOf(ref)) layout.unreduced |= uint64_t{1} << atom;
  return layout;
}

std::vector<AxisRef> ReshardProblem::ToAxes(
    const std::vector<int>& atoms) const {
  std::vector<AxisRef> axes;
  for (int atom : atoms) axes.push_back(atoms_[atom]);
  return Normalize(mesh_, axes);
}

Sharding ReshardProblem::ToSharding(const Layout& layout) const {
  Sharding sharding = Replicated(static_cast<int>(shape_.size()));
  for (size_t i = 0; i < shape_.size(); ++i)
    sharding.dims[i] = {ToAxes(layout.dims[i]), layout.blocks[i], false};
  sharding.unreduced = ToAxes(AtomsIn(layout.unreduced));
  CanonicalizeBlocks(shape_, sharding);
  return sharding;
}

int64_t ReshardProblem::Count(const std::vector<int>& atoms) const {
  int64_t count = 1;
  for (int atom : atoms) count *= atoms_[atom].size;
  return count;
}

int64_t ReshardProblem::LocalBytes(const Layout& layout) const {
  int64_t bytes = element_bytes_;
  for (int64_t rows : layout.blocks) bytes *= rows;
  return bytes;
}

bool ReshardProblem::IsFree(const Layout& layout, int atom) const {
  uint64_t used = layout.unreduced;
  for (const std::vector<int>& dim : layout.dims)
    for (int other : dim) used |= uint64_t{1} << other;
  return (conflicts_[atom] & used) == 0;
}

std::vector<int> ReshardProblem::AtomsIn(uint64_t set) const {
  std::vector<int> atoms;
  for (size_t i = 0; i < atoms_.size(); ++i)
    if (set >> i & 1) atoms.push_back(static_cast<int>(i));
  return atoms;
}

std::vector<int64_t> ReshardProblem::Blocks(int dim, int64_t count) const {
  std::set<int64_t> blocks = {CeilDiv(shape_[dim], count)};
  for (const Layout* end : {&start_, &goal_}) {
    const int64_t shards = Count(end->dims[dim]);
    const int64_t block = end->blocks[dim];
    if (shards % count == 0) blocks.insert(block * (shards / count));
    if (count % shards == 0) blocks.insert(CeilDiv(block, count / shards));
  }
  std::vector<int64_t> fitting;
  for (int64_t block : blocks)
    if (block * count >= shape_[dim]) fitting.push_back(block);
  return fitting;
}

std::vector<Layout> ReshardProblem::Append(const Layout& layout, int dim,
                                           const std::vector<int>& run) const {
  const int64_t before = Count(layout.dims[dim]), more = Count(run);
  const int64_t rows = layout.blocks[dim], size = shape_[dim];
  std::vector<int64_t> blocks = Blocks(dim, before * more);
  if (rows % more == 0) blocks.push_back(rows / more);
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  std::vector<Layout> layouts;
  for (int64_t block : blocks) {
    // Each shard must lie within the shard that it is cut from. If the first
    // shard holds all rows, the others are empty and stay so. Padding is cut
    // like rows: no collective drops it.
    const bool fits =
        rows >= size ? more * block >= rows : more * block == rows;
    if (!fits) continue;
    layouts.push_back(layout);
    layouts.back().blocks[dim] = block;
    layouts.back().dims[dim].insert(layouts.back().dims[dim].end(), run.begin(),
                                    run.end());
  }
  return layouts;
}

Layout ReshardProblem::DropMinor(const Layout& layout, int dim,
                                 size_t count) const {
  Layout result = layout;
  std::vector<int>& atoms = result.dims[dim];
  for (size_t i = 0; i < count; ++i) {
    result.blocks[dim] *= atoms_[atoms.back()].size;
    atoms.pop_back();
  }
  if (atoms.empty()) result.blocks[dim] = shape_[dim];
  return result;
}

std::vector<std::vector<int>> ReshardProblem::RunsFor(
    const Layout& layout, int dim, uint64_t candidates) const {
  std::vector<std::vector<int>> runs;
  const std::vector<int>& now = layout.dims[dim];
  const std::vector<int>& then = goal_.dims[dim];
  if (now.size() < then.size() &&
      std::equal(now.begin(), now.end(), then.begin())) {
    std::vector<int> run;
    for (size_t i = now.size();
         i < then.size() && (candidates >> then[i] & 1) != 0; ++i) {
      run.push_back(then[i]);
      runs.push_back(run);
    }
  }
  for (int atom : AtomsIn(candidates))
    if (runs.empty() || runs[0][0] != atom) runs.push_back({atom});
  return runs;
}

int64_t ReshardProblem::BytesOf(const Layout& from, const Move& move) const {
  CollectiveWork work;
  work.kind = move.kind;
  work.group = Count(move.atoms);
  work.input_bytes = LocalBytes(from);
  if (move.dim >= 0) {
    work.rows = from.blocks[move.dim];
    work.output_rows = work.step = move.result.blocks[move.dim];
    work.size = shape_[move.dim];
  }
  if (move.other_dim >= 0) {
    work.other_rows = from.blocks[move.other_dim];
    work.other_output_rows = move.result.blocks[move.other_dim];
  }
  // Exchanging blocks of another length involves all devices along the
  // dimension.
  if (move.kind == CollectiveKind::kExchange)
    work.group = Count(from.dims[move.dim]);
  return BytesMoved(work);
}

void ReshardProblem::Price(const Layout& from, Move& move) const {
  const int64_t group = Count(move.atoms);
  move.bytes = BytesOf(from, move);
  move.seconds = link_.latency * Rounds(move.kind, group) +
                 static_cast<double>(move.bytes) / link_.bytes_per_second +
                 kStepSeconds;
}

double ReshardProblem::MinSeconds(const Layout& layout) const {
  if (layout == goal_) return 0;
  // The first device must receive the part of its goal block that it lacks. No
  // collective delivers it for less.
  int64_t wanted = element_bytes_, had = element_bytes_, whole = element_bytes_;
  for (size_t i = 0; i < shape_.size(); ++i) {
    wanted *= std::min(shape_[i], goal_.blocks[i]);
    had *= std::min({shape_[i], layout.blocks[i], goal_.blocks[i]});
    whole *= shape_[i];
  }
  int64_t bytes = wanted - had;
  // Reducing n summands of an element requires n - 1 sends.
  const uint64_t pending = layout.unreduced & ~goal_.unreduced;
  if (pending != 0)
    bytes = std::max(bytes, (Count(AtomsIn(pending)) - 1) * (whole / devices_));
  return (bytes > 0 ? link_.latency : 0) +
         static_cast<double>(bytes) / link_.bytes_per_second + kStepSeconds;
}

void ReshardProblem::Add(const Layout& from, Move move,
                         std::vector<Move>& moves) const {
  Price(from, move);
  moves.push_back(std::move(move));
}

}  // namespace partita::core
