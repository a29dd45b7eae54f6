// A device that misbehaves, for tests of how other components react.
#ifndef PARTITA_RUNTIME_EXECUTOR_BAD_DEVICE_H_
#define PARTITA_RUNTIME_EXECUTOR_BAD_DEVICE_H_

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/device/device.h"

namespace partita::executor {

// Copies fail, or hang for 1.5 s.
class BadDevice : public device::Device {
 public:
  enum class Habit { kFail, kHang };
  BadDevice(std::unique_ptr<device::Device> good, Habit habit)
      : good_(std::move(good)), habit_(habit) {}
  absl::Status Copy(device::Stream& stream, void* target, const void* source,
                    int64_t bytes) override {
    if (habit_ == Habit::kFail) return absl::DataLossError("a bit fell over");
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    return absl::OkStatus();
  }
  std::string Name() const override { return good_->Name(); }
  absl::Status CheckTarget(const std::string& target,
                           const std::string& features) const override {
    return good_->CheckTarget(target, features);
  }
  bool SharesHostMemory() const override { return true; }
  bool KeepsContent() const override { return true; }
  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    return good_->Allocate(bytes);
  }
  void Free(void* memory, int64_t bytes) override {
    good_->Free(memory, bytes);
  }
  void Release(void* memory, int64_t bytes) override {
    good_->Release(memory, bytes);
  }
  device::MemoryReport Memory() const override { return good_->Memory(); }
  absl::StatusOr<std::unique_ptr<device::Stream>> CreateStream() override {
    return good_->CreateStream();
  }
  absl::StatusOr<std::unique_ptr<device::Event>> CreateEvent() override {
    return good_->CreateEvent();
  }
  absl::Status Record(device::Stream& s, device::Event& e) override {
    return good_->Record(s, e);
  }
  absl::Status Wait(device::Stream& s, device::Event& e) override {
    return good_->Wait(s, e);
  }
  absl::Status Synchronize(device::Stream& s) override {
    return good_->Synchronize(s);
  }
  absl::Status Synchronize(device::Event& e) override {
    return good_->Synchronize(e);
  }
  absl::Status CopyToDevice(device::Stream& s, void* target, const void* host,
                            int64_t bytes) override {
    return good_->CopyToDevice(s, target, host, bytes);
  }
  absl::Status CopyToHost(device::Stream& s, void* host, const void* source,
                          int64_t bytes) override {
    return good_->CopyToHost(s, host, source, bytes);
  }
  absl::StatusOr<std::unique_ptr<device::Module>> LoadModule(
      std::string_view code) override {
    return good_->LoadModule(code);
  }
  absl::Status ReserveLaunchScratch(int64_t bytes) override {
    return good_->ReserveLaunchScratch(bytes);
  }
  absl::Status Launch(device::Stream& s, const device::Kernel& kernel,
                      const device::LaunchShape& shape, void* const* buffers,
                      int count) override {
    return good_->Launch(s, kernel, shape, buffers, count);
  }
  absl::Status LaunchEach(device::Stream& s, const device::Kernel& kernel,
                          const device::LaunchShape& shape,
                          const device::LaunchPieces& pieces,
                          void* const* buffers, int count) override {
    return good_->LaunchEach(s, kernel, shape, pieces, buffers, count);
  }
  absl::StatusOr<std::unique_ptr<device::LibraryOp>> PrepareGemm(
      const device::GemmDesc& desc,
      const std::vector<const void*>& constants) override {
    return good_->PrepareGemm(desc, constants);
  }
  absl::StatusOr<std::unique_ptr<device::LibraryOp>> PrepareGroupedGemm(
      const device::GroupedGemmDesc& desc,
      const std::vector<const void*>& constants) override {
    return good_->PrepareGroupedGemm(desc, constants);
  }
  absl::StatusOr<std::unique_ptr<device::LibraryOp>> PrepareConv(
      const device::ConvDesc& desc,
      const std::vector<const void*>& constants) override {
    return good_->PrepareConv(desc, constants);
  }
  absl::Status Execute(device::Stream& s, device::LibraryOp& op,
                       void* const* buffers, int count) override {
    return good_->Execute(s, op, buffers, count);
  }

 private:
  const std::unique_ptr<device::Device> good_;
  const Habit habit_;
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_BAD_DEVICE_H_
