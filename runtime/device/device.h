// The interface between the executor and a device. It suits devices that run
// asynchronously from the host: work is queued on streams in order, and events
// order streams relative to each other. Pointers to device memory are opaque to
// the host unless SharesHostMemory.
//
// A device and all objects it made are used by one thread at a time. The
// objects (memory, streams, modules, library operations) must be destroyed
// before the device. Errors of stream work surface no later than the stream's
// next synchronisation.
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
  // The stream's handle in the device's library, for other libraries that put
  // work on the stream. Null if there is none.
  virtual void* native_handle() const { return nullptr; }
};

// A point in a stream, set by Device::Record.
class Event {
 public:
  virtual ~Event() = default;
};

// Captured work of a stream, which can be replayed many times.
class Graph {
 public:
  virtual ~Graph() = default;
};

// A generated kernel. It lives as long as its module.
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

// The tensor maps of one launch, by which its kernel copies boxes of operands.
class TensorMaps {
 public:
  virtual ~TensorMaps() = default;
};

// How a kernel is launched. On a CPU `range` is split among threads. On a GPU
// `grid` and `block` give the numbers of blocks and threads.
struct LaunchShape {
  int64_t range = 0;              // the kernel covers [0, range), in any split
  int64_t grain = 1;              // smallest share worth a thread of its own
  int64_t scratch_bytes = 0;      // per thread; with a grid, per launch
  std::array<int, 3> grid = {};   // blocks along x, y and z
  std::array<int, 3> block = {};  // threads per block along x, y and z
  int shared_bytes = 0;           // dynamic shared memory per block
  TensorMaps* maps = nullptr;     // of this launch only; null: no maps
};

// Describes a launch on several lists of operands, one list per piece. See
// Launch in program.fbs.
struct LaunchPieces {
  std::vector<int64_t> ranges;  // per piece; their sum is the shape's range
  int outputs = 0;              // per piece
};

// A matrix product, convolution or attention, ready to be executed many times
// on different buffers.
class LibraryOp {
 public:
  virtual ~LibraryOp() = default;
  // True if operand `index` was given as a constant and copied into the
  // library's own layout. Execute then ignores its pointer, and the original
  // may be released.
  virtual bool Packed(int index) const = 0;
  // Names the implementation that the library chose, for profiles.
  virtual std::string Description() const = 0;
};

// Bytes that the device holds now.
struct MemoryReport {
  int64_t allocated = 0;  // by Allocate
  int64_t packed = 0;     // constants copied into a library's layout
  int64_t scratch = 0;    // shared by all launches and library operations
};

class Device {
 public:
  virtual ~Device() = default;

  // The name in the list of devices (runtime/session/devices.cc), e.g. "cpu".
  virtual std::string Name() const = 0;
  // FailedPrecondition, naming what is missing, if code for `target` and
  // `features` cannot run here. Features are in LLVM's spelling, "+avx2,+fma".
  virtual absl::Status CheckTarget(const std::string& target,
                                   const std::string& features) const = 0;

  // True if host pointers are valid device pointers and the other way round.
  virtual bool SharesHostMemory() const = 0;
  // True if memory keeps the values written to it. If false, callers need not
  // produce them.
  virtual bool KeepsContent() const = 0;
  // Allocates memory with undefined content, aligned to at least 64 bytes. Zero
  // bytes are allowed. ResourceExhausted, with the requested size, if there is
  // not enough.
  virtual absl::StatusOr<void*> Allocate(int64_t bytes) = 0;
  // Frees a pointer from Allocate of the same size. No work may still use it.
  virtual void Free(void* memory, int64_t bytes) = 0;
  // Allocates and frees host memory that the device's kernels can access
  // directly, though slowly. Copies accept its pointers as they accept device
  // pointers. This default allocates device memory and counts it in Memory(); a
  // device that overrides it does not count host memory.
  virtual absl::StatusOr<void*> AllocateHost(int64_t bytes) {
    return Allocate(bytes);
  }
  virtual void FreeHost(void* memory, int64_t bytes) { Free(memory, bytes); }
  // Returns the physical memory of part of an allocation to the system. Its
  // content is undefined from then on.
  virtual void Release(void* memory, int64_t bytes) = 0;
  virtual MemoryReport Memory() const = 0;

  virtual absl::StatusOr<std::unique_ptr<Stream>> CreateStream() = 0;
  virtual absl::StatusOr<std::unique_ptr<Event>> CreateEvent() = 0;
  // Makes `event` mark the end of the work that is on `stream` now.
  virtual absl::Status Record(Stream& stream, Event& event) = 0;
  // Makes later work on `stream` wait for `event`.
  virtual absl::Status Wait(Stream& stream, Event& event) = 0;
  // Blocks the host until the stream is empty or the event is reached.
  virtual absl::Status Synchronize(Stream& stream) = 0;
  virtual absl::Status Synchronize(Event& event) = 0;

  // Copies on the stream. Host memory must stay unchanged until the copy is
  // done.
  virtual absl::Status CopyToDevice(Stream& stream, void* target,
                                    const void* host, int64_t bytes) = 0;
  virtual absl::Status CopyToHost(Stream& stream, void* host,
                                  const void* source, int64_t bytes) = 0;
  virtual absl::Status Copy(Stream& stream, void* target, const void* source,
                            int64_t bytes) = 0;

