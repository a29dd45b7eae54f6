// Binding has two steps. First, flattening the whole call tree collects all
// uses of each weight. Then library operations are prepared in order, and
// weights of which the libraries keep copies are released one by one.
#include "runtime/executor/bound_program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/executor/collective_desc.h"
#include "runtime/executor/instructions.h"
#include "runtime/executor/library_desc.h"
#include "runtime/program/labels.h"
#include "runtime/program/types.h"

namespace partita::executor {

using program::Operation;

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
