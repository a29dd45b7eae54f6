// A program's functions as what a clock sees of them.
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
    kStart,  // of a collective
    kAwait,
    kSend,
    kReceive
  };
  Kind kind = Kind::kCompute;
  // kCompute: of all its instructions, on a device whose slowness is 1.
  double seconds = 0;
  unsigned first = 0;  // instruction of the function
  unsigned count = 1;  // more than one: neighbours that compute
  // kCall, and kCompute where it is a call of a function that only computes.
  int function = -1;
  int axes = -1;  // kCollective, kStart: in the AxesTable
  int token = 0;  // kStart, kAwait
  int name = -1;  // in Steps::names
};

struct FunctionSteps {
  std::vector<Step> steps;
  bool communicates = false;
  double seconds = 0;  // of computing
};

// One for each function; the program must outlive it.
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
  // What an instruction computes takes, without the body of what it calls.
  double SecondsOf(int function, unsigned instruction) const {
    return seconds_[static_cast<size_t>(function)][instruction];
  }
  // What steps are called, for people.
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

// "gemm", "all_gather", "send" ...: the kind of operation.
std::string KindOf(const program::Instruction& instruction);

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_STEPS_H_
