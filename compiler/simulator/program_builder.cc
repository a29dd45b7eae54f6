// Builds programs through the flatbuffer's object interface.
#include "compiler/simulator/program_builder.h"

#include "compiler/core/transfers.h"

namespace partita::simulator {

using program::OperationUnion;

ProgramBuilder::ProgramBuilder(
    const std::vector<std::pair<std::string, int64_t>>& axes, int pipeline) {
  program_.mesh = program::MakeMesh(axes);
  if (pipeline >= 0) program_.pipeline = {Whole(pipeline)};
}

program::AxisPart ProgramBuilder::Whole(int axis) const {
  return program::WholeAxis(
      axis, program_.mesh->axes[static_cast<size_t>(axis)]->size);
}

int ProgramBuilder::Function(const std::string& name) {
  program_.functions.push_back(program::MakeFunction(name, 0, 0, 0));
  return static_cast<int>(program_.functions.size()) - 1;
}

void ProgramBuilder::EntryMain() {
  auto entry = std::make_unique<program::EntryT>();
  entry->main = static_cast<int>(program_.functions.size()) - 1;
  program_.entries.push_back(std::move(entry));
}

void ProgramBuilder::Append(OperationUnion operation, int64_t bytes,
                            const std::string& name) {
  program_.functions.back()->body.push_back(program::MakeInstruction(
      std::move(operation), {program::Frame(0, bytes)}, 0, name));
}

void ProgramBuilder::Work(const std::string& name) {
  OperationUnion operation;
  operation.Set(program::CopyT());
  Append(std::move(operation), 8, name);
}

void ProgramBuilder::CallOf(int function, const std::string& name) {
  program::CallT call;
  call.function = function;
  OperationUnion operation;
  operation.Set(std::move(call));
  Append(std::move(operation), 8, name);
}

void ProgramBuilder::Sum(const std::vector<int>& axes, int64_t bytes) {
  StartSum(axes, bytes, /*token=*/0);
}

void ProgramBuilder::AwaitOf(int token) {
  program::AwaitT await;
  await.token = token;
  OperationUnion operation;
  operation.Set(std::move(await));
  Append(std::move(operation), 0, "await");
}

void ProgramBuilder::StartSum(const std::vector<int>& axes, int64_t bytes,
                              int token) {
  program::CollectiveT collective;
  collective.token = token;
  for (const int axis : axes) collective.axes.push_back(Whole(axis));
  OperationUnion operation;
  operation.Set(std::move(collective));
  Append(std::move(operation), bytes, "sum");
}

void ProgramBuilder::Send(int64_t peer, int64_t bytes) {
  program::SendT send;
  send.peer = peer;
  OperationUnion operation;
  operation.Set(std::move(send));
  Append(std::move(operation), bytes, "send");
}

void ProgramBuilder::Receive(int64_t peer, int64_t bytes) {
  program::ReceiveT receive;
  receive.peer = peer;
  OperationUnion operation;
  operation.Set(std::move(receive));
  Append(std::move(operation), bytes, "receive");
}

void ProgramBuilder::Because(const std::string& why) {
  program_.functions.back()->body.back()->why = why;
}

const program::Program& ProgramBuilder::Build() {
  buffer_ = program::SerializeProgram(program_);
  return *program::GetProgram(buffer_.data());
}

const program::Program& BuildSchedule(const core::Schedule& schedule,
                                      ProgramBuilder& builder) {
  constexpr int64_t kBytes = 8;
  for (const auto& actions : core::PlaceTransfers(schedule).actions) {
    builder.Function("main");
    for (const core::Action& action : actions) {
      if (action.kind == core::Action::Kind::kCompute)
        builder.Work(core::ToString(action.cell));
      else if (action.kind == core::Action::Kind::kSend)
        builder.Send(action.peer, kBytes);
      else
        builder.Receive(action.peer, kBytes);
    }
    builder.EntryMain();
  }
  return builder.Build();
}

double NamedCosts::Compute(const program::Program&,
                           const program::Instruction& instruction) const {
  const std::string name = instruction.name()->str();
  auto found = seconds.find(name);
  if (found == seconds.end())
    found = seconds.find(name.substr(0, name.find_first_of("0123456789")));
  return found == seconds.end() ? 0 : found->second;
}

double NamedCosts::Slowness(int64_t rank) const {
  const auto found = slowness.find(rank);
  return found == slowness.end() ? 1 : found->second;
}

double NamedCosts::Collective(const program::Collective&,
                              const std::vector<int64_t>& ranks) const {
  double seconds = collective;
  for (const int64_t rank : ranks)
    if (rank % 2 == 1) seconds += latency;
  return seconds;
}

double NamedCosts::Transfer(int64_t, int64_t, int64_t) const {
  return transfer;
}

}  // namespace partita::simulator
