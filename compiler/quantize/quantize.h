// Quantizes the weights of an imported model, and writes the model again.
#ifndef PARTITA_COMPILER_QUANTIZE_QUANTIZE_H_
#define PARTITA_COMPILER_QUANTIZE_QUANTIZE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/quantize/activations.h"
#include "compiler/quantize/round_groups.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::quantize {

// Files of the new folder.
inline constexpr char kModelFile[] = "model.mlir";
inline constexpr char kWeightsFile[] = "model.safetensors";

// Runs copies of a module (activations.h) on calibration data. Activations are
// those that `weights` multiply, in the order of findActivations.
class Calibration {
 public:
  // The numbers of one activation, by channel.
  struct Extremes {
    std::vector<double> lows, highs, mean_squares;
  };

  virtual ~Calibration() = default;
  virtual absl::StatusOr<std::vector<Extremes>> measure(
      mlir::ModuleOp module, const std::vector<Weight>& weights) = 0;
  // May make ranges narrower.
  virtual absl::Status narrow(mlir::ModuleOp module,
                              const std::vector<Weight>& weights,
                              std::vector<Range>& ranges) = 0;
};

struct Options {
  // Patterns of weights that stay as they are; see keepWeights.
  std::vector<std::string> keep;
  // A weight or an activation stays as it is if rounding leaves fewer decibels
  // of signal to noise. 0: none does.
  double least_decibels = 0;
  bool embeddings = false;  // rounds tables that no product reads, too
  // Rounds to floats of 8 bits (e4m3) instead of integers. Not with `groups` or
  // `calibration`.
  bool float8 = false;
  // Rounds to 4 bits instead of 8. Not with `calibration`.
  std::optional<GroupOptions> groups;
  KeepOptionNames names;  // in messages
  std::string folder;     // of relative paths in the model
  // Rounds activations too, with fixed scales that cover their ranges in its
  // runs. Null: weights only.
  Calibration* calibration = nullptr;
  // How much of the range of an activation's channels moves to the weights'
  // rows (smooth.h), from 0 to 1. 0: nothing.
  double smoothing = 0.7;
  // Rounds weights of convolutions, too. Only with `calibration`: libraries
  // convolve integers with integers alone.
  bool convolutions = false;
};

struct LayerReport {
  std::string weight;
  std::vector<int64_t> shape;
  int64_t bytes_before = 0, bytes_after = 0;
  double decibels = 0;        // signal to noise of the rounded weight
  double relative_error = 0;  // norm of the error / norm of the weight
  // With calibration, of the activation that this weight is the first to
  // multiply: its range, and the signal to noise of even rounding errors.
  std::optional<Range> input;
  double input_decibels = 0;
  bool keeps_input = false;  // the activation was not rounded
  std::string kept;  // the reason why it was not quantized; empty if it was
};

struct Report {
  std::vector<LayerReport> layers;  // of weights with at least two dimensions
  int64_t bytes_before = 0, bytes_after = 0;  // of all parameters
};

// Rounds weights of matrix products, and on request tables and weights of
// convolutions, to integers or floats of 8 bits with one scale per output
// channel, or of 4 bits with one scale per group along the last dimension that
// is summed over, and changes the module to read them. Writes the module and
// its parameters to the new folder `output`. InvalidArgument says what was
// expected and found; then there is no folder.
absl::StatusOr<Report> quantizeModel(mlir::ModuleOp module,
                                     const Options& options,
                                     const std::string& output);

}  // namespace partita::quantize

#endif  // PARTITA_COMPILER_QUANTIZE_QUANTIZE_H_
