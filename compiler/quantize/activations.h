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
  std::vector<unsigned> weights;       // arguments of @main
  // The first weight's; of others that this weight is the first to multiply,
  // with _1, _2, ... behind it. No two are equal.
  std::string name;
  // The only dimension that the products sum over, if its indices may have
  // factors (smooth.h); else -1.
  int64_t channel = -1;

  // Indices of `channel`, or 1.
  int64_t channels() const;
};

// Replaces calls in @main by the bodies of the called functions, so that each
// activation is a value of @main.
void inlineLayers(mlir::func::FuncOp main);

// In the order of their weights, and for one weight in that of @main. `weights`
// are those of `main` without obstacles.
std::vector<Activation> findActivations(mlir::func::FuncOp main,
                                        const std::vector<Weight>& weights);

// The results of a probe. Each has the channels of all activations, one after
// the other.
inline constexpr char kLows[] = "lows", kHighs[] = "highs",
                      kSquares[] = "squares";

// A copy of the module whose results are the least element, the greatest
// element and the mean square of each channel of each activation.
mlir::OwningOpRef<mlir::ModuleOp> rangeProbe(
    mlir::ModuleOp module, const std::vector<Weight>& weights);

// An activation, divided by its factors, in all runs.
struct Range {
  double low = 0, high = 0;
  double mean_square = 0;
  std::vector<float> factors;  // by channel; empty: 1
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

// The arguments of @main that hold an activation's grid.
struct GridArguments {
  // `divisor` has the grid's scale times the factors; it is `scale` without
  // factors.
  unsigned divisor = 0, scale = 0, zero = 0;
};

// Adds an argument of @main at the end: a buffer. Its data are `source`, or, if
// null, what the caller sets as `nn.source`. Returns its number.
unsigned addBuffer(mlir::func::FuncOp main, const std::string& name,
                   mlir::RankedTensorType type,
                   mlir::Attribute source = nullptr);

// Rounds an activation that products read: DequantizeLinear of QuantizeLinear.
// Adds arguments NAME_input_scale (f32), NAME_input_zero (i32) and, with
// factors, NAME_input_divisor. The caller sets `nn.source`.
GridArguments roundActivation(mlir::func::FuncOp main,
                              const Activation& activation, bool has_factors);

}  // namespace partita::quantize

#endif  // PARTITA_COMPILER_QUANTIZE_ACTIVATIONS_H_
