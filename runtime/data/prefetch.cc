// A bounded queue between the reading thread and the training thread. Only the
// reading thread uses the source, except while it is stopped.
#include "runtime/data/prefetch.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::data {
namespace {

class PrefetchSource : public BatchSource {
 public:
  PrefetchSource(std::unique_ptr<BatchSource> source, std::vector<Batch> empty)
      : source_(std::move(source)),
        state_(source_->State()),
        empty_(std::move(empty)) {}
  ~PrefetchSource() override { Stop(); }

  const std::vector<base::TensorSpec>& specs() const override {
    return source_->specs();
  }

  absl::Status Next(Batch& batch) override {
    PARTITA_RETURN_IF_ERROR(Start());
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty(); });
    // An error stays in the queue, since the thread stops after it.
    if (!ready_.front().status.ok()) return ready_.front().status;
    std::swap(batch, ready_.front().batch);
    state_ = std::move(ready_.front().state);
    empty_.push_back(std::move(ready_.front().batch));
    ready_.pop_front();
    changed_.notify_all();
    return absl::OkStatus();
  }

  std::string State() const override { return state_; }

  absl::Status Restore(const std::string& state) override {
    Stop();
    // Batches read ahead are read again: from the new state, or from the old
    // one if the new state is refused.
    for (Ready& ready : ready_) empty_.push_back(std::move(ready.batch));
    ready_.clear();
    const absl::Status status = source_->Restore(state);
    if (!status.ok()) {
      PARTITA_RETURN_IF_ERROR(source_->Restore(state_));
      return status;
    }
    state_ = source_->State();
    return absl::OkStatus();
  }

 private:
  struct Ready {
    absl::Status status;
    Batch batch;
    std::string state;
  };

  absl::Status Start() {
    if (thread_.joinable()) return absl::OkStatus();
    stop_ = false;
    try {
      thread_ = std::thread([this] { Read(); });
    } catch (const std::system_error& error) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "cannot start the thread that reads data: ", error.what(),
          "; is the limit of threads reached?"));
    }
    return absl::OkStatus();
  }

  void Stop() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void Read() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stop_ || !empty_.empty(); });
      if (stop_) return;
      Ready ready;
      ready.batch = std::move(empty_.back());
      empty_.pop_back();
      lock.unlock();
      ready.status = source_->Next(ready.batch);
      ready.state = source_->State();
      lock.lock();
      ready_.push_back(std::move(ready));
      changed_.notify_all();
      if (!ready_.back().status.ok()) return;
    }
  }

  const std::unique_ptr<BatchSource> source_;
  std::string state_;  // of the thread that calls Next
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::vector<Batch> empty_;
  std::deque<Ready> ready_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> Prefetch(
    std::unique_ptr<BatchSource> source, int depth) {
  if (depth < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("expected to read at least 1 batch ahead, found ", depth));
  std::vector<Batch> batches;
  for (int i = 0; i < depth; ++i) {
    PARTITA_ASSIGN_OR_RETURN(Batch batch, Batch::Allocate(source->specs()));
    batches.push_back(std::move(batch));
  }
  return std::make_unique<PrefetchSource>(std::move(source),
                                          std::move(batches));
}

}  // namespace partita::data
