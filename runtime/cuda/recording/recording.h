// What tests ask of the recording driver, beyond what the real one has. All are
// functions of its library, to be found by name.
#ifndef PARTITA_RUNTIME_CUDA_RECORDING_RECORDING_H_
#define PARTITA_RUNTIME_CUDA_RECORDING_RECORDING_H_

#include <dlfcn.h>

#include <string>

#include "runtime/cuda/recording/queue.h"

namespace partita::cuda::recording {

// What calls of cudnnBackendFinalize and cudnnBackendGetAttribute are named in
// the log, and for FailNext, where they are for these descriptors.
constexpr char kFinalizeHeuristics[] = "cudnnBackendFinalize heuristics";
constexpr char kFinalizePlan[] = "cudnnBackendFinalize plan";
constexpr char kGetHeuristicsResults[] = "cudnnBackendGetAttribute results";
constexpr char kGetPlanWorkspace[] = "cudnnBackendGetAttribute workspace";

// What the recorded driver writes as a tensor map, innermost dimension first.
struct RecordedTensorMap {
  CuPointer address;
  uint64_t sizes[5], strides[4];  // strides in bytes
  uint16_t box[5];
  uint8_t steps[5];  // between a box's elements
  uint8_t rank, type, interleave, swizzle, promotion, fill;
};
static_assert(sizeof(RecordedTensorMap) <= sizeof(CuTensorMap));

// The library at a path, which devices under test have opened too.
class Recording {
 public:
  explicit Recording(const std::string& path)
      : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}

  bool opened() const { return handle_ != nullptr; }
  // One line per call since the last time, "cuMemAlloc_v2 4096".
  std::string TakeLog() const {
    return Find<const char*()>("partita_recording_take_log")();
  }
  // The next calls of this function return this, when it has been called
  // `after` times more.
  void FailNext(const char* symbol, CuResult result, int times = 1,
                int after = 0) const {
    Find<void(const char*, CuResult, int, int)>("partita_recording_fail_next")(
        symbol, result, times, after);
  }
  // What launches of a kernel of this name run.
  void Register(const char* kernel, HostKernel function) const {
    Find<void(const char*, HostKernel)>("partita_recording_register")(kernel,
                                                                      function);
  }
  // From now on what operations touch is looked at: device memory, and the
  // host's where copies use it.
  void Watch() const { Find<void()>("partita_recording_watch")(); }
  // Operations that touch the same bytes, one of them writing, though neither
  // streams, events nor the host's waiting order them: a line each, "a writes
  // what b reads"; and those under way that touch what another rank frees.
  // Ends all that is under way. Since the last time.
  std::string TakeRaces() const {
    return Find<const char*()>("partita_recording_take_races")();
  }
  // Of device memory, by all.
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
