// A device that accepts everything and executes nothing: it plans, counts and
// reports. It is also the example of a device: this class implements every
// function that has no default, and NullKind() is all that the list of devices
// (runtime/session/devices.cc) needs.
#ifndef PARTITA_RUNTIME_DEVICE_NULL_DEVICE_H_
#define PARTITA_RUNTIME_DEVICE_NULL_DEVICE_H_

#include <cstdint>
#include <memory>

#include "runtime/device/device.h"
#include "runtime/device/device_kind.h"

namespace partita::device {

// Calls that a null device received.
struct NullCounts {
  int64_t launches = 0;
  int64_t library_calls = 0;
  int64_t copies = 0;
  int64_t copied_bytes = 0;
};

class NullDevice : public Device {
 public:
  const NullCounts& counts() const { return counts_; }

  std::string Name() const override { return "null"; }
  absl::Status CheckTarget(const std::string& target,
                           const std::string& features) const override;
  // Its pointers refer to no memory, so models of any size can be loaded.
  bool SharesHostMemory() const override { return false; }
  bool KeepsContent() const override { return false; }
  absl::StatusOr<void*> Allocate(int64_t bytes) override;
  void Free(void* memory, int64_t bytes) override;
  void Release(void* memory, int64_t bytes) override {}
  MemoryReport Memory() const override { return memory_; }
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream() override;
  absl::StatusOr<std::unique_ptr<Event>> CreateEvent() override;
  absl::Status Record(Stream& stream, Event& event) override;
  absl::Status Wait(Stream& stream, Event& event) override;
  absl::Status Synchronize(Stream& stream) override;
  absl::Status Synchronize(Event& event) override;
  absl::Status CopyToDevice(Stream& stream, void* target, const void* host,
                            int64_t bytes) override;
  absl::Status CopyToHost(Stream& stream, void* host, const void* source,
                          int64_t bytes) override;
  absl::Status Copy(Stream& stream, void* target, const void* source,
                    int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Module>> LoadModule(
      std::string_view code) override;
  absl::Status ReserveLaunchScratch(int64_t bytes_per_thread) override;
  absl::StatusOr<std::unique_ptr<TensorMaps>> PrepareMaps(
      std::vector<TensorMapDesc> maps, void* const* buffers) override {
    return std::make_unique<TensorMaps>();
  }
  absl::Status Launch(Stream& stream, const Kernel& kernel,
                      const LaunchShape& shape, void* const* buffers,
                      int count) override;
  absl::Status LaunchEach(Stream& stream, const Kernel& kernel,
                          const LaunchShape& shape, const LaunchPieces& pieces,
                          void* const* buffers, int count) override;
  absl::StatusOr<std::unique_ptr<LibraryOp>> PrepareGemm(
      const GemmDesc& desc, const std::vector<const void*>& constants) override;
  absl::StatusOr<std::unique_ptr<LibraryOp>> PrepareGroupedGemm(
      const GroupedGemmDesc& desc,
      const std::vector<const void*>& constants) override;
  absl::StatusOr<std::unique_ptr<LibraryOp>> PrepareConv(
      const ConvDesc& desc, const std::vector<const void*>& constants) override;
  absl::Status Execute(Stream& stream, LibraryOp& op, void* const* buffers,
                       int count) override;

 private:
  absl::Status CountCopy(int64_t bytes);

  NullCounts counts_;
  MemoryReport memory_;
  uintptr_t next_address_ = uintptr_t{1} << 40;
};

// The null device in the list of devices. It runs a model of any target, but
// only if --device selects it.
DeviceKind NullKind();

}  // namespace partita::device

#endif  // PARTITA_RUNTIME_DEVICE_NULL_DEVICE_H_
