// What the executor asks of a device. Made for devices that run behind the
// host: work is put on streams in order, and events order streams among each
// other. Pointers to device memory are opaque to the host unless
// SharesHostMemory.
//
// A device and all that it made are used by one thread at a time. What a device
// made (memory, streams, modules, library operations) must be destroyed before
// it. Errors of work on a stream surface at the latest when it is synchronised.
#ifndef PARTITA_RUNTIME_DEVICE_DEVICE_H_
#define PARTITA_RUNTIME_DEVICE_DEVICE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/device/operations.h"

namespace partita::device {

// An in-order queue of work.
class Stream {
 public:
  virtual ~Stream() = default;
  // What the device's library calls it, for other libraries that put work on
  // it; null where there is none.
  virtual void* native_handle() const { return nullptr; }
};

// A point in a stream.
class Event {
 public:
  virtual ~Event() = default;
};

// Work of a stream that was put together once, to be put on it many times.
class Graph {
 public:
  virtual ~Graph() = default;
};

// A generated kernel; lives as long as its module.
class Kernel {
 public:
  virtual ~Kernel() = default;
};

// Loaded machine code.
class Module {
 public:
  virtual ~Module() = default;
  // NotFound if there is no such kernel.
  virtual absl::StatusOr<const Kernel*> Find(const std::string& symbol) = 0;
};

// What the kernel of one launch needs to copy boxes of its operands.
class TensorMaps {
 public:
  virtual ~TensorMaps() = default;
};

// Of a kernel that processors run, a range that is split among threads; of a
// GPU's, how many blocks of how many threads run it.
struct LaunchShape {
  int64_t range = 0;              // the kernel covers [0, range), in any split
  int64_t grain = 1;              // smallest share worth a thread of its own
  int64_t scratch_bytes = 0;      // per thread; with a grid, of all
  std::array<int, 3> grid = {};   // blocks along x, y and z
  std::array<int, 3> block = {};  // threads of each
  int shared_bytes = 0;           // of each block, beyond what its code names
  TensorMaps* maps = nullptr;     // this launch's own; null: it takes none
};

// Of a launch on several lists of operands; see Launch in program.fbs.
struct LaunchPieces {
  std::vector<int64_t> ranges;  // one for each piece; the sum is the shape's
  int outputs = 0;              // of each piece
};

// A matrix product or convolution, ready to be executed many times on different
// buffers.
class LibraryOp {
 public:
  virtual ~LibraryOp() = default;
  // Whether operand `index`, given as a constant, was copied into a layout of
  // the library's own: Execute then ignores the pointer passed for it, and the
  // original may be released.
  virtual bool Packed(int index) const = 0;
  // Which implementation the library chose, for profiles.
  virtual std::string Description() const = 0;
};

// Bytes that the device holds at this time.
struct MemoryReport {
  int64_t allocated = 0;  // by Allocate
  int64_t packed = 0;     // constants in the libraries' layouts
  int64_t scratch = 0;    // shared by all launches and library operations
};

class Device {
 public:
  virtual ~Device() = default;

  // "cpu", "null" ...
  virtual std::string Name() const = 0;
  // FailedPrecondition, naming what is missing, if code for this target and
  // these features (LLVM's spelling,
  // "+avx2,+fma") cannot run here.
  virtual absl::Status CheckTarget(const std::string& target,
                                   const std::string& features) const = 0;

  // Whether host pointers are device pointers and the other way round.
  virtual bool SharesHostMemory() const = 0;
  // Whether memory keeps what is written to it; if not, content need not be
  // made for it.
  virtual bool KeepsContent() const = 0;
  // At least 64-byte aligned, content undefined; ResourceExhausted with the
  // size asked for. Zero bytes is allowed.
  virtual absl::StatusOr<void*> Allocate(int64_t bytes) = 0;
  // Of a pointer from Allocate and the same size; no work may still use it.
  virtual void Free(void* memory, int64_t bytes) = 0;
  // As Allocate and Free, but of the host's memory, which the device's kernels
  // reach as their own, if slowly; copies take its pointers as they take the
  // device's. Devices without memory of their own count it as
  // allocated, others do not.
  virtual absl::StatusOr<void*> AllocateHost(int64_t bytes) {
    return Allocate(bytes);
  }
  virtual void FreeHost(void* memory, int64_t bytes) { Free(memory, bytes); }
  // Gives the physical memory of a part of an allocation back; its content is
  // undefined from then on.
  virtual void Release(void* memory, int64_t bytes) = 0;
  virtual MemoryReport Memory() const = 0;

  virtual absl::StatusOr<std::unique_ptr<Stream>> CreateStream() = 0;
  virtual absl::StatusOr<std::unique_ptr<Event>> CreateEvent() = 0;
  // `event` now stands for all that is on `stream` at this time.
  virtual absl::Status Record(Stream& stream, Event& event) = 0;
  // What comes on `stream` later waits for `event`.
  virtual absl::Status Wait(Stream& stream, Event& event) = 0;
  // The host waits.
  virtual absl::Status Synchronize(Stream& stream) = 0;
  virtual absl::Status Synchronize(Event& event) = 0;

