// A program's functions as lists of steps that advance a clock.
#ifndef PARTITA_COMPILER_SIMULATOR_STEPS_H_
#define PARTITA_COMPILER_SIMULATOR_STEPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/simulator/costs.h"
#include "compiler/simulator/folding.h"

namespace partita::simulator {

struct Step {
  enum class Kind {
    kCompute,
    kCall,
    kCollective,
    kStart,  // starts a concurrent collective
    kAwait,
    kSend,
    kReceive
  };
  Kind kind = Kind::kCompute;
  // kCompute: time of all its instructions on a device with slowness 1.
  double seconds = 0;
  unsigned first = 0;  // index of the first instruction
  unsigned count = 1;  // number of merged computing instructions
  // The called function: for kCall, and for a kCompute that calls a function
  // that only computes.
  int function = -1;
  int axes = -1;  // kCollective, kStart: number in the AxesTable
  int token = 0;  // kStart, kAwait
  int name = -1;  // index in Steps::names
};

struct FunctionSteps {
  std::vector<Step> steps;
  bool communicates = false;
  double seconds = 0;  // computing time
};

// The steps of every function. The program must outlive this object.
class Steps {
 public:
  Steps(const program::Program& program, const AxesTable& axes,
        const Costs& costs);

  const program::Program& program() const { return program_; }
  const FunctionSteps& Of(int function) const {
    return functions_[static_cast<size_t>(function)];
  }
  const program::Function& FunctionAt(int function) const {
    return *program_.functions()->Get(static_cast<unsigned>(function));
  }
  const program::Instruction& InstructionAt(int function,
                                            unsigned index) const {
    return *FunctionAt(function).body()->Get(index);
  }
  // Computing time of an instruction. A call counts without its callee's body.
  double SecondsOf(int function, unsigned instruction) const {
    return seconds_[static_cast<size_t>(function)][instruction];
  }
  // Readable names of steps.
  const std::vector<std::string>& names() const { return names_; }

 private:
  void Compile(int function, const AxesTable& axes);
  Step StepOf(int function, unsigned index, const AxesTable& axes) const;
  int NameOf(int function, const Step& step);

  const program::Program& program_;
  std::vector<std::vector<double>> seconds_;  // [function][instruction]
  std::vector<FunctionSteps> functions_;
  std::vector<bool> compiled_;
  std::vector<std::string> names_;
};

// The kind of operation: "gemm", "all_gather", "send", ...
std::string KindOf(const program::Instruction& instruction);

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_STEPS_H_
