// Binding has two steps. First, flattening the whole call tree collects all
// uses of each weight. Then library operations are prepared in order, and
// weights of which the libraries keep copies are released one by one.
#include "runtime/executor/bound_program.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/executor/collective_desc.h"
#include "runtime/executor/library_desc.h"
#include "runtime/executor/step_memory.h"
#include "runtime/program/labels.h"
#include "runtime/program/library_limits.h"
#include "runtime/program/types.h"

namespace partita::executor {
namespace {

using program::Operation;

// Operand that libraries may copy: a gemm's right-hand side, a grouped gemm's
// matrices or a convolution's weight.
constexpr size_t kWeightOperand = 1;

bool IsLibrary(Operation kind) {
  return kind == Operation::Gemm || kind == Operation::GroupedGemm ||
         kind == Operation::Conv;
}

const program::Attention* AttentionOf(const program::Instruction& instruction) {
  const program::Launch* launch = instruction.operation_as_Launch();
  return launch == nullptr ? nullptr : launch->attention();
}

bool IsTransfer(Operation kind) {
  return kind == Operation::Send || kind == Operation::Receive;
}

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

std::string NameOf(const program::Instruction& instruction) {
  return instruction.name() == nullptr ? "" : instruction.name()->str();
}

}  // namespace

absl::StatusOr<std::unique_ptr<BoundProgram>> BoundProgram::Bind(
    const Context& context, int function, const std::vector<Slot>& arguments,
    char* frame, char* data) {
  std::unique_ptr<BoundProgram> bound(new BoundProgram(context));
  bound->data_ = data;
  if (context.device_communicator != nullptr)
    bound->device_exchange_ = std::make_unique<DeviceExchange>(
        context.device, *context.device_communicator);
  PARTITA_RETURN_IF_ERROR(bound->Flatten(function, arguments, frame, "", ""));
  PARTITA_RETURN_IF_ERROR(bound->PlanStatesTogether());
  PARTITA_RETURN_IF_ERROR(bound->PrepareTransfers());
  int64_t scratch = 0;
  for (const Step& step : bound->steps_)
    scratch = std::max(scratch, step.shape.scratch_bytes);
  PARTITA_RETURN_IF_ERROR(context.device.ReserveLaunchScratch(scratch));
  PARTITA_RETURN_IF_ERROR(bound->PrepareLibraryOps());
  PARTITA_RETURN_IF_ERROR(bound->PlanEvents());
  return bound;
}

Slot BoundProgram::Resolve(const program::Buffer& buffer,
                           const std::vector<Slot>& arguments,
                           char* frame) const {
  switch (buffer.space()) {
    case program::Space::argument:
      return arguments[static_cast<size_t>(buffer.value())];
    case program::Space::frame:
      return {frame + buffer.value()};
    case program::Space::constant:
      break;
  }
  Slot constant{data_ + buffer.value()};
  constant.is_constant = true;
  return constant;
}

absl::Status BoundProgram::Flatten(int index,
                                   const std::vector<Slot>& arguments,
                                   char* frame, const std::string& path,
                                   const std::string& layer) {
  Tokens tokens;
  const int own_path = static_cast<int>(paths_.size());
  paths_.push_back(path);
  layers_.push_back(layer);
  const program::Function& function =
      *context_.artifact.program().functions()->Get(
          static_cast<unsigned>(index));
  for (int64_t i = 0; i < program::SizeOrZero(function.body()); ++i) {
    const program::Instruction& instruction =
        *function.body()->Get(static_cast<unsigned>(i));
    const int64_t count = program::SizeOrZero(instruction.operands());
    std::vector<Slot> operands;
    for (int64_t j = 0; j < count; ++j) {
      operands.push_back(
          Resolve(*instruction.operands()->Get(static_cast<unsigned>(j)),
                  arguments, frame));
    }
    if (const program::Call* call = instruction.operation_as_Call()) {
      const program::Function& callee =
          *context_.artifact.program().functions()->Get(
              static_cast<unsigned>(call->function()));
      const std::string callee_path =
          absl::StrCat(path, path.empty() ? "" : ", ", callee.name()->str(),
                       " called by '", NameOf(instruction), "'");
      char* const callee_frame = frame + call->frame_offset();
      const std::string callee_layer = program::LayerPath(layer, instruction);
      if (call->repeats()) {
        Step step;
        step.kind = Operation::Call;
        step.instruction = &instruction;
        step.path = own_path;
        PARTITA_RETURN_IF_ERROR(FlattenLoop(step, std::move(operands),
                                            callee_frame, callee_path,
                                            callee_layer));
      } else {
        PARTITA_RETURN_IF_ERROR(Flatten(call->function(), operands,
                                        callee_frame, callee_path,
                                        callee_layer));
      }
      continue;
    }
    Step step;
    step.kind = instruction.operation_type();
    step.instruction = &instruction;
    step.path = own_path;
    AddOperands(step, operands);
    if (step.kind == Operation::Launch)
      PARTITA_RETURN_IF_ERROR(ResolveKernel(step));
    Number(step, tokens);
    if (step.kind == Operation::Collective)
      PARTITA_RETURN_IF_ERROR(PrepareCollective(step));
    if (step.kind == Operation::Copy)
      step.bytes = instruction.operands()->Get(0)->bytes();
    steps_.push_back(step);
  }
  return absl::OkStatus();
}

void BoundProgram::AddOperands(Step& step, const std::vector<Slot>& operands) {
  step.count = static_cast<int32_t>(operands.size());
  step.first = buffers_.size();
  for (const Slot& operand : operands) {
    if (operand.port >= 0)
      relocations_.push_back({buffers_.size(), operand.port});
    buffers_.push_back(operand.data);
    buffer_globals_.push_back(operand.global);
    buffer_constants_.push_back(operand.is_constant);
    buffer_states_.push_back(operand.state);
  }
}

absl::Status BoundProgram::ResolveKernel(Step& step) {
  const program::Launch& launch = *step.instruction->operation_as_Launch();
  const std::string symbol = context_.artifact.program()
                                 .kernels()
                                 ->Get(static_cast<unsigned>(launch.kernel()))
                                 ->name()
                                 ->str();
  PARTITA_ASSIGN_OR_RETURN(step.kernel, context_.module->Find(symbol));
  step.shape.range = launch.range();
  step.shape.grain = launch.grain();
  step.shape.scratch_bytes = launch.scratch_bytes();
  step.shape.shared_bytes = launch.shared_bytes();
  for (unsigned i = 0; i < 3 && launch.grid() != nullptr; ++i) {
    step.shape.grid[i] = launch.grid()->Get(i);
    step.shape.block[i] = launch.block()->Get(i);
  }
  if (const auto* ranges = launch.ranges()) {
    pieces_.push_back(std::make_unique<device::LaunchPieces>());
    pieces_.back()->ranges.assign(ranges->begin(), ranges->end());
    pieces_.back()->outputs =
        step.instruction->outputs() / static_cast<int>(ranges->size());
    step.pieces = pieces_.back().get();
  }
  if (launch.maps() == nullptr) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<device::TensorMaps>> maps =
      context_.device.PrepareMaps(MapsOf(launch), buffers_.data() + step.first);
  if (!maps.ok()) return Failed(step, maps.status());
  maps_.push_back(*std::move(maps));
  step.shape.maps = maps_.back().get();
  return absl::OkStatus();
}

// Tokens are unique within a function only; starts are numbered over the whole
// run.
void BoundProgram::Number(Step& step, Tokens& tokens) {
  if (const program::Collective* collective =
          step.instruction->operation_as_Collective()) {
    if (collective->token() == 0) return;
    tokens[collective->token()] = step.started = ++starts_;
  } else if (const program::Await* await =
                 step.instruction->operation_as_Await()) {
    step.started = tokens.at(await->token());
  }
}

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

absl::Status BoundProgram::PrepareLibraryOps() {
  std::map<int, GlobalUse> uses;
  for (const Step& step : steps_) {
    for (size_t i = 0; i < static_cast<size_t>(step.count); ++i) {
      const int global = buffer_globals_[step.first + i];
      if (global < 0) continue;
      GlobalUse& use = uses[global];
      if (IsLibrary(step.kind) && i == kWeightOperand) {
        ++use.library_uses;
      } else {
        use.kept_elsewhere = false;
      }
    }
  }
  for (Step& step : steps_) {
    const bool is_attention = AttentionOf(*step.instruction) != nullptr;
    if (!is_attention && !IsLibrary(step.kind)) continue;
    if (context_.communicator != nullptr)
      PARTITA_RETURN_IF_ERROR(context_.communicator->Progress());
    const absl::Status status =
        is_attention ? PrepareAttention(step) : PrepareStep(step);
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("cannot prepare '",
                                                      NameOf(*step.instruction),
                                                      "': ", status.message()));
    }
    if (is_attention) continue;
    const int global = buffer_globals_[step.first + kWeightOperand];
    if (global < 0) continue;
    GlobalUse& use = uses[global];
    use.kept_elsewhere =
        use.kept_elsewhere && step.library_op->Packed(kWeightOperand);
    if (--use.library_uses == 0 && use.kept_elsewhere && context_.release)
      context_.release(global);
  }
  return absl::OkStatus();
}

