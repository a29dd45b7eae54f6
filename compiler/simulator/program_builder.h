// Builds programs for the simulator's tests.
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

// Builds a program whose functions are lists of copies, calls, collectives and
// transfers. Operands only have sizes in bytes. The program is not valid and
// cannot be executed.
class ProgramBuilder {
 public:
  // `axes` is the mesh. `pipeline` is the index of the axis along which the
  // entries are, or -1 if there is one entry.
  explicit ProgramBuilder(
      const std::vector<std::pair<std::string, int64_t>>& axes,
      int pipeline = -1);

  // Begins a function. Later calls append to it.
  int Function(const std::string& name);
  // Makes the last function the main of the next entry.
  void EntryMain();

  void Work(const std::string& name);
  void CallOf(int function, const std::string& name);
  void Sum(const std::vector<int>& axes, int64_t bytes);
  // Starts a concurrent sum over axes. AwaitOf(token) ends it.
  void StartSum(const std::vector<int>& axes, int64_t bytes, int token);
  void AwaitOf(int token);
  void Send(int64_t peer, int64_t bytes);
  void Receive(int64_t peer, int64_t bytes);
  // Sets the reason of the last instruction.
  void Because(const std::string& why);

  // The program is valid as long as the builder.
  const program::Program& Build();

 private:
  void Append(program::OperationUnion operation, int64_t bytes,
              const std::string& name);
  program::AxisPart Whole(int axis) const;

  program::ProgramT program_;
  std::string buffer_;
};

// Builds one step of a schedule that flushes, as `core::PlaceTransfers` orders
// it: a copy for each cell, named after it, and transfers of 8 bytes.
const program::Program& BuildSchedule(const core::Schedule& schedule,
                                      ProgramBuilder& builder);

// Costs by name. A copy costs `seconds[name]`, or else the entry for the name
// up to its first digit. Calls are free.
class NamedCosts : public Costs {
 public:
  std::map<std::string, double> seconds;
  std::map<int64_t, double> slowness;  // by rank
  double collective = 0;
  double transfer = 0;  // between any two ranks
  double latency = 0;   // added to a collective for each odd rank
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
