// Runs a bound program: executes its steps, or replays the captured graph.
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/executor/bound_program.h"
#include "runtime/executor/instructions.h"
#include "runtime/program/labels.h"

namespace partita::executor {
namespace {

using Clock = std::chrono::steady_clock;
using program::Operation;

int64_t NanosecondsSince(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() -
                                                              begin)
      .count();
}

// Name of an instruction in NVIDIA's profilers.
const char* RangeName(const program::Program& program,
                      const program::Instruction& instruction) {
  const program::Launch* launch = instruction.operation_as_Launch();
  return launch == nullptr ? NameOf(instruction)
                           : program::KernelLabel(program, *launch).c_str();
}

// Operands of a collective that moves rows; others have two.
constexpr int kRowOperands = 3;

// Token of a transfer among devices; tokens of collectives are positive.
int64_t TokenOf(int64_t step) { return -1 - step; }

}  // namespace

void BoundProgram::SetPort(int port, char* data) {
  for (const Relocation& relocation : relocations_) {
    if (relocation.port == port) buffers_[relocation.buffer] = data;
  }
  // Ranks that exchange agree only once on capturing.
  if (graphs_ == Graphs::kReplay)
    graphs_ = device_exchange_ == nullptr ? Graphs::kCapture : Graphs::kNever;
  graph_.reset();
}

absl::Status BoundProgram::Exchange(device::Stream& stream, const Step& step,
                                    const void* input, void* output) {
  if (step.collective == nullptr) return absl::OkStatus();
  if (step.on_device) {
    PARTITA_RETURN_IF_ERROR(BeforeExchange());
    return device_exchange_->Run(stream, *step.collective, input, output);
  }
  PARTITA_RETURN_IF_ERROR(AwaitDevices(stream));
  if (!context_.device.SharesHostMemory())
    return host_exchange_.Run(*context_.communicator, *step.collective,
                              context_.device, stream, input, output);
  PARTITA_RETURN_IF_ERROR(context_.device.Synchronize(stream));
  return context_.communicator->Run(*step.collective, input, output);
}

absl::Status BoundProgram::MoveRows(device::Stream& stream, const Step& step,
                                    void* const* buffers) {
  if (step.collective == nullptr) return absl::OkStatus();
  if (step.on_device)
    return device_exchange_->RunRows(stream, *step.collective, buffers[0],
                                     buffers[1], buffers[2]);
  PARTITA_RETURN_IF_ERROR(AwaitDevices(stream));
  if (!context_.device.SharesHostMemory())
    return host_exchange_.RunRows(*context_.communicator, *step.collective,
                                  context_.device, stream, buffers[0],
                                  buffers[1], buffers[2]);
  PARTITA_RETURN_IF_ERROR(context_.device.Synchronize(stream));
  const int64_t* to = static_cast<const int64_t*>(buffers[1]);
  if (step.started > 0 && started_ != nullptr)
    return started_->StartRows(*step.collective, buffers[0], to, buffers[2])
        .status();
  return context_.communicator->RunRows(*step.collective, buffers[0], to,
                                        buffers[2]);
}

absl::Status BoundProgram::Start(device::Stream& stream, const Step& step,
                                 void* const* buffers) {
  if (step.on_device) {
    PARTITA_RETURN_IF_ERROR(BeforeExchange());
    return device_exchange_->Start(stream, *step.collective, buffers[0],
                                   buffers[1], step.started);
  }
  if (started_ == nullptr)
    return Exchange(stream, step, buffers[0], buffers[1]);
  PARTITA_RETURN_IF_ERROR(context_.device.Synchronize(stream));
  return started_->Start(*step.collective, buffers[0], buffers[1]).status();
}

// A collective that ran at its start needs no wait.
absl::Status BoundProgram::AwaitStarted(device::Stream& stream,
                                        const Step& step) {
  if (started_on_device_.count(step.started) > 0)
    return device_exchange_->Await(stream, step.started);
  return started_ == nullptr ? absl::OkStatus()
                             : started_->Await(started_before_ + step.started);
}

absl::Status BoundProgram::RunStep(device::Stream& stream, const Step& step) {
  const auto parts = state_parts_.find(&step - steps_.data());
  return parts == state_parts_.end() ? RunOperation(stream, step)
                                     : RunParts(stream, step, parts->second);
}

absl::Status BoundProgram::RunOperation(device::Stream& stream,
                                        const Step& step) {
  void* const* buffers = buffers_.data() + step.first;
  switch (step.kind) {
    case Operation::Launch:
      if (step.library_op != nullptr)
        return context_.device.Execute(stream, *step.library_op, buffers,
                                       step.count);
      if (step.pieces != nullptr)
        return context_.device.LaunchEach(stream, *step.kernel, step.shape,
                                          *step.pieces, buffers, step.count);
      return context_.device.Launch(stream, *step.kernel, step.shape, buffers,
                                    step.count);
    case Operation::Copy:
      return context_.device.Copy(stream, buffers[1], buffers[0], step.bytes);
    case Operation::Collective:
      if (step.count == kRowOperands) return MoveRows(stream, step, buffers);
      return step.started == 0 ? Exchange(stream, step, buffers[0], buffers[1])
                               : Start(stream, step, buffers);
    case Operation::Await:
      return AwaitStarted(stream, step);
    case Operation::Send:
    case Operation::Receive:
      return Exchange(stream, step, buffers[0], buffers[0]);
    default:
      return context_.device.Execute(stream, *step.library_op, buffers,
                                     step.count);
  }
}

