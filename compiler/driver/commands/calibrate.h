// Ranges of a model's activations on calibration data.
#ifndef PARTITA_COMPILER_DRIVER_COMMANDS_CALIBRATE_H_
#define PARTITA_COMPILER_DRIVER_COMMANDS_CALIBRATE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/quantize/quantize.h"

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

// Compiles probes (compiler/quantize/activations.h) and runs them with the
// inputs of each file. `source` is the folder of the module's relative weight
// paths.
class FileCalibration : public quantize::Calibration {
 public:
  FileCalibration(std::vector<std::string> files, RangeMethod method,
                  std::string source)
      : files_(std::move(files)), method_(method), source_(std::move(source)) {}

  absl::StatusOr<std::vector<Extremes>> measure(
      mlir::ModuleOp module,
      const std::vector<quantize::Weight>& weights) override;
  absl::Status narrow(mlir::ModuleOp module,
                      const std::vector<quantize::Weight>& weights,
                      std::vector<quantize::Range>& ranges) override;

 private:
  const std::vector<std::string> files_;
  const RangeMethod method_;
  const std::string source_;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMMANDS_CALIBRATE_H_
