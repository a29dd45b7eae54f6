// The functions of cuBLASLt that we call, from its documentation (CUDA 11 to
// 13): names, parameters and constants, under our own names. abi_check.cc
// compares them with the real headers if CUDA is installed.
#ifndef PARTITA_RUNTIME_CUDA_BLAS_API_H_
#define PARTITA_RUNTIME_CUDA_BLAS_API_H_

#include <cstddef>
#include <cstdint>

namespace partita::cuda {

using LtHandle = void*;
using LtMatmul = void*;      // descriptor of a product
using LtLayout = void*;      // layout of a matrix
using LtPreference = void*;  // limits on algorithms
using LtStream = void*;

enum LtStatus : int {
  kLtSuccess = 0,
  kLtNotInitialized = 1,
  kLtAllocFailed = 3,
  kLtNotSupported = 15,
};

enum LtDataType : int {
  kLtF32 = 0,
  kLtF16 = 2,
  kLtBF16 = 14,
  kLtF8E4M3 = 28,
  kLtF8E5M2 = 29
};
enum LtComputeType : int { kLtComputeF32 = 68 };

enum LtMatmulAttribute : int {
  kLtTransposeA = 3,  // int32: 0 or 1
  kLtTransposeB = 4,
  kLtEpilogue = 7,     // LtEpilogueKind
  kLtBiasPointer = 8,  // one value per row of the result
  kLtPreactivationPointer = 11,
  kLtPreactivationLeading = 12,      // int64: elements, a multiple of 8
  kLtPreactivationBatchStride = 13,  // int64, a multiple of 8
  kLtScaleOfA = 17,                  // address of an f32 on the device
};
enum LtEpilogueKind : int {
  kLtEpilogueNone = 1,
  kLtEpilogueRelu = 2,
  kLtEpilogueBias = 4,
  kLtEpilogueGelu = 32,  // tanh approximation
  // A bit beside that of GELU: writes the pre-activation.
  kLtEpilogueKept = 128,
  // Multiplies by the gradient of GELU at the pre-activation.
  kLtEpilogueGeluGradient = 64 | 128,
  // Writes the sums of A's rows, or of B's columns, in place of a bias.
  kLtEpilogueSumsOfA = 256,
  kLtEpilogueSumsOfB = 512,
};
enum LtLayoutAttribute : int {
  kLtBatchCount = 5,   // int32
  kLtBatchStride = 6,  // int64, in elements
};
// The type of the partial sums of a product whose inner dimension is split.
// Unsplit products are always allowed.
enum LtReductionScheme : uint32_t {
  kLtReduceInOutput = 1,       // in the result itself, in its type
  kLtReduceInComputeType = 2,  // in the workspace, in the compute type
  kLtReduceInOutputType = 4,   // in the workspace, in the result's type
};
enum LtPreferenceAttribute : int {
  kLtMaxWorkspaceBytes = 1,  // uint64
  kLtReductionSchemes = 3,   // uint32, a mask of LtReductionScheme
  kLtAlignmentA = 5,         // uint32, in bytes
  kLtAlignmentB = 6,
  kLtAlignmentC = 7,
  kLtAlignmentD = 8,
};

struct LtAlgorithm {
  uint64_t opaque[8];
};
struct LtHeuristic {
  LtAlgorithm algorithm;
  size_t workspace_bytes;
  LtStatus state;
  float waves;
  int reserved[4];
};

// X(member, symbol in the library, parameters): all return LtStatus. Matrices
// are column-major; D = alpha op(A) op(B) + beta C.
#define PARTITA_CUDA_BLAS_FUNCTIONS(X)                                        \
  X(Create, cublasLtCreate, (LtHandle * handle))                              \
  X(Destroy, cublasLtDestroy, (LtHandle handle))                              \
  X(CreateMatmul, cublasLtMatmulDescCreate,                                   \
    (LtMatmul * matmul, LtComputeType compute, LtDataType scale))             \
  X(DestroyMatmul, cublasLtMatmulDescDestroy, (LtMatmul matmul))              \
  X(SetMatmul, cublasLtMatmulDescSetAttribute,                                \
    (LtMatmul matmul, LtMatmulAttribute attribute, const void* value,         \
     size_t bytes))                                                           \
  X(CreateLayout, cublasLtMatrixLayoutCreate,                                 \
    (LtLayout * layout, LtDataType type, uint64_t rows, uint64_t columns,     \
     int64_t leading))                                                        \
  X(DestroyLayout, cublasLtMatrixLayoutDestroy, (LtLayout layout))            \
  X(SetLayout, cublasLtMatrixLayoutSetAttribute,                              \
    (LtLayout layout, LtLayoutAttribute attribute, const void* value,         \
     size_t bytes))                                                           \
  X(CreatePreference, cublasLtMatmulPreferenceCreate,                         \
    (LtPreference * preference))                                              \
  X(DestroyPreference, cublasLtMatmulPreferenceDestroy,                       \
    (LtPreference preference))                                                \
  X(SetPreference, cublasLtMatmulPreferenceSetAttribute,                      \
    (LtPreference preference, LtPreferenceAttribute attribute,                \
     const void* value, size_t bytes))                                        \
  X(Heuristics, cublasLtMatmulAlgoGetHeuristic,                               \
    (LtHandle handle, LtMatmul matmul, LtLayout a, LtLayout b, LtLayout c,    \
     LtLayout d, LtPreference preference, int wanted, LtHeuristic* results,   \
     int* found))                                                             \
  X(Multiply, cublasLtMatmul,                                                 \
    (LtHandle handle, LtMatmul matmul, const void* alpha, const void* a_data, \
     LtLayout a, const void* b_data, LtLayout b, const void* beta,            \
     const void* c_data, LtLayout c, void* d_data, LtLayout d,                \
     const LtAlgorithm* algorithm, void* workspace, size_t workspace_bytes,   \
     LtStream stream))

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_BLAS_API_H_
