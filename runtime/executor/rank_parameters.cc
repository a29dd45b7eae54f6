// Reads and writes whole parameters block by block.
#include <memory>

#include "runtime/base/status_macros.h"
#include "runtime/executor/rank.h"

namespace partita::executor {

Rank::Block Rank::BlockOf(const ParameterSpec& parameter) const {
  const program::Parameter& description =
      *program().parameters()->Get(static_cast<unsigned>(parameter.index));
  return {parameter.whole.name, description.shard(), description.type(),
          program::FirstHolders(
              program(), description.shard(),
              program::EntriesThatHold(program(), program::Held::kParameter,
                                       static_cast<int64_t>(parameter.index)))};
}

absl::Status Rank::ReadParameter(const std::string& name,
                                 const MutableTensor& whole) {
  PARTITA_ASSIGN_OR_RETURN(const ParameterSpec* spec,
                           FindParameter(parameters_, name));
  const Block held = BlockOf(*spec);
  if (whole.data == nullptr || !HoldsFirstCopy(held)) return absl::OkStatus();
  PARTITA_RETURN_IF_ERROR(CheckParameterTensor(
      spec->whole, {whole.dtype, whole.shape, whole.data}));
  const BlockMap block(held.shard, *held.type, executor_->place());
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

absl::Status Rank::WriteParameter(const std::string& name,
                                  const ConstTensor& whole) {
  PARTITA_ASSIGN_OR_RETURN(const ParameterSpec* spec,
                           FindParameter(parameters_, name));
  PARTITA_RETURN_IF_ERROR(CheckParameterTensor(spec->whole, whole));
  PARTITA_RETURN_IF_ERROR(CheckUpdated(*spec));
  if (!FindParameter(executor_->parameters(), name).ok())
    return absl::OkStatus();
  const Block held = BlockOf(*spec);
  const BlockMap block(held.shard, *held.type, executor_->place());
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

}  // namespace partita::executor