absl::Status BoundProgram::Run(device::Stream& stream, Profile* profile,
                               NanTrace* trace, const Meanwhile& meanwhile) {
  if (started_ != nullptr) started_before_ = started_->last();
  const bool plain = profile == nullptr && trace == nullptr;
  const absl::Status status = plain && graphs_ != Graphs::kNever
                                  ? RunGraph(stream, meanwhile)
                                  : RunSteps(stream, profile, trace, meanwhile);
  if (status.ok()) return status;
  // The operations that a graph replays may be gone with their group. Libraries
  // free an aborted group only once no graph uses it.
  graphs_ = Graphs::kNever;
  graph_.reset();
  if (started_ != nullptr) started_->GiveUp(status);
  if (context_.communicator != nullptr) context_.communicator->Abandon();
  return status;
}

absl::Status BoundProgram::RunGraph(device::Stream& stream,
                                    const Meanwhile& meanwhile) {
  if (graphs_ == Graphs::kCapture) PARTITA_RETURN_IF_ERROR(Capture(stream));
  if (graphs_ == Graphs::kReplay) {
    PARTITA_RETURN_IF_ERROR(context_.device.Replay(stream, *graph_));
    return EndRun(stream, meanwhile);
  }
  PARTITA_RETURN_IF_ERROR(RunSteps(stream, nullptr, nullptr, meanwhile));
  if (graphs_ == Graphs::kFirstRun) graphs_ = Graphs::kCapture;
  return absl::OkStatus();
}

// If capture fails, this run executes the steps and reports their own errors.
// Libraries may wait for other ranks while they capture, and may exchange
// differently in graphs. So either all ranks reach their first exchange or none
// goes on, and either all replay or none does.
absl::Status BoundProgram::Capture(device::Stream& stream) {
  const bool agrees =
      device_exchange_ != nullptr && context_.communicator != nullptr;
  std::optional<bool> all;  // all ranks reached their first exchange
  constexpr char kWhat[] = "whether steps can be captured";
  if (agrees)
    before_exchange_ = [&]() -> absl::Status {
      if (!all) {
        PARTITA_ASSIGN_OR_RETURN(all, AllRanksAgree(true, kWhat));
      }
      return *all ? absl::OkStatus()
                  : absl::CancelledError("another rank cannot capture");
    };
  absl::StatusOr<std::unique_ptr<device::Graph>> graph(nullptr);
  if (!HostExchanges())
    graph = context_.device.Capture(
        stream, [&] { return EnqueueSteps(stream, nullptr, nullptr); });
  before_exchange_ = nullptr;
  bool captured = graph.ok() && *graph != nullptr;
  if (agrees && !all) {
    PARTITA_ASSIGN_OR_RETURN(all, AllRanksAgree(captured, kWhat));
  }
  if (agrees && !*all) captured = false;
  if (agrees && *all) {
    PARTITA_ASSIGN_OR_RETURN(
        captured, AllRanksAgree(captured, "whether steps are captured"));
  }
  graphs_ = captured ? Graphs::kReplay : Graphs::kNever;
  if (captured) graph_ = *std::move(graph);
  return absl::OkStatus();
}

absl::StatusOr<bool> BoundProgram::AllRanksAgree(bool own,
                                                 const std::string& what) {
  PARTITA_ASSIGN_OR_RETURN(
      const std::vector<std::string> all,
      context_.communicator->GatherTexts(own ? "yes" : "no", what));
  return std::count(all.begin(), all.end(), "yes") ==
         static_cast<std::ptrdiff_t>(all.size());
}

absl::Status BoundProgram::RunSteps(device::Stream& stream, Profile* profile,
                                    NanTrace* trace,
                                    const Meanwhile& meanwhile) {
  const bool reads = !state_parts_.empty();
  window_ = -1;
  if (reads) context_.states->BeginRun();
  PARTITA_RETURN_IF_ERROR(EnqueueSteps(stream, profile, trace));
  if (reads) PARTITA_RETURN_IF_ERROR(LeaveWindow(stream));
  PARTITA_RETURN_IF_ERROR(EndRun(stream, meanwhile));
  if (profile != nullptr) profile->CountRun();
  return absl::OkStatus();
}

