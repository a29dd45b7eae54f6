// Converts and frames rows of mapped arrays.
#include "runtime/data/array_source.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/npy.h"
#include "runtime/base/status_macros.h"
#include "runtime/data/idx.h"
#include "runtime/data/sample_source.h"

namespace partita::data {
namespace {

using base::DType;

// A file, and the shape that it is converted to.
struct Array {
  base::MappedFile file;
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;  // of all samples
  const char* data = nullptr;
  // Shape of one sample without dimensions of size 1: as stored and as wanted.
  std::vector<int64_t> stored, wanted;
  int64_t stored_count = 1, wanted_count = 1;
};

std::string Quoted(const std::string& path, const std::string& name) {
  return absl::StrCat(path, ": for input '", name, "': ");
}

std::vector<int64_t> Squeeze(const std::vector<int64_t>& shape) {
  std::vector<int64_t> sizes;
  for (size_t i = 1; i < shape.size(); ++i)
    if (shape[i] != 1) sizes.push_back(shape[i]);
  return sizes;
}

absl::Status Parse(const std::string& path, Array& array) {
  PARTITA_ASSIGN_OR_RETURN(array.file, base::MappedFile::Open(path));
  const std::string_view bytes = array.file.bytes();
  if (bytes.substr(0, 1) == "\x93") {
    PARTITA_ASSIGN_OR_RETURN(base::NpyArray npy, base::ParseNpy(bytes, path));
    array.dtype = npy.dtype;
    array.shape = std::move(npy.shape);
    array.data = npy.data.data();
    return absl::OkStatus();
  }
  PARTITA_ASSIGN_OR_RETURN(IdxArray idx, ParseIdx(bytes, path));
  array.dtype = idx.dtype;
  array.shape = std::move(idx.shape);
  array.data = idx.data.data();
  return absl::OkStatus();
}

absl::StatusOr<Array> OpenArray(const std::string& path,
                                const base::TensorSpec& spec) {
  Array array;
  PARTITA_RETURN_IF_ERROR(Parse(path, array));
  array.stored = Squeeze(array.shape);
  array.wanted = Squeeze(spec.shape);
  bool fits = !array.shape.empty() && !spec.shape.empty() &&
              array.stored.size() == array.wanted.size();
  for (size_t i = 0; fits && i < array.stored.size(); ++i)
    fits = array.stored[i] > 0 && array.stored[i] <= array.wanted[i];
  if (!fits)
    return absl::InvalidArgumentError(absl::StrCat(
        Quoted(path, spec.name), "expected samples of ",
        base::TypeName(spec.dtype, spec.shape),
        " along the first dimension, no larger in the others, found ",
        base::TypeName(array.dtype, array.shape)));
  if (base::IsFloat(array.dtype) && !base::IsFloat(spec.dtype))
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(path, spec.name), "expected integers, as ",
                     base::TypeName(spec.dtype, spec.shape), " has, found ",
                     base::TypeName(array.dtype, array.shape)));
  for (int64_t size : array.stored) array.stored_count *= size;
  for (int64_t size : array.wanted) array.wanted_count *= size;
  return array;
}

// Labels are small, so all of them are checked once when the file is opened.
absl::Status CheckClasses(const Array& array, const std::string& name,
                          int64_t classes) {
  if (classes <= 0 || base::IsFloat(array.dtype)) return absl::OkStatus();
  for (int64_t i = 0; i < array.shape[0] * array.stored_count; ++i) {
    const double value = base::ElementAsDouble(array.dtype, array.data, i);
    if (value < 0 || value >= static_cast<double>(classes))
      return absl::InvalidArgumentError(absl::StrCat(
          Quoted(array.file.path(), name), "expected labels from 0 to ",
          classes - 1, ", found ", static_cast<int64_t>(value), " at sample ",
          i / array.stored_count,
          "; does the model have as many classes as the data?"));
  }
  return absl::OkStatus();
}

class ArraySource : public SampleSource {
 public:
  ArraySource(std::vector<Array> arrays, std::vector<base::TensorSpec> specs,
              const ArrayOptions& options, RowRange rows, int64_t batch,
              Order order)
      : SampleSource(std::move(specs), batch, rows, std::move(order)),
        arrays_(std::move(arrays)),
        options_(options) {}

