// Stands for NVIDIA's driver where cuDNN prepares a plan without a GPU: it
// loads code that never runs. cuDNN and NVRTC look these functions up.
static int nothing;

#define SUCCEEDS(name) \
  int name(void);      \
  int name(void) { return 0; }
// Functions that return an object in their first parameter.
#define GIVES(name)        \
  int name(void** given);  \
  int name(void** given) { \
    *given = &nothing;     \
    return 0;              \
  }
// Functions that return a number in their first parameter.
#define TELLS(name, number) \
  int name(int* given);     \
  int name(int* given) {    \
    *given = number;        \
    return 0;               \
  }
#define REFUSES(name) \
  int name(void);     \
  int name(void) { return 500; }

SUCCEEDS(cuInit)
TELLS(cuDriverGetVersion, 13000)
SUCCEEDS(cuGetErrorString)
SUCCEEDS(cuGetErrorName)
REFUSES(cuGetExportTable)
REFUSES(cuGetProcAddress)
REFUSES(cuGetProcAddress_v2)
GIVES(cuLibraryLoadData)
GIVES(cuLibraryLoadFromFile)
GIVES(cuLibraryGetKernel)
SUCCEEDS(cuLibraryUnload)
SUCCEEDS(cuKernelSetAttribute)
TELLS(cuKernelGetAttribute, 0)
GIVES(cuModuleLoadData)
GIVES(cuModuleLoadDataEx)
GIVES(cuModuleLoadFatBinary)
GIVES(cuModuleGetFunction)
SUCCEEDS(cuModuleGetGlobal_v2)
SUCCEEDS(cuModuleUnload)
SUCCEEDS(cuFuncSetAttribute)
TELLS(cuFuncGetAttribute, 0)
SUCCEEDS(cuCtxPushCurrent)
SUCCEEDS(cuCtxPopCurrent)
GIVES(cuCtxGetCurrent)
TELLS(cuCtxGetDevice, 0)
SUCCEEDS(cuCtxGetLimit)
TELLS(cuDeviceGet, 0)
TELLS(cuDeviceGetCount, 1)
TELLS(cuDeviceGetAttribute, 0)
GIVES(cuDevicePrimaryCtxRetain)
SUCCEEDS(cuDevicePrimaryCtxRelease)
SUCCEEDS(cuDevicePrimaryCtxReset)
SUCCEEDS(cuLaunchKernel)
SUCCEEDS(cuLaunchKernelEx)
SUCCEEDS(cuLaunchCooperativeKernel)
SUCCEEDS(cuStreamGetCtx)
SUCCEEDS(cuStreamSynchronize)
SUCCEEDS(cuOccupancyMaxPotentialClusterSize)
SUCCEEDS(cuOccupancyMaxActiveBlocksPerMultiprocessor)
SUCCEEDS(cuTensorMapEncodeTiled)
SUCCEEDS(cuMemcpyDtoH_v2)
SUCCEEDS(cuLinkCreate)
SUCCEEDS(cuLinkCreate_v2)
SUCCEEDS(cuLinkAddData)
SUCCEEDS(cuLinkAddData_v2)
SUCCEEDS(cuLinkAddFile_v2)
SUCCEEDS(cuLinkComplete)
SUCCEEDS(cuLinkDestroy)
