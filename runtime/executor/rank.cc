// Blocks that are contiguous in the whole tensor are used in place; others are
// copied.
#include "runtime/executor/rank.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/types.h"

namespace partita::executor {
namespace {

TensorSpec GlobalSpec(const program::Port& port) {
  TensorSpec spec;
  spec.name = port.name()->str();
  spec.dtype = program::ToBase(port.type()->dtype());
  spec.shape =
      port.model_shape() != nullptr ? program::ToVector(port.model_shape())
      : port.shard() == nullptr     ? program::ShapeOf(*port.type())
                                    : program::ToVector(port.shard()->shape());
  spec.bytes = *base::ByteCount(spec.dtype, spec.shape);
  return spec;
}

using Ports = flatbuffers::Vector<flatbuffers::Offset<program::Port>>;

std::vector<TensorSpec> GlobalSpecs(const Ports* ports) {
  std::vector<TensorSpec> specs;
  for (int64_t i = 0; i < program::SizeOrZero(ports); ++i)
    specs.push_back(GlobalSpec(*ports->Get(static_cast<unsigned>(i))));
  return specs;
}

}  // namespace

std::vector<TensorSpec> GlobalInputs(const program::Program& program) {
  return GlobalSpecs(program.inputs());
}

std::vector<TensorSpec> GlobalOutputs(const program::Program& program) {
  return GlobalSpecs(program.outputs());
}

absl::StatusOr<std::unique_ptr<Rank>> Rank::Load(
    std::shared_ptr<const program::Artifact> artifact,
    const RankOptions& options, int index, comm::Communicator* communicator) {
  std::unique_ptr<Rank> rank(new Rank());
  PARTITA_ASSIGN_OR_RETURN(rank->device_, options.make_device(index));
  if (communicator != nullptr && options.make_communicator) {
    PARTITA_ASSIGN_OR_RETURN(rank->device_communicator_,
                             options.make_communicator(index, *communicator));
  }
  LoadOptions load;
  load.weights_dir = options.weights_dir;
  load.communicator = communicator;
  load.device_communicator = rank->device_communicator_.get();
  load.loop_limit = options.loop_limit;
  load.state_store = options.state_store;
  if (options.states_of) load.states = options.states_of(index);
  PARTITA_ASSIGN_OR_RETURN(
      rank->executor_,
      Executor::Load(std::move(artifact), *rank->device_, load));
  rank->parameters_ = ListParameters(rank->program());
  rank->inputs_ = rank->MakePorts(program::Held::kInput);
  rank->outputs_ = rank->MakePorts(program::Held::kOutput);
  return rank;
}

std::vector<Rank::Port> Rank::MakePorts(program::Held what) const {
  const program::MeshPlace& place = executor_->place();
  const program::Entry& entry = program::EntryAt(program(), place);
  const bool is_input = what == program::Held::kInput;
  const auto* descriptions =
      is_input ? program().inputs() : program().outputs();
  const auto* own = is_input ? entry.inputs() : entry.outputs();
  std::vector<Port> ports;
  for (int64_t i = 0; i < program::SizeOrZero(descriptions); ++i) {
    const program::Port& description =
        *descriptions->Get(static_cast<unsigned>(i));
    int index = -1;
    for (int64_t j = 0; j < program::SizeOrZero(own); ++j)
      if (own->Get(static_cast<unsigned>(j)) == i) index = static_cast<int>(j);
    TensorSpec local;
    if (index >= 0)
      local = (is_input ? executor_->inputs()
                        : executor_->outputs())[static_cast<size_t>(index)];
    Block held = {
        description.name()->str(), description.shard(), description.type(),
        program::FirstHolders(program(), description.shard(),
                              program::EntriesThatHold(program(), what, i))};
    const bool first_copy = HoldsFirstCopy(held);
    ports.push_back({std::move(held), std::move(local), GlobalSpec(description),
                     BlockMap(description.shard(), *description.type(), place),
                     index, first_copy, nullptr, nullptr});
  }
  return ports;
}

absl::Status Rank::CheckTensors(const char* what,
                                const std::vector<Port>& ports,
                                const std::vector<ConstTensor>& tensors) {
  if (tensors.size() != ports.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected ", ports.size(), " ", what, "s, found ", tensors.size()));
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    const TensorSpec& spec = ports[i].global;
    if (tensors[i].dtype != spec.dtype || tensors[i].shape != spec.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " '", spec.name, "': expected ",
                       base::TypeName(spec.dtype, spec.shape), ", found ",
                       base::TypeName(tensors[i].dtype, tensors[i].shape)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Rank::AlignedMemory> Rank::AllocateAligned(
    const TensorSpec& spec) {
  const size_t bytes =
      std::max<size_t>(static_cast<size_t>(spec.bytes + 63) / 64 * 64, 64);
  AlignedMemory memory(static_cast<char*>(std::aligned_alloc(64, bytes)));
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot allocate ", spec.bytes, " bytes for '", spec.name, "'"));
  }
  std::memset(memory.get(), 0, bytes);
  return memory;
}

// Only the block's rows are ever written, so its padding stays zero.
absl::StatusOr<char*> Rank::MemoryOf(Port& port) {
  if (port.memory == nullptr) {
    PARTITA_ASSIGN_OR_RETURN(port.memory, AllocateAligned(port.local));
  }
  return port.memory.get();
}

absl::Status Rank::TakeInput(Port& port, const ConstTensor& whole,
                             ConstTensor& local) {
  const int64_t size = base::SizeOf(port.local.dtype);
  const char* data = static_cast<const char*>(whole.data);
  if (data == nullptr && port.global.bytes > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("input '", port.global.name, "': it has no data"));
  }
  if (port.block.IsRange()) {
    data += port.block.first() * size;
  } else if (port.next_whole != nullptr && port.next_whole == whole.data) {
    std::swap(port.memory, port.next_memory);
    data = port.memory.get();
  } else {
    PARTITA_ASSIGN_OR_RETURN(char* const memory, MemoryOf(port));
    port.block.CopyIn(data, memory, size);
    data = memory;
  }
  port.next_whole = nullptr;
  local = {port.local.dtype, port.local.shape, data};
  return absl::OkStatus();
}

// Copies blocks that are not contiguous to the buffer that the last run did not
// read.
absl::StatusOr<std::vector<ConstTensor>> Rank::TakeNext(
    const std::vector<ConstTensor>& inputs) {
  std::vector<ConstTensor> local(executor_->inputs().size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    Port& port = inputs_[i];
    if (port.index < 0 || inputs[i].data == nullptr) continue;
    const int64_t size = base::SizeOf(port.local.dtype);
    const char* data = static_cast<const char*>(inputs[i].data);
    if (port.block.IsRange()) {
      data += port.block.first() * size;
    } else {
      if (port.next_memory == nullptr) {
        PARTITA_ASSIGN_OR_RETURN(port.next_memory, AllocateAligned(port.local));
      }
      port.block.CopyIn(data, port.next_memory.get(), size);
      port.next_whole = data;
      data = port.next_memory.get();
    }
    local[static_cast<size_t>(port.index)] = {port.local.dtype,
                                              port.local.shape, data};
  }
  return local;
}

absl::Status Rank::Prefetch(std::vector<ConstTensor> inputs) {
  PARTITA_RETURN_IF_ERROR(CheckTensors("input", inputs_, inputs));
  return executor_->Prefetch(
      [this, inputs = std::move(inputs)] { return TakeNext(inputs); });
}

absl::Status Rank::Run(const std::vector<ConstTensor>& inputs,
                       const std::vector<MutableTensor>& outputs) {
  PARTITA_RETURN_IF_ERROR(CheckTensors("input", inputs_, inputs));
  std::vector<ConstTensor> output_types;
  for (const MutableTensor& output : outputs)
    output_types.push_back({output.dtype, output.shape, output.data});
  PARTITA_RETURN_IF_ERROR(CheckTensors("output", outputs_, output_types));
  std::vector<ConstTensor> local_inputs(executor_->inputs().size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    Port& port = inputs_[i];
    if (port.index >= 0)
      PARTITA_RETURN_IF_ERROR(TakeInput(
          port, inputs[i], local_inputs[static_cast<size_t>(port.index)]));
  }
  std::vector<MutableTensor> local_outputs(executor_->outputs().size());
  // Targets of blocks that are copied afterwards, or null.
  std::vector<char*> whole(outputs.size(), nullptr);
  for (size_t i = 0; i < outputs.size(); ++i) {
    Port& port = outputs_[i];
    if (port.index < 0) continue;
    char* data = static_cast<char*>(outputs[i].data);
    const bool writes = port.first_copy && data != nullptr;
    const bool direct = writes && port.block.IsRange();
    if (writes && !direct) whole[i] = data;
    if (direct) {
      data += port.block.first() * base::SizeOf(port.local.dtype);
    } else {
      PARTITA_ASSIGN_OR_RETURN(data, MemoryOf(port));
    }
    local_outputs[static_cast<size_t>(port.index)] = {port.local.dtype,
                                                      port.local.shape, data};
  }
  PARTITA_RETURN_IF_ERROR(executor_->Run(local_inputs, local_outputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Port& port = outputs_[i];
    if (whole[i] != nullptr)
      port.block.CopyOut(port.memory.get(), whole[i],
                         base::SizeOf(port.local.dtype));
  }
  return absl::OkStatus();
}

std::vector<int> Rank::Members(const Block& block) {
  std::vector<int> members = {0};
  for (const int64_t rank : block.first_holders)
    if (rank != 0) members.push_back(static_cast<int>(rank));
  return members;
}

bool Rank::IsMember(const Block& block) const {
  const std::vector<int> members = Members(block);
  return members.size() > 1 &&
         std::count(members.begin(), members.end(),
                    static_cast<int>(executor_->place().rank())) > 0;
}

bool Rank::HoldsFirstCopy(const Block& block) const {
  return std::binary_search(block.first_holders.begin(),
                            block.first_holders.end(),
                            executor_->place().rank());
}

absl::Status Rank::GatherBlock(comm::Communicator& communicator,
                               const Block& block, const char* own,
                               void* target) {
  const std::vector<int> members = Members(block);
  const size_t block_bytes = static_cast<size_t>(program::BytesOf(*block.type));
  comm::Operation operation;
  operation.kind = comm::Kind::kGather;
  operation.dtype = base::DType::kU8;
  operation.input_shape = {1, static_cast<int64_t>(block_bytes)};
  operation.output_shape = {static_cast<int64_t>(members.size()),
                            static_cast<int64_t>(block_bytes)};
  operation.dim = 0;
  operation.name = block.name;
  PARTITA_ASSIGN_OR_RETURN(const std::unique_ptr<comm::Collective> gather,
                           communicator.Prepare(std::move(operation), members));
  const bool root = communicator.rank() == 0;
  const std::vector<char> nothing(own == nullptr ? block_bytes : 0);
  std::vector<char> blocks(root ? members.size() * block_bytes : 0);
  PARTITA_RETURN_IF_ERROR(communicator.Run(
      *gather, own == nullptr ? nothing.data() : own, blocks.data()));
  for (size_t i = 1; root && i < members.size(); ++i) {
    const BlockMap map(block.shard, *block.type,
                       program::MeshPlace(program().mesh(), members[i]));
    map.CopyOut(blocks.data() + i * block_bytes, target,
                base::SizeOf(program::ToBase(block.type->dtype())));
  }
  return absl::OkStatus();
}

// Rank 0 wrote its own block during its Run.
absl::Status Rank::GatherPort(comm::Communicator& communicator, Port& port,
                              void* target) {
  if (!IsMember(port.held)) return absl::OkStatus();
  if (port.index < 0)
    return GatherBlock(communicator, port.held, nullptr, target);
  PARTITA_ASSIGN_OR_RETURN(const char* const own, MemoryOf(port));
  return GatherBlock(communicator, port.held, own, target);
}

absl::Status Rank::Gather(comm::Communicator& communicator,
                          const std::vector<MutableTensor>& outputs,
                          Which which) {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (which == Which::kNumbers &&
        base::ElementCount(outputs_[i].global.shape) != 1)
      continue;
    PARTITA_RETURN_IF_ERROR(
        GatherPort(communicator, outputs_[i], outputs[i].data));
  }
  return absl::OkStatus();
}

}  // namespace partita::executor
