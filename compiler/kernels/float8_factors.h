// Factors of products that are rounded to floats of 8 bits, as
// autodiff/round_float8_factors.cc writes them.
#ifndef PARTITA_COMPILER_KERNELS_FLOAT8_FACTORS_H_
#define PARTITA_COMPILER_KERNELS_FLOAT8_FACTORS_H_

#include <cstdint>
#include <optional>

#include "dialects/nn/dialect.h"
#include "llvm/ADT/SmallVector.h"

namespace partita::kernels {

// The factor is scale * bytes, rounded to the product's type, after `moves`:
// transposes and reshapes, the last one first.
struct Float8Factor {
  mlir::Value bytes;  // f8E4M3FN or f8E5M2
  mlir::Value scale;  // one f32
  llvm::SmallVector<mlir::Operation*> moves;
  // The factor's dimensions: free ones, then contracted ones. Both products of
  // sizes are multiples of 16.
  llvm::SmallVector<int64_t> order;
  int64_t free = 1, contracted = 1;
};

struct Float8Factors {
  Float8Factor lhs, rhs;
};

// The factors of a product that tensor cores can multiply in 8 bits: no batch
// dimensions, and at most one factor of e5m2. Nothing for other products.
std::optional<Float8Factors> matchFloat8Factors(nn::DotGeneralOp op);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_FLOAT8_FACTORS_H_
