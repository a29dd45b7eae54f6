// Activations that quantized weights multiply: their ranges, and their
// rounding to integers of 8 bits.
#ifndef PARTITA_COMPILER_QUANTIZE_ACTIVATIONS_H_
#define PARTITA_COMPILER_QUANTIZE_ACTIVATIONS_H_

#include <string>
#include <vector>

#include "compiler/quantize/find_weights.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::quantize {

// A value of @main that products with weights read.
struct Activation {
  mlir::Value value;
  std::vector<mlir::OpOperand*> uses;  // by these products
  std::string name;                    // of the first weight
};

// Replaces calls in @main by the bodies of the called functions, so that each
// activation is a value of @main.
void inlineLayers(mlir::func::FuncOp main);

// In the order of @main. `weights` are those of `main` without obstacles.
std::vector<Activation> findActivations(mlir::func::FuncOp main,
                                        const std::vector<Weight>& weights);

// The results of a probe, each with one element per activation.
inline constexpr char kLows[] = "lows", kHighs[] = "highs",
                      kSquares[] = "squares";

// A copy of the module whose results are the least element, the greatest
// element and the sum of squares of each activation.
mlir::OwningOpRef<mlir::ModuleOp> rangeProbe(
    mlir::ModuleOp module, const std::vector<Weight>& weights);

// The elements of an activation in all runs.
struct Range {
  double low = 0, high = 0;
  double mean_square = 0;
};

// The result of a histogram probe: [activations, kBins] of f32.
inline constexpr char kCounts[] = "counts";
inline constexpr int64_t kBins = 2048;

// A copy of the module whose result counts the elements of each activation in
// equal bins of its range.
mlir::OwningOpRef<mlir::ModuleOp> histogramProbe(
    mlir::ModuleOp module, const std::vector<Weight>& weights,
    const std::vector<Range>& ranges);

// scale * (integer - zero) for integers from 0 to 255.
struct Grid {
  float scale = 1;
  int32_t zero = 0;
};
// The grid that covers the range, which is widened to contain 0.
Grid gridOf(const Range& range);

// Rounds the activations that products read: DequantizeLinear of
// QuantizeLinear. Adds two arguments for each, NAME_input_scale (f32) and
// NAME_input_zero (i32), and returns the number of the first. The caller sets
// `nn.source`.
std::vector<unsigned> roundActivations(
    mlir::func::FuncOp main, const std::vector<Activation>& activations);

}  // namespace partita::quantize

#endif  // PARTITA_COMPILER_QUANTIZE_ACTIVATIONS_H_