absl::Status BoundProgram::PrepareStep(Step& step) {
  std::vector<const void*> constants(static_cast<size_t>(step.count), nullptr);
  std::string key;
  for (size_t i = 0; i < constants.size(); ++i) {
    if (buffer_globals_[step.first + i] < 0 &&
        !buffer_constants_[step.first + i])
      continue;
    constants[i] = buffers_[step.first + i];
    absl::StrAppend(&key, i, "@",
                    absl::Hex(reinterpret_cast<uintptr_t>(constants[i])), " ");
  }
  const auto prepare = [&](auto desc, auto&& make) -> absl::Status {
    absl::StrAppend(&key, KeyOf(desc));
    std::unique_ptr<device::LibraryOp>& op = library_ops_[key];
    if (op == nullptr) {
      PARTITA_ASSIGN_OR_RETURN(op, make(desc));
    }
    step.library_op = op.get();
    return absl::OkStatus();
  };
  if (const program::Gemm* gemm = step.instruction->operation_as_Gemm()) {
    return prepare(ToDesc(*gemm), [&](const auto& desc) {
      return context_.device.PrepareGemm(desc, constants);
    });
  }
  if (const auto* grouped = step.instruction->operation_as_GroupedGemm()) {
    return prepare(ToDesc(*grouped), [&](const auto& desc) {
      return context_.device.PrepareGroupedGemm(desc, constants);
    });
  }
  device::ConvDesc conv = ToDesc(*step.instruction->operation_as_Conv());
  conv.residual_in_out = AddsInPlace(step, conv);
  return prepare(conv, [&](const auto& desc) {
    return context_.device.PrepareConv(desc, constants);
  });
}

