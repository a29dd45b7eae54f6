// Makes a run's inputs from .npy files, a safetensors file, a pattern, or
// random numbers.
#include "runtime/tools/host_tensor.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/npy.h"
#include "runtime/base/random_fill.h"
#include "runtime/base/safetensors.h"
#include "runtime/base/status_macros.h"

namespace partita::tools {
namespace {

using executor::TensorSpec;

int64_t CountOf(const TensorSpec& spec) {
  return spec.bytes / base::SizeOf(spec.dtype);
}

absl::Status ForInput(const TensorSpec& spec, const std::string& message) {
  return absl::InvalidArgumentError(
      absl::StrCat("input '", spec.name, "': ", message));
}

// Copies an array of the same shape and type. f32 arrays are accepted for
// 16-bit floats, since .npy has no bf16.
absl::Status CopyArray(const std::string& path, base::DType dtype,
                       const std::vector<int64_t>& shape, std::string_view data,
                       HostTensor& tensor) {
  const TensorSpec& spec = tensor.spec();
  const bool narrows =
      dtype == base::DType::kF32 &&
      (spec.dtype == base::DType::kBF16 || spec.dtype == base::DType::kF16);
  if (shape != spec.shape || (dtype != spec.dtype && !narrows)) {
    return ForInput(
        spec,
        absl::StrCat("expected ", base::TypeName(spec.dtype, spec.shape),
                     ", found ", base::TypeName(dtype, shape), " in ", path));
  }
  base::Convert(dtype, data.data(), spec.dtype, tensor.data(), CountOf(spec));
  return absl::OkStatus();
}

absl::Status ReadNpy(const std::string& path, HostTensor& tensor) {
  PARTITA_ASSIGN_OR_RETURN(const base::MappedFile file,
                           base::MappedFile::Open(path));
  PARTITA_ASSIGN_OR_RETURN(const base::NpyArray array,
                           base::ParseNpy(file.bytes(), path));
  return CopyArray(path, array.dtype, array.shape, array.data, tensor);
}

// zeros, ones, arange, random:LOW:HIGH. Returns nothing for any other
// `content`.
std::optional<absl::Status> FillPattern(const std::string& content,
                                        uint64_t seed, HostTensor& tensor) {
  const TensorSpec& spec = tensor.spec();
  const auto store = [&](int64_t i, double value) {
    base::Convert(base::DType::kF64, &value, spec.dtype,
                  tensor.data() + i * base::SizeOf(spec.dtype), 1);
  };
  if (content == "zeros" || content == "ones")
    return base::FillElements({content}, spec.dtype, 0, CountOf(spec),
                              tensor.data());
  if (content == "arange") {
    for (int64_t i = 0; i < CountOf(spec); ++i)
      store(i, static_cast<double>(i));
    return absl::OkStatus();
  }
  const std::vector<std::string> parts = absl::StrSplit(content, ':');
  if (parts[0] != "random") return std::nullopt;
  double low, high;
  if (parts.size() != 3 || !absl::SimpleAtod(parts[1], &low) ||
      !absl::SimpleAtod(parts[2], &high) || !(low < high)) {
    return ForInput(
        spec,
        absl::StrCat("expected random:LOW:HIGH with LOW below HIGH, found '",
                     content, "'"));
  }
  // Conversion to integers truncates towards zero. For LOW >= 0 this keeps
  // values below HIGH.
  for (int64_t i = 0; i < CountOf(spec); ++i)
    store(i, low + (high - low) *
                       base::RandomUnit(seed, static_cast<uint64_t>(i)));
  return absl::OkStatus();
}

std::string ListInputs(const std::vector<TensorSpec>& specs) {
  std::string list = "the model's inputs are";
  for (const TensorSpec& spec : specs)
    absl::StrAppend(&list, "\n  ", spec.name, "  ",
                    base::TypeName(spec.dtype, spec.shape));
  if (specs.empty()) return "the model has no inputs";
  absl::StrAppend(&list, "\nfor example: --input ", specs[0].name, "=",
                  specs[0].name, ".npy");
  for (const TensorSpec& spec : specs) {
    if (!base::IsFloat(spec.dtype)) {
      return absl::StrCat(list, "\nor, for a trial: --input ", spec.name,
                          "=random:0:100 --random-inputs 1");
    }
  }
  return list + "\nor, for a trial: --random-inputs 1";
}

// Tracks by index which inputs have their content.
class InputMaker {
 public:
  InputMaker(const std::vector<TensorSpec>& specs, const InputSources& sources,
             std::vector<HostTensor>& tensors)
      : specs_(specs),
        sources_(sources),
        tensors_(tensors),
        given_(specs.size(), false) {}

