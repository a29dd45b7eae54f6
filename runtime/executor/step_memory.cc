// Assigns virtual addresses: the frame first, then one global after another.
#include "runtime/executor/step_memory.h"

#include <map>
#include <utility>

#include "runtime/program/types.h"

namespace partita::executor {
namespace {

constexpr int64_t kNone = -1;

class Walk {
 public:
  explicit Walk(const program::Program& program) : program_(program) {}

  void Add(int index, const std::vector<int64_t>& arguments, int64_t frame) {
    std::map<int, size_t> started;  // token -> step of the collective
    const program::Function& function =
        *program_.functions()->Get(static_cast<unsigned>(index));
    for (int64_t i = 0; i < program::SizeOrZero(function.body()); ++i) {
      const program::Instruction& instruction =
          *function.body()->Get(static_cast<unsigned>(i));
      std::vector<int64_t> operands;
      StepMemory step;
      for (int64_t j = 0; j < program::SizeOrZero(instruction.operands());
           ++j) {
        const program::Buffer& buffer =
            *instruction.operands()->Get(static_cast<unsigned>(j));
        operands.push_back(AddressOf(buffer, arguments, frame));
        step.ranges.push_back({operands.back(), buffer.bytes()});
      }
      if (const program::Call* call = instruction.operation_as_Call()) {
        Add(call->function(), operands, frame + call->frame_offset());
        continue;
      }
      if (const program::Send* send = instruction.operation_as_Send())
        step.receiver = static_cast<int>(send->peer());
      if (const program::Receive* receive = instruction.operation_as_Receive())
        step.sender = static_cast<int>(receive->peer());
      // A started collective uses its memory until it is awaited.
      if (const program::Collective* collective =
              instruction.operation_as_Collective();
          collective != nullptr && collective->token() != 0)
        started[collective->token()] = steps_.size();
      if (const program::Await* await = instruction.operation_as_Await())
        step = steps_[started.at(await->token())];
      steps_.push_back(std::move(step));
    }
  }
  std::vector<StepMemory> Take() { return std::move(steps_); }

 private:
  static int64_t AddressOf(const program::Buffer& buffer,
                           const std::vector<int64_t>& arguments,
                           int64_t frame) {
    switch (buffer.space()) {
      case program::Space::argument:
        return arguments[static_cast<size_t>(buffer.value())];
      case program::Space::frame:
        return frame + buffer.value();
      case program::Space::constant:
        break;
    }
    return kNone;
  }

  const program::Program& program_;
  std::vector<StepMemory> steps_;
};

}  // namespace

std::vector<StepMemory> MemoryOfSteps(const program::Program& program,
                                      const program::Entry& entry) {
  int64_t next = program.functions()
                     ->Get(static_cast<unsigned>(entry.main()))
                     ->frame_bytes();
  const int64_t parameters = program::SizeOrZero(program.parameters());
  std::map<int, int64_t> globals;  // global -> address
  const auto address = [&](int global) {
    const auto [found, added] = globals.try_emplace(global, next);
    if (!added) return found->second;
    next += program::BytesOf(
        global < parameters
            ? *program.parameters()->Get(static_cast<unsigned>(global))->type()
            : *entry.derived()->Get(
                  static_cast<unsigned>(global - parameters)));
    return found->second;
  };
  std::vector<int64_t> arguments(
      static_cast<size_t>(program::SizeOrZero(entry.inputs())), kNone);
  for (int64_t i = 0; i < program::SizeOrZero(entry.main_globals()); ++i)
    arguments.push_back(
        address(entry.main_globals()->Get(static_cast<unsigned>(i))));
  arguments.insert(arguments.end(),
                   static_cast<size_t>(program::SizeOrZero(entry.outputs())),
                   kNone);
  for (int64_t i = 0; i < program::SizeOrZero(entry.main_updates()); ++i)
    arguments.push_back(
        address(entry.main_updates()->Get(static_cast<unsigned>(i))));
  Walk walk(program);
  walk.Add(entry.main(), arguments, 0);
  return walk.Take();
}

}  // namespace partita::executor
