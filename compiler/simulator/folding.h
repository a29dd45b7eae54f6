// Folds devices that do the same at the same times into one class.
#ifndef PARTITA_COMPILER_SIMULATOR_FOLDING_H_
#define PARTITA_COMPILER_SIMULATOR_FOLDING_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/simulator/costs.h"
#include "runtime/program/mesh.h"

namespace partita::simulator {

// Devices of one entry that no clock can tell apart. In collectives and
// transfers, any two of them meet devices of the same classes, at the same
// cost.
struct DeviceClass {
  int entry = 0;
  int64_t rank = 0;  // the lowest rank of the class
  int64_t devices = 0;
};

// The distinct axis lists of the program's collectives, numbered.
class AxesTable {
 public:
  explicit AxesTable(const program::Program& program);

  int size() const { return static_cast<int>(samples_.size()); }
  int Find(const program::AxisList* axes) const;
  // A collective along the axes with this number.
  const program::Collective& Sample(int number) const {
    return *samples_[static_cast<size_t>(number)];
  }

 private:
  std::map<std::vector<int64_t>, int> numbers_;
  std::vector<const program::Collective*> samples_;
};

// The program must outlive it.
class Folding {
 public:
  Folding(const program::Program& program, const Costs& costs);

  const std::vector<DeviceClass>& classes() const { return classes_; }
  int ClassOf(int64_t rank) const {
    return class_of_[static_cast<size_t>(rank)];
  }
  const AxesTable& axes() const { return axes_; }

  // The devices that a class meets along the axes with this number. `ranks` is
  // the group of the class's lowest rank. `classes` are the distinct classes of
  // these ranks, ascending.
  struct Group {
    std::vector<int64_t> ranks;
    std::vector<int> classes;
  };
  const Group& GroupOf(int device_class, int axes) const;
  // The rank in `entry` with which the class's lowest rank exchanges messages.
  int64_t PartnerOf(int device_class, int entry) const;

 private:
  AxesTable axes_;
  std::vector<DeviceClass> classes_;
  std::vector<int> class_of_;                   // [rank]
  std::vector<std::vector<Group>> groups_;      // [class][axes]
  std::vector<std::vector<int64_t>> partners_;  // [class][entry]
};

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_FOLDING_H_
