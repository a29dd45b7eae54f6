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

// Compiles `probe` (quantize::rangeProbe) and runs it once with the inputs of
// each file. Returns the least and greatest elements in all runs. `source` is
// the folder of the probe's relative weight paths.
absl::StatusOr<std::vector<quantize::Range>> measureRanges(
    mlir::ModuleOp probe, const std::vector<int64_t>& sizes,
    const std::vector<std::string>& files, const std::string& source);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMMANDS_CALIBRATE_H_
