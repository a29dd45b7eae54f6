// Maps files to read them; writes tensor by tensor.
#include "compiler/quantize/weight_file.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/write_safetensors.h"

namespace partita::quantize {
namespace {

absl::StatusOr<base::DType> dtypeOf(mlir::Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  if (const auto dtype = base::DTypeFromName(name)) return *dtype;
  return absl::InvalidArgumentError(absl::StrCat(
      "expected weights of a type that files can hold, found ", name));
}

}  // namespace

absl::StatusOr<StoredBytes> readSource(nn::FileAttr source,
                                       const std::string& folder) {
  std::filesystem::path path(source.getPath().str());
  if (path.is_relative()) path = folder / path;
  PARTITA_ASSIGN_OR_RETURN(const base::DType dtype,
                           dtypeOf(source.getStored()));
  PARTITA_ASSIGN_OR_RETURN(base::MappedFile file,
                           base::MappedFile::Open(path.string()));
  const uint64_t size = file.bytes().size();
  if (source.getOffset() > size ||
      source.getBytes() > size - source.getOffset())
    return absl::InvalidArgumentError(
        absl::StrCat("expected weights in bytes ", source.getOffset(), " to ",
                     source.getOffset() + source.getBytes(), " of ",
                     path.string(), ", found a file of ", size, " bytes"));
  StoredBytes stored{std::move(file), {}, dtype};
  stored.bytes =
      stored.file.bytes().substr(source.getOffset(), source.getBytes());
  return stored;
}

absl::StatusOr<std::vector<float>> readFloats(nn::FileAttr source,
                                              const std::string& folder) {
  PARTITA_ASSIGN_OR_RETURN(const StoredBytes stored,
                           readSource(source, folder));
  std::vector<float> floats(stored.bytes.size() /
                            static_cast<size_t>(base::SizeOf(stored.dtype)));
  base::Convert(stored.dtype, stored.bytes.data(), base::DType::kF32,
                floats.data(), static_cast<int64_t>(floats.size()));
  return floats;
}

void WeightFile::add(const std::string& name, base::DType dtype,
                     llvm::ArrayRef<int64_t> shape, Write write) {
  tensors_.push_back({name, dtype, shape.vec(), std::move(write)});
}

absl::Status WeightFile::write(
    const std::string& path,
    const std::function<void(size_t, uint64_t)>& place) const {
  std::vector<base::SafetensorsEntry> entries;
  for (const Tensor& tensor : tensors_) {
    base::SafetensorsEntry entry;
    entry.stored = base::StoredName(tensor.dtype);
    entry.shape = tensor.shape;
    entry.bytes = static_cast<uint64_t>(
        base::ByteCount(tensor.dtype, tensor.shape).value_or(0));
    entries.push_back(std::move(entry));
  }
  std::vector<base::SafetensorsPart> parts;
  for (size_t i = 0; i < tensors_.size(); ++i)
    parts.push_back({tensors_[i].name, &entries[i]});
  PARTITA_ASSIGN_OR_RETURN(auto file, base::AtomicFile::Create(path));
  PARTITA_RETURN_IF_ERROR(file->Append(base::SafetensorsStart(parts)));
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const int64_t begin = file->size();
    place(i, static_cast<uint64_t>(begin));
    PARTITA_RETURN_IF_ERROR(tensors_[i].write(
        [&](std::string_view bytes) { return file->Append(bytes); }));
    if (file->size() - begin != static_cast<int64_t>(entries[i].bytes))
      return absl::InternalError(
          absl::StrCat("expected ", entries[i].bytes, " bytes of ",
                       tensors_[i].name, ", found ", file->size() - begin));
  }
  return file->Commit();
}

}  // namespace partita::quantize
