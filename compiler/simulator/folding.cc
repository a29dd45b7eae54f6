// Colour refinement: a device's next colour combines its own with the colours
// of the devices it meets, until the colours are stable. Devices of equal
// colour form a class.
#include "compiler/simulator/folding.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/program/types.h"

namespace partita::simulator {
namespace {

using program::AxisList;
using program::MeshPlace;
using program::SizeOrZero;

// Long enough that both bandwidth and latency matter.
constexpr int64_t kProbeBytes = 1 << 20;

std::vector<int64_t> KeyOf(const AxisList* axes) {
  std::vector<int64_t> key;
  for (unsigned i = 0; i < SizeOrZero(axes); ++i) {
    const program::AxisPart& part = *axes->Get(i);
    key.insert(key.end(), {part.axis(), part.pre(), part.size()});
  }
  return key;
}

// All groups of ranks that differ only along the same axes.
struct Groups {
  std::vector<std::vector<int64_t>> members;  // [group]
  std::vector<size_t> of;                     // [rank]
};

Groups GroupsAlong(const program::Program& program,
                   const program::AxisList* axes) {
  Groups groups;
  const int64_t devices = program::SizeOf(program.mesh());
  groups.of.resize(static_cast<size_t>(devices));
  for (int64_t rank = 0; rank < devices; ++rank) {
    const MeshPlace place(program.mesh(), rank);
    if (place.IndexAlong(axes) != 0) continue;
    for (const int64_t member :
         groups.members.emplace_back(place.GroupAlong(axes)))
      groups.of[static_cast<size_t>(member)] = groups.members.size() - 1;
  }
  return groups;
}

// The devices that each device communicates with.
struct Neighbours {
  std::vector<int> entries;    // [rank]
  std::vector<Groups> groups;  // [axes]
  Groups pipelines;            // members: [entry]

