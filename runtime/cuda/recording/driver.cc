// The driver's functions over host memory. Each call is logged. There are two
// GPUs of capability 9.0.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>

#include "runtime/cuda/recording/ptx.h"
#include "runtime/cuda/recording/queue.h"
#include "runtime/cuda/recording/recording.h"
#include "runtime/cuda/recording/touched_kernels.h"

namespace partita::cuda::recording {
namespace {

constexpr int kGpus = 2;
constexpr int kCapability = 90;
constexpr size_t kTotalBytes = size_t{1} << 30;
constexpr std::align_val_t kPage{4096};  // alignment of pinned memory

struct Function {
  std::string name;
  std::vector<size_t> parameters;
  int shared_bytes = 48 << 10;  // limit of a launch
};
struct Module {
  std::map<std::string, Function> functions;
};

Stream& Of(CuStream stream) { return *static_cast<Stream*>(stream); }
Event& OfEvent(CuEvent event) { return *static_cast<Event*>(event); }

std::string Text(size_t number) { return std::to_string(number); }

CuResult Copy(const char* symbol, void* target, const void* source,
              size_t bytes, CuStream stream) {
  Machine& machine = Machine::Get();
  const Lock lock(machine.mutex);
  const CuResult result = machine.Enter(symbol, Text(bytes));
  if (result != kCuSuccess) return result;
  Step step;
  step.name = symbol;
  step.work = [=] {
    Machine::Get().Touch(source, bytes, /*writes=*/false);
    Machine::Get().Touch(target, bytes, /*writes=*/true);
    std::memmove(target, source, bytes);
  };
  machine.Put(Of(stream), std::move(step));
  return kCuSuccess;
}

#define PARTITA_RUN(symbol, Args, Body)                       \
  void Host_##symbol(void** parameters, const Place& place) { \
    const Int block = place.block_at[0];                      \
    Body(*static_cast<const Args*>(parameters[0]),            \
         block * place.block[0] + place.thread_at[0]);        \
  }
PARTITA_OWN_KERNELS(PARTITA_RUN)
#undef PARTITA_RUN

void RegisterOwnKernels() {
#define PARTITA_REGISTER(symbol, Args, Body) \
  Machine::Get().Register(#symbol, &Host_##symbol);
  PARTITA_OWN_KERNELS(PARTITA_REGISTER)
#undef PARTITA_REGISTER
}

// A launch with a copy of its parameters. Without a function it accesses what
// `reaches` lists.
struct Launched {
  HostKernel kernel;
  std::vector<Reach> reaches;
  std::vector<std::vector<char>> values;
  Place place;
  size_t shared_bytes;

  void Run() {
    if (kernel == nullptr) return Touch();
    std::vector<void*> parameters;
    for (std::vector<char>& value : values) parameters.push_back(value.data());
    std::vector<char> shared;
    for (Place at = place; NextBlock(at);) {
      shared.assign(shared_bytes + 1, 0);
      at.shared = shared.data();
      for (unsigned z = 0; z < at.block[2]; ++z)
        for (unsigned y = 0; y < at.block[1]; ++y)
          for (unsigned x = 0; x < at.block[0]; ++x) {
            at.thread_at[0] = x, at.thread_at[1] = y, at.thread_at[2] = z;
            kernel(parameters.data(), at);
          }
    }
  }

 private:
  void Touch() const {
    for (const Reach& reach : reaches) {
      void* memory = nullptr;
      std::memcpy(&memory, values[reach.parameter].data() + reach.offset,
                  sizeof(memory));
      Machine::Get().Touch(memory, reach.bytes, reach.writes);
    }
  }
  // Advances to the next block. Before the first block x is -1.
  static bool NextBlock(Place& at) {
    for (int d = 0; d < 3; ++d) {
      if (++at.block_at[d] < at.grid[d]) return true;
      at.block_at[d] = 0;
    }
    return false;
  }
};

}  // namespace
}  // namespace partita::cuda::recording

using namespace partita::cuda;
using namespace partita::cuda::recording;

