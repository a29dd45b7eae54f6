// The functions of cuDNN that we call, from its documentation (graph API in C,
// cuDNN 9): names, parameters and constants, under our own names. abi_check.cc
// compares them with the real header if cuDNN is installed.
#ifndef PARTITA_RUNTIME_CUDA_DNN_API_H_
#define PARTITA_RUNTIME_CUDA_DNN_API_H_

#include <cstddef>
#include <cstdint>

namespace partita::cuda {

using DnnHandle = void*;
using DnnObject = void*;  // a descriptor of any kind
using DnnStream = void*;

// Status codes. The thousands digit gives the kind of failure. Some codes of
// kind kDnnNotSupported mean a broken installation instead.
enum DnnStatus : int {
  kDnnSuccess = 0,
  kDnnBadParameter = 2000,
  kDnnNotSupported = 3000,
  kDnnIncompatibleDriver = 3005,
  kDnnIncompatibleRuntime = 3006,
  kDnnPrerequisiteMissing = 3008,
  kDnnSublibraryUnavailable = 3009,
};
constexpr DnnStatus KindOf(DnnStatus status) {
  return static_cast<DnnStatus>(status / 1000 * 1000);
}

// Kinds of descriptors.
enum DnnKind : int {
  kDnnPointwise = 0,
  kDnnConvolution = 1,
  kDnnEngine = 2,
  kDnnEngineConfig = 3,
  kDnnHeuristics = 4,
  kDnnPlan = 5,
  kDnnForward = 10,
  kDnnWeightGradient = 11,
  kDnnInputGradient = 12,
  kDnnPointwiseOperation = 13,
  kDnnGraph = 15,
  kDnnPack = 16,
  kDnnTensor = 17,
  kDnnMatmul = 18,
  kDnnMatmulOperation = 19,
  kDnnReduction = 21,
  kDnnReductionOperation = 22,
  kDnnGpu = 38,  // a GPU's properties; since 9.11 in place of the handle
};

// Types of attributes.
enum DnnType : int {
  kDnnTypeHandle = 0,
  kDnnTypeDataType = 1,
  kDnnTypeBoolean = 2,
  kDnnTypeInt64 = 3,
  kDnnTypeFloat = 4,
  kDnnTypePointer = 6,
  kDnnTypeConvolutionMode = 7,
  kDnnTypeHeuristicsMode = 8,
  kDnnTypeNote = 11,
  kDnnTypePointwiseMode = 14,
  kDnnTypeObject = 15,
  kDnnTypeReductionMode = 18,
  kDnnTypeChar = 24,
};

// Attributes. The attributes of an operation follow one another: alpha (factor
// of the result), beta (factor of the previous content), convolution, and three
// tensors.
enum DnnAttribute : int {
  kDnnPointwiseMode = 0,
  kDnnPointwiseComputeType = 1,
  kDnnPointwiseAxis = 9,
  kDnnComputeType = 100,
  kDnnMode = 101,
  kDnnDilations = 102,
  kDnnStrides = 103,
  kDnnPaddingAfter = 104,
  kDnnPaddingBefore = 105,
  kDnnSpatialDims = 106,
  kDnnHeuristicsMode = 200,
  kDnnHeuristicsGraph = 201,
  kDnnHeuristicsResults = 202,
  kDnnHeuristicsGpu = 204,
  kDnnConfigEngine = 300,
  kDnnPlanHandle = 400,
  kDnnPlanConfig = 401,
  kDnnPlanWorkspaceBytes = 402,
  kDnnPlanGpu = 407,
  kDnnForwardAlpha = 700,         // ... beta, convolution, w, x, y
  kDnnInputGradientAlpha = 706,   // ... beta, convolution, w, dx, dy
  kDnnWeightGradientAlpha = 712,  // ... beta, convolution, dw, x, dy
  kDnnPointwiseDescriptor = 750,  // ... x, b, y
  kDnnPointwiseSelector = 758,
  kDnnGraphHandle = 800,
  kDnnGraphOperations = 801,
  kDnnTensorAlignment = 900,
  kDnnTensorType = 901,
  kDnnTensorDims = 902,
  kDnnTensorStrides = 903,
  kDnnTensorId = 906,
  kDnnTensorIsVirtual = 907,
  kDnnTensorIsByValue = 908,
  kDnnPackIds = 1000,
  kDnnPackPointers = 1001,
  kDnnPackWorkspace = 1003,
  kDnnEngineIndex = 1301,
  kDnnEngineNotes = 1303,
  kDnnMatmulComputeType = 1500,
  kDnnMatmulA = 1520,  // ... b, c, descriptor
  kDnnReductionMode = 1600,
  kDnnReductionComputeType = 1601,
  kDnnReductionX = 1610,  // ... y, descriptor
  kDnnGpuJson = 2702,
};

enum DnnDataType : int {
  kDnnF32 = 0,
  kDnnF16 = 2,
  kDnnI32 = 4,
  kDnnBF16 = 9,
  kDnnBoolean = 11,
};

// Pointwise operations y = mode(x, b). kDnnIndex gives the index along the
// axis. kDnnSelect gives x where the selector is true, else b.
enum DnnPointwiseMode : int {
  kDnnAdd = 0,
  kDnnMultiply = 1,
  kDnnDivide = 6,
  kDnnSubtract = 9,
  kDnnExp = 13,
  kDnnLog = 15,
  kDnnGreaterOrEqual = 303,
  kDnnIndex = 501,
  kDnnSelect = 601,
};

// Reductions over the dimensions in which y has size 1.
enum DnnReductionMode : int { kDnnSum = 0, kDnnMaximum = 3 };

constexpr int kDnnCrossCorrelation = 1;  // a convolution mode
constexpr int kDnnHeuristicsFallback = 2;
constexpr int kDnnHeuristicsBest = 3;

// Numerical properties of an engine.
enum DnnNote : int {
  kDnnTensorCores = 0,
  kDnnRoundsInputs = 1,
  kDnnRoundsSums = 2,
  kDnnNondeterministic = 4,
};
constexpr int kDnnMaxNotes = 16;

// X(member, symbol in the library, parameters): all return DnnStatus.
#define PARTITA_CUDA_DNN_FUNCTIONS(X)                                       \
  X(Create, cudnnCreate, (DnnHandle * handle))                              \
  X(Destroy, cudnnDestroy, (DnnHandle handle))                              \
  X(SetStream, cudnnSetStream, (DnnHandle handle, DnnStream stream))        \
  X(CreateObject, cudnnBackendCreateDescriptor,                             \
    (DnnKind kind, DnnObject * object))                                     \
  X(DestroyObject, cudnnBackendDestroyDescriptor, (DnnObject object))       \
  X(SetAttribute, cudnnBackendSetAttribute,                                 \
    (DnnObject object, DnnAttribute attribute, DnnType type, int64_t count, \
     const void* values))                                                   \
  X(Finalize, cudnnBackendFinalize, (DnnObject object))                     \
  X(GetAttribute, cudnnBackendGetAttribute,                                 \
    (DnnObject object, DnnAttribute attribute, DnnType type, int64_t most,  \
     int64_t* count, void* values))                                         \
  X(Execute, cudnnBackendExecute,                                           \
    (DnnHandle handle, DnnObject plan, DnnObject pack))

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_DNN_API_H_
