// Adafactor (Shazeer and Stern, 2018): of a matrix the second moments of its
// rows and columns stand for those of its elements.
//
// At step t, with gradient G, u = G^2 + 1e-30 and d = 1 - t^-0.8:
//   R = d R + (1 - d) mean of u over columns
//   C = d C + (1 - d) mean of u over rows
//   U = G / sqrt(R C / mean(R)), divided by max(1, RMS(U))
//   X = X - rate (U + weight decay X)
// What has fewer than two dimensions keeps V = d V + (1 - d) u, U = G /
// sqrt(V). These are the formulas of Hugging Face's Adafactor with
// relative_step=False and scale_parameter=False. Of more than two dimensions
// rows and columns are the largest two, as in optax, and there is a matrix for
// each index of the others; a second dimension of 1 counts as none.
#ifndef PARTITA_COMPILER_AUTODIFF_ADAFACTOR_H_
#define PARTITA_COMPILER_AUTODIFF_ADAFACTOR_H_

#include "dialects/nn/math_builder.h"

namespace partita::autodiff {

// Where rows and columns are. A dimension of the model may be several of the
// shape that a parameter has now.
struct Factored {
  // The parameter's shape as rows and columns count its dimensions: its own,
  // or the model's where the model's dimensions are not whole in that.
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<int64_t> rows, columns;   // both empty: not factored
  int64_t model_row = -1, model_column = -1;  // the same of the model's shape
};

// Of a parameter of shape `own`, which the model has as `model`: same elements
// in the same order.
Factored factor(llvm::ArrayRef<int64_t> own, llvm::ArrayRef<int64_t> model);

// d of step t, a scalar.
mlir::Value buildAdafactorDecay(nn::MathBuilder& math, mlir::Value t);

// The direction U, of the gradient's type, then the new states: R and C, or V.
llvm::SmallVector<mlir::Value> buildAdafactor(
    nn::MathBuilder& math, const Factored& factored, mlir::Value gradient,
    llvm::ArrayRef<mlir::Value> states, mlir::Value decay);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_ADAFACTOR_H_