  const std::vector<int64_t>& PartnersOf(size_t rank) const {
    return pipelines.members[pipelines.of[rank]];
  }
};

Neighbours FindNeighbours(const program::Program& program,
                          const AxesTable& axes) {
  Neighbours found;
  const int64_t devices = program::SizeOf(program.mesh());
  for (int64_t rank = 0; rank < devices; ++rank)
    found.entries.push_back(static_cast<int>(
        MeshPlace(program.mesh(), rank).IndexAlong(program.pipeline())));
  for (int i = 0; i < axes.size(); ++i)
    found.groups.push_back(GroupsAlong(program, axes.Sample(i).axes()));
  found.pipelines = GroupsAlong(program, program.pipeline());
  return found;
}

// Replaces each value by its index among the distinct values, in their order.
template <typename T>
std::vector<int> Number(const std::vector<T>& things) {
  std::map<T, int> numbers;
  for (const T& thing : things) numbers[thing] = 0;
  int next = 0;
  for (auto& [thing, number] : numbers) number = next++;
  std::vector<int> result;
  for (const T& thing : things) result.push_back(numbers[thing]);
  return result;
}

// Initial colours: the entry, and the costs of the device's own work, groups
// and links.
std::vector<int> FirstColours(const Neighbours& all, const AxesTable& axes,
                              const Costs& costs) {
  std::vector<std::vector<double>> seconds;  // [axes][group]
  for (size_t i = 0; i < all.groups.size(); ++i) {
    std::vector<double>& of_groups = seconds.emplace_back();
    for (const std::vector<int64_t>& group : all.groups[i].members)
      of_groups.push_back(
          costs.Collective(axes.Sample(static_cast<int>(i)), group));
  }
  std::vector<std::vector<double>> keys;
  for (size_t rank = 0; rank < all.entries.size(); ++rank) {
    const int64_t self = static_cast<int64_t>(rank);
    std::vector<double>& key = keys.emplace_back();
    key = {static_cast<double>(all.entries[rank]), costs.Slowness(self)};
    for (size_t i = 0; i < seconds.size(); ++i)
      key.push_back(seconds[i][all.groups[i].of[rank]]);
    for (const int64_t partner : all.PartnersOf(rank)) {
      if (partner == self) continue;
      key.push_back(costs.Transfer(self, partner, kProbeBytes));
      key.push_back(costs.Transfer(partner, self, kProbeBytes));
    }
  }
  return Number(keys);
}

// Gives groups whose members have the same colours the same number.
std::vector<int> ColoursOf(const Groups& groups,
                           const std::vector<int>& colours, bool in_order) {
  std::vector<std::vector<int>> keys;
  for (const std::vector<int64_t>& group : groups.members) {
    std::vector<int>& key = keys.emplace_back();
    for (const int64_t member : group)
      key.push_back(colours[static_cast<size_t>(member)]);
    if (!in_order) std::sort(key.begin(), key.end());
  }
  return Number(keys);
}

std::vector<int> Refine(const Neighbours& all,
                        const std::vector<int>& colours) {
  std::vector<std::vector<int>> keys;
  for (const int colour : colours) keys.push_back({colour});
  const auto add = [&](const Groups& groups, bool in_order) {
    const std::vector<int> seen = ColoursOf(groups, colours, in_order);
    for (size_t rank = 0; rank < keys.size(); ++rank)
      keys[rank].push_back(seen[groups.of[rank]]);
  };
  for (const Groups& groups : all.groups) add(groups, /*in_order=*/false);
  add(all.pipelines, /*in_order=*/true);
  return Number(keys);
}

int CountOf(const std::vector<int>& colours) {
  return colours.empty()
             ? 0
             : 1 + *std::max_element(colours.begin(), colours.end());
}

}  // namespace

AxesTable::AxesTable(const program::Program& program) {
  for (const program::Function* function : *program.functions()) {
    for (unsigned i = 0; i < SizeOrZero(function->body()); ++i) {
      const program::Collective* collective =
          function->body()->Get(i)->operation_as_Collective();
      if (collective == nullptr) continue;
      if (numbers_.try_emplace(KeyOf(collective->axes()), size()).second)
        samples_.push_back(collective);
    }
  }
}

int AxesTable::Find(const program::AxisList* axes) const {
  return numbers_.at(KeyOf(axes));
}

Folding::Folding(const program::Program& program, const Costs& costs)
    : axes_(program) {
  const Neighbours all = FindNeighbours(program, axes_);
  std::vector<int> colours = FirstColours(all, axes_, costs);
  for (int before = 0; before < CountOf(colours);) {
    before = CountOf(colours);
    colours = Refine(all, colours);
  }
  // Classes are ordered by entry, then by lowest rank.
  std::map<int, std::pair<int, int64_t>> firsts;
  for (size_t rank = 0; rank < colours.size(); ++rank)
    firsts.try_emplace(colours[rank], all.entries[rank],
                       static_cast<int64_t>(rank));
  std::vector<std::pair<int, int64_t>> order;
  for (const auto& [colour, first] : firsts) order.push_back(first);
  std::sort(order.begin(), order.end());
  class_of_.resize(colours.size());
  for (size_t rank = 0; rank < colours.size(); ++rank)
    class_of_[rank] = static_cast<int>(
        std::lower_bound(order.begin(), order.end(), firsts[colours[rank]]) -
        order.begin());
  for (const auto& [entry, rank] : order) {
    classes_.push_back({entry, rank, 0});
    const size_t first = static_cast<size_t>(rank);
    partners_.push_back(all.PartnersOf(first));
    std::vector<Group>& groups = groups_.emplace_back();
    for (const Groups& along : all.groups) {
      const std::vector<int64_t>& ranks = along.members[along.of[first]];
      std::set<int> met;
      for (const int64_t other : ranks) met.insert(ClassOf(other));
      groups.push_back({ranks, {met.begin(), met.end()}});
    }
  }
  for (const int found : class_of_)
    ++classes_[static_cast<size_t>(found)].devices;
}

const Folding::Group& Folding::GroupOf(int device_class, int axes) const {
  return groups_[static_cast<size_t>(device_class)][static_cast<size_t>(axes)];
}

int64_t Folding::PartnerOf(int device_class, int entry) const {
  return partners_[static_cast<size_t>(device_class)]
                  [static_cast<size_t>(entry)];
}

}  // namespace partita::simulator
