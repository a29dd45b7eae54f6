// The golden models of tests/data/onnx-tiny: inputs, and outputs computed by
// PyTorch.
#ifndef PARTITA_TESTS_E2E_GOLDEN_H_
#define PARTITA_TESTS_E2E_GOLDEN_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"

namespace partita::e2e {

// A tensor in host memory, row-major.
struct HostTensor {
  base::DType dtype = base::DType::kF32;
  std::vector<int64_t> shape;
  std::string bytes;

  const float* floats() const {
    return reinterpret_cast<const float*>(bytes.data());
  }
  int64_t elements() const;
};

// All tensors of a safetensors file whose names begin with `prefix`. The prefix
// is removed from the names.
absl::StatusOr<std::map<std::string, HostTensor>> ReadTensors(
    const std::string& path, const std::string& prefix);

// The largest |actual - expected|, and the test that each difference is at most
// atol + rtol * |expected|.
struct Distance {
  double largest = 0;
  double largest_expected = 0;
  bool within = true;
};
Distance Compare(const HostTensor& actual, const HostTensor& expected,
                 double rtol, double atol);

}  // namespace partita::e2e

#endif  // PARTITA_TESTS_E2E_GOLDEN_H_