  absl::Status FromNames() {
    for (const auto& [input, content] : sources_.named) {
      const std::string& name = input;
      const auto found = std::find_if(
          specs_.begin(), specs_.end(),
          [&](const TensorSpec& spec) { return spec.name == name; });
      if (found == specs_.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "there is no input '", name, "'; ", ListInputs(specs_)));
      }
      const size_t index = static_cast<size_t>(found - specs_.begin());
      const std::optional<absl::Status> filled =
          FillPattern(content, sources_.seed + index, tensors_[index]);
      PARTITA_RETURN_IF_ERROR(filled ? *filled
                                     : ReadNpy(content, tensors_[index]));
      given_[index] = true;
    }
    return absl::OkStatus();
  }

  absl::Status FromSafetensors() {
    if (sources_.safetensors.empty()) return absl::OkStatus();
    PARTITA_ASSIGN_OR_RETURN(const base::SafetensorsFile file,
                             base::SafetensorsFile::Open(sources_.safetensors));
    for (size_t i = 0; i < specs_.size(); ++i) {
      if (given_[i]) continue;
      auto found = file.header().tensors.find(specs_[i].name);
      if (found == file.header().tensors.end())
        found = file.header().tensors.find("in." + specs_[i].name);
      if (found == file.header().tensors.end()) continue;
      const base::SafetensorsEntry& entry = found->second;
      if (!entry.dtype)
        return ForInput(
            specs_[i],
            absl::StrCat(file.path(), " has element type ", entry.stored));
      PARTITA_RETURN_IF_ERROR(CopyArray(file.path(), *entry.dtype, entry.shape,
                                        file.BytesOf(entry), tensors_[i]));
      given_[i] = true;
    }
    return absl::OkStatus();
  }

  absl::Status Rest() {
    std::string missing;
    for (size_t i = 0; i < specs_.size(); ++i) {
      if (given_[i]) continue;
      if (sources_.random && base::IsFloat(specs_[i].dtype)) {
        const base::Fill fill = {"normal", 1.0, sources_.seed + i};
        PARTITA_RETURN_IF_ERROR(base::FillElements(
            fill, specs_[i].dtype, 0, CountOf(specs_[i]), tensors_[i].data()));
      } else {
        absl::StrAppend(&missing, missing.empty() ? "" : ", ", "'",
                        specs_[i].name, "'");
      }
    }
    if (missing.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "no content for input ", missing, "; ", ListInputs(specs_)));
  }

 private:
  const std::vector<TensorSpec>& specs_;
  const InputSources& sources_;
  std::vector<HostTensor>& tensors_;
  std::vector<bool> given_;
};

}  // namespace

absl::StatusOr<HostTensor> HostTensor::Make(const TensorSpec& spec) {
  HostTensor tensor;
  tensor.spec_ = spec;
  const size_t bytes = static_cast<size_t>(spec.bytes + 63) / 64 * 64 + 64;
  tensor.data_.reset(static_cast<char*>(std::aligned_alloc(64, bytes)));
  if (tensor.data_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot allocate ", spec.bytes, " bytes for '", spec.name, "'"));
  }
  std::memset(tensor.data_.get(), 0, bytes);
  return tensor;
}

absl::StatusOr<std::vector<HostTensor>> MakeInputs(
    const std::vector<TensorSpec>& specs, const InputSources& sources) {
  std::vector<HostTensor> tensors;
  for (const TensorSpec& spec : specs) {
    PARTITA_ASSIGN_OR_RETURN(HostTensor tensor, HostTensor::Make(spec));
    tensors.push_back(std::move(tensor));
  }
  InputMaker maker(specs, sources, tensors);
  PARTITA_RETURN_IF_ERROR(maker.FromNames());
  PARTITA_RETURN_IF_ERROR(maker.FromSafetensors());
  PARTITA_RETURN_IF_ERROR(maker.Rest());
  return tensors;
}

}  // namespace partita::tools
