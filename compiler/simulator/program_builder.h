// Programs of nothing but their times, for the simulator's tests.
#ifndef PARTITA_COMPILER_SIMULATOR_PROGRAM_BUILDER_H_
#define PARTITA_COMPILER_SIMULATOR_PROGRAM_BUILDER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/core/schedule.h"
#include "compiler/simulator/costs.h"
#include "runtime/program/test_program.h"

namespace partita::simulator {

// A program whose functions are lists of copies, calls, collectives and
// transfers. Operands say how many bytes move, no more: the program is not
// valid, and none of it is ever executed.
class ProgramBuilder {
 public:
  // The mesh; `pipeline` is the number of the axis that the entries lie along,
  // -1 if there is one entry.
  explicit ProgramBuilder(
      const std::vector<std::pair<std::string, int64_t>>& axes,
      int pipeline = -1);

  // A new function: what follows is appended to it.
  int Function(const std::string& name);
  // The last function is the next entry's main.
  void EntryMain();

  void Work(const std::string& name);
  void CallOf(int function, const std::string& name);
  void Sum(const std::vector<int>& axes, int64_t bytes);
  // A sum over axes that is started, and its end.
  void StartSum(const std::vector<int>& axes, int64_t bytes, int token);
  void AwaitOf(int token);
  void Send(int64_t peer, int64_t bytes);
  void Receive(int64_t peer, int64_t bytes);
  // The reason of the last instruction.
  void Because(const std::string& why);

  // Valid as long as the builder.
  const program::Program& Build();

 private:
  void Append(program::OperationUnion operation, int64_t bytes,
              const std::string& name);
  program::AxisPart Whole(int axis) const;

  program::ProgramT program_;
  std::string buffer_;
};

// A step of a schedule that flushes, as `core::PlaceTransfers` has it: a copy
// for each cell, named as it, and transfers of 8 bytes between the ranks.
const program::Program& BuildSchedule(const core::Schedule& schedule,
                                      ProgramBuilder& builder);

// Copies cost what stands by their name, or by the beginning of it up to a
// digit; calls nothing.
class NamedCosts : public Costs {
 public:
  std::map<std::string, double> seconds;
  std::map<int64_t, double> slowness;  // by rank
  double collective = 0;
  double transfer = 0;  // to anybody
  double latency = 0;   // of a collective, for each of its ranks that is odd
  bool overlaps = true;

  double Compute(const program::Program& program,
                 const program::Instruction& instruction) const override;
  double Slowness(int64_t rank) const override;
  double Collective(const program::Collective& collective,
                    const std::vector<int64_t>& ranks) const override;
  bool Overlaps() const override { return overlaps; }
  double Transfer(int64_t from, int64_t to, int64_t bytes) const override;
};

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_PROGRAM_BUILDER_H_
