// Products in cuBLASLt's terms. Plain data.
#ifndef PARTITA_RUNTIME_CUDA_LT_PRODUCT_H_
#define PARTITA_RUNTIME_CUDA_LT_PRODUCT_H_

#include <string>

#include "runtime/cuda/blas_api.h"
#include "runtime/cuda/product_plan.h"
#include "runtime/device/operations.h"

namespace partita::cuda {

// f32, f16, bf16, and floats of 8 bits.
LtDataType LtTypeOf(base::DType dtype);

// A mask of LtEpilogueKind: what the library computes after the sums.
int EpilogueOf(const device::GemmDesc& desc, const ProductPlan& plan);

// The tuner's name for a product. Equal products have equal names.
std::string Describe(const device::GemmDesc& desc);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_LT_PRODUCT_H_
