// Loads parameters from files, from the artifact or from a seed.
#include "runtime/executor/weights.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/random_fill.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/types.h"

namespace partita::executor {
namespace {

using program::BytesOf;
using program::ToBase;

bool IsAligned(const char* data, int64_t alignment) {
  return reinterpret_cast<uintptr_t>(data) %
             static_cast<uintptr_t>(alignment) ==
         0;
}

// Writes elements [first, first + count) of the undivided tensor.
using Writer =
    std::function<absl::Status(int64_t first, int64_t count, char* target)>;

// Produces a range of the tensor in device memory, in pieces if the device has
// memory of its own.
absl::Status ProduceRange(const Weights::Context& context, char* target,
                          int64_t first, int64_t count, int64_t element_bytes,
                          const Writer& write) {
  if (context.device.SharesHostMemory()) return write(first, count, target);
  constexpr int64_t kPiece = int64_t{1} << 20;
  std::vector<char> host(
      static_cast<size_t>(std::min(count, kPiece) * element_bytes));
  for (int64_t done = 0; done < count; done += kPiece) {
    const int64_t size = std::min(kPiece, count - done);
    PARTITA_RETURN_IF_ERROR(write(first + done, size, host.data()));
    PARTITA_RETURN_IF_ERROR(context.device.CopyToDevice(
        context.stream, target + done * element_bytes, host.data(),
        size * element_bytes));
    PARTITA_RETURN_IF_ERROR(context.device.Synchronize(context.stream));
  }
  return absl::OkStatus();
}

// Produces a block run by run, via host memory if the device has its own.
absl::Status ProduceRuns(const Weights::Context& context, char* target,
                         const BlockMap& block, int64_t element_bytes,
                         const Writer& write) {
  const int64_t bytes = block.local_count() * element_bytes;
  const bool shared = context.device.SharesHostMemory();
  std::vector<char> host(shared ? 0 : static_cast<size_t>(bytes));
  char* const place = shared ? target : host.data();
  if (block.HasPadding()) std::memset(place, 0, static_cast<size_t>(bytes));
  absl::Status status;
  block.ForEachRun([&](int64_t global, int64_t local, int64_t count) {
    if (status.ok())
      status = write(global, count, place + local * element_bytes);
  });
  if (shared || !status.ok()) return status;
  PARTITA_RETURN_IF_ERROR(
      context.device.CopyToDevice(context.stream, target, place, bytes));
  return context.device.Synchronize(context.stream);
}

absl::Status Produce(const Weights::Context& context, char* target,
                     const BlockMap& block, int64_t element_bytes,
                     const Writer& write) {
  if (!context.device.KeepsContent() || block.local_count() == 0)
    return absl::OkStatus();
  return block.IsRange()
             ? ProduceRange(context, target, block.first(), block.local_count(),
                            element_bytes, write)
             : ProduceRuns(context, target, block, element_bytes, write);
}

// A parameter's shape, and the elements of the whole tensor in each run of this
// device's block.
std::vector<int64_t> RunsOf(const program::Parameter& parameter,
                            const program::MeshPlace& place) {
  std::vector<int64_t> runs = program::ShapeOf(*parameter.type());
  const BlockMap block(parameter.shard(), *parameter.type(), place);
  block.ForEachRun([&](int64_t global, int64_t local, int64_t count) {
    runs.insert(runs.end(), {global, local, count});
  });
  return runs;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Weights>> Weights::Load(
    const Context& context, const std::vector<Use>& uses) {
  std::unique_ptr<Weights> weights(new Weights(context));
  weights->uses_ = uses;
  weights->globals_.resize(uses.size());
  if (const Weights* states = context.states; states != nullptr) {
    const auto* others = states->context_.artifact.program().parameters();
    for (size_t i = 0; i < states->uses_.size(); ++i)
      weights->others_.emplace(
          others->Get(static_cast<unsigned>(i))->name()->str(), i);
  }
  for (size_t i = 0; i < uses.size(); ++i) {
    if (!uses[i].used) continue;
    if (context.communicator != nullptr)
      PARTITA_RETURN_IF_ERROR(context.communicator->Progress());
    const program::Parameter& parameter =
        *context.artifact.program().parameters()->Get(static_cast<unsigned>(i));
    absl::Status status =
        weights->LoadParameter(parameter, uses[i], weights->globals_[i]);
    if (status.ok() && weights->InStore(i)) {
      status = context.store->Write(i, weights->globals_[i].data);
      weights->globals_[i] = Global();
    }
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("parameter '", parameter.name()->str(),
                                       "': ", status.message()));
    }
  }
  return weights;
}

absl::Status Weights::Allocate(Global& global) {
  PARTITA_ASSIGN_OR_RETURN(
      global.owned,
      device::Allocation::Make(context_.device, global.bytes, global.host));
  global.data = global.owned.data();
  return absl::OkStatus();
}

absl::Status Weights::AddDerived(const program::Entry& entry) {
  for (int64_t i = 0; i < program::SizeOrZero(entry.derived()); ++i) {
    Global global;
    global.bytes = BytesOf(*entry.derived()->Get(static_cast<unsigned>(i)));
    PARTITA_RETURN_IF_ERROR(Allocate(global));
    globals_.push_back(std::move(global));
  }
  return absl::OkStatus();
}

absl::StatusOr<const base::MappedFile*> Weights::OpenFile(
    const program::FileSource& source) {
  const std::string path = source.path()->str();
  const std::string full =
      path[0] == '/' ? path : absl::StrCat(context_.folder, "/", path);
  std::unique_ptr<base::MappedFile>& file = files_[full];
  if (file == nullptr) {
    absl::StatusOr<base::MappedFile> opened = base::MappedFile::Open(full);
    if (!opened.ok()) {
      return absl::Status(opened.status().code(),
                          absl::StrCat(opened.status().message(),
                                       "; the weights must lie where they were "
                                       "at compilation, or in the folder "
                                       "given by --weights-dir"));
    }
    file = std::make_unique<base::MappedFile>(std::move(*opened));
  }
  const uint64_t size = file->bytes().size();
  if (source.offset() > size || source.bytes() > size - source.offset()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file->path(), ": expected ", source.bytes(),
                     " bytes at byte ", source.offset(), ", but the file has ",
                     size, "; it is not the file the model was compiled with"));
  }
  return file.get();
}

