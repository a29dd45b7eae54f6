// Writes random inputs and compares outputs.
#include "compiler/driver/bench/bench_files.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/dtype.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/npy.h"
#include "runtime/base/random_fill.h"
#include "runtime/base/status_macros.h"

namespace partita::driver {
namespace {

namespace fs = std::filesystem;
using base::DType;

// The shape of the whole tensor, as users give it.
std::vector<int64_t> shapeOf(const program::Port& port) {
  const auto* shape = port.type()->shape();
  if (port.shard() != nullptr) shape = port.shard()->shape();
  if (port.model_shape() != nullptr) shape = port.model_shape();
  if (shape == nullptr) return {};
  return {shape->begin(), shape->end()};
}

// Elements of an input, in host memory.
absl::StatusOr<std::string> valuesOf(const program::Port& port, DType dtype,
                                     const std::vector<int64_t>& shape,
                                     uint64_t seed) {
  const auto count = base::ElementCount(shape);
  const auto size = base::ByteCount(dtype, shape);
  if (!count || !size)
    return absl::InternalError(
        absl::StrCat("input ", port.name()->str(), " has no valid shape"));
  std::string values(static_cast<size_t>(*size), '\0');
  if (base::IsFloat(dtype)) {
    PARTITA_RETURN_IF_ERROR(base::FillElements({"normal", 1.0, seed}, dtype, 0,
                                               *count, values.data()));
    return values;
  }
  const double limit = static_cast<double>(port.limit());
  std::vector<double> numbers(static_cast<size_t>(*count), 1.0);
  for (size_t i = 0; port.limit() > 0 && i < numbers.size(); ++i)
    numbers[i] = std::floor(base::RandomUnit(seed, i) * limit);
  base::Convert(DType::kF64, numbers.data(), dtype, values.data(), *count);
  return values;
}

// partita-run's names of files.
std::string fileNameOf(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  if (name.empty() || name[0] == '.') name.insert(0, "_");
  return name + ".npy";
}

absl::Status addDifference(const std::string& found,
                           const std::string& expected,
                           Difference& difference) {
  PARTITA_ASSIGN_OR_RETURN(const base::MappedFile found_file,
                           base::MappedFile::Open(found));
  PARTITA_ASSIGN_OR_RETURN(const base::MappedFile expected_file,
                           base::MappedFile::Open(expected));
  PARTITA_ASSIGN_OR_RETURN(const base::NpyArray a,
                           base::ParseNpy(found_file.bytes(), found));
  PARTITA_ASSIGN_OR_RETURN(const base::NpyArray b,
                           base::ParseNpy(expected_file.bytes(), expected));
  if (a.shape != b.shape)
    return absl::InvalidArgumentError(absl::StrCat(
        "expected an output of shape [", absl::StrJoin(b.shape, ","),
        "], found [", absl::StrJoin(a.shape, ","), "]"));
  const int64_t count = *base::ElementCount(a.shape);
  for (int64_t i = 0; i < count; ++i) {
    const double x = base::ElementAsDouble(a.dtype, a.data.data(), i);
    const double y = base::ElementAsDouble(b.dtype, b.data.data(), i);
    if (std::isfinite(y))
      difference.magnitude = std::max(difference.magnitude, std::abs(y));
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double apart = std::abs(x - y);
    difference.largest = std::max(
        difference.largest,
        std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<NamedFile>> writeInputs(
    const program::Program& program, const std::string& folder) {
  std::vector<NamedFile> files;
  if (program.inputs() == nullptr) return files;
  for (const program::Port* port : *program.inputs()) {
    const auto dtype = static_cast<DType>(port->type()->dtype());
    const std::vector<int64_t> shape = shapeOf(*port);
    const uint64_t number = files.size();
    PARTITA_ASSIGN_OR_RETURN(const std::string values,
                             valuesOf(*port, dtype, shape, number + 1));
    const std::string path = absl::StrCat(folder, "/input-", number, ".npy");
    PARTITA_RETURN_IF_ERROR(base::WriteNpy(path, dtype, shape, values.data()));
    files.push_back({port->name()->str(), path});
  }
  return files;
}

absl::StatusOr<std::vector<std::string>> outputFiles(
    const program::Program& program, const std::string& folder) {
  std::vector<std::string> files;
  if (program.outputs() == nullptr) return files;
  for (const program::Port* port : *program.outputs()) {
    files.push_back(folder + "/" + fileNameOf(port->name()->str()));
    std::error_code error;
    if (!fs::exists(files.back(), error))
      return absl::NotFoundError(absl::StrCat("expected partita-run to write ",
                                              files.back(), ", found no file"));
  }
  return files;
}

absl::StatusOr<Difference> compareOutputs(
    const std::vector<std::string>& found,
    const std::vector<std::string>& expected) {
  if (found.size() != expected.size())
    return absl::InvalidArgumentError(absl::StrCat(
        "expected ", expected.size(), " outputs, found ", found.size()));
  Difference difference;
  for (size_t i = 0; i < found.size(); ++i)
    PARTITA_RETURN_IF_ERROR(addDifference(found[i], expected[i], difference));
  return difference;
}

}  // namespace partita::driver
