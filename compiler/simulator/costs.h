// Interface: how long the parts of a program take on some machine.
#ifndef PARTITA_COMPILER_SIMULATOR_COSTS_H_
#define PARTITA_COMPILER_SIMULATOR_COSTS_H_

#include <cstdint>
#include <vector>

#include "runtime/program/program_generated.h"

namespace partita::simulator {

// All results are finite, non-negative seconds, unless noted. Devices are named
// by their rank in the program's mesh. Equal questions get equal answers.
class Costs {
 public:
  virtual ~Costs() = default;

  // Computing time of an instruction that is neither a collective nor a
  // transfer. For a call, the time beyond the called function's body.
  virtual double Compute(const program::Program& program,
                         const program::Instruction& instruction) const = 0;
  // Factor by which `rank` computes slower than Compute says.
  virtual double Slowness(int64_t) const { return 1; }
  // Time from the arrival of the last of `ranks` to the end. `ranks` is the
  // group in order.
  virtual double Collective(const program::Collective& collective,
                            const std::vector<int64_t>& ranks) const = 0;
  // True if a device computes at full speed while a collective that it has
  // started runs concurrently. If false, computing takes longer by the
  // collective's time.
  virtual bool Overlaps() const { return true; }
  // Time from the first byte sent to the last byte received.
  virtual double Transfer(int64_t from, int64_t to, int64_t bytes) const = 0;
};

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_COSTS_H_
