// Ranges of a model's activations on calibration data.
#ifndef PARTITA_COMPILER_DRIVER_COMMANDS_CALIBRATE_H_
#define PARTITA_COMPILER_DRIVER_COMMANDS_CALIBRATE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/quantize/activations.h"

namespace partita::driver {

// The safetensors files that `path` names, itself or a folder of them, in the
// order of their names. InvalidArgument if there is none.
absl::StatusOr<std::vector<std::string>> calibrationFiles(
    const std::string& path);

// How calibration chooses a range from the numbers that it sees.
struct RangeMethod {
  enum Kind { kMinMax, kPercentile, kEntropy } kind = kMinMax;
  double percent = 100;  // of kPercentile: the numbers that the range covers
};
// Parses "minmax", "percentile=99.99" or "entropy".
absl::StatusOr<RangeMethod> parseRangeMethod(const std::string& text);

// Compiles probes of the module (compiler/quantize/activations.h), runs them
// with the inputs of each file, and chooses the ranges. `source` is the folder
// of the module's relative weight paths.
struct Calibration {
  std::vector<std::string> files;
  RangeMethod method;
  std::string source;

  absl::StatusOr<std::vector<quantize::Range>> measure(
      mlir::ModuleOp module, const std::vector<quantize::Weight>& weights,
      const std::vector<int64_t>& sizes) const;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMMANDS_CALIBRATE_H_
