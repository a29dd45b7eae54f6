// Shares one transport between both endpoints of a rank.
#ifndef PARTITA_RUNTIME_COMM_SHARED_TRANSPORT_H_
#define PARTITA_RUNTIME_COMM_SHARED_TRANSPORT_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "runtime/comm/message.h"

namespace partita::comm {

// Every call holds a lock. Used by several threads.
class SharedTransport : public Transport {
 public:
  explicit SharedTransport(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)) {}

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  std::string Describe(int rank) const override {
    return transport_->Describe(rank);
  }
  bool ServesSeveralThreads() const override {
    return transport_->ServesSeveralThreads();
  }
  absl::StatusOr<Request> Send(const void* data, int64_t bytes, int to,
                               Stream stream) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return transport_->Send(data, bytes, to, stream);
  }
  absl::StatusOr<Request> Receive(void* data, int64_t bytes, int from,
                                  Stream stream) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return transport_->Receive(data, bytes, from, stream);
  }
  absl::StatusOr<bool> Test(Request request) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return transport_->Test(request);
  }
  absl::Status SendSign(int number, int to) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return transport_->SendSign(number, to);
  }
  absl::StatusOr<std::optional<Sign>> NextSign() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return transport_->NextSign();
  }
  absl::Status Health() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return transport_->Health();
  }
  void Fail(const absl::Status& status) override {
    failed_.store(true, std::memory_order_relaxed);
    const std::lock_guard<std::mutex> lock(mutex_);
    transport_->Fail(status);
  }

  // True if an endpoint of this rank has failed.
  bool failed() const { return failed_.load(std::memory_order_relaxed); }

 private:
  const std::unique_ptr<Transport> transport_;
  std::mutex mutex_;
  std::atomic<bool> failed_{false};
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_SHARED_TRANSPORT_H_
