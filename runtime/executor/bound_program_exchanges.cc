// Prepares collectives and transfers, and plans when transfers begin and end.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/executor/bound_program.h"
#include "runtime/executor/collective_desc.h"
#include "runtime/executor/instructions.h"
#include "runtime/executor/step_memory.h"
#include "runtime/program/library_limits.h"

namespace partita::executor {

using program::Operation;

namespace {

// A transfer among devices waits for both its ends; with enough slots the waits
// form no cycle. All ranks compute the same number of slots. At least
// kTransferSlots, so that a stage computes while it sends.
absl::StatusOr<int64_t> SlotsOf(const program::Program& program) {
  int64_t steps = 0;
  for (int64_t slots = program::kTransferSlots;
       slots <= std::max(2 * steps, program::kTransferSlots); slots *= 2) {
    std::vector<std::vector<TransferEvent>> events;
    for (const program::Entry* entry : *program.entries()) {
      const std::vector<StepMemory> memory = MemoryOfSteps(program, *entry);
      steps = std::max(steps, static_cast<int64_t>(memory.size()));
      events.push_back(PlanTransfers(memory, slots));
    }
    if (TransfersComplete(events)) return slots;
  }
  return absl::InternalError("the transfers of the program do not end");
}

}  // namespace

// Calls of one function share its collectives.
absl::Status BoundProgram::PrepareCollective(Step& step) {
  if (context_.communicator == nullptr) return absl::OkStatus();
  std::unique_ptr<comm::Collective>& collective =
      collectives_[step.instruction];
  if (collective == nullptr) {
    std::optional<TransferDesc> transfer =
        TransferOf(*step.instruction, context_.place);
    if (!transfer) {
      const program::Collective& op =
          *step.instruction->operation_as_Collective();
      transfer = {ToOperation(op, NameOf(*step.instruction), context_.place),
                  GroupOf(op, context_.place)};
    }
    const comm::Kind kind = transfer->operation.kind;
    PARTITA_ASSIGN_OR_RETURN(
        collective,
        PrepareOnDevice(*transfer, kind == comm::Kind::kTransfer ||
                                       IsStartedOnDevice(step, kind)));
    if (collective != nullptr) {
      on_device_.insert(collective.get());
      UseCollective(step, *collective);
      return absl::OkStatus();
    }
    // Collectives through host memory run where they are started.
    const bool beside = step.started > 0 && context_.device.SharesHostMemory();
    if (beside && started_ == nullptr)
      started_ =
          std::make_unique<comm::StartedOperations>(*context_.communicator);
    PARTITA_ASSIGN_OR_RETURN(
        collective,
        beside ? started_->Prepare(std::move(transfer->operation),
                                   std::move(transfer->ranks))
               : context_.communicator->Prepare(std::move(transfer->operation),
                                                std::move(transfer->ranks)));
    if (!context_.device.SharesHostMemory())
      PARTITA_RETURN_IF_ERROR(host_exchange_.Reserve(collective->operation()));
  }
  UseCollective(step, *collective);
  return absl::OkStatus();
}

// Preparing a transfer may wait for the other rank. All ranks go through the
// pairs in the same order, so that these waits form no cycle.
absl::Status BoundProgram::PrepareTransfers() {
  std::multimap<std::vector<int>, Step*> transfers;  // by sender and receiver
  for (Step& step : steps_)
    if (IsTransfer(step.kind))
      transfers.emplace(TransferOf(*step.instruction, context_.place)->ranks,
                        &step);
  if (transfers.empty()) return absl::OkStatus();
  if (device_exchange_ != nullptr) {
    PARTITA_ASSIGN_OR_RETURN(slots_, SlotsOf(context_.artifact.program()));
  }
  for (const auto& [ranks, step] : transfers)
    PARTITA_RETURN_IF_ERROR(PrepareCollective(*step));
  return absl::OkStatus();
}

void BoundProgram::UseCollective(Step& step, comm::Collective& collective) {
  step.collective = &collective;
  step.on_device = on_device_.count(&collective) > 0;
  if (step.on_device && IsStartedOnDevice(step, collective.operation().kind))
    started_on_device_.insert(step.started);
}

absl::StatusOr<std::unique_ptr<comm::Collective>> BoundProgram::PrepareOnDevice(
    const TransferDesc& desc, bool started) {
  if (device_exchange_ == nullptr) return std::unique_ptr<comm::Collective>();
  return device_exchange_->Prepare(desc.operation, desc.ranks, started);
}

absl::Status BoundProgram::AwaitDevices(device::Stream& stream) {
  return device_exchange_ == nullptr ? absl::OkStatus()
                                     : device_exchange_->Synchronize(stream);
}

bool BoundProgram::HostExchanges() const {
  if (device_exchange_ != nullptr && device_exchange_->MeetsOnHosts())
    return true;
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& step) {
    return step.collective != nullptr &&
           (!step.on_device ||
            comm::MovesRows(step.collective->operation().kind));
  });
}

absl::Status BoundProgram::PlanEvents() {
  if (context_.communicator == nullptr || !ReceivesAhead())
    return absl::OkStatus();
  if (std::none_of(steps_.begin(), steps_.end(),
                   [](const Step& step) { return IsTransfer(step.kind); }))
    return absl::OkStatus();
  const program::Program& program = context_.artifact.program();
  const std::vector<StepMemory> memory =
      MemoryOfSteps(program, program::EntryAt(program, context_.place));
  events_ = slots_ > 0 ? PlanTransfers(memory, slots_) : PlanReceives(memory);
  return slots_ > 0 ? MakeSlots() : absl::OkStatus();
}

// Each slot is as large as the largest tensor sent through it.
absl::Status BoundProgram::MakeSlots() {
  std::map<int, std::vector<int64_t>> bytes;  // of slots, by receiver
  std::map<int, int64_t> sends;
  const auto visit = [&](const auto& use) {
    sends.clear();
    for (Step& step : steps_) {
      if (step.kind != Operation::Send) continue;
      const int receiver = step.collective->ranks()[1];
      use(step, receiver, static_cast<size_t>(sends[receiver]++ % slots_));
    }
  };
  visit([&](const Step& step, int receiver, size_t slot) {
    std::vector<int64_t>& sizes = bytes[receiver];
    sizes.resize(std::max(sizes.size(), slot + 1));
    const int64_t size = step.collective->operation().InputBytes();
    constexpr int64_t kPart = program::kTransferSlotAlignment;
    sizes[slot] = std::max(sizes[slot], (size + kPart - 1) / kPart * kPart);
  });
  for (const auto& [receiver, sizes] : bytes) {
    PARTITA_ASSIGN_OR_RETURN(
        slot_memory_[receiver],
        device::Allocation::Make(
            context_.device,
            std::accumulate(sizes.begin(), sizes.end(), int64_t{0})));
  }
  visit([&](Step& step, int receiver, size_t slot) {
    const auto begin = bytes[receiver].begin();
    step.slot =
        slot_memory_.at(receiver).data() +
        std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(slot),
                        int64_t{0});
  });
  return absl::OkStatus();
}

int64_t BoundProgram::SlotBytes() const {
  int64_t bytes = 0;
  for (const auto& [receiver, memory] : slot_memory_) bytes += memory.bytes();
  return bytes;
}

}  // namespace partita::executor
