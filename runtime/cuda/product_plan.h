// Plans how cuBLASLt, whose matrices are column-major, computes a product.
// Plain data.
#ifndef PARTITA_RUNTIME_CUDA_PRODUCT_PLAN_H_
#define PARTITA_RUNTIME_CUDA_PRODUCT_PLAN_H_

#include <cstdint>
#include <optional>

#include "runtime/device/operations.h"

namespace partita::cuda {

// A batch of column-major matrices.
struct MatrixPlan {
  int64_t rows = 0, columns = 0;  // as stored
  int64_t leading = 0;            // elements between columns
  int64_t batch_stride = 0;       // 0: shared by the batch
  bool transposed = false;        // transposed before multiplication
};

// D = A B.
struct ProductPlan {
  int64_t batch = 1;
  MatrixPlan a, b, d;
  bool rhs_first = true;  // A is the right-hand side: D is out transposed
  // True if the library computes bias, activation, residual and pre-activation,
  // too. Else it computes f32 sums, dense [batch, m, n], and our own kernel
  // does the rest.
  bool whole = true;
};

// Element types of the factors: floats of 8 bits, or desc.dtype.
base::DType LhsType(const device::GemmDesc& desc);
base::DType RhsType(const device::GemmDesc& desc);

// Without `finishes`, the library only multiplies, and scales floats of 8 bits.
// None if neither the rows nor the columns of an operand are contiguous.
// Of factors that are floats of 8 bits, k must be contiguous, as GPUs of sm_89
// and sm_90 demand, and sizes and strides must be multiples of 16.
std::optional<ProductPlan> PlanProduct(const device::GemmDesc& desc,
                                       bool finishes = true);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_PRODUCT_PLAN_H_
