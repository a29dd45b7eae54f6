// Compares our declarations of NVIDIA's libraries with their headers. Skipped
// if the headers are not installed.
#include "gtest/gtest.h"

#if !__has_include(<cublasLt.h>) || !__has_include(<cuda.h>) || \
    !__has_include(<cudnn.h>) || !__has_include(<nccl.h>)

TEST(AbiCheck, NeedsHeaders) {
  GTEST_SKIP() << "no headers of CUDA, cuDNN and NCCL in /usr/local/cuda: "
                  "declarations of their functions are not checked";
}

#else

#include <cublasLt.h>
#include <cuda.h>
#include <cudnn.h>
#include <nccl.h>
#if __has_include(<cusparseLt.h>)
#include <cusparseLt.h>
#endif

#include <type_traits>

#include "runtime/cuda/blas_api.h"
#include "runtime/cuda/dnn_api.h"
#include "runtime/cuda/driver_api.h"
#include "runtime/cuda/nccl_api.h"
#include "runtime/cuda/sparse_api.h"

namespace partita::cuda {
namespace {

// True if both types are passed in the same way.
template <typename Ours, typename Theirs>
constexpr bool SamePassing() {
  if (std::is_pointer_v<Ours> != std::is_pointer_v<Theirs>) return false;
  if (std::is_floating_point_v<Ours> != std::is_floating_point_v<Theirs>)
    return false;
  return sizeof(Ours) == sizeof(Theirs);
}

template <typename Ours, typename Theirs>
struct SameFunction : std::false_type {};
template <typename Result, typename... Ours, typename Expected,
          typename... Theirs>
struct SameFunction<Result(Ours...), Expected(Theirs...)> {
  static constexpr bool Check() {
    if constexpr (sizeof...(Ours) != sizeof...(Theirs)) {
      return false;
    } else {
      return sizeof(Result) == sizeof(Expected) &&
             (SamePassing<Ours, Theirs>() && ...);
    }
  }
  static constexpr bool value = Check();
};

#define PARTITA_SAME(member, symbol, parameters)                              \
  static_assert(SameFunction<CuResult parameters, decltype(::symbol)>::value, \
                #symbol);
PARTITA_CUDA_DRIVER_FUNCTIONS(PARTITA_SAME)
PARTITA_CUDA_DRIVER_OPTIONAL_FUNCTIONS(PARTITA_SAME)
#undef PARTITA_SAME
#define PARTITA_SAME(member, symbol, parameters)                              \
  static_assert(SameFunction<LtStatus parameters, decltype(::symbol)>::value, \
                #symbol);
PARTITA_CUDA_BLAS_FUNCTIONS(PARTITA_SAME)
#undef PARTITA_SAME
#define PARTITA_SAME(member, symbol, parameters)                               \
  static_assert(SameFunction<DnnStatus parameters, decltype(::symbol)>::value, \
                #symbol);
PARTITA_CUDA_DNN_FUNCTIONS(PARTITA_SAME)
#undef PARTITA_SAME

#define PARTITA_SAME(member, symbol, parameters)                      \
  static_assert(                                                      \
      SameFunction<NcclResult parameters, decltype(::symbol)>::value, \
      #symbol);
PARTITA_CUDA_NCCL_FUNCTIONS(PARTITA_SAME)
#undef PARTITA_SAME

template <typename Ours, typename Theirs>
void ExpectSame(Ours ours, Theirs theirs) {
  EXPECT_EQ(static_cast<long long>(ours), static_cast<long long>(theirs));
}

TEST(AbiCheck, NumbersOfTheDriver) {
  ExpectSame(kCuSuccess, CUDA_SUCCESS);
  ExpectSame(kCuInvalidValue, CUDA_ERROR_INVALID_VALUE);
  ExpectSame(kCuOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  ExpectSame(kCuDeinitialized, CUDA_ERROR_DEINITIALIZED);
  ExpectSame(kCuNoDevice, CUDA_ERROR_NO_DEVICE);
  ExpectSame(kCuInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
  ExpectSame(kCuInvalidImage, CUDA_ERROR_INVALID_IMAGE);
  ExpectSame(kCuNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
  ExpectSame(kCuEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
  ExpectSame(kCuInvalidPtx, CUDA_ERROR_INVALID_PTX);
  ExpectSame(kCuJitCompilerNotFound, CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
  ExpectSame(kCuUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  ExpectSame(kCuNotFound, CUDA_ERROR_NOT_FOUND);
  ExpectSame(kCuNotReady, CUDA_ERROR_NOT_READY);
  ExpectSame(kCuIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
  ExpectSame(kCuLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  ExpectSame(kCuLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT);
  ExpectSame(kCuMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS);
  ExpectSame(kCuLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
  ExpectSame(kCuSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
  ExpectSame(kCuCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  ExpectSame(kCuCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ExpectSame(kCuCaptureUnjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  ExpectSame(kCuCaptureIsolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  ExpectSame(kCuMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  ExpectSame(kCuCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  ExpectSame(kCuCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  ExpectSame(kCuMaxSharedBytesOptIn,
             CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  ExpectSame(kCuMaxDynamicSharedBytes,
             CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  ExpectSame(kCuMapU8, CU_TENSOR_MAP_DATA_TYPE_UINT8);
  ExpectSame(kCuMapU16, CU_TENSOR_MAP_DATA_TYPE_UINT16);
  ExpectSame(kCuMapU32, CU_TENSOR_MAP_DATA_TYPE_UINT32);
  ExpectSame(kCuMapI32, CU_TENSOR_MAP_DATA_TYPE_INT32);
  ExpectSame(kCuMapU64, CU_TENSOR_MAP_DATA_TYPE_UINT64);
  ExpectSame(kCuMapI64, CU_TENSOR_MAP_DATA_TYPE_INT64);
  ExpectSame(kCuMapF16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
  ExpectSame(kCuMapF32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
  ExpectSame(kCuMapF64, CU_TENSOR_MAP_DATA_TYPE_FLOAT64);
  ExpectSame(kCuMapBF16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  ExpectSame(kCuMapNoInterleave, CU_TENSOR_MAP_INTERLEAVE_NONE);
  ExpectSame(kCuMapNoSwizzle, CU_TENSOR_MAP_SWIZZLE_NONE);
  ExpectSame(kCuMapSwizzle128, CU_TENSOR_MAP_SWIZZLE_128B);
  ExpectSame(kCuMapPromote128, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
  ExpectSame(kCuMapFillZeros, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  ExpectSame(sizeof(CuTensorMap), sizeof(CUtensorMap));
  EXPECT_GE(alignof(CuTensorMap), alignof(CUtensorMap));
  ExpectSame(kCuJitErrorLog, CU_JIT_ERROR_LOG_BUFFER);
  ExpectSame(kCuJitErrorLogBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  ExpectSame(kCuStreamNonBlocking, CU_STREAM_NON_BLOCKING);
  ExpectSame(kCuEventNoTiming, CU_EVENT_DISABLE_TIMING);
  ExpectSame(kCuEventRecordExternal, CU_EVENT_RECORD_EXTERNAL);
  ExpectSame(kCuCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

TEST(AbiCheck, NumbersOfCublasLt) {
  ExpectSame(kLtSuccess, CUBLAS_STATUS_SUCCESS);
  ExpectSame(kLtNotInitialized, CUBLAS_STATUS_NOT_INITIALIZED);
  ExpectSame(kLtAllocFailed, CUBLAS_STATUS_ALLOC_FAILED);
  ExpectSame(kLtNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
  ExpectSame(kLtF32, CUDA_R_32F);
  ExpectSame(kLtF16, CUDA_R_16F);
  ExpectSame(kLtBF16, CUDA_R_16BF);
  ExpectSame(kLtF8E4M3, CUDA_R_8F_E4M3);
  ExpectSame(kLtF8E5M2, CUDA_R_8F_E5M2);
  ExpectSame(kLtComputeF32, CUBLAS_COMPUTE_32F);
  ExpectSame(kLtTransposeA, CUBLASLT_MATMUL_DESC_TRANSA);
  ExpectSame(kLtTransposeB, CUBLASLT_MATMUL_DESC_TRANSB);
  ExpectSame(0, CUBLAS_OP_N);
  ExpectSame(1, CUBLAS_OP_T);
  ExpectSame(kLtEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
  ExpectSame(kLtBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  ExpectSame(kLtScaleOfA, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
  ExpectSame(kLtEpilogueNone, CUBLASLT_EPILOGUE_DEFAULT);
  ExpectSame(kLtEpilogueRelu, CUBLASLT_EPILOGUE_RELU);
  ExpectSame(kLtEpilogueBias, CUBLASLT_EPILOGUE_BIAS);
  ExpectSame(kLtEpilogueRelu | kLtEpilogueBias, CUBLASLT_EPILOGUE_RELU_BIAS);
  ExpectSame(kLtEpilogueGelu, CUBLASLT_EPILOGUE_GELU);
  ExpectSame(kLtEpilogueGelu | kLtEpilogueBias, CUBLASLT_EPILOGUE_GELU_BIAS);
  ExpectSame(kLtEpilogueGelu | kLtEpilogueKept, CUBLASLT_EPILOGUE_GELU_AUX);
  ExpectSame(kLtEpilogueGelu | kLtEpilogueKept | kLtEpilogueBias,
             CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  ExpectSame(kLtEpilogueGeluGradient, CUBLASLT_EPILOGUE_DGELU);
  ExpectSame(kLtEpilogueSumsOfA, CUBLASLT_EPILOGUE_BGRADA);
  ExpectSame(kLtEpilogueSumsOfB, CUBLASLT_EPILOGUE_BGRADB);
  ExpectSame(kLtPreactivationPointer,
             CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
  ExpectSame(kLtPreactivationLeading, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
  ExpectSame(kLtPreactivationBatchStride,
             CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE);
  ExpectSame(kLtBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  ExpectSame(kLtBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  ExpectSame(kLtMaxWorkspaceBytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  ExpectSame(kLtReductionSchemes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
  ExpectSame(kLtReduceInOutput, CUBLASLT_REDUCTION_SCHEME_INPLACE);
  ExpectSame(kLtReduceInComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  ExpectSame(kLtReduceInOutputType, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);
  ExpectSame(kLtAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  ExpectSame(kLtAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
  ExpectSame(kLtAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
  ExpectSame(kLtAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
  ExpectSame(sizeof(LtAlgorithm), sizeof(cublasLtMatmulAlgo_t));
  ExpectSame(sizeof(LtHeuristic), sizeof(cublasLtMatmulHeuristicResult_t));
  ExpectSame(offsetof(LtHeuristic, workspace_bytes),
             offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
  ExpectSame(offsetof(LtHeuristic, state),
             offsetof(cublasLtMatmulHeuristicResult_t, state));
}

TEST(AbiCheck, NumbersOfCudnn) {
  ExpectSame(kDnnSuccess, CUDNN_STATUS_SUCCESS);
  ExpectSame(kDnnBadParameter, CUDNN_STATUS_BAD_PARAM);
  ExpectSame(kDnnNotSupported, CUDNN_STATUS_NOT_SUPPORTED);
  ExpectSame(kDnnIncompatibleDriver,
             CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER);
  ExpectSame(kDnnIncompatibleRuntime,
             CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART);
  ExpectSame(kDnnPrerequisiteMissing,
             CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING);
  ExpectSame(kDnnSublibraryUnavailable,
             CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE);
  ExpectSame(kDnnConvolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  ExpectSame(kDnnEngine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  ExpectSame(kDnnEngineConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  ExpectSame(kDnnHeuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  ExpectSame(kDnnPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
#if CUDNN_VERSION >= 91100
  ExpectSame(kDnnGpu, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  ExpectSame(kDnnHeuristicsGpu, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  ExpectSame(kDnnPlanGpu, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  ExpectSame(kDnnGpuJson, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
#endif
  ExpectSame(kDnnTypeChar, CUDNN_TYPE_CHAR);
  ExpectSame(kDnnForward,
             CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  ExpectSame(kDnnWeightGradient,
             CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
  ExpectSame(kDnnInputGradient,
             CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
  ExpectSame(kDnnGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  ExpectSame(kDnnPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  ExpectSame(kDnnTensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  ExpectSame(kDnnTypeHandle, CUDNN_TYPE_HANDLE);
  ExpectSame(kDnnTypeDataType, CUDNN_TYPE_DATA_TYPE);
  ExpectSame(kDnnTypeInt64, CUDNN_TYPE_INT64);
  ExpectSame(kDnnTypeFloat, CUDNN_TYPE_FLOAT);
  ExpectSame(kDnnTypePointer, CUDNN_TYPE_VOID_PTR);
  ExpectSame(kDnnTypeConvolutionMode, CUDNN_TYPE_CONVOLUTION_MODE);
  ExpectSame(kDnnTypeHeuristicsMode, CUDNN_TYPE_HEUR_MODE);
  ExpectSame(kDnnTypeNote, CUDNN_TYPE_NUMERICAL_NOTE);
  ExpectSame(kDnnTypeObject, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  ExpectSame(kDnnComputeType, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  ExpectSame(kDnnMode, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
  ExpectSame(kDnnDilations, CUDNN_ATTR_CONVOLUTION_DILATIONS);
  ExpectSame(kDnnStrides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  ExpectSame(kDnnPaddingAfter, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  ExpectSame(kDnnPaddingBefore, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  ExpectSame(kDnnSpatialDims, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
  ExpectSame(kDnnHeuristicsMode, CUDNN_ATTR_ENGINEHEUR_MODE);
  ExpectSame(kDnnHeuristicsGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  ExpectSame(kDnnHeuristicsResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
  ExpectSame(kDnnConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
  ExpectSame(kDnnPlanHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
  ExpectSame(kDnnPlanConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  ExpectSame(kDnnPlanWorkspaceBytes, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  ExpectSame(kDnnForwardAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
  ExpectSame(kDnnForwardAlpha + 1,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
  ExpectSame(kDnnForwardAlpha + 2,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  ExpectSame(kDnnForwardAlpha + 3, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
  ExpectSame(kDnnForwardAlpha + 4, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
  ExpectSame(kDnnForwardAlpha + 5, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
  ExpectSame(kDnnInputGradientAlpha,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA);
  ExpectSame(kDnnInputGradientAlpha + 2,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
  ExpectSame(kDnnInputGradientAlpha + 3,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
  ExpectSame(kDnnInputGradientAlpha + 4,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
  ExpectSame(kDnnInputGradientAlpha + 5,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
  ExpectSame(kDnnWeightGradientAlpha,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
  ExpectSame(kDnnWeightGradientAlpha + 2,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
  ExpectSame(kDnnWeightGradientAlpha + 3,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
  ExpectSame(kDnnWeightGradientAlpha + 4,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
  ExpectSame(kDnnWeightGradientAlpha + 5,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
  ExpectSame(kDnnGraphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
  ExpectSame(kDnnGraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  ExpectSame(kDnnTensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  ExpectSame(kDnnTensorType, CUDNN_ATTR_TENSOR_DATA_TYPE);
  ExpectSame(kDnnTensorDims, CUDNN_ATTR_TENSOR_DIMENSIONS);
  ExpectSame(kDnnTensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
  ExpectSame(kDnnTensorId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
  ExpectSame(kDnnPackIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  ExpectSame(kDnnPackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  ExpectSame(kDnnPackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  ExpectSame(kDnnEngineIndex, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  ExpectSame(kDnnEngineNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
  ExpectSame(kDnnF32, CUDNN_DATA_FLOAT);
  ExpectSame(kDnnF16, CUDNN_DATA_HALF);
  ExpectSame(kDnnBF16, CUDNN_DATA_BFLOAT16);
  ExpectSame(kDnnI32, CUDNN_DATA_INT32);
  ExpectSame(kDnnBoolean, CUDNN_DATA_BOOLEAN);
  ExpectSame(kDnnCrossCorrelation, CUDNN_CROSS_CORRELATION);
  ExpectSame(kDnnHeuristicsFallback, CUDNN_HEUR_MODE_FALLBACK);
  ExpectSame(kDnnHeuristicsBest, CUDNN_HEUR_MODE_A);
  ExpectSame(kDnnTensorCores, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  ExpectSame(kDnnRoundsInputs, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  ExpectSame(kDnnRoundsSums, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  ExpectSame(kDnnNondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  EXPECT_LE(CUDNN_NUMERICAL_NOTE_TYPE_COUNT, kDnnMaxNotes);
}

TEST(AbiCheck, NumbersOfCudnnsGraphs) {
  ExpectSame(kDnnPointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  ExpectSame(kDnnPointwiseOperation,
             CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  ExpectSame(kDnnMatmul, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  ExpectSame(kDnnMatmulOperation, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  ExpectSame(kDnnReduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  ExpectSame(kDnnReductionOperation,
             CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  ExpectSame(kDnnTypeBoolean, CUDNN_TYPE_BOOLEAN);
  ExpectSame(kDnnTypePointwiseMode, CUDNN_TYPE_POINTWISE_MODE);
  ExpectSame(kDnnTypeReductionMode, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
  ExpectSame(kDnnPointwiseMode, CUDNN_ATTR_POINTWISE_MODE);
  ExpectSame(kDnnPointwiseComputeType, CUDNN_ATTR_POINTWISE_MATH_PREC);
  ExpectSame(kDnnPointwiseAxis, CUDNN_ATTR_POINTWISE_AXIS);
  ExpectSame(kDnnPointwiseDescriptor,
             CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  ExpectSame(kDnnPointwiseDescriptor + 1, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  ExpectSame(kDnnPointwiseDescriptor + 2, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  ExpectSame(kDnnPointwiseDescriptor + 3, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  ExpectSame(kDnnPointwiseSelector, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
  ExpectSame(kDnnTensorIsVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  ExpectSame(kDnnTensorIsByValue, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  ExpectSame(kDnnMatmulComputeType, CUDNN_ATTR_MATMUL_COMP_TYPE);
  ExpectSame(kDnnMatmulA, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
  ExpectSame(kDnnMatmulA + 1, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
  ExpectSame(kDnnMatmulA + 2, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  ExpectSame(kDnnMatmulA + 3, CUDNN_ATTR_OPERATION_MATMUL_DESC);
  ExpectSame(kDnnReductionMode, CUDNN_ATTR_REDUCTION_OPERATOR);
  ExpectSame(kDnnReductionComputeType, CUDNN_ATTR_REDUCTION_COMP_TYPE);
  ExpectSame(kDnnReductionX, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
  ExpectSame(kDnnReductionX + 1, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
  ExpectSame(kDnnReductionX + 2, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
  ExpectSame(kDnnAdd, CUDNN_POINTWISE_ADD);
  ExpectSame(kDnnMultiply, CUDNN_POINTWISE_MUL);
  ExpectSame(kDnnDivide, CUDNN_POINTWISE_DIV);
  ExpectSame(kDnnSubtract, CUDNN_POINTWISE_SUB);
  ExpectSame(kDnnExp, CUDNN_POINTWISE_EXP);
  ExpectSame(kDnnLog, CUDNN_POINTWISE_LOG);
  ExpectSame(kDnnGreaterOrEqual, CUDNN_POINTWISE_CMP_GE);
  ExpectSame(kDnnIndex, CUDNN_POINTWISE_GEN_INDEX);
  ExpectSame(kDnnSelect, CUDNN_POINTWISE_BINARY_SELECT);
  ExpectSame(kDnnSum, CUDNN_REDUCE_TENSOR_ADD);
  ExpectSame(kDnnMaximum, CUDNN_REDUCE_TENSOR_MAX);
}

TEST(AbiCheck, NumbersOfNccl) {
  ExpectSame(kNcclSuccess, ncclSuccess);
  ExpectSame(kNcclInProgress, ncclInProgress);
  ExpectSame(kNcclI8, ncclInt8);
  ExpectSame(kNcclU8, ncclUint8);
  ExpectSame(kNcclI32, ncclInt32);
  ExpectSame(kNcclU32, ncclUint32);
  ExpectSame(kNcclI64, ncclInt64);
  ExpectSame(kNcclU64, ncclUint64);
  ExpectSame(kNcclF16, ncclFloat16);
  ExpectSame(kNcclF32, ncclFloat32);
  ExpectSame(kNcclF64, ncclFloat64);
  ExpectSame(kNcclBF16, ncclBfloat16);
  ExpectSame(kNcclSum, ncclSum);
  ExpectSame(kNcclProd, ncclProd);
  ExpectSame(kNcclMax, ncclMax);
  ExpectSame(kNcclMin, ncclMin);
  ExpectSame(sizeof(NcclId), sizeof(ncclUniqueId));
  const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ExpectSame(NcclConfig().magic, config.magic);
  ExpectSame(NcclConfig().blocking, config.blocking);
  ExpectSame(NcclConfig().version, NCCL_VERSION(2, 14, 0));
  ExpectSame(offsetof(NcclConfig, bytes), offsetof(ncclConfig_t, size));
  ExpectSame(offsetof(NcclConfig, magic), offsetof(ncclConfig_t, magic));
  ExpectSame(offsetof(NcclConfig, version), offsetof(ncclConfig_t, version));
  ExpectSame(offsetof(NcclConfig, blocking), offsetof(ncclConfig_t, blocking));
  EXPECT_LE(sizeof(NcclConfig), sizeof(ncclConfig_t));
}

#if __has_include(<cusparseLt.h>)

#define PARTITA_SAME(member, symbol, parameters)                        \
  static_assert(                                                        \
      SameFunction<SparseStatus parameters, decltype(::symbol)>::value, \
      #symbol);
PARTITA_CUDA_SPARSE_FUNCTIONS(PARTITA_SAME)
#undef PARTITA_SAME

TEST(AbiCheck, NumbersOfCuSparseLt) {
  ExpectSame(kSparseSuccess, CUSPARSE_STATUS_SUCCESS);
  ExpectSame(kSparseNotInitialized, CUSPARSE_STATUS_NOT_INITIALIZED);
  ExpectSame(kSparseInvalidValue, CUSPARSE_STATUS_INVALID_VALUE);
  ExpectSame(kSparseArchMismatch, CUSPARSE_STATUS_ARCH_MISMATCH);
  ExpectSame(kSparseNotSupported, CUSPARSE_STATUS_NOT_SUPPORTED);
  ExpectSame(kSparseAsIs, CUSPARSE_OPERATION_NON_TRANSPOSE);
  ExpectSame(kSparseTransposed, CUSPARSE_OPERATION_TRANSPOSE);
  ExpectSame(kSparseColumnMajor, CUSPARSE_ORDER_COL);
  ExpectSame(kSparseComputeF32, CUSPARSE_COMPUTE_32F);
  ExpectSame(kSparseTwoOfFour, CUSPARSELT_SPARSITY_50_PERCENT);
  ExpectSame(kSparseDefaultAlgorithm, CUSPARSELT_MATMUL_ALG_DEFAULT);
  ExpectSame(kSparseRelu, CUSPARSELT_MATMUL_ACTIVATION_RELU);
  ExpectSame(kSparseBiasPointer, CUSPARSELT_MATMUL_BIAS_POINTER);
  ExpectSame(kSparseMajor, MAJOR_VERSION);
  ExpectSame(kSparseMinor, MINOR_VERSION);
  EXPECT_GE(sizeof(SparseObject), sizeof(cusparseLtMatmulPlan_t));
  EXPECT_GE(sizeof(SparseObject), sizeof(cusparseLtHandle_t));
}

#endif

}  // namespace
}  // namespace partita::cuda

#endif