absl::Status Weights::LoadParameter(const program::Parameter& parameter,
                                    const Use& use, Global& global) {
  const program::TensorType& type = *parameter.type();
  const base::DType dtype = ToBase(type.dtype());
  const BlockMap block(parameter.shard(), type, context_.place);
  global.bytes = BytesOf(type);
  global.host = parameter.host();
  if (IsShared(parameter)) return ShareState(parameter, global);
  if (const auto* source = parameter.source_as_CoordinateSource())
    return LoadCoordinate(*source, global);
  if (const program::SeedSource* source = parameter.source_as_SeedSource())
    return LoadSeeded(*source, dtype, block, global);
  if (const program::EmbeddedSource* source =
          parameter.source_as_EmbeddedSource()) {
    const base::MappedFile& file = context_.artifact.file();
    const uint64_t section = static_cast<uint64_t>(
        context_.artifact.data().data() - file.bytes().data());
    return LoadStored(file, section + source->offset(), source->stored(), dtype,
                      block, use, global);
  }
  if (const program::PartsSource* source = parameter.source_as_PartsSource())
    return LoadParts(*source, dtype, block, global);
  const program::FileSource& source = *parameter.source_as_FileSource();
  PARTITA_ASSIGN_OR_RETURN(const base::MappedFile* file, OpenFile(source));
  return LoadStored(*file, source.offset(), source.stored(), dtype, block, use,
                    global);
}

bool Weights::IsShared(const program::Parameter& parameter) const {
  if (context_.states == nullptr) return false;
  if (parameter.kind() == program::ParameterKind::state) return true;
  const auto found = others_.find(parameter.name()->str());
  return found != others_.end() &&
         context_.states->uses_[found->second].updated;
}

absl::Status Weights::ShareState(const program::Parameter& parameter,
                                 Global& global) {
  const Weights& other = *context_.states;
  if (const auto at = others_.find(parameter.name()->str());
      at != others_.end()) {
    const program::Parameter& found =
        *other.context_.artifact.program().parameters()->Get(
            static_cast<unsigned>(at->second));
    const Global& held = other.globals_[at->second];
    if (found.kind() == parameter.kind() &&
        found.type()->dtype() == parameter.type()->dtype() &&
        RunsOf(found, other.context_.place) ==
            RunsOf(parameter, context_.place) &&
        held.data != nullptr) {
      global.data = held.data;
      return absl::OkStatus();
    }
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "expected '", parameter.name()->str(), "' of the same type and shard in ",
      other.context_.artifact.path(), ", found none; compile both together"));
}

absl::Status Weights::LoadStored(const base::MappedFile& file, uint64_t offset,
                                 program::DType stored, base::DType dtype,
                                 const BlockMap& block, const Use& use,
                                 Global& global) {
  const char* data = file.bytes().data() + offset;
  const int64_t stored_bytes = base::SizeOf(ToBase(stored));
  const int64_t alignment = use.aligned ? 64 : base::SizeOf(dtype);
  if (!use.updated && context_.device.SharesHostMemory() &&
      ToBase(stored) == dtype && global.bytes > 0 && block.IsRange() &&
      IsAligned(data + block.first() * stored_bytes, alignment)) {
    global.data = const_cast<char*>(data + block.first() * stored_bytes);
    global.mapped = &file;
    return absl::OkStatus();
  }
  PARTITA_RETURN_IF_ERROR(Allocate(global));
  PARTITA_RETURN_IF_ERROR(
      Produce(context_, global.data, block, base::SizeOf(dtype),
              [&](int64_t first, int64_t count, char* target) {
                base::Convert(ToBase(stored), data + first * stored_bytes,
                              dtype, target, count);
                return absl::OkStatus();
              }));
  // Scattered blocks share file pages with other ranks' blocks.
  if (block.IsRange())
    file.Release(offset + static_cast<uint64_t>(block.first() * stored_bytes),
                 static_cast<size_t>(block.local_count() * stored_bytes));
  return absl::OkStatus();
}

