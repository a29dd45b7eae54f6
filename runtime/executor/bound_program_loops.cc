// Loops: calls that repeat. A step stands for the loop, and the steps of an
// iteration follow it.
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/executor/bound_program.h"
#include "runtime/program/loop.h"

namespace partita::executor {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

// An iteration reads the carried values in the call's outputs, and writes the
// next ones behind the callee's frame.
absl::Status BoundProgram::FlattenLoop(Step step, std::vector<Slot> operands,
                                       char* frame, const std::string& path,
                                       const std::string& layer) {
  const int callee = step.instruction->operation_as_Call()->function();
  if (context_.states != nullptr)
    return Failed(step,
                  absl::FailedPreconditionError(
                      "expected states in memory in a model with loops, "
                      "found states in files; leave out --offload-dir, and "
                      "offload: {optimizer: nvme} of the plan"));
  if (context_.device.KeepsContent() && !context_.device.SharesHostMemory())
    return Failed(step,
                  absl::FailedPreconditionError(
                      "expected a device that shares the host's memory, as the "
                      "host reads the condition of a loop whose number of "
                      "iterations depends on data; compile the model for cpu"));
  AddOperands(step, operands);
  step.loop = static_cast<int>(loops_.size());
  const size_t results = static_cast<size_t>(step.instruction->outputs());
  const size_t inputs = operands.size() - results;
  char* next = frame + context_.artifact.program()
                           .functions()
                           ->Get(static_cast<unsigned>(callee))
                           ->frame_bytes();
  Loop loop;
  for (size_t i = 0; i < results; ++i) {
    loop.carried.push_back({next, step.instruction->operands()
                                      ->Get(static_cast<unsigned>(inputs + i))
                                      ->bytes()});
    operands[i] = operands[inputs + i];
    operands[inputs + i] = Slot{next};
    next += program::LoopBytes(loop.carried.back().bytes);
  }
  const size_t number = loops_.size();
  loops_.push_back(std::move(loop));
  steps_.push_back(step);
  PARTITA_RETURN_IF_ERROR(Flatten(callee, operands, frame, path, layer));
  loops_[number].end = step_count();
  return absl::OkStatus();
}

absl::StatusOr<bool> BoundProgram::GoesOn(device::Stream& stream,
                                          const void* condition) {
  char goes_on = 0;
  PARTITA_RETURN_IF_ERROR(AwaitDevices(stream));
  PARTITA_RETURN_IF_ERROR(
      context_.device.CopyToHost(stream, &goes_on, condition, 1));
  PARTITA_RETURN_IF_ERROR(context_.device.Synchronize(stream));
  return goes_on != 0;
}

// The call's outputs hold the carried values. They begin as copies of its first
// operands.
absl::Status BoundProgram::RunLoop(device::Stream& stream, const Step& step,
                                   Profile* profile, NanTrace* trace) {
  const int64_t index = &step - steps_.data();
  const Loop& loop = loops_[static_cast<size_t>(step.loop)];
  void* const* first = buffers_.data() + step.first;
  void* const* carried =
      first + static_cast<size_t>(step.count) - loop.carried.size();
  // A device that stores nothing does not know the condition: one iteration.
  if (!context_.device.KeepsContent())
    return RunRange(stream, index + 1, loop.end, profile, trace);
  const Clock::time_point begin = Clock::now();
  const auto copy = [&](size_t i, const void* from) -> absl::Status {
    if (carried[i] == from) return absl::OkStatus();
    const int64_t bytes = loop.carried[i].bytes;
    PARTITA_RETURN_IF_ERROR(
        context_.device.Copy(stream, carried[i], from, bytes));
    if (trace != nullptr) trace->AddCopy(from, carried[i], bytes);
    return absl::OkStatus();
  };
  // Takes the values of the next iteration, and reads the condition.
  const auto carry = [&](bool begins) -> absl::StatusOr<bool> {
    const Clock::time_point start = Clock::now();
    for (size_t i = 0; i < loop.carried.size(); ++i)
      PARTITA_RETURN_IF_ERROR(
          copy(i, begins ? first[i] : loop.carried[i].next));
    absl::StatusOr<bool> goes_on = GoesOn(stream, carried[0]);
    if (profile != nullptr)
      profile->Add(index,
                   std::chrono::nanoseconds(Clock::now() - start).count());
    return goes_on;
  };
  absl::StatusOr<bool> goes_on = carry(/*begins=*/true);
  for (int64_t iteration = 0; goes_on.ok() && *goes_on; ++iteration) {
    if (Clock::now() - begin > context_.loop_limit)
      return Failed(
          step, absl::DeadlineExceededError(absl::StrCat(
                    "expected the loop to end within ",
                    std::chrono::duration<double>(context_.loop_limit).count(),
                    " s, found ", iteration,
                    " iterations and no end; a longer --timeout lets it go "
                    "on")));
    PARTITA_RETURN_IF_ERROR(
        RunRange(stream, index + 1, loop.end, profile, trace));
    goes_on = carry(/*begins=*/false);
  }
  return goes_on.ok() ? absl::OkStatus() : Failed(step, goes_on.status());
}

}  // namespace partita::executor
