// How cuBLASLt, whose matrices are column-major, computes a product. Plain
// data.
#ifndef PARTITA_RUNTIME_CUDA_PRODUCT_PLAN_H_
#define PARTITA_RUNTIME_CUDA_PRODUCT_PLAN_H_

#include <cstdint>
#include <optional>

#include "runtime/device/operations.h"

namespace partita::cuda {

// A column-major matrix, one per element of the batch.
struct MatrixPlan {
  int64_t rows = 0, columns = 0;  // as stored
  int64_t leading = 0;            // elements from a column to the next
  int64_t batch_stride = 0;       // 0: shared
  bool transposed = false;        // before it is multiplied
};

// D = A B.
struct ProductPlan {
  int64_t batch = 1;
  MatrixPlan a, b, d;
  bool rhs_first = true;  // A is the right-hand side: D is out transposed
  // Whether the library does all: bias, activation and residual too. Else it
  // makes f32 sums, dense [batch, m, n], and a kernel of our own does the rest.
  bool whole = true;
};

// None where an operand has neither rows nor columns that lie together.
std::optional<ProductPlan> PlanProduct(const device::GemmDesc& desc);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_PRODUCT_PLAN_H_
