// Adafactor (Shazeer and Stern, 2018): a matrix has second moments per row and
// per column instead of per element.
//
// At step t, with gradient G, u = G^2 + 1e-30 and d = 1 - t^-0.8:
//   R = d R + (1 - d) mean of u over columns
//   C = d C + (1 - d) mean of u over rows
//   U = G / sqrt(R C / mean(R)), divided by max(1, RMS(U))
//   X = X - rate (U + weight decay X)
// A parameter with fewer than two dimensions uses V = d V + (1 - d) u and U = G
// / sqrt(V). These are the formulas of Hugging Face's Adafactor with
// relative_step=False and scale_parameter=False. With more than two dimensions,
// rows and columns are the largest two, as in optax, with one matrix per index
// of the others. A parameter whose second largest dimension has size 1 is not
// factored.
#ifndef PARTITA_COMPILER_AUTODIFF_ADAFACTOR_H_
#define PARTITA_COMPILER_AUTODIFF_ADAFACTOR_H_

#include "dialects/nn/math_builder.h"

namespace partita::autodiff {

// The row and column dimensions. One dimension of the model may be several
// dimensions of the parameter's current shape.
struct Factored {
  // The parameter's current shape, or the model's shape if the current shape
  // does not preserve the model's dimensions. `rows` and `columns` refer to it.
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<int64_t> rows, columns;   // both empty: not factored
  int64_t model_row = -1, model_column = -1;  // in the model's shape
};

// Chooses rows and columns for a parameter of current shape `own` and model
// shape `model`. Both have the same elements in the same order.
Factored factor(llvm::ArrayRef<int64_t> own, llvm::ArrayRef<int64_t> model);

// Builds d of step t, a scalar.
mlir::Value buildAdafactorDecay(nn::MathBuilder& math, mlir::Value t);

// Builds the direction U, of the gradient's type, then the new states: R and C,
// or V.
llvm::SmallVector<mlir::Value> buildAdafactor(
    nn::MathBuilder& math, const Factored& factored, mlir::Value gradient,
    llvm::ArrayRef<mlir::Value> states, mlir::Value decay);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_ADAFACTOR_H_
