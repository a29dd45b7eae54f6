// Control of the recording driver by tests. All functions are found by name in
// its library.
#ifndef PARTITA_RUNTIME_CUDA_RECORDING_RECORDING_H_
#define PARTITA_RUNTIME_CUDA_RECORDING_RECORDING_H_

#include <dlfcn.h>

#include <string>
#include <vector>

#include "runtime/cuda/recording/queue.h"

namespace partita::cuda::recording {

// Names, in the log and for FailNext, of cudnnBackendFinalize and
// cudnnBackendGetAttribute calls on these descriptors.
constexpr char kFinalizeHeuristics[] = "cudnnBackendFinalize heuristics";
constexpr char kFinalizePlan[] = "cudnnBackendFinalize plan";
constexpr char kGetHeuristicsResults[] = "cudnnBackendGetAttribute results";
constexpr char kGetPlanWorkspace[] = "cudnnBackendGetAttribute workspace";
// The name of cublasLtMatmulAlgoGetHeuristic calls for products with a
// pre-activation or sums.
constexpr char kTrainingEpilogue[] = "epilogue of training";

// The recorded driver's machine code: these bytes, then PTX text.
constexpr char kCubinMagic[] = "\177ELF";

// The recorded driver's format of a tensor map, innermost dimension first.
struct RecordedTensorMap {
  CuPointer address;
  uint64_t sizes[5], strides[4];  // strides in bytes
  uint16_t box[5];
  uint8_t steps[5];  // between elements of a box
  uint8_t rank, type, interleave, swizzle, promotion, fill;
};
static_assert(sizeof(RecordedTensorMap) <= sizeof(CuTensorMap));

// The library at a path, which the devices under test have opened too.
class Recording {
 public:
  explicit Recording(const std::string& path)
      : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}

  bool opened() const { return handle_ != nullptr; }
  // Calls since the last TakeLog, one line each: "cuMemAlloc_v2 4096".
  std::string TakeLog() const {
    return Find<const char*()>("partita_recording_take_log")();
  }
  // Makes `times` calls of this function return `result`, after `after` further
  // calls.
  void FailNext(const char* symbol, CuResult result, int times = 1,
                int after = 0) const {
    Find<void(const char*, CuResult, int, int)>("partita_recording_fail_next")(
        symbol, result, times, after);
  }
  // Makes further calls of this function succeed without doing anything, as if
  // the caller had forgotten them. `FailNext(symbol, kCuSuccess, 0)` ends this.
  void Skip(const char* symbol) const { FailNext(symbol, kSkipped, 1 << 30); }
  // Sets the function that launches of this kernel run.
  void Register(const char* kernel, HostKernel function) const {
    Find<void(const char*, HostKernel)>("partita_recording_register")(kernel,
                                                                      function);
  }
  // Sets the milliseconds that a launch claims to take; 0 at first.
  void SetLaunchTime(float milliseconds) const {
    Find<void(float)>("partita_recording_set_launch_time")(milliseconds);
  }
  // Makes launches of this kernel, which has no function, access memory without
  // computing, if the bytes of their first parameter begin with `prefix`.
  void Describe(const std::string& kernel, const std::string& prefix,
                const std::vector<Reach>& reaches) const {
    Find<void(const char*, const char*, size_t, const Reach*, size_t)>(
        "partita_recording_describe")(kernel.c_str(), prefix.data(),
                                      prefix.size(), reaches.data(),
                                      reaches.size());
  }
  void ForgetDescriptions() const {
    Find<void()>("partita_recording_forget_descriptions")();
  }
  // Makes every later call of this function take at least this time.
  void Delay(const char* symbol, int milliseconds) const {
    Find<void(const char*, int)>("partita_recording_delay")(symbol,
                                                            milliseconds);
  }
  // Starts recording accesses of operations to device memory, and to host
  // memory in copies.
  void Watch() const { Find<void()>("partita_recording_watch")(); }
  // Finishes all work, and returns the races since the last call. A race is two
  // operations that access the same bytes, one of them writing, without being
  // ordered by streams, events or the host's waiting: "a writes what b reads".
  // At least one line per operation that races (see races.h). An operation in
  // flight that accesses memory which another rank frees is one too.
  std::string TakeRaces() const {
    return Find<const char*()>("partita_recording_take_races")();
  }
  // Bytes of device memory in use.
  size_t UsedBytes() const {
    return Find<size_t()>("partita_recording_used_bytes")();
  }

 private:
  template <typename Function>
  Function* Find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }

  void* handle_;
};

}  // namespace partita::cuda::recording

#endif  // PARTITA_RUNTIME_CUDA_RECORDING_RECORDING_H_