absl::Status Weights::LoadParts(const program::PartsSource& source,
                                base::DType dtype, const BlockMap& block,
                                Global& global) {
  PARTITA_RETURN_IF_ERROR(Allocate(global));
  const int64_t size = base::SizeOf(dtype);
  const int64_t part_count =
      block.global_count() / static_cast<int64_t>(source.parts()->size());
  // Opens only the files of parts that the block has elements of.
  return Produce(
      context_, global.data, block, size,
      [&](int64_t first, int64_t count, char* target) -> absl::Status {
        while (count > 0) {
          const program::FileSource& part =
              *source.parts()->Get(static_cast<unsigned>(first / part_count));
          PARTITA_ASSIGN_OR_RETURN(const base::MappedFile* file,
                                   OpenFile(part));
          const base::DType stored = ToBase(part.stored());
          const int64_t begin = first % part_count;
          const int64_t run = std::min(count, part_count - begin);
          base::Convert(stored,
                        file->bytes().data() + part.offset() +
                            static_cast<uint64_t>(begin * base::SizeOf(stored)),
                        dtype, target, run);
          first += run;
          count -= run;
          target += run * size;
        }
        return absl::OkStatus();
      });
}

absl::Status Weights::LoadSeeded(const program::SeedSource& source,
                                 base::DType dtype, const BlockMap& block,
                                 Global& global) {
  PARTITA_RETURN_IF_ERROR(Allocate(global));
  const base::Fill fill = {source.kind()->str(), source.scale(), source.seed()};
  return Produce(context_, global.data, block, base::SizeOf(dtype),
                 [&](int64_t first, int64_t count, char* target) {
                   return base::FillElements(fill, dtype, first, count, target);
                 });
}

absl::Status Weights::LoadCoordinate(const program::CoordinateSource& source,
                                     Global& global) {
  PARTITA_RETURN_IF_ERROR(Allocate(global));
  if (!context_.device.KeepsContent()) return absl::OkStatus();
  const int64_t index = context_.place.IndexAlong(source.axes());
  PARTITA_RETURN_IF_ERROR(context_.device.CopyToDevice(
      context_.stream, global.data, &index, sizeof(index)));
  return context_.device.Synchronize(context_.stream);
}

void Weights::Release(size_t index) {
  Global& global = globals_[index];
  if (global.mapped != nullptr) {
    global.mapped->Release(
        static_cast<size_t>(global.data - global.mapped->bytes().data()),
        static_cast<size_t>(global.bytes));
  } else if (!context_.device.SharesHostMemory()) {
    // Devices with memory of their own release whole allocations only.
    global.owned = device::Allocation();
    global.data = nullptr;
  } else if (global.released == 0) {
    context_.device.Release(global.data, global.bytes);
    global.released = global.bytes;
  }
}

absl::Status Weights::Read(size_t index, void* host) {
  if (InStore(index)) return context_.store->Read(index, host);
  const Global* global = &globals_[index];
  Global again;
  if (global->data == nullptr || global->released > 0) {
    const program::Parameter& parameter =
        *context_.artifact.program().parameters()->Get(
            static_cast<unsigned>(index));
    PARTITA_RETURN_IF_ERROR(LoadParameter(parameter, uses_[index], again));
    global = &again;
  }
  PARTITA_RETURN_IF_ERROR(context_.device.CopyToHost(
      context_.stream, host, global->data, global->bytes));
  return context_.device.Synchronize(context_.stream);
}

absl::Status Weights::Write(size_t index, const void* host) {
  if (InStore(index)) return context_.store->Write(index, host);
  const Global& global = globals_[index];
  PARTITA_RETURN_IF_ERROR(context_.device.CopyToDevice(
      context_.stream, global.data, host, global.bytes));
  return context_.device.Synchronize(context_.stream);
}

int64_t Weights::OwnedBytes() const {
  int64_t bytes = 0;
  for (const Global& global : globals_)
    bytes += global.host ? 0 : global.owned.bytes() - global.released;
  return bytes;
}

int64_t Weights::HostBytes() const {
  int64_t bytes = 0;
  for (const Global& global : globals_)
    bytes += global.host ? global.owned.bytes() : 0;
  return bytes;
}

int64_t Weights::MappedBytes() const {
  int64_t bytes = 0;
  for (const Global& global : globals_)
    bytes += global.mapped != nullptr ? global.bytes : 0;
  return bytes;
}

}  // namespace partita::executor
