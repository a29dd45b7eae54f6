// Simulates integers of 8 bits in floats, so that training adapts a model to
// them (Jacob et al., 2018, "Quantization and Training of Neural Networks for
// Efficient Integer-Arithmetic-Only Inference").
#ifndef PARTITA_COMPILER_QUANTIZE_FAKE_QUANTIZE_H_
#define PARTITA_COMPILER_QUANTIZE_FAKE_QUANTIZE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::quantize {

// The meaning of --fake-quantize.
struct FakeOptions {
  // Share of a step's range in the moving average of an activation's range.
  double averaging = 0.01;
  bool moves_ranges = true;       // when training
  bool rounds_inputs = true;      // of products; else weights alone
  bool embeddings = false;        // tables that no product reads, too
  bool convolutions = false;      // their weights and inputs, too
  bool names_ranges = false;      // "ranges=" was given, which is of training
  std::vector<std::string> keep;  // patterns of weights; see keepWeights
};

// Parses "bits=8; averaging=0.01; ranges=moving; inputs=y; embeddings=n;
// convolutions=n;
// keep=*.head,*.fc1", each with its default if absent. InvalidArgument says
// what was expected and found, also of a part that another one makes useless.
absl::StatusOr<FakeOptions> parseFakeOptions(const std::string& text);

// True for the name of a range that fakeQuantize adds.
bool isRangeName(llvm::StringRef name);

// Rounds the weights that quantizeModel rounds, to the same numbers: per output
// channel, with the scale of the weight's present numbers. With
// `rounds_inputs`, also rounds the activations that they multiply, per tensor,
// with ranges in buffers NAME_input_low and NAME_input_high (activations.h) of
// f32 (zeros: no step has recorded them). When training, gradients pass
// rounding unchanged, and are 0 outside the range; with `moves_ranges`, results
// of @main update the ranges. Calls in @main are replaced by the bodies of the
// functions. Fails, after a diagnostic, if there is nothing to round.
mlir::LogicalResult fakeQuantize(mlir::ModuleOp module,
                                 const FakeOptions& options, bool training);

}  // namespace partita::quantize

#endif  // PARTITA_COMPILER_QUANTIZE_FAKE_QUANTIZE_H_
