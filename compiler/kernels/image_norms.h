// Norms over all numbers of an image, as GroupNorm with one group. They do not
// depend on the image's layout.
#ifndef PARTITA_COMPILER_KERNELS_IMAGE_NORMS_H_
#define PARTITA_COMPILER_KERNELS_IMAGE_NORMS_H_

#include <cstdint>
#include <optional>

#include "dialects/nn/dialect.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/PatternMatch.h"

namespace partita::kernels {

// images = reshape(layer_norm(reshape(image))), all of one type.
struct ImageNorm {
  nn::LayerNormOp norm;
  mlir::Value image;
  llvm::SmallVector<nn::ReshapeOp> images;
  int64_t first;  // The norm joins the dimensions of an image from this one on.

  // True if the transposed image has the same norm, transposed.
  bool allows(llvm::ArrayRef<int64_t> perm) const;
};

// None if `norm` has other operands or users, or if its scale or bias differs
// between the numbers of an image.
std::optional<ImageNorm> matchImageNorm(nn::LayerNormOp norm);

// Adds a pattern that moves transposes of images below their norms.
void addSinkBelowImageNorm(mlir::RewritePatternSet& patterns);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_IMAGE_NORMS_H_
