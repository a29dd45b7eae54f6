// A queue, and a thread that empties it.
#include "runtime/comm/started.h"

#include <utility>

#include "runtime/base/status_macros.h"

namespace partita::comm {

absl::Status StartedOperations::Job::RunAt(Communicator& communicator) const {
  return MovesRows(collective->operation().kind)
             ? communicator.RunRows(*collective, input, to, output)
             : communicator.Run(*collective, input, output);
}

StartedOperations::StartedOperations(Communicator& communicator)
    : communicator_(communicator), beside_(communicator.MakeBeside()) {
  if (beside_ != nullptr) thread_ = std::thread(&StartedOperations::Work, this);
}

StartedOperations::~StartedOperations() {
  if (beside_ == nullptr) return;
  GiveUp(absl::CancelledError("operations that were started are not awaited"));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StartedOperations::GiveUp(const absl::Status& status) {
  if (beside_ == nullptr) return;
  std::unique_lock<std::mutex> lock(mutex_);
  if (jobs_.empty() && !busy_) return;
  jobs_.clear();
  if (failure_.ok()) failure_ = status;
  lock.unlock();
  communicator_.Fail(status);
  lock.lock();
  changed_.wait(lock, [this] { return !busy_; });
}

absl::StatusOr<std::unique_ptr<Collective>> StartedOperations::Prepare(
    Operation operation, std::vector<int> ranks) {
  Communicator& end = beside_ == nullptr ? communicator_ : *beside_;
  return end.Prepare(std::move(operation), std::move(ranks));
}

absl::StatusOr<int64_t> StartedOperations::Start(Collective& collective,
                                                 const void* input,
                                                 void* output) {
  return Start({&collective, input, /*to=*/nullptr, output});
}

absl::StatusOr<int64_t> StartedOperations::StartRows(Collective& collective,
                                                     const void* input,
                                                     const int64_t* to,
                                                     void* output) {
  return Start({&collective, input, to, output});
}

absl::StatusOr<int64_t> StartedOperations::Start(const Job& job) {
  if (beside_ == nullptr) {
    PARTITA_RETURN_IF_ERROR(job.RunAt(communicator_));
    done_ = ++last_;
    return last_;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    PARTITA_RETURN_IF_ERROR(failure_);
    jobs_.push_back(job);
    ++last_;
  }
  changed_.notify_all();
  return last_;
}

absl::Status StartedOperations::Await(int64_t number) {
  if (beside_ == nullptr) return absl::OkStatus();
  const auto done = [&] { return done_ >= number || !failure_.ok(); };
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (done()) return failure_;
  }
  const absl::Status waited =
      communicator_.WaitFor(*beside_, [&](std::chrono::milliseconds slice) {
        std::unique_lock<std::mutex> lock(mutex_);
        return changed_.wait_for(lock, slice, done);
      });
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failure_.ok()) failure_ = waited;
  return waited.ok() ? failure_ : waited;
}

void StartedOperations::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (ending_) return;
    const Job job = jobs_.front();
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    const absl::Status status = job.RunAt(*beside_);
    lock.lock();
    busy_ = false;
    if (status.ok()) {
      ++done_;
    } else {
      if (failure_.ok()) failure_ = status;
      jobs_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace partita::comm
