// The functions of NVIDIA's driver library that we call, from its documentation
// (CUDA driver API, 11.4 to 13): names, parameters and constants, under our own
// names. abi_check.cc compares them with the real headers if CUDA is installed.
#ifndef PARTITA_RUNTIME_CUDA_DRIVER_API_H_
#define PARTITA_RUNTIME_CUDA_DRIVER_API_H_

#include <cstddef>
#include <cstdint>

namespace partita::cuda {

using CuDevice = int;
using CuPointer = unsigned long long;  // an address in device memory
using CuContext = void*;
using CuStream = void*;
using CuEvent = void*;
using CuModule = void*;
using CuFunction = void*;
using CuGraph = void*;
using CuGraphExec = void*;

// Result codes.
enum CuResult : int {
  kCuSuccess = 0,
  kCuInvalidValue = 1,
  kCuOutOfMemory = 2,
  kCuDeinitialized = 4,
  kCuNoDevice = 100,
  kCuInvalidDevice = 101,
  kCuInvalidImage = 200,
  kCuNoBinaryForGpu = 209,
  kCuEccUncorrectable = 214,
  kCuInvalidPtx = 218,
  kCuJitCompilerNotFound = 221,
  kCuUnsupportedPtxVersion = 222,
  kCuNotFound = 500,
  kCuNotReady = 600,
  kCuIllegalAddress = 700,
  kCuLaunchOutOfResources = 701,
  kCuLaunchTimeout = 702,
  kCuMisalignedAddress = 716,
  kCuLaunchFailed = 719,
  kCuSystemDriverMismatch = 803,
  kCuCaptureUnsupported = 900,
  kCuCaptureInvalidated = 901,
  kCuCaptureUnjoined = 904,
  kCuCaptureIsolation = 905,
};

// Attributes of a device.
enum CuDeviceAttribute : int {
  kCuMultiprocessors = 16,
  kCuCapabilityMajor = 75,
  kCuCapabilityMinor = 76,
  kCuMaxSharedBytesOptIn = 97,
};

// Attributes of a function.
enum CuFunctionAttribute : int { kCuMaxDynamicSharedBytes = 8 };

// A tensor map in the driver's format. CUDA 12 aligns it to 64 bytes, CUDA 13
// to 128.
struct alignas(128) CuTensorMap {
  uint64_t opaque[16];
};

// Element types of a tensor map.
enum CuTensorMapType : int {
  kCuMapU8 = 0,
  kCuMapU16 = 1,
  kCuMapU32 = 2,
  kCuMapI32 = 3,
  kCuMapU64 = 4,
  kCuMapI64 = 5,
  kCuMapF16 = 6,
  kCuMapF32 = 7,
  kCuMapF64 = 8,
  kCuMapBF16 = 9,
};
constexpr int kCuMapNoInterleave = 0;
constexpr int kCuMapNoSwizzle = 0;
constexpr int kCuMapSwizzle128 = 3;
constexpr int kCuMapPromote128 = 2;  // bytes that L2 fetches from memory
constexpr int kCuMapFillZeros = 0;

// Options of loading a module. Values are passed as pointers.
enum CuJitOption : int {
  kCuJitErrorLog = 5,       // char*
  kCuJitErrorLogBytes = 6,  // a size, cast to a pointer
};

constexpr unsigned kCuStreamNonBlocking = 1;
constexpr unsigned kCuEventNoTiming = 2;
// During capture: each replay records the event for the host.
constexpr unsigned kCuEventRecordExternal = 1;
// Capture mode that ignores calls of other threads.
constexpr int kCuCaptureThreadLocal = 1;

struct CuUuid {
  unsigned char bytes[16];
};

// X(member, symbol in the library, parameters): all return CuResult.
#define PARTITA_CUDA_DRIVER_FUNCTIONS(X)                                       \
  X(Init, cuInit, (unsigned flags))                                            \
  X(DriverVersion, cuDriverGetVersion, (int* version))                         \
  X(ErrorName, cuGetErrorName, (CuResult error, const char** text))            \
  X(ErrorText, cuGetErrorString, (CuResult error, const char** text))          \
  X(DeviceCount, cuDeviceGetCount, (int* count))                               \
  X(DeviceAt, cuDeviceGet, (CuDevice * device, int ordinal))                   \
  X(DeviceName, cuDeviceGetName, (char* name, int bytes, CuDevice device))     \
  X(DeviceMemory, cuDeviceTotalMem_v2, (size_t* bytes, CuDevice device))       \
  X(DeviceAttribute, cuDeviceGetAttribute,                                     \
    (int* value, CuDeviceAttribute attribute, CuDevice device))                \
  X(RetainContext, cuDevicePrimaryCtxRetain,                                   \
    (CuContext * context, CuDevice device))                                    \
  X(ReleaseContext, cuDevicePrimaryCtxRelease_v2, (CuDevice device))           \
  X(SetContext, cuCtxSetCurrent, (CuContext context))                          \
  X(SynchronizeAll, cuCtxSynchronize, ())                                      \
  X(MemoryInfo, cuMemGetInfo_v2, (size_t* available, size_t* total))           \
  X(Allocate, cuMemAlloc_v2, (CuPointer * memory, size_t bytes))               \
  X(Free, cuMemFree_v2, (CuPointer memory))                                    \
  X(AllocateHost, cuMemAllocHost_v2, (void** memory, size_t bytes))            \
  X(FreeHost, cuMemFreeHost, (void* memory))                                   \
  X(CopyToDevice, cuMemcpyHtoDAsync_v2,                                        \
    (CuPointer target, const void* source, size_t bytes, CuStream stream))     \
  X(CopyToHost, cuMemcpyDtoHAsync_v2,                                          \
    (void* target, CuPointer source, size_t bytes, CuStream stream))           \
  X(Copy, cuMemcpyDtoDAsync_v2,                                                \
    (CuPointer target, CuPointer source, size_t bytes, CuStream stream))       \
  X(Fill, cuMemsetD8Async,                                                     \
    (CuPointer target, unsigned char value, size_t bytes, CuStream stream))    \
  X(AskStream, cuStreamQuery, (CuStream stream))                               \
  X(CreateStream, cuStreamCreate, (CuStream * stream, unsigned flags))         \
  X(DestroyStream, cuStreamDestroy_v2, (CuStream stream))                      \
  X(SynchronizeStream, cuStreamSynchronize, (CuStream stream))                 \
  X(WaitEvent, cuStreamWaitEvent,                                              \
    (CuStream stream, CuEvent event, unsigned flags))                          \
  X(CreateEvent, cuEventCreate, (CuEvent * event, unsigned flags))             \
  X(DestroyEvent, cuEventDestroy_v2, (CuEvent event))                          \
  X(RecordEvent, cuEventRecord, (CuEvent event, CuStream stream))              \
  X(RecordEventWithFlags, cuEventRecordWithFlags,                              \
    (CuEvent event, CuStream stream, unsigned flags))                          \
  X(SynchronizeEvent, cuEventSynchronize, (CuEvent event))                     \
  X(AskEvent, cuEventQuery, (CuEvent event))                                   \
  X(Elapsed, cuEventElapsedTime,                                               \
    (float* milliseconds, CuEvent begin, CuEvent end))                         \
  X(LoadModule, cuModuleLoadDataEx,                                            \
    (CuModule * module, const void* image, unsigned options,                   \
     CuJitOption* names, void** values))                                       \
  X(UnloadModule, cuModuleUnload, (CuModule module))                           \
  X(FindFunction, cuModuleGetFunction,                                         \
    (CuFunction * function, CuModule module, const char* name))                \
  X(SetFunctionAttribute, cuFuncSetAttribute,                                  \
    (CuFunction function, CuFunctionAttribute attribute, int value))           \
  X(Launch, cuLaunchKernel,                                                    \
    (CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,   \
     unsigned block_x, unsigned block_y, unsigned block_z,                     \
     unsigned shared_bytes, CuStream stream, void** parameters, void** extra)) \
  X(IsCapturing, cuStreamIsCapturing, (CuStream stream, int* capturing))       \
  X(BeginCapture, cuStreamBeginCapture_v2, (CuStream stream, int mode))        \
  X(EndCapture, cuStreamEndCapture, (CuStream stream, CuGraph * graph))        \
  X(InstantiateGraph, cuGraphInstantiateWithFlags,                             \
    (CuGraphExec * graph_exec, CuGraph graph, unsigned long long flags))       \
  X(LaunchGraph, cuGraphLaunch, (CuGraphExec graph_exec, CuStream stream))     \
  X(DestroyGraphExec, cuGraphExecDestroy, (CuGraphExec graph_exec))            \
  X(DestroyGraph, cuGraphDestroy, (CuGraph graph))

// Functions newer than the required driver. Null if the driver lacks them.
#define PARTITA_CUDA_DRIVER_OPTIONAL_FUNCTIONS(X)                           \
  X(DeviceUuid, cuDeviceGetUuid_v2, (CuUuid * uuid, CuDevice device))       \
  X(LoadFunction, cuFuncLoad, (CuFunction function))                        \
  X(ParameterInfo, cuFuncGetParamInfo,                                      \
    (CuFunction function, size_t index, size_t* offset, size_t* bytes))     \
  X(EncodeTensorMap, cuTensorMapEncodeTiled,                                \
    (CuTensorMap * map, CuTensorMapType type, uint32_t rank, void* address, \
     const uint64_t* sizes, const uint64_t* strides, const uint32_t* box,   \
     const uint32_t* steps, int interleave, int swizzle, int promotion,     \
     int fill))

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_DRIVER_API_H_