  // Host memory must stay as it is until the stream has done the copy.
  virtual absl::Status CopyToDevice(Stream& stream, void* target,
                                    const void* host, int64_t bytes) = 0;
  virtual absl::Status CopyToHost(Stream& stream, void* host,
                                  const void* source, int64_t bytes) = 0;
  virtual absl::Status Copy(Stream& stream, void* target, const void* source,
                            int64_t bytes) = 0;

  // `code` is copied; its format is the target's own.
  virtual absl::StatusOr<std::unique_ptr<Module>> LoadModule(
      std::string_view code) = 0;
  // Makes room for launches whose shapes say this much scratch. Launch never
  // allocates.
  virtual absl::Status ReserveLaunchScratch(int64_t bytes) = 0;
  // For a launch that takes tensor maps on operands in `buffers`, where null
  // stands for what is not known yet. A map is made once, and by Launch again
  // when its operand lies elsewhere. FailedPrecondition where devices have
  // none.
  virtual absl::StatusOr<std::unique_ptr<TensorMaps>> PrepareMaps(
      // NOLINTNEXTLINE(performance-unnecessary-value-param): others keep them.
      std::vector<TensorMapDesc> maps, void* const* buffers) {
    return absl::FailedPreconditionError(
        "this device has no tensor maps, which the model's kernels copy by; "
        "compile the model for this device");
  }
  // `buffers` is read before the call returns.
  virtual absl::Status Launch(Stream& stream, const Kernel& kernel,
                              const LaunchShape& shape, void* const* buffers,
                              int count) = 0;
  // The kernel on all pieces, which do not mind each other: inputs of all, then
  // outputs of all, `count` together.
  virtual absl::Status LaunchEach(Stream& stream, const Kernel& kernel,
                                  const LaunchShape& shape,
                                  const LaunchPieces& pieces,
                                  void* const* buffers, int count) = 0;

  // `constants` has one entry per operand: its pointer if its content will not
  // change as long as the operation lives (weights, which the library may then
  // pack), else null. Scratch is reserved here; Execute never allocates.
  virtual absl::StatusOr<std::unique_ptr<LibraryOp>> PrepareGemm(
      const GemmDesc& desc, const std::vector<const void*>& constants) = 0;
  virtual absl::StatusOr<std::unique_ptr<LibraryOp>> PrepareConv(
      const ConvDesc& desc, const std::vector<const void*>& constants) = 0;
  virtual absl::Status Execute(Stream& stream, LibraryOp& op,
                               void* const* buffers, int count) = 0;

  // What `work` puts on the stream is not done but becomes a graph, in which it
  // works on the same memory as now. `work` must not wait for the device,
  // allocate or copy from or to the host; other streams belong to it from where
  // they wait for an event of this one to where this one waits for theirs,
  // which it must. It has run before without capture, so that everything is
  // loaded. Null, without calling it: there are no graphs here.
  virtual absl::StatusOr<std::unique_ptr<Graph>> Capture(
      Stream& stream, const std::function<absl::Status()>& work) {
    return std::unique_ptr<Graph>();
  }
  // Of the stream on which it was captured.
  virtual absl::Status Replay(Stream& stream, Graph& graph) {
    return absl::UnimplementedError("this device has no graphs");
  }

  // For profilers: what this thread does until EndRange is done for `name`.
  // Ranges may lie within ranges.
  virtual void BeginRange(const char* name) {}
  virtual void EndRange() {}
};

// The buffers of piece `piece` out of those of all, for its kernel.
inline void GatherPiece(const LaunchPieces& pieces, int piece,
                        void* const* buffers, int count, void** own) {
  const int all = static_cast<int>(pieces.ranges.size());
  const int inputs = count / all - pieces.outputs;
  std::copy_n(buffers + piece * inputs, inputs, own);
  std::copy_n(buffers + all * inputs + piece * pieces.outputs, pieces.outputs,
              own + inputs);
}

// Memory of a device, or for it on the host, that frees itself.
class Allocation {
 public:
  static absl::StatusOr<Allocation> Make(Device& device, int64_t bytes,
                                         bool host = false) {
    absl::StatusOr<void*> memory =
        host ? device.AllocateHost(bytes) : device.Allocate(bytes);
    if (!memory.ok()) return memory.status();
    Allocation allocation;
    allocation.device_ = &device;
    allocation.memory_ = *memory;
    allocation.bytes_ = bytes;
    allocation.host_ = host;
    return allocation;
  }
  Allocation() = default;
  Allocation(Allocation&& other) noexcept { *this = std::move(other); }
  Allocation& operator=(Allocation&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    std::swap(host_, other.host_);
    return *this;
  }
  ~Allocation() {
    if (device_ == nullptr) return;
    host_ ? device_->FreeHost(memory_, bytes_) : device_->Free(memory_, bytes_);
  }

  char* data() const { return static_cast<char*>(memory_); }
  int64_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  void* memory_ = nullptr;
  int64_t bytes_ = 0;
  bool host_ = false;
};

}  // namespace partita::device

#endif  // PARTITA_RUNTIME_DEVICE_DEVICE_H_
