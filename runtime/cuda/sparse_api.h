// The functions of cuSPARSELt that we call, from its documentation (0.7 and
// later): names, parameters and constants, under our own names. abi_check.cc
// compares them with the real header if it is installed.
#ifndef PARTITA_RUNTIME_CUDA_SPARSE_API_H_
#define PARTITA_RUNTIME_CUDA_SPARSE_API_H_

#include <cstddef>
#include <cstdint>

#include "runtime/cuda/blas_api.h"

namespace partita::cuda {

// Memory of a library object. Version 0.10 uses 512 bytes of it, older versions
// up to 11,024.
struct SparseObject {
  alignas(16) unsigned char bytes[12 << 10];
};

enum SparseStatus : int {
  kSparseSuccess = 0,
  kSparseNotInitialized = 1,
  kSparseInvalidValue = 3,
  kSparseArchMismatch = 4,
  kSparseNotSupported = 10,
};
enum SparseOperation : int { kSparseAsIs = 0, kSparseTransposed = 1 };
enum SparseOrder : int { kSparseColumnMajor = 1 };
enum SparseCompute : int { kSparseComputeF32 = 2 };
enum SparseSparsity : int { kSparseTwoOfFour = 0 };
enum SparseAlgorithm : int { kSparseDefaultAlgorithm = 0 };
enum SparseAttribute : int {
  kSparseRelu = 0,         // int: 0 or 1
  kSparseBiasPointer = 8,  // one value per row of the result
};
enum SparseProperty : int { kSparseMajor = 0, kSparseMinor = 1 };

// X(member, symbol in the library, parameters): all return SparseStatus.
// D = alpha op(A) op(B) + beta C, column-major. A is structured: of four
// consecutive elements of a row of op(A), two at most are not 0.
#define PARTITA_CUDA_SPARSE_FUNCTIONS(X)                                      \
  X(Create, cusparseLtInit, (SparseObject * handle))                          \
  X(Destroy, cusparseLtDestroy, (const SparseObject* handle))                 \
  X(Property, cusparseLtGetProperty, (SparseProperty property, int* value))   \
  X(MakeDense, cusparseLtDenseDescriptorInit,                                 \
    (const SparseObject* handle, SparseObject* matrix, int64_t rows,          \
     int64_t columns, int64_t leading, uint32_t alignment, LtDataType type,   \
     SparseOrder order))                                                      \
  X(MakeStructured, cusparseLtStructuredDescriptorInit,                       \
    (const SparseObject* handle, SparseObject* matrix, int64_t rows,          \
     int64_t columns, int64_t leading, uint32_t alignment, LtDataType type,   \
     SparseOrder order, SparseSparsity sparsity))                             \
  X(DestroyMatrix, cusparseLtMatDescriptorDestroy,                            \
    (const SparseObject* matrix))                                             \
  X(MakeMatmul, cusparseLtMatmulDescriptorInit,                               \
    (const SparseObject* handle, SparseObject* matmul, SparseOperation a_op,  \
     SparseOperation b_op, const SparseObject* a, const SparseObject* b,      \
     const SparseObject* c, const SparseObject* d, SparseCompute compute))    \
  X(SetMatmul, cusparseLtMatmulDescSetAttribute,                              \
    (const SparseObject* handle, SparseObject* matmul,                        \
     SparseAttribute attribute, const void* value, size_t bytes))             \
  X(ChooseAlgorithm, cusparseLtMatmulAlgSelectionInit,                        \
    (const SparseObject* handle, SparseObject* selection,                     \
     const SparseObject* matmul, SparseAlgorithm algorithm))                  \
  X(DestroyAlgorithm, cusparseLtMatmulAlgSelectionDestroy,                    \
    (const SparseObject* selection))                                          \
  X(MakePlan, cusparseLtMatmulPlanInit,                                       \
    (const SparseObject* handle, SparseObject* plan,                          \
     const SparseObject* matmul, const SparseObject* selection))              \
  X(DestroyPlan, cusparseLtMatmulPlanDestroy, (const SparseObject* plan))     \
  X(Workspace, cusparseLtMatmulGetWorkspace,                                  \
    (const SparseObject* handle, const SparseObject* plan, size_t* bytes))    \
  X(CompressedSize, cusparseLtSpMMACompressedSize,                            \
    (const SparseObject* handle, const SparseObject* plan, size_t* bytes,     \
     size_t* buffer_bytes))                                                   \
  X(Compress, cusparseLtSpMMACompress,                                        \
    (const SparseObject* handle, const SparseObject* plan, const void* dense, \
     void* compressed, void* buffer, LtStream stream))                        \
  X(Multiply, cusparseLtMatmul,                                               \
    (const SparseObject* handle, const SparseObject* plan, const void* alpha, \
     const void* a, const void* b, const void* beta, const void* c, void* d,  \
     void* workspace, LtStream* streams, int32_t count))

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_SPARSE_API_H_
