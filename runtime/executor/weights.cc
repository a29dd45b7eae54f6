// Loading of parameters: from files, from the artifact itself, or from a seed.
#include "runtime/executor/weights.h"

#include <algorithm>
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

// Makes `count` elements of device memory by write(first, count, host memory),
// piece by piece where the device has memory of its own.
using Writer = std::function<absl::Status(int64_t, int64_t, char*)>;
absl::Status Produce(device::Device& device, device::Stream& stream,
                     char* target, int64_t count, int64_t element_bytes,
                     const Writer& write) {
  if (!device.KeepsContent()) return absl::OkStatus();
  if (device.SharesHostMemory()) return write(0, count, target);
  constexpr int64_t kPiece = int64_t{1} << 20;
  std::vector<char> host(
      static_cast<size_t>(std::min(count, kPiece) * element_bytes));
  for (int64_t first = 0; first < count; first += kPiece) {
    const int64_t size = std::min(kPiece, count - first);
    PARTITA_RETURN_IF_ERROR(write(first, size, host.data()));
    PARTITA_RETURN_IF_ERROR(
        device.CopyToDevice(stream, target + first * element_bytes, host.data(),
                            size * element_bytes));
    PARTITA_RETURN_IF_ERROR(device.Synchronize(stream));
  }
  return absl::OkStatus();
}

}  // namespace

Weights::Weights(const program::Artifact& artifact, device::Device& device,
                 device::Stream& stream, std::string folder)
    : artifact_(artifact),
      device_(device),
      stream_(stream),
      folder_(std::move(folder)) {}

absl::StatusOr<std::unique_ptr<Weights>> Weights::Load(
    const program::Artifact& artifact, device::Device& device,
    device::Stream& stream, const std::string& folder,
    const std::vector<Use>& uses) {
  std::unique_ptr<Weights> weights(
      new Weights(artifact, device, stream, folder));
  weights->globals_.resize(uses.size());
  for (size_t i = 0; i < uses.size(); ++i) {
    if (!uses[i].used) continue;
    const program::Parameter& parameter =
        *artifact.program().parameters()->Get(static_cast<unsigned>(i));
    const absl::Status status = weights->LoadParameter(
        parameter, uses[i].aligned, weights->globals_[i]);
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("parameter '", parameter.name()->str(),
                                       "': ", status.message()));
    }
  }
  return weights;
}

absl::Status Weights::AddDerived() {
  for (int64_t i = 0; i < program::SizeOrZero(artifact_.program().derived());
       ++i) {
    Global global;
    global.bytes =
        BytesOf(*artifact_.program().derived()->Get(static_cast<unsigned>(i)));
    PARTITA_ASSIGN_OR_RETURN(global.owned,
                             device::Allocation::Make(device_, global.bytes));
    global.data = global.owned.data();
    globals_.push_back(std::move(global));
  }
  return absl::OkStatus();
}

absl::StatusOr<const base::MappedFile*> Weights::OpenFile(
    const std::string& path) {
  const std::string full =
      path[0] == '/' ? path : absl::StrCat(folder_, "/", path);
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
  return file.get();
}

absl::Status Weights::LoadParameter(const program::Parameter& parameter,
                                    bool aligned, Global& global) {
  global.bytes = BytesOf(*parameter.type());
  if (const program::SeedSource* source = parameter.source_as_SeedSource())
    return LoadSeeded(*source, *parameter.type(), global);
  if (const program::EmbeddedSource* source =
          parameter.source_as_EmbeddedSource()) {
    const uint64_t section = static_cast<uint64_t>(
        artifact_.data().data() - artifact_.file().bytes().data());
    return LoadStored(artifact_.file(), section + source->offset(),
                      source->stored(), *parameter.type(), aligned, global);
  }
  const program::FileSource& source = *parameter.source_as_FileSource();
  PARTITA_ASSIGN_OR_RETURN(const base::MappedFile* file,
                           OpenFile(source.path()->str()));
  const uint64_t size = file->bytes().size();
  if (source.offset() > size || source.bytes() > size - source.offset()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file->path(), ": expected ", source.bytes(),
                     " bytes at byte ", source.offset(), ", but the file has ",
                     size, "; it is not the file the model was compiled with"));
  }
  return LoadStored(*file, source.offset(), source.stored(), *parameter.type(),
                    aligned, global);
}

absl::Status Weights::LoadStored(const base::MappedFile& file, uint64_t offset,
                                 program::DType stored,
                                 const program::TensorType& type, bool aligned,
                                 Global& global) {
  const base::DType dtype = ToBase(type.dtype());
  const char* data = file.bytes().data() + offset;
  const int64_t alignment = aligned ? 64 : base::SizeOf(dtype);
  if (device_.SharesHostMemory() && ToBase(stored) == dtype &&
      IsAligned(data, alignment) && global.bytes > 0) {
    global.data = const_cast<char*>(data);
    global.mapped = &file;
    return absl::OkStatus();
  }
  PARTITA_ASSIGN_OR_RETURN(global.owned,
                           device::Allocation::Make(device_, global.bytes));
  global.data = global.owned.data();
  const int64_t count = global.bytes / base::SizeOf(dtype);
  if (ToBase(stored) == dtype) {
    PARTITA_RETURN_IF_ERROR(
        device_.CopyToDevice(stream_, global.data, data, global.bytes));
    PARTITA_RETURN_IF_ERROR(device_.Synchronize(stream_));
  } else {
    const int64_t stored_bytes = base::SizeOf(ToBase(stored));
    PARTITA_RETURN_IF_ERROR(
        Produce(device_, stream_, global.data, count, base::SizeOf(dtype),
                [&](int64_t first, int64_t size, char* target) {
                  base::Convert(ToBase(stored), data + first * stored_bytes,
                                dtype, target, size);
                  return absl::OkStatus();
                }));
  }
  file.Release(offset,
               static_cast<size_t>(count * base::SizeOf(ToBase(stored))));
  return absl::OkStatus();
}

absl::Status Weights::LoadSeeded(const program::SeedSource& source,
                                 const program::TensorType& type,
                                 Global& global) {
  PARTITA_ASSIGN_OR_RETURN(global.owned,
                           device::Allocation::Make(device_, global.bytes));
  global.data = global.owned.data();
  const base::DType dtype = ToBase(type.dtype());
  const base::Fill fill = {source.kind()->str(), source.scale(), source.seed()};
  return Produce(device_, stream_, global.data,
                 global.bytes / base::SizeOf(dtype), base::SizeOf(dtype),
                 [&](int64_t first, int64_t count, char* target) {
                   return base::FillElements(fill, dtype, first, count, target);
                 });
}

void Weights::Release(size_t index) {
  Global& global = globals_[index];
  if (global.mapped != nullptr) {
    global.mapped->Release(
        static_cast<size_t>(global.data - global.mapped->bytes().data()),
        static_cast<size_t>(global.bytes));
  } else if (global.released == 0) {
    device_.Release(global.data, global.bytes);
    global.released = global.bytes;
  }
}

int64_t Weights::OwnedBytes() const {
  int64_t bytes = 0;
  for (const Global& global : globals_)
    bytes += global.owned.bytes() - global.released;
  return bytes;
}

int64_t Weights::MappedBytes() const {
  int64_t bytes = 0;
  for (const Global& global : globals_)
    bytes += global.mapped != nullptr ? global.bytes : 0;
  return bytes;
}

}  // namespace partita::executor
