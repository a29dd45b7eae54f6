// The null device counts calls and checks arguments; it executes nothing.
#include "runtime/device/null_device.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace partita::device {
namespace {

class NullModule : public Module {
 public:
  absl::StatusOr<const Kernel*> Find(const std::string& symbol) override {
    return &kernels_[symbol];
  }

 private:
  std::map<std::string, Kernel> kernels_;
};

class NullLibraryOp : public LibraryOp {
 public:
  explicit NullLibraryOp(int operands) : operands_(operands) {}
  bool Packed(int index) const override { return false; }
  std::string Description() const override { return "null"; }
  int operands() const { return operands_; }

 private:
  int operands_;
};

absl::StatusOr<std::unique_ptr<LibraryOp>> Prepare(const char* what,
                                                   int operands,
                                                   size_t constants) {
  if (constants != static_cast<size_t>(operands)) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": expected ", operands, " operands, found ", constants));
  }
  return std::make_unique<NullLibraryOp>(operands);
}

absl::Status CheckBuffers(const char* what, void* const* buffers, int count) {
  for (int i = 0; i < count; ++i) {
    if (buffers[i] == nullptr)
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": buffer ", i, " is null"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status NullDevice::CheckTarget(const std::string& target,
                                     const std::string& features) const {
  return absl::OkStatus();
}

absl::StatusOr<void*> NullDevice::Allocate(int64_t bytes) {
  if (bytes < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("cannot allocate ", bytes, " bytes"));
  void* memory = reinterpret_cast<void*>(next_address_);
  next_address_ +=
      static_cast<uintptr_t>(std::max<int64_t>(bytes, 1) + 63) / 64 * 64;
  memory_.allocated += bytes;
  return memory;
}

void NullDevice::Free(void* memory, int64_t bytes) {
  memory_.allocated -= bytes;
}

absl::StatusOr<std::unique_ptr<Stream>> NullDevice::CreateStream() {
  return std::make_unique<Stream>();
}
absl::StatusOr<std::unique_ptr<Event>> NullDevice::CreateEvent() {
  return std::make_unique<Event>();
}
absl::Status NullDevice::Record(Stream& stream, Event& event) {
  return absl::OkStatus();
}
absl::Status NullDevice::Wait(Stream& stream, Event& event) {
  return absl::OkStatus();
}
absl::Status NullDevice::Synchronize(Stream& stream) {
  return absl::OkStatus();
}
absl::Status NullDevice::Synchronize(Event& event) { return absl::OkStatus(); }

absl::Status NullDevice::CountCopy(int64_t bytes) {
  ++counts_.copies;
  counts_.copied_bytes += bytes;
  return absl::OkStatus();
}

absl::Status NullDevice::CopyToDevice(Stream& stream, void* target,
                                      const void* host, int64_t bytes) {
  return CountCopy(bytes);
}
absl::Status NullDevice::CopyToHost(Stream& stream, void* host,
                                    const void* source, int64_t bytes) {
  return CountCopy(bytes);
}
absl::Status NullDevice::Copy(Stream& stream, void* target, const void* source,
                              int64_t bytes) {
  return CountCopy(bytes);
}

absl::StatusOr<std::unique_ptr<Module>> NullDevice::LoadModule(
    std::string_view code) {
  return std::make_unique<NullModule>();
}

absl::Status NullDevice::ReserveLaunchScratch(int64_t bytes_per_thread) {
  memory_.scratch = std::max(memory_.scratch, bytes_per_thread);
  return absl::OkStatus();
}

absl::Status NullDevice::Launch(Stream& stream, const Kernel& kernel,
                                const LaunchShape& shape, void* const* buffers,
                                int count) {
  ++counts_.launches;
  return CheckBuffers("launch", buffers, count);
}
absl::Status NullDevice::LaunchEach(Stream& stream, const Kernel& kernel,
                                    const LaunchShape& shape,
                                    const LaunchPieces& pieces,
                                    void* const* buffers, int count) {
  return Launch(stream, kernel, shape, buffers, count);
}

absl::StatusOr<std::unique_ptr<LibraryOp>> NullDevice::PrepareGemm(
    const GemmDesc& desc, const std::vector<const void*>& constants) {
  return Prepare("gemm", OperandCount(desc), constants.size());
}

absl::StatusOr<std::unique_ptr<LibraryOp>> NullDevice::PrepareGroupedGemm(
    const GroupedGemmDesc& desc, const std::vector<const void*>& constants) {
  return Prepare("grouped gemm", 4, constants.size());
}

absl::StatusOr<std::unique_ptr<LibraryOp>> NullDevice::PrepareConv(
    const ConvDesc& desc, const std::vector<const void*>& constants) {
  return Prepare("conv", OperandCount(desc), constants.size());
}

absl::Status NullDevice::Execute(Stream& stream, LibraryOp& op,
                                 void* const* buffers, int count) {
  ++counts_.library_calls;
  const int operands = static_cast<NullLibraryOp&>(op).operands();
  if (count != operands)
    return absl::InvalidArgumentError(
        absl::StrCat("expected ", operands, " buffers, found ", count));
  return CheckBuffers("library operation", buffers, count);
}

// A device that executes would also list the kinds of its targets; a network
// among devices would be made by `communicators`. Fields left out keep their
// defaults: no GPU, no network, no environment.
DeviceKind NullKind() {
  DeviceKind kind;
  kind.name = "null";
  kind.executes = false;
  kind.note = "executes nothing: it only plans memory and counts steps";
  kind.make = [](const JobOptions& job, int index,
                 int threads) -> absl::StatusOr<std::unique_ptr<Device>> {
    return std::make_unique<NullDevice>();
  };
  return kind;
}

}  // namespace partita::device
