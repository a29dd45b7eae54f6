// Quantizes the weights of an imported model, and writes the model again.
#ifndef PARTITA_COMPILER_QUANTIZE_QUANTIZE_H_
#define PARTITA_COMPILER_QUANTIZE_QUANTIZE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/quantize/activations.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::quantize {

// Files of the new folder.
inline constexpr char kModelFile[] = "model.mlir";
inline constexpr char kWeightsFile[] = "model.safetensors";

// Runs copies of `module` (activations.h) on calibration data, and returns the
// range of each activation that `weights` multiply. `sizes` are the
// activations' numbers of elements.
using MeasureRanges = std::function<absl::StatusOr<std::vector<Range>>(
    mlir::ModuleOp module, const std::vector<Weight>& weights,
    const std::vector<int64_t>& sizes)>;

struct Options {
  // Globs of weights that stay as they are, by the parameter's name or its
  // module's (without ".weight"). A pattern without a glob's characters also
  // matches the end of a name.
  std::vector<std::string> keep;
  // A weight stays as it is if rounding leaves fewer decibels of signal to
  // noise. 0: none does.
  double least_decibels = 0;
  bool embeddings = false;  // rounds tables that no product reads, too
  std::string folder;       // of relative paths in the model
  // Rounds activations too, with fixed scales that cover the ranges that it
  // returns. Null: weights only.
  MeasureRanges measure;
};

struct LayerReport {
  std::string weight;
  std::vector<int64_t> shape;
  int64_t bytes_before = 0, bytes_after = 0;
  double decibels = 0;        // signal to noise of the rounded weight
  double relative_error = 0;  // norm of the error / norm of the weight
  // Of the activation that this weight is the first to multiply, with
  // calibration: its range, and the signal to noise of even rounding errors.
  std::optional<Range> input;
  double input_decibels = 0;
  std::string kept;  // the reason why it was not quantized; empty if it was
};

struct Report {
  std::vector<LayerReport> layers;  // of weights with at least two dimensions
  int64_t bytes_before = 0, bytes_after = 0;  // of all parameters
};

// Rounds weights of matrix products, and on request tables, to integers of 8
// bits with one scale per output channel, and changes the module to read them.
// Writes the module and its parameters to the new folder `output`.
// InvalidArgument says what was expected and found; then there is no folder.
absl::StatusOr<Report> quantizeModel(mlir::ModuleOp module,
                                     const Options& options,
                                     const std::string& output);

}  // namespace partita::quantize

#endif  // PARTITA_COMPILER_QUANTIZE_QUANTIZE_H_
