// Merges adjacent computing instructions into one step, and calls that only
// compute. The remaining steps are those at which ranks meet.
#include "compiler/simulator/steps.h"

#include "absl/strings/str_cat.h"
#include "runtime/program/labels.h"
#include "runtime/program/types.h"

namespace partita::simulator {

using program::Instruction;
using program::Operation;
using program::SizeOrZero;

std::string KindOf(const Instruction& instruction) {
  switch (instruction.operation_type()) {
    case Operation::Launch:
      return "kernel";
    case Operation::Gemm:
    case Operation::GroupedGemm:
      return "product";
    case Operation::Conv:
      return "convolution";
    case Operation::Call:
      return "call";
    case Operation::Copy:
      return "copy";
    case Operation::Send:
      return "send";
    case Operation::Receive:
      return "receive";
    case Operation::Await:
      return "await";
    case Operation::Collective:
      return program::EnumNameCollectiveKind(
          instruction.operation_as_Collective()->kind());
    default:
      return program::EnumNameOperation(instruction.operation_type());
  }
}

Steps::Steps(const program::Program& program, const AxesTable& axes,
             const Costs& costs)
    : program_(program),
      functions_(static_cast<size_t>(SizeOrZero(program.functions()))),
      compiled_(functions_.size(), false) {
  for (const program::Function* function : *program.functions()) {
    std::vector<double>& seconds = seconds_.emplace_back();
    for (unsigned i = 0; i < SizeOrZero(function->body()); ++i) {
      const Instruction& instruction = *function->body()->Get(i);
      const bool communicates =
          instruction.operation_as_Collective() != nullptr ||
          instruction.operation_as_Await() != nullptr ||
          instruction.operation_as_Send() != nullptr ||
          instruction.operation_as_Receive() != nullptr;
      seconds.push_back(communicates ? 0 : costs.Compute(program, instruction));
    }
  }
  for (size_t i = 0; i < functions_.size(); ++i)
    Compile(static_cast<int>(i), axes);
}

Step Steps::StepOf(int function, unsigned index, const AxesTable& axes) const {
  const Instruction& instruction = InstructionAt(function, index);
  Step step;
  step.first = index;
  step.seconds = SecondsOf(function, index);
  if (const program::Collective* collective =
          instruction.operation_as_Collective()) {
    step.token = collective->token();
    step.kind = step.token > 0 ? Step::Kind::kStart : Step::Kind::kCollective;
    step.axes = axes.Find(collective->axes());
  } else if (const program::Await* await = instruction.operation_as_Await()) {
    step.kind = Step::Kind::kAwait;
    step.token = await->token();
  } else if (instruction.operation_as_Send() != nullptr) {
    step.kind = Step::Kind::kSend;
  } else if (instruction.operation_as_Receive() != nullptr) {
    step.kind = Step::Kind::kReceive;
  } else if (const program::Call* call = instruction.operation_as_Call()) {
    step.function = call->function();
    const FunctionSteps& callee = Of(step.function);
    step.kind = callee.communicates ? Step::Kind::kCall : Step::Kind::kCompute;
    if (!callee.communicates) step.seconds += callee.seconds;
  }
  return step;
}

int Steps::NameOf(int function, const Step& step) {
  const Instruction& instruction = InstructionAt(function, step.first);
  std::string name =
      instruction.name() == nullptr ? "" : instruction.name()->str();
  if (const program::Launch* launch = instruction.operation_as_Launch())
    name = program::KernelLabel(program_, *launch).str();
  if (name.empty()) name = KindOf(instruction);
  if (step.function >= 0)
    name =
        absl::StrCat(FunctionAt(step.function).name()->str(), " (", name, ")");
  if (step.count > 1) absl::StrAppend(&name, " and ", step.count - 1, " more");
  names_.push_back(name);
  return static_cast<int>(names_.size()) - 1;
}

// Terminates because calls have no cycle.
void Steps::Compile(int function, const AxesTable& axes) {
  const size_t at = static_cast<size_t>(function);
  if (compiled_[at]) return;
  compiled_[at] = true;
  const auto* body = FunctionAt(function).body();
  FunctionSteps result;
  for (unsigned i = 0; i < SizeOrZero(body); ++i) {
    if (const program::Call* call = body->Get(i)->operation_as_Call())
      Compile(call->function(), axes);
    const Step step = StepOf(function, i, axes);
    const bool computes = step.kind == Step::Kind::kCompute;
    result.communicates |= !computes;
    result.seconds += step.seconds;
    if (step.kind == Step::Kind::kCall)
      result.seconds += Of(step.function).seconds;
    if (computes && step.function < 0 && !result.steps.empty()) {
      Step& last = result.steps.back();
      if (last.kind == Step::Kind::kCompute && last.function < 0) {
        last.seconds += step.seconds;
        ++last.count;
        continue;
      }
    }
    result.steps.push_back(step);
  }
  for (Step& step : result.steps) step.name = NameOf(function, step);
  functions_[at] = std::move(result);
}

}  // namespace partita::simulator
