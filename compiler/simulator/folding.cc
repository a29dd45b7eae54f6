// Colours are refined until they stay: a device's next colour is its own with
// those that it meets. Devices of equal colours then are a class.
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

// A message long enough for bandwidth to count, and latency too.
constexpr int64_t kProbeBytes = 1 << 20;

std::vector<int64_t> KeyOf(const AxisList* axes) {
  std::vector<int64_t> key;
  for (unsigned i = 0; i < SizeOrZero(axes); ++i) {
    const program::AxisPart& part = *axes->Get(i);
    key.insert(key.end(), {part.axis(), part.pre(), part.size()});
  }
  return key;
}

// What one device sees of the others.
struct Neighbours {
  int entry = 0;
  std::vector<std::vector<int64_t>> groups;  // [axes]
  std::vector<int64_t> partners;             // [entry]
};

std::vector<Neighbours> FindNeighbours(const program::Program& program,
                                       const AxesTable& axes) {
  std::vector<Neighbours> result;
  const int64_t devices = program::SizeOf(program.mesh());
  for (int64_t rank = 0; rank < devices; ++rank) {
    const MeshPlace place(program.mesh(), rank);
    Neighbours& found = result.emplace_back();
    found.entry = static_cast<int>(place.IndexAlong(program.pipeline()));
    for (int i = 0; i < axes.size(); ++i)
      found.groups.push_back(place.GroupAlong(axes.Sample(i).axes()));
    found.partners = place.GroupAlong(program.pipeline());
  }
  return result;
}

// Replaces equal things by equal numbers, from 0 on in the order of things.
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

// By entry, and by what the device's own work, groups and links cost.
std::vector<int> FirstColours(const std::vector<Neighbours>& all,
                              const AxesTable& axes, const Costs& costs) {
  std::vector<std::vector<double>> keys;
  std::vector<std::map<int64_t, double>> known(
      static_cast<size_t>(axes.size()));  // by a group's first rank
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const int64_t self = static_cast<int64_t>(rank);
    std::vector<double>& key = keys.emplace_back();
    key = {static_cast<double>(all[rank].entry), costs.Slowness(self)};
    for (size_t i = 0; i < known.size(); ++i) {
      const std::vector<int64_t>& group = all[rank].groups[i];
      auto [cost, is_new] = known[i].try_emplace(group.front(), 0);
      if (is_new)
        cost->second =
            costs.Collective(axes.Sample(static_cast<int>(i)), group);
      key.push_back(cost->second);
    }
    for (const int64_t partner : all[rank].partners) {
      if (partner == self) continue;
      key.push_back(costs.Transfer(self, partner, kProbeBytes));
      key.push_back(costs.Transfer(partner, self, kProbeBytes));
    }
  }
  return Number(keys);
}

std::vector<int> Refine(const std::vector<Neighbours>& all,
                        const std::vector<int>& colours) {
  std::vector<std::vector<int>> keys;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    std::vector<int>& key = keys.emplace_back();
    key.push_back(colours[rank]);
    for (const std::vector<int64_t>& group : all[rank].groups) {
      const size_t begin = key.size();
      for (const int64_t other : group)
        key.push_back(colours[static_cast<size_t>(other)]);
      std::sort(key.begin() + static_cast<int64_t>(begin), key.end());
    }
    for (const int64_t partner : all[rank].partners)
      key.push_back(colours[static_cast<size_t>(partner)]);
  }
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
  const std::vector<Neighbours> all = FindNeighbours(program, axes_);
  std::vector<int> colours = FirstColours(all, axes_, costs);
  for (int before = 0; before < CountOf(colours);) {
    before = CountOf(colours);
    colours = Refine(all, colours);
  }
  // Classes in the order of entries, then of lowest ranks.
  std::map<int, std::pair<int, int64_t>> firsts;
  for (size_t rank = 0; rank < all.size(); ++rank)
    firsts.try_emplace(colours[rank], all[rank].entry,
                       static_cast<int64_t>(rank));
  std::vector<std::pair<int, int64_t>> order;
  for (const auto& [colour, first] : firsts) order.push_back(first);
  std::sort(order.begin(), order.end());
  class_of_.resize(all.size());
  for (size_t rank = 0; rank < all.size(); ++rank)
    class_of_[rank] = static_cast<int>(
        std::lower_bound(order.begin(), order.end(), firsts[colours[rank]]) -
        order.begin());
  for (const auto& [entry, rank] : order) {
    classes_.push_back({entry, rank, 0});
    const Neighbours& seen = all[static_cast<size_t>(rank)];
    partners_.push_back(seen.partners);
    std::vector<Group>& groups = groups_.emplace_back();
    for (const std::vector<int64_t>& ranks : seen.groups) {
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
