// The innermost loop of a matrix product, with its accumulators in registers.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_MATMUL_H_
#define PARTITA_COMPILER_KERNELS_EMIT_MATMUL_H_

#include "compiler/kernels/emit_elements.h"

namespace partita::kernels {

// C[row, vector] += sum over k < depth of A[row, k] * B[k, vector], for a few
// rows and vectors. There are rows * vectors accumulators: together with one
// row of B they should fit the registers (32 with AVX-512).
struct MicroMatmul {
  int64_t rows = 0;
  int64_t vectors = 0;
  int64_t lanes = 0;  // elements of one vector
  // A[row, k] is the element a_first + row * a_row + k * a_k of `a`.
  mlir::Value a, a_first;
  int64_t a_row = 0, a_k = 0;
  // B[k, vector] begins at b_first + k * b_k + vector * b_vector of `b`.
  mlir::Value b, b_first;
  int64_t b_k = 0, b_vector = 0;
  mlir::Value depth;  // of type index
  int64_t expected_depth = 0;
};

// Starts from `accumulators` (row-major; empty: zeros) and returns them after
// the loop.
Values emitMicroMatmul(Emitter& emitter, const MicroMatmul& matmul,
                       Values accumulators = {});

// The transpose of a square of elements held as one vector per row, by
// shuffles.
Values transposeInRegisters(Emitter& emitter, Values rows);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_MATMUL_H_