  // Loads machine code. `code` is copied; its format depends on the target.
  virtual absl::StatusOr<std::unique_ptr<Module>> LoadModule(
      std::string_view code) = 0;
  // Reserves scratch for launches whose shapes need up to `bytes`. Launch never
  // allocates.
  virtual absl::Status ReserveLaunchScratch(int64_t bytes) = 0;
  // Prepares the tensor maps of a launch on the operands in `buffers`. An
  // operand is null if its address is not known yet. Launch encodes a map again
  // only when its operand has moved. FailedPrecondition if the device has no
  // tensor maps.
  virtual absl::StatusOr<std::unique_ptr<TensorMaps>> PrepareMaps(
      // Overriders keep the list.
      // NOLINTNEXTLINE(performance-unnecessary-value-param)
      std::vector<TensorMapDesc> maps, void* const* buffers) {
    return absl::FailedPreconditionError(
        "this device has no tensor maps, which the model's kernels copy by; "
        "compile the model for this device");
  }
  // Launches a kernel. `buffers` is read before the call returns.
  virtual absl::Status Launch(Stream& stream, const Kernel& kernel,
                              const LaunchShape& shape, void* const* buffers,
                              int count) = 0;
  // Launches the kernel on all pieces, which are independent of each other.
  // `buffers` lists the inputs of all pieces, then the outputs of all pieces,
  // `count` in total. On a GPU, the kernel's parameter is a table
  // (runtime/program/piece_table.h).
  virtual absl::Status LaunchEach(Stream& stream, const Kernel& kernel,
                                  const LaunchShape& shape,
                                  const LaunchPieces& pieces,
                                  void* const* buffers, int count) = 0;

  // Prepares a library operation. `constants` has one entry per operand: its
  // pointer if the content stays the same for the life of the operation
  // (weights, which the library may pack), else null. Scratch is reserved here;
  // Execute never allocates.
  virtual absl::StatusOr<std::unique_ptr<LibraryOp>> PrepareGemm(
      const GemmDesc& desc, const std::vector<const void*>& constants) = 0;
  virtual absl::StatusOr<std::unique_ptr<LibraryOp>> PrepareConv(
      const ConvDesc& desc, const std::vector<const void*>& constants) = 0;
  // FailedPrecondition if the device has no grouped products. The compiler
  // writes them only into programs for CPUs.
  virtual absl::StatusOr<std::unique_ptr<LibraryOp>> PrepareGroupedGemm(
      const GroupedGemmDesc& desc, const std::vector<const void*>& constants) {
    return absl::FailedPreconditionError(
        "this device has no grouped products, which the model needs; compile "
        "the model for this device");
  }
  // Prepares a library operation that computes what a launch computes, on the
  // launch's operands, of `operand_bytes` each. Returns null if the launch is
  // faster, or if no library computes it. The kernel and the maps of the shape
  // must outlive the operation, which may launch the kernel.
  virtual absl::StatusOr<std::unique_ptr<LibraryOp>> PrepareAttention(
      const AttentionDesc& desc, const Kernel& kernel, const LaunchShape& shape,
      const std::vector<int64_t>& operand_bytes) {
    return std::unique_ptr<LibraryOp>();
  }
  virtual absl::Status Execute(Stream& stream, LibraryOp& op,
                               void* const* buffers, int count) = 0;
  // Reasons why prepared operations are much slower than they should be, such
  // as a missing library; a sentence each, for the user.
  virtual std::vector<std::string> Warnings() const { return {}; }

  // Captures the work that `work` puts on `stream` as a graph instead of
  // running it. The graph keeps the buffer addresses. `work` must not wait for
  // the device, allocate, or copy from or to the host. It must have run once
  // without capture, so that everything is loaded. Another stream joins the
  // capture when it waits for an event of `stream`, and `stream` must wait for
  // an event of that stream before `work` ends. Returns null, without calling
  // `work`, if the device has no graphs.
  virtual absl::StatusOr<std::unique_ptr<Graph>> Capture(
      Stream& stream, const std::function<absl::Status()>& work) {
    return std::unique_ptr<Graph>();
  }
  // Runs a graph on the stream on which it was captured.
  virtual absl::Status Replay(Stream& stream, Graph& graph) {
    return absl::UnimplementedError("this device has no graphs");
  }

  // For profilers: names the work that this thread enqueues until EndRange
  // `name`. Ranges nest.
  virtual void BeginRange(const char* name) {}
  virtual void EndRange() {}
};

// Copies the buffers of piece `piece` from the buffers of all pieces to
// `piece_buffers`.
inline void GatherPiece(const LaunchPieces& pieces, int piece,
                        void* const* buffers, int count, void** piece_buffers) {
  const int all = static_cast<int>(pieces.ranges.size());
  const int inputs = count / all - pieces.outputs;
  std::copy_n(buffers + piece * inputs, inputs, piece_buffers);
  std::copy_n(buffers + all * inputs + piece * pieces.outputs, pieces.outputs,
              piece_buffers + inputs);
}

// Device memory, or host memory that the device can access. Freed on
// destruction.
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