absl::Status BoundProgram::EndRun(device::Stream& stream,
                                  const Meanwhile& meanwhile) {
  absl::Status status = meanwhile ? meanwhile() : absl::OkStatus();
  // The caller may free its memory on an error, so no work may still use it.
  status.Update(AwaitDevices(stream));
  PARTITA_RETURN_IF_ERROR(status);
  return context_.communicator == nullptr ? absl::OkStatus()
                                          : context_.communicator->Progress();
}

absl::Status BoundProgram::EnqueueSteps(device::Stream& stream,
                                        Profile* profile, NanTrace* trace) {
  if (device_exchange_ != nullptr) device_exchange_->Begin();
  met_ = 0;
  PARTITA_RETURN_IF_ERROR(RunRange(stream, 0, step_count(), profile, trace));
  return trace == nullptr ? MeetTransfers(stream, step_count(), profile)
                          : absl::OkStatus();
}

absl::Status BoundProgram::RunRange(device::Stream& stream, int64_t begin,
                                    int64_t end, Profile* profile,
                                    NanTrace* trace) {
  for (int64_t index = begin; index < end; ++index) {
    const Step& step = steps_[static_cast<size_t>(index)];
    if (context_.communicator != nullptr)
      PARTITA_RETURN_IF_ERROR(context_.communicator->Progress());
    if (trace == nullptr && ReceivesAhead()) {
      PARTITA_RETURN_IF_ERROR(MeetTransfers(stream, index, profile));
      if (step.kind == Operation::Receive ||
          (step.kind == Operation::Send && step.on_device))
        continue;
    }
    if (step.loop < 0) {
      PARTITA_RETURN_IF_ERROR(RunPlainStep(stream, step, profile, trace));
      continue;
    }
    PARTITA_RETURN_IF_ERROR(RunLoop(stream, step, profile, trace));
    index = loops_[static_cast<size_t>(step.loop)].end - 1;
  }
  return absl::OkStatus();
}

absl::Status BoundProgram::RunPlainStep(device::Stream& stream,
                                        const Step& step, Profile* profile,
                                        NanTrace* trace) {
  const int64_t index = &step - steps_.data();
  const Clock::time_point begin =
      profile == nullptr ? Clock::time_point() : Clock::now();
  context_.device.BeginRange(
      RangeName(context_.artifact.program(), *step.instruction));
  absl::Status status = RunStep(stream, step);
  context_.device.EndRange();
  // A trace inspects the outputs of each step.
  if (status.ok() && trace != nullptr && step.collective != nullptr &&
      step.started > 0 && started_ != nullptr)
    status = started_->Await(started_before_ + step.started);
  if (!status.ok()) return Failed(step, status);
  if (profile == nullptr && trace == nullptr) return absl::OkStatus();
  status = AwaitDevices(stream);
  if (status.ok()) status = context_.device.Synchronize(stream);
  if (!status.ok()) return Failed(step, status);
  if (trace != nullptr)
    trace->AddStep(index, *step.instruction, buffers_.data() + step.first);
  if (profile != nullptr) profile->Add(index, NanosecondsSince(begin));
  return absl::OkStatus();
}

// Handles transfer events that are due before step `index`.
absl::Status BoundProgram::MeetTransfers(device::Stream& stream, int64_t index,
                                         Profile* profile) {
  for (; met_ < events_.size() && events_[met_].before <= index; ++met_) {
    const TransferEvent& event = events_[met_];
    const Step& step = steps_[static_cast<size_t>(event.step)];
    const Clock::time_point begin = Clock::now();
    absl::Status status = event.begins ? BeginTransfer(stream, step, event.step)
                                       : EndTransfer(stream, step, event.step);
    if (profile != nullptr && !event.begins) {
      if (status.ok()) status = AwaitDevices(stream);
      profile->Add(event.step, NanosecondsSince(begin));
    }
    if (!status.ok()) return Failed(step, status);
  }
  return absl::OkStatus();
}

absl::Status BoundProgram::BeginTransfer(device::Stream& stream,
                                         const Step& step, int64_t index) {
  void* const memory = buffers_[step.first];
  if (step.on_device) {
    PARTITA_RETURN_IF_ERROR(BeforeExchange());
    context_.device.BeginRange(NameOf(*step.instruction));
    absl::Status status;
    if (step.slot != nullptr)
      status = context_.device.Copy(stream, step.slot, memory,
                                    step.collective->operation().InputBytes());
    if (status.ok())
      status = device_exchange_->Start(
          stream, *step.collective, step.slot == nullptr ? memory : step.slot,
          memory, TokenOf(index));
    context_.device.EndRange();
    return status;
  }
  PARTITA_RETURN_IF_ERROR(context_.device.Synchronize(stream));
  return context_.communicator->Expect(*step.collective, memory);
}

absl::Status BoundProgram::EndTransfer(device::Stream& stream, const Step& step,
                                       int64_t index) {
  return step.on_device ? device_exchange_->Await(stream, TokenOf(index))
                        : context_.communicator->Await(*step.collective,
                                                       buffers_[step.first]);
}

}  // namespace partita::executor