#pragma GCC visibility push(default)
extern "C" {

CuResult cuInit(unsigned) {
  const char* const loading = std::getenv("CUDA_MODULE_LOADING");
  PARTITA_ENTER(loading == nullptr ? "" : loading);
  static const bool registered = (RegisterOwnKernels(), true);
  static_cast<void>(registered);
  return kCuSuccess;
}
CuResult cuDriverGetVersion(int* version) {
  *version = 12040;
  return kCuSuccess;
}
CuResult cuGetErrorName(CuResult error, const char** text) {
  static const std::map<int, const char*> names = {
      {kCuInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {kCuOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {kCuInvalidPtx, "CUDA_ERROR_INVALID_PTX"},
      {kCuNoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
      {kCuNotFound, "CUDA_ERROR_NOT_FOUND"},
      {kCuIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
  const auto found = names.find(error);
  *text = found == names.end() ? nullptr : found->second;
  return found == names.end() ? kCuInvalidValue : kCuSuccess;
}
CuResult cuGetErrorString(CuResult, const char** text) {
  *text = "as recorded";
  return kCuSuccess;
}
CuResult cuDeviceGetCount(int* count) {
  PARTITA_ENTER();
  *count = kGpus;
  return kCuSuccess;
}
CuResult cuDeviceGet(CuDevice* device, int ordinal) {
  PARTITA_ENTER(Text(static_cast<size_t>(ordinal)));
  *device = ordinal;
  return ordinal < kGpus ? kCuSuccess : kCuInvalidDevice;
}
CuResult cuDeviceGetName(char* name, int bytes, CuDevice) {
  std::strncpy(name, "Recording GPU", static_cast<size_t>(bytes));
  return kCuSuccess;
}
CuResult cuDeviceGetUuid_v2(CuUuid* uuid, CuDevice device) {
  PARTITA_ENTER();
  std::memset(uuid->bytes, 0, sizeof(uuid->bytes));
  uuid->bytes[15] = static_cast<unsigned char>(0xa0 + device);
  return kCuSuccess;
}
CuResult cuDeviceTotalMem_v2(size_t* bytes, CuDevice) {
  *bytes = kTotalBytes;
  return kCuSuccess;
}
CuResult cuDeviceGetAttribute(int* value, CuDeviceAttribute attribute,
                              CuDevice) {
  *value = attribute == kCuCapabilityMajor       ? kCapability / 10
           : attribute == kCuCapabilityMinor     ? kCapability % 10
           : attribute == kCuMaxSharedBytesOptIn ? 227 << 10
                                                 : 132;
  return kCuSuccess;
}
CuResult cuDevicePrimaryCtxRetain(CuContext* context, CuDevice device) {
  PARTITA_ENTER(Text(static_cast<size_t>(device)));
  static int contexts[kGpus];
  *context = &contexts[device];
  return kCuSuccess;
}
CuResult cuDevicePrimaryCtxRelease_v2(CuDevice device) {
  PARTITA_ENTER(Text(static_cast<size_t>(device)));
  return kCuSuccess;
}
CuResult cuCtxSetCurrent(CuContext) { return kCuSuccess; }
CuResult cuCtxSynchronize() {
  {
    PARTITA_ENTER();
  }
  WaitUntil([](Machine& machine) { return machine.RunAllOfRank(); });
  return kCuSuccess;
}
CuResult cuMemGetInfo_v2(size_t* available, size_t* total) {
  *total = kTotalBytes;
  *available = kTotalBytes - Machine::Get().used_bytes();
  return kCuSuccess;
}
CuResult cuMemAlloc_v2(CuPointer* memory, size_t bytes) {
  PARTITA_ENTER(Text(bytes));
  if (bytes == 0) return kCuInvalidValue;
  void* const found = machine.Allocate(bytes);
  *memory = reinterpret_cast<uintptr_t>(found);
  return found == nullptr ? kCuOutOfMemory : kCuSuccess;
}
CuResult cuMemFree_v2(CuPointer memory) {
  PARTITA_ENTER();
  return machine.Free(reinterpret_cast<void*>(memory)) ? kCuSuccess
                                                       : kCuInvalidValue;
}
CuResult cuMemAllocHost_v2(void** memory, size_t bytes) {
  PARTITA_ENTER(Text(bytes));
  *memory = ::operator new(bytes, kPage);
  machine.races().Forget(*memory, bytes);
  return kCuSuccess;
}
CuResult cuMemFreeHost(void* memory) {
  PARTITA_ENTER();
  ::operator delete(memory, kPage);
  return kCuSuccess;
}
CuResult cuMemcpyHtoDAsync_v2(CuPointer target, const void* source,
                              size_t bytes, CuStream stream) {
  return Copy(__func__, reinterpret_cast<void*>(target), source, bytes, stream);
}
CuResult cuMemcpyDtoHAsync_v2(void* target, CuPointer source, size_t bytes,
                              CuStream stream) {
  return Copy(__func__, target, reinterpret_cast<void*>(source), bytes, stream);
}
CuResult cuMemcpyDtoDAsync_v2(CuPointer target, CuPointer source, size_t bytes,
                              CuStream stream) {
  return Copy(__func__, reinterpret_cast<void*>(target),
              reinterpret_cast<void*>(source), bytes, stream);
}
CuResult cuMemsetD8Async(CuPointer target, unsigned char value, size_t bytes,
                         CuStream stream) {
  PARTITA_ENTER(Text(bytes));
  Step step;
  step.name = __func__;
  step.work = [=] {
    Machine::Get().Touch(reinterpret_cast<void*>(target), bytes,
                         /*writes=*/true);
    std::memset(reinterpret_cast<void*>(target), value, bytes);
  };
  machine.Put(Of(stream), std::move(step));
  return kCuSuccess;
}
// Every 64th query runs all streams, so polling makes progress.
CuResult cuStreamQuery(CuStream stream) {
  {
    PARTITA_ENTER();
    Stream& asked = Of(stream);
    if (asked.captured != nullptr) return kCuCaptureUnsupported;
    if (asked.steps.empty()) {
      machine.Waited(asked.clock);
      return kCuSuccess;
    }
    static int asks = 0;
    if (machine.RunAll(asked)) return kCuNotReady;
    if (++asks % 64 == 0) machine.RunAll();
  }
  std::this_thread::yield();
  return kCuNotReady;
}
CuResult cuStreamCreate(CuStream* stream, unsigned) {
  PARTITA_ENTER();
  *stream = machine.AddStream();
  return kCuSuccess;
}
CuResult cuStreamDestroy_v2(CuStream stream) {
  PARTITA_ENTER();
  machine.RemoveStream(&Of(stream));
  return kCuSuccess;
}
CuResult cuStreamSynchronize(CuStream stream) {
  {
    PARTITA_ENTER();
    if (Of(stream).captured != nullptr) return kCuCaptureUnsupported;
  }
  WaitUntil([&](Machine& machine) {
    if (!machine.RunAll(Of(stream))) return false;
    machine.Waited(Of(stream).clock);
    return true;
  });
  return kCuSuccess;
}
CuResult cuEventCreate(CuEvent* event, unsigned) {
  PARTITA_ENTER();
  *event = new Event();
  return kCuSuccess;
}
CuResult cuEventDestroy_v2(CuEvent event) {
  PARTITA_ENTER();
  delete &OfEvent(event);
  return kCuSuccess;
}
CuResult cuEventElapsedTime(float* milliseconds, CuEvent, CuEvent) {
  PARTITA_ENTER();
  // Returns the time that tests assign to the work run since the last call.
  *milliseconds = machine.TakeTime();
  return kCuSuccess;
}
CuResult cuEventSynchronize(CuEvent event) {
  {
    PARTITA_ENTER();
    if (OfEvent(event).mark == nullptr) return kCuSuccess;
  }
  WaitUntil([&](Machine& machine) {
    if (!machine.RunUntil(*OfEvent(event).mark)) return false;
    machine.Waited(OfEvent(event).mark->clock);
    return true;
  });
  return kCuSuccess;
}
CuResult cuEventQuery(CuEvent event) {
  PARTITA_ENTER();
  const auto& mark = OfEvent(event).mark;
  if (mark != nullptr && !mark->reached) {
    // Polling makes progress, like cuStreamQuery.
    static int asks = 0;
    if (++asks % 64 == 0) machine.RunUntil(*mark);
    return kCuNotReady;
  }
  if (mark != nullptr) machine.Waited(mark->clock);
  return kCuSuccess;
}
CuResult cuModuleLoadDataEx(CuModule* module, const void* image,
                            unsigned options, CuJitOption* names,
                            void** values) {
  const auto* text = static_cast<const char*>(image);
  const bool is_cubin = std::strncmp(text, kCubinMagic, 4) == 0;
  PARTITA_ENTER(is_cubin ? "cubin" : "");
  Ptx ptx;
  std::string error;
  // Real machine code, which has no text inside, is for another GPU.
  if (is_cubin && !ParsePtx(text + 4, ptx, error)) return kCuNoBinaryForGpu;
  if (!is_cubin && !ParsePtx(text, ptx, error)) {
    char* log = nullptr;
    size_t bytes = 0;
    for (unsigned i = 0; i < options; ++i) {
      if (names[i] == kCuJitErrorLog) log = static_cast<char*>(values[i]);
      if (names[i] == kCuJitErrorLogBytes)
        bytes = reinterpret_cast<size_t>(values[i]);
    }
    if (bytes > 0) std::strncpy(log, error.c_str(), bytes - 1);
    return kCuInvalidPtx;
  }
  if (ptx.target > kCapability) return kCuNoBinaryForGpu;
  auto* loaded = new Module();
  for (const auto& [name, parameters] : ptx.kernels)
    loaded->functions[name] = {name, parameters};
  *module = loaded;
  return kCuSuccess;
}
CuResult cuModuleUnload(CuModule module) {
  PARTITA_ENTER();
  machine.RunAll();
  delete static_cast<Module*>(module);
  return kCuSuccess;
}
CuResult cuModuleGetFunction(CuFunction* function, CuModule module,
                             const char* name) {
  PARTITA_ENTER(name);
  auto& functions = static_cast<Module*>(module)->functions;
  const auto found = functions.find(name);
  if (found == functions.end()) return kCuNotFound;
  *function = &found->second;
  return kCuSuccess;
}
CuResult cuFuncGetParamInfo(CuFunction function, size_t index, size_t* offset,
                            size_t* bytes) {
  const auto& parameters = static_cast<Function*>(function)->parameters;
  if (index >= parameters.size()) return kCuInvalidValue;
  *offset = 0;
  *bytes = parameters[index];
  return kCuSuccess;
}
// Checks its arguments as strictly as the driver's documentation.
CuResult cuTensorMapEncodeTiled(CuTensorMap* map, CuTensorMapType type,
                                uint32_t rank, void* address,
                                const uint64_t* sizes, const uint64_t* strides,
                                const uint32_t* box, const uint32_t* steps,
                                int interleave, int swizzle, int promotion,
                                int fill) {
  PARTITA_ENTER(Text(rank));
  constexpr size_t kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
  if (reinterpret_cast<uintptr_t>(map) % 64 != 0 || type < 0 ||
      type > kCuMapBF16 || rank < 1 || rank > 5 || address == nullptr ||
      reinterpret_cast<uintptr_t>(address) % 16 != 0 ||
      interleave != kCuMapNoInterleave || fill != kCuMapFillZeros ||
      (swizzle != kCuMapNoSwizzle && swizzle != kCuMapSwizzle128) ||
      promotion < 0 || promotion > 3)
    return kCuInvalidValue;
  RecordedTensorMap recorded = {};
  recorded.address = reinterpret_cast<uintptr_t>(address);
  recorded.rank = static_cast<uint8_t>(rank);
  recorded.type = static_cast<uint8_t>(type);
  recorded.interleave = static_cast<uint8_t>(interleave);
  recorded.swizzle = static_cast<uint8_t>(swizzle);
  recorded.promotion = static_cast<uint8_t>(promotion);
  recorded.fill = static_cast<uint8_t>(fill);
  for (uint32_t d = 0; d < rank; ++d) {
    if (sizes[d] < 1 || sizes[d] > uint64_t{1} << 32 || box[d] < 1 ||
        box[d] > 256 || steps[d] < 1 || steps[d] > 8)
      return kCuInvalidValue;
    recorded.sizes[d] = sizes[d];
    recorded.box[d] = static_cast<uint16_t>(box[d]);
    recorded.steps[d] = static_cast<uint8_t>(steps[d]);
    if (d + 1 == rank) continue;
    if (strides[d] % 16 != 0 || strides[d] >= uint64_t{1} << 40)
      return kCuInvalidValue;
    recorded.strides[d] = strides[d];
  }
  const size_t row = box[0] * kBytes[type];
  if (row % 16 != 0 || (swizzle == kCuMapSwizzle128 && row > 128))
    return kCuInvalidValue;
  std::memcpy(map, &recorded, sizeof(recorded));
  return kCuSuccess;
}
CuResult cuFuncLoad(CuFunction function) {
  PARTITA_ENTER(static_cast<Function*>(function)->name);
  return kCuSuccess;
}
CuResult cuFuncSetAttribute(CuFunction function, CuFunctionAttribute,
                            int value) {
  PARTITA_ENTER(Text(static_cast<size_t>(value)));
  static_cast<Function*>(function)->shared_bytes = value;
  return kCuSuccess;
}
CuResult cuLaunchKernel(CuFunction function, unsigned grid_x, unsigned grid_y,
                        unsigned grid_z, unsigned block_x, unsigned block_y,
                        unsigned block_z, unsigned shared_bytes,
                        CuStream stream, void** parameters, void**) {
  const Function& called = *static_cast<Function*>(function);
  PARTITA_ENTER(called.name + " <" + Text(grid_x) + "," + Text(grid_y) + "," +
                Text(grid_z) + "> <" + Text(block_x) + "," + Text(block_y) +
                "," + Text(block_z) + "> " + Text(shared_bytes));
  const HostKernel kernel = machine.Find(called.name);
  const std::vector<Reach>* const reaches = machine.Described(
      called.name, called.parameters.empty() ? 0 : called.parameters[0],
      parameters);
  if (kernel == nullptr && reaches == nullptr) return kCuNotFound;
  if (grid_x * grid_y * grid_z == 0 || block_x * block_y * block_z == 0 ||
      shared_bytes > static_cast<unsigned>(called.shared_bytes))
    return kCuInvalidValue;
  Launched launched = {kernel,
                       reaches ? *reaches : std::vector<Reach>(),
                       {},
                       {{grid_x, grid_y, grid_z},
                        {block_x, block_y, block_z},
                        {~0u, 0, 0},
                        {0, 0, 0},
                        nullptr},
                       shared_bytes};
  for (size_t i = 0; i < called.parameters.size(); ++i) {
    const char* const value = static_cast<const char*>(parameters[i]);
    launched.values.emplace_back(value, value + called.parameters[i]);
  }
  for (const Reach& reach : launched.reaches)
    if (reach.parameter >= called.parameters.size() ||
        reach.offset + sizeof(void*) > called.parameters[reach.parameter])
      return kCuInvalidValue;
  Step step;
  step.name = called.name;
  step.work = [launched]() mutable {
    launched.Run();
    Machine::Get().AddTime(Machine::Get().launch_time());
  };
  machine.Put(Of(stream), std::move(step));
  return kCuSuccess;
}
const char* partita_recording_take_log() {
  const Lock lock(Machine::Get().mutex);
  static std::string log;
  log = Machine::Get().TakeLog();
  return log.c_str();
}
void partita_recording_fail_next(const char* symbol, CuResult result, int times,
                                 int after) {
  const Lock lock(Machine::Get().mutex);
  Machine::Get().FailNext(symbol, result, times, after);
}
void partita_recording_delay(const char* symbol, int milliseconds) {
  const Lock lock(Machine::Get().mutex);
  Machine::Get().Delay(symbol, milliseconds);
}
void partita_recording_register(const char* kernel, HostKernel function) {
  const Lock lock(Machine::Get().mutex);
  Machine::Get().Register(kernel, function);
}
void partita_recording_set_launch_time(float milliseconds) {
  const Lock lock(Machine::Get().mutex);
  Machine::Get().SetLaunchTime(milliseconds);
}
void partita_recording_describe(const char* kernel, const char* prefix,
                                size_t bytes, const Reach* reaches,
                                size_t count) {
  const Lock lock(Machine::Get().mutex);
  Machine::Get().Describe(kernel, std::string(prefix, bytes),
                          {reaches, reaches + count});
}
void partita_recording_forget_descriptions() {
  const Lock lock(Machine::Get().mutex);
  Machine::Get().ForgetDescriptions();
}
// Runs all streams first, so that work nobody waits for counts too.
const char* partita_recording_take_races() {
  const Lock lock(Machine::Get().mutex);
  Machine::Get().RunAll();
  static std::string races;
  races = Machine::Get().races().Take();
  return races.c_str();
}
void partita_recording_watch() {
  const Lock lock(Machine::Get().mutex);
  Machine::Get().races().Watch();
}
size_t partita_recording_used_bytes() {
  const Lock lock(Machine::Get().mutex);
  return Machine::Get().used_bytes();
}

}  // extern "C"
#pragma GCC visibility pop
