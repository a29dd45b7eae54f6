// What the parts of a program take on some machine.
#ifndef PARTITA_COMPILER_SIMULATOR_COSTS_H_
#define PARTITA_COMPILER_SIMULATOR_COSTS_H_

#include <cstdint>
#include <vector>

#include "runtime/program/program_generated.h"

namespace partita::simulator {

// In seconds, all of them finite and at least 0. A device is named by its rank
// in the program's mesh. Asked again for the same, they answer the same.
class Costs {
 public:
  virtual ~Costs() = default;

  // What computing takes, of an instruction that is no collective and no
  // transfer. Of a call: what it takes beside what the called function does.
  virtual double Compute(const program::Program& program,
                         const program::Instruction& instruction) const = 0;
  // By how much `rank` takes longer for that.
  virtual double Slowness(int64_t) const { return 1; }
  // From when the last of `ranks`, the group in its order, is there.
  virtual double Collective(const program::Collective& collective,
                            const std::vector<int64_t>& ranks) const = 0;
  // Whether a device goes on computing at full speed while a collective that
  // it has started runs beside. If not, it computes that much longer.
  virtual bool Overlaps() const { return true; }
  // From the first byte that leaves to the last one that arrives.
  virtual double Transfer(int64_t from, int64_t to, int64_t bytes) const = 0;
};

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_COSTS_H_
