// Whole parameters, block by block.
#include <algorithm>
#include <memory>

#include "runtime/base/status_macros.h"
#include "runtime/executor/rank_executor.h"

namespace partita::executor {

absl::Status RankExecutor::ReadParameter(const std::string& name,
                                         const MutableTensor& whole) {
  PARTITA_ASSIGN_OR_RETURN(const ParameterSpec* spec,
                           FindParameter(executor_->parameters(), name));
  const program::Program& program = executor_->artifact().program();
  const program::Parameter& parameter =
      *program.parameters()->Get(static_cast<unsigned>(spec->index));
  if (whole.data == nullptr ||
      !program::HoldsFirstCopy(parameter.shard(), program.mesh(),
                               executor_->place().rank()))
    return absl::OkStatus();
  PARTITA_RETURN_IF_ERROR(CheckParameterTensor(
      spec->whole, {whole.dtype, whole.shape, whole.data}));
  const BlockMap block(parameter.shard(), *parameter.type(),
                       executor_->place());
  const int64_t size = base::SizeOf(whole.dtype);
  if (block.IsRange()) {
    return executor_->ReadParameter(
        name, {whole.dtype, spec->local.shape,
               static_cast<char*>(whole.data) + block.first() * size});
  }
  PARTITA_ASSIGN_OR_RETURN(const AlignedMemory memory,
                           AllocateAligned(spec->local));
  PARTITA_RETURN_IF_ERROR(executor_->ReadParameter(
      name, {whole.dtype, spec->local.shape, memory.get()}));
  block.CopyOut(memory.get(), whole.data, size);
  return absl::OkStatus();
}

absl::Status RankExecutor::WriteParameter(const std::string& name,
                                          const ConstTensor& whole) {
  PARTITA_ASSIGN_OR_RETURN(const ParameterSpec* spec,
                           FindParameter(executor_->parameters(), name));
  PARTITA_RETURN_IF_ERROR(CheckParameterTensor(spec->whole, whole));
  const program::Parameter& parameter =
      *executor_->artifact().program().parameters()->Get(
          static_cast<unsigned>(spec->index));
  const BlockMap block(parameter.shard(), *parameter.type(),
                       executor_->place());
  const int64_t size = base::SizeOf(whole.dtype);
  if (block.IsRange()) {
    return executor_->WriteParameter(
        name, {whole.dtype, spec->local.shape,
               static_cast<const char*>(whole.data) + block.first() * size});
  }
  PARTITA_ASSIGN_OR_RETURN(const AlignedMemory memory,
                           AllocateAligned(spec->local));
  block.CopyIn(whole.data, memory.get(), size);
  return executor_->WriteParameter(
      name, {whole.dtype, spec->local.shape, memory.get()});
}

absl::Status RankExecutor::GatherParameter(comm::Communicator& communicator,
                                           const std::string& name,
                                           const MutableTensor& whole) {
  PARTITA_ASSIGN_OR_RETURN(const ParameterSpec* spec,
                           FindParameter(executor_->parameters(), name));
  const program::Parameter& parameter =
      *executor_->artifact().program().parameters()->Get(
          static_cast<unsigned>(spec->index));
  const Block block = {name, parameter.shard(), *parameter.type()};
  if (!SendsBlock(communicator, block)) {
    return communicator.rank() == 0 ? ReadParameter(name, whole)
                                    : absl::OkStatus();
  }
  PARTITA_ASSIGN_OR_RETURN(const AlignedMemory memory,
                           AllocateAligned(spec->local));
  PARTITA_RETURN_IF_ERROR(executor_->ReadParameter(
      name, {spec->local.dtype, spec->local.shape, memory.get()}));
  if (communicator.rank() == 0)
    PARTITA_RETURN_IF_ERROR(ReadParameter(name, whole));
  return GatherBlock(communicator, block, memory.get(), whole.data);
}

}  // namespace partita::executor
