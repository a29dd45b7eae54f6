// Ranges of activations that quantization-aware training recorded.
#ifndef PARTITA_COMPILER_QUANTIZE_RECORDED_RANGES_H_
#define PARTITA_COMPILER_QUANTIZE_RECORDED_RANGES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/quantize/quantize.h"

namespace partita::quantize {

class RecordedRanges : public Calibration {
 public:
  // Reads the ranges of a model that fakeQuantize changed, whose buffers have
  // the numbers of a checkpoint. `folder` is that of relative paths.
  static absl::StatusOr<RecordedRanges> read(mlir::ModuleOp simulated,
                                             const std::string& folder);

  // InvalidArgument if a range is missing, or no step has recorded it.
  absl::StatusOr<std::vector<Extremes>> measure(
      mlir::ModuleOp module, const std::vector<Weight>& weights) override;
  absl::Status narrow(mlir::ModuleOp, const std::vector<Weight>&,
                      std::vector<Range>&) override {
    return absl::OkStatus();
  }

 private:
  std::map<std::string, float> ends_;  // by the buffer's name
};

}  // namespace partita::quantize

#endif  // PARTITA_COMPILER_QUANTIZE_RECORDED_RANGES_H_