// Equal attentions by the same kernel share an operation.
absl::Status BoundProgram::PrepareAttention(Step& step) {
  const device::AttentionDesc desc = ToDesc(*AttentionOf(*step.instruction));
  std::vector<int64_t> bytes;
  for (const program::Buffer* operand : *step.instruction->operands())
    bytes.push_back(operand->bytes());
  const std::string key =
      absl::StrCat(KeyOf(desc), " kernel ",
                   step.instruction->operation_as_Launch()->kernel(), " on ",
                   absl::StrJoin(bytes, ","));
  auto [found, is_new] = library_ops_.try_emplace(key);
  if (is_new) {
    PARTITA_ASSIGN_OR_RETURN(
        found->second, context_.device.PrepareAttention(desc, *step.kernel,
                                                        step.shape, bytes));
  }
  step.library_op = found->second.get();
  return absl::OkStatus();
}

bool BoundProgram::AddsInPlace(const Step& step,
                               const device::ConvDesc& desc) const {
  if (!desc.has_residual ||
      (desc.activation != device::Activation::kNone && !desc.activates_sum))
    return false;
  // Memory of the caller changes between runs.
  const size_t out = step.first + static_cast<size_t>(step.count) - 1;
  return buffers_[out - 1] == buffers_[out] &&
         std::none_of(relocations_.begin(), relocations_.end(),
                      [&](const Relocation& relocation) {
                        return relocation.buffer == out ||
                               relocation.buffer == out - 1;
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

absl::Status BoundProgram::Failed(const Step& step,
                                  const absl::Status& status) const {
  const std::string layer =
      step.kind == Operation::Collective
          ? program::LayerPath(layers_[static_cast<size_t>(step.path)],
                               *step.instruction)
          : "";
  return absl::Status(
      status.code(),
      absl::StrCat("'", NameOf(*step.instruction), "'",
                   layer.empty() ? "" : " of layer '", layer,
                   layer.empty() ? "" : "'", " failed: ", status.message()));
}

std::string BoundProgram::DescribeStep(int64_t index) const {
  const Step& step = steps_[static_cast<size_t>(index)];
  std::string text = absl::StrCat("'", NameOf(*step.instruction), "'");
  const program::Instruction& instruction = *step.instruction;
  if (const program::Launch* launch = instruction.operation_as_Launch()) {
    absl::StrAppend(
        &text, " (kernel ",
        program::KernelLabel(context_.artifact.program(), *launch).str(), ")");
  } else if (const program::Collective* collective =
                 instruction.operation_as_Collective()) {
    absl::StrAppend(&text, " (",
                    program::EnumNameCollectiveKind(collective->kind()), ")");
  } else if (step.kind == Operation::Await) {
    absl::StrAppend(&text, " (wait)");
  } else if (const auto transfer = TransferOf(instruction, context_.place)) {
    absl::StrAppend(
        &text, " (",
        LabelOf(*transfer, context_.artifact.program(), context_.place).name,
        ")");
  } else if (step.loop >= 0) {
    absl::StrAppend(&text, " (loop)");
  } else if (IsLibrary(step.kind)) {
    absl::StrAppend(
        &text, step.kind == Operation::Conv ? " (convolution)" : " (product)");
  }
  const std::string& path = paths_[static_cast<size_t>(step.path)];
  return path.empty() ? text : absl::StrCat(text, " in ", path);
}

std::vector<StepLabel> BoundProgram::Labels() const {
  std::vector<StepLabel> labels;
  std::vector<std::string> started;  // names of started collectives
  for (const Step& step : steps_) {
    labels.push_back(LabelOfStep(step, started));
    labels.back().layer = program::LayerPath(
        layers_[static_cast<size_t>(step.path)], *step.instruction);
  }
  return labels;
}

StepLabel BoundProgram::LabelOfStep(const Step& step,
                                    std::vector<std::string>& started) const {
  const program::Instruction& instruction = *step.instruction;
  const program::Program& program = context_.artifact.program();
  StepLabel label;
  if (const program::Gemm* gemm = instruction.operation_as_Gemm()) {
    label = LabelOf(ToDesc(*gemm));
  } else if (const auto* grouped = instruction.operation_as_GroupedGemm()) {
    label = LabelOf(ToDesc(*grouped));
  } else if (const program::Conv* conv = instruction.operation_as_Conv()) {
    label = LabelOf(ToDesc(*conv));
  } else if (const program::Launch* launch =
                 instruction.operation_as_Launch()) {
    label.name = program::KernelLabel(program, *launch).str();
  } else if (const program::Collective* collective =
                 instruction.operation_as_Collective()) {
    label = LabelOf(*collective, program.mesh(), context_.place);
    if (step.started == 0) return label;
    started.push_back(label.name);
    label.name = absl::StrCat("start ", label.name);
    return label;
  } else if (step.kind == Operation::Await) {
    label.name = absl::StrCat("wait for ",
                              started[static_cast<size_t>(step.started - 1)]);
  } else if (const auto transfer = TransferOf(instruction, context_.place)) {
    return LabelOf(*transfer, program, context_.place);
  } else {
    label.name = step.loop < 0 ? "copy" : "loop";
  }
  if (step.library_op != nullptr)
    absl::StrAppend(&label.name, " (", step.library_op->Description(), ")");
  for (int64_t i = 0; i < step.count; ++i) {
    label.bytes += static_cast<double>(
        instruction.operands()->Get(static_cast<unsigned>(i))->bytes());
  }
  return label;
}

}  // namespace partita::executor