 protected:
  absl::Status ReadSample(int64_t sample, int64_t, int64_t row,
                          Batch& batch) override {
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const Array& array = arrays_[i];
      const DType dtype = specs()[i].dtype;
      const char* source =
          array.data + sample * array.stored_count * base::SizeOf(array.dtype);
      char* target =
          batch.data(i) + row * array.wanted_count * base::SizeOf(dtype);
      const bool is_scaled = array.dtype == DType::kU8 && base::IsFloat(dtype);
      if (is_scaled)
        Scale(source, array.stored_count);
      else
        values_.assign(source,
                       source + array.stored_count * base::SizeOf(array.dtype));
      Frame(array, is_scaled, dtype, target);
    }
    return absl::OkStatus();
  }

 private:
  float Scaled(unsigned char byte) const {
    return static_cast<float>((byte / 255.0 - options_.mean) /
                              options_.deviation);
  }

  // values_ := the scaled bytes as f32.
  void Scale(const char* source, int64_t count) {
    values_.resize(static_cast<size_t>(count) * sizeof(float));
    for (int64_t i = 0; i < count; ++i) {
      const float value = Scaled(static_cast<unsigned char>(source[i]));
      std::memcpy(values_.data() + i * static_cast<int64_t>(sizeof(float)),
                  &value, sizeof(float));
    }
  }

  // Converts values_ into the middle of the wanted shape.
  void Frame(const Array& array, bool is_scaled, DType dtype, char* target) {
    const DType from = is_scaled ? DType::kF32 : array.dtype;
    if (array.stored_count == array.wanted_count) {
      base::Convert(from, values_.data(), dtype, target, array.wanted_count);
      return;
    }
    const float border = is_scaled ? Scaled(0) : 0;
    for (int64_t i = 0; i < array.wanted_count; ++i)
      base::Convert(DType::kF32, &border, dtype,
                    target + i * base::SizeOf(dtype), 1);
    const int64_t run = array.stored.back();
    for (int64_t i = 0; i < array.stored_count; i += run) {
      // Target of the run: its index, shifted by half of the padding.
      int64_t rest = i, place = 0, stride = 1;
      for (size_t d = array.stored.size(); d-- > 0;) {
        const int64_t margin = (array.wanted[d] - array.stored[d]) / 2;
        place += (rest % array.stored[d] + margin) * stride;
        rest /= array.stored[d];
        stride *= array.wanted[d];
      }
      base::Convert(from, values_.data() + i * base::SizeOf(from), dtype,
                    target + place * base::SizeOf(dtype), run);
    }
  }

  const std::vector<Array> arrays_;
  const ArrayOptions options_;
  std::vector<char> values_;  // one sample, before conversion
};

absl::Status CheckNames(const std::map<std::string, std::string>& files,
                        const std::vector<base::TensorSpec>& specs) {
  std::string names;
  for (const base::TensorSpec& spec : specs)
    absl::StrAppend(&names, names.empty() ? "'" : ", '", spec.name, "'");
  for (const auto& [name, path] : files) {
    bool known = false;
    for (const base::TensorSpec& spec : specs) known |= spec.name == name;
    if (!known)
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": expected one of the model's inputs ", names,
                       ", found '", name, "'"));
  }
  for (const base::TensorSpec& spec : specs)
    if (files.count(spec.name) == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("expected a file for each of the model's inputs ", names,
                       ", found none for '", spec.name, "'; name it as ",
                       spec.name, "=FILE"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> OpenArrays(
    const std::map<std::string, std::string>& files,
    const std::vector<base::TensorSpec>& specs, const ArrayOptions& options) {
  PARTITA_RETURN_IF_ERROR(CheckNames(files, specs));
  if (specs.empty())
    return absl::InvalidArgumentError(
        "expected a model with data inputs, found none");
  std::vector<Array> arrays;
  std::string kind = "arrays";
  for (const base::TensorSpec& spec : specs) {
    const std::string& path = files.at(spec.name);
    PARTITA_ASSIGN_OR_RETURN(Array array, OpenArray(path, spec));
    if (spec.name == "targets")
      PARTITA_RETURN_IF_ERROR(CheckClasses(array, spec.name, options.classes));
    absl::StrAppend(&kind, " ", spec.name, " ",
                    base::TypeName(array.dtype, array.shape));
    arrays.push_back(std::move(array));
    if (arrays.back().shape[0] != arrays.front().shape[0])
      return absl::InvalidArgumentError(absl::StrCat(
          Quoted(path, spec.name), "expected ", arrays.front().shape[0],
          " samples, as ", arrays.front().file.path(), " has, found ",
          arrays.back().shape[0]));
    if (spec.shape[0] != specs[0].shape[0])
      return absl::InvalidArgumentError(absl::StrCat(
          Quoted(path, spec.name), "expected a batch of ", specs[0].shape[0],
          " samples, as '", specs[0].name, "' has, found ", spec.shape[0]));
  }
  const int64_t batch = specs[0].shape[0];
  PARTITA_ASSIGN_OR_RETURN(const RowRange rows, CheckRows(options.rows, batch));
  const std::string& path = arrays.front().file.path();
  const int64_t samples = arrays.front().shape[0];
  if (samples < batch || samples < 1)
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": expected at least ", batch, " samples, one batch, found ",
        samples, "; give more data or compile the model for a smaller batch"));
  Order order(kind, path, samples, options.order);
  return std::make_unique<ArraySource>(std::move(arrays), specs, options, rows,
                                       batch, std::move(order));
}

}  // namespace partita::data
