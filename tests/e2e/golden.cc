// Reads golden tensors and compares floats with them.
#include "tests/e2e/golden.h"

#include <cmath>

#include "runtime/base/safetensors.h"

namespace partita::e2e {

int64_t HostTensor::elements() const {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

absl::StatusOr<std::map<std::string, HostTensor>> ReadTensors(
    const std::string& path, const std::string& prefix) {
  auto file = base::SafetensorsFile::Open(path);
  if (!file.ok()) return file.status();
  std::map<std::string, HostTensor> tensors;
  for (const auto& [name, entry] : file->header().tensors) {
    if (name.compare(0, prefix.size(), prefix) != 0 || !entry.dtype) continue;
    HostTensor tensor;
    tensor.dtype = *entry.dtype;
    tensor.shape = entry.shape;
    tensor.bytes = std::string(file->BytesOf(entry));
    tensors[name.substr(prefix.size())] = std::move(tensor);
  }
  return tensors;
}

Distance Compare(const HostTensor& actual, const HostTensor& expected,
                 double rtol, double atol) {
  Distance distance;
  if (actual.shape != expected.shape || actual.dtype != base::DType::kF32 ||
      expected.dtype != base::DType::kF32) {
    distance.within = false;
    distance.largest = INFINITY;
    return distance;
  }
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double want = expected.floats()[i], got = actual.floats()[i];
    double apart = std::abs(got - want);
    if (std::isnan(apart)) apart = INFINITY;
    distance.largest_expected =
        std::max(distance.largest_expected, std::abs(want));
    if (apart > atol + rtol * std::abs(want)) distance.within = false;
    distance.largest = std::max(distance.largest, apart);
  }
  return distance;
}

}  // namespace partita::e2e
