// Opens checkpoints: state.json first, then the files that it lists.
#include "runtime/checkpoint/checkpoint.h"

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/tensor_parts.h"
#include "runtime/checkpoint/files.h"
#include "runtime/checkpoint/folder.h"

namespace partita::checkpoint {
namespace {

constexpr char kTensors[] = ".safetensors";
constexpr size_t kMaxListed = 8;

bool HoldsTensors(const std::string& name) {
  const size_t size = sizeof(kTensors) - 1;
  return name.size() > size &&
         name.compare(name.size() - size, size, kTensors) == 0;
}

absl::Status VerifyFile(const std::string& path, const FileRecord& wanted,
                        Verify verify) {
  FileRecord found = wanted;
  if (verify == Verify::kChecksums) {
    PARTITA_ASSIGN_OR_RETURN(found, ChecksumFile(path));
  } else {
    std::error_code error;
    found.bytes = static_cast<int64_t>(std::filesystem::file_size(path, error));
    if (error)
      return absl::DataLossError(absl::StrCat(path, ": ", error.message()));
  }
  if (found.bytes != wanted.bytes)
    return absl::DataLossError(absl::StrCat(path, ": expected ", wanted.bytes,
                                            " bytes, found ", found.bytes));
  if (found.crc32 != wanted.crc32)
    return absl::DataLossError(absl::StrCat(path, ": expected the checksum ",
                                            wanted.crc32, ", found ",
                                            found.crc32));
  return absl::OkStatus();
}

// Formats the first few problems.
std::string Listed(std::vector<std::string> lines) {
  const size_t count = lines.size();
  if (count > kMaxListed) {
    lines.resize(kMaxListed);
    lines.push_back(absl::StrCat("and ", count - kMaxListed, " more"));
  }
  return absl::StrJoin(lines, "; ");
}

}  // namespace

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& path,
                                            Verify verify) {
  const std::string manifest_path = absl::StrCat(path, "/", kManifestName);
  PARTITA_ASSIGN_OR_RETURN(const std::string text,
                           ReadSmallFile(manifest_path));
  PARTITA_ASSIGN_OR_RETURN(Manifest manifest,
                           ParseManifest(text, manifest_path));
  Checkpoint checkpoint;
  checkpoint.path_ = path;
  checkpoint.state_ = std::move(manifest.state);
  for (const auto& [name, record] : manifest.files) {
    const std::string file_path = absl::StrCat(path, "/", name);
    PARTITA_RETURN_IF_ERROR(VerifyFile(file_path, record, verify));
    if (!HoldsTensors(name)) continue;
    PARTITA_ASSIGN_OR_RETURN(base::SafetensorsFile file,
                             base::SafetensorsFile::Open(file_path));
    for (const auto& [tensor, entry] : file.header().tensors)
      if (!entry.dtype ||
          !checkpoint.places_
               .emplace(tensor, Place{checkpoint.files_.size(), entry})
               .second)
        return absl::InvalidArgumentError(absl::StrCat(
            file_path, ": tensor '", tensor,
            entry.dtype ? "' lies in two files"
                        : absl::StrCat("' has a type that we do not write, ",
                                       entry.stored)));
    checkpoint.files_.push_back(std::move(file));
  }
  return checkpoint;
}

std::vector<base::TensorSpec> Checkpoint::tensors() const {
  std::vector<base::TensorSpec> specs;
  for (const auto& [name, place] : places_)
    specs.push_back({name, *place.entry.dtype, place.entry.shape,
                     static_cast<int64_t>(place.entry.bytes)});
  return specs;
}

absl::StatusOr<base::ConstTensor> Checkpoint::Find(
    const std::string& name) const {
  const auto found = places_.find(name);
  if (found == places_.end())
    return absl::NotFoundError(
        absl::StrCat(path_, ": expected a tensor '", name, "', found none"));
  const Place& place = found->second;
  return base::ConstTensor{*place.entry.dtype, place.entry.shape,
                           files_[place.file].BytesOf(place.entry).data()};
}

absl::StatusOr<base::ConstTensor> Checkpoint::FindParts(
    const base::TensorSpec& whole) const {
  base::ConstTensor tensor = {whole.dtype, whole.shape, nullptr};
  const char* next = nullptr;
  for (const base::TensorSpec& part : base::PartsOf(whole)) {
    PARTITA_ASSIGN_OR_RETURN(const base::ConstTensor found, Find(part.name));
    const char* data = static_cast<const char*>(found.data);
    if (tensor.data == nullptr) tensor.data = next = data;
    if (data != next || found.shape != part.shape || found.dtype != part.dtype)
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": expected '", part.name, "' as ",
          base::TypeName(part.dtype, part.shape),
          " right behind the part before it, found it elsewhere; the weights "
          "of a checkpoint must not be rewritten"));
    next += part.bytes;
  }
  return tensor;
}

bool Checkpoint::Matches(const base::TensorSpec& wanted) const {
  const auto found = places_.find(wanted.name);
  return found != places_.end() && *found->second.entry.dtype == wanted.dtype &&
         found->second.entry.shape == wanted.shape;
}

absl::Status Checkpoint::Match(
    const std::vector<base::TensorSpec>& wanted,
    const std::function<bool(const std::string& name)>& may_differ) const {
  const auto is_free = [&](const std::string& name) {
    return may_differ != nullptr && may_differ(name);
  };
  std::vector<std::string> wrong;
  std::set<std::string> names;
  for (const base::TensorSpec& spec : wanted) {
    names.insert(spec.name);
    if (is_free(spec.name) || Matches(spec)) continue;
    const std::string type = base::TypeName(spec.dtype, spec.shape);
    const auto found = places_.find(spec.name);
    if (found == places_.end()) {
      wrong.push_back(
          absl::StrCat("'", spec.name, "': expected ", type, ", found none"));
      continue;
    }
    const base::SafetensorsEntry& entry = found->second.entry;
    wrong.push_back(absl::StrCat("'", spec.name, "': expected ", type,
                                 ", found ",
                                 base::TypeName(*entry.dtype, entry.shape)));
  }
  for (const auto& [name, place] : places_)
    if (names.count(name) == 0 && !is_free(name))
      wrong.push_back(
          absl::StrCat("'", name, "': expected none, found ",
                       base::TypeName(*place.entry.dtype, place.entry.shape)));
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path_, ": the checkpoint is of another model, optimizer or precision: ",
      Listed(std::move(wrong)),
      "; compile the model as it was when the checkpoint was written (plan and "
      "devices may differ)"));
}

absl::StatusOr<Checkpoint> OpenLatest(const std::string& folder, Verify verify,
                                      std::vector<std::string>* skipped) {
  PARTITA_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListSteps(folder));
  if (steps.empty())
    return absl::NotFoundError(
        absl::StrCat(folder, ": expected checkpoints, found none"));
  std::string last;
  for (size_t i = steps.size(); i-- > 0;) {
    absl::StatusOr<Checkpoint> checkpoint =
        Checkpoint::Open(StepPath(folder, steps[i]), verify);
    if (checkpoint.ok()) return checkpoint;
    last = std::string(checkpoint.status().message());
    if (skipped != nullptr)
      skipped->push_back(absl::StrCat("the checkpoint of step ", steps[i],
                                      " is not whole and is left out: ", last));
  }
  return absl::DataLossError(
      absl::StrCat(folder, ": expected a whole checkpoint, found none among ",
                   steps.size(), "; the oldest: ", last));
}

}  // namespace partita::checkpoint
