// Threads wait until the job number changes.
#include "runtime/executor/rank_threads.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/local.h"

namespace partita::executor {
namespace {

constexpr int kGraceMilliseconds = 5000;

}  // namespace

struct RankThreads::Shared {
  std::vector<std::unique_ptr<comm::Communicator>> communicators;
  std::vector<std::thread> threads;

  std::mutex mutex;
  std::condition_variable changed;
  int64_t number = 0;  // number of the current job
  bool ending = false;
  Job job;
  std::vector<std::optional<absl::Status>> results;  // empty: still running
  int failed = -1;       // rank with the first error
  absl::Status failure;  // of a rank that did not return
  size_t done = 0;
};

RankThreads::RankThreads(int ranks, const comm::CommOptions& options)
    : timeout_(options.timeout), shared_(std::make_shared<Shared>()) {
  shared_->communicators = comm::MakeLocalCommunicators(ranks, options);
  shared_->results.resize(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    shared_->threads.emplace_back(&RankThreads::Work, shared_, rank);
}

RankThreads::~RankThreads() {
  std::vector<std::thread> threads;
  std::vector<bool> stuck;
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->ending = true;
    threads = std::move(shared_->threads);
    for (const auto& result : shared_->results)
      stuck.push_back(shared_->number > 0 && !result);
  }
  shared_->changed.notify_all();
  for (size_t i = 0; i < threads.size(); ++i) {
    if (stuck[i]) {
      threads[i].detach();
    } else {
      threads[i].join();
    }
  }
}

void RankThreads::Work(std::shared_ptr<Shared> shared, int rank) {
  const size_t index = static_cast<size_t>(rank);
  int64_t number = 0;
  while (true) {
    Job job;
    {
      std::unique_lock<std::mutex> lock(shared->mutex);
      shared->changed.wait(
          lock, [&] { return shared->ending || shared->number != number; });
      if (shared->ending) return;
      number = shared->number;
      job = shared->job;
    }
    comm::Communicator& communicator = *shared->communicators[index];
    absl::Status status = job(communicator);
    if (!status.ok()) communicator.Fail(status);
    job = nullptr;
    {
      const std::lock_guard<std::mutex> lock(shared->mutex);
      if (!status.ok() && shared->failed < 0) shared->failed = rank;
      shared->results[index] = std::move(status);
      ++shared->done;
    }
    shared->changed.notify_all();
  }
}

absl::Status RankThreads::Result() const {
  if (shared_->failed < 0) return absl::OkStatus();
  if (!shared_->failure.ok()) return shared_->failure;
  // A rank's own error says more than an abort caused by another rank.
  int rank = shared_->failed;
  for (size_t i = 0; i < shared_->results.size(); ++i) {
    const auto& result = shared_->results[i];
    const auto& first = shared_->results[static_cast<size_t>(rank)];
    if (result && !result->ok() && !absl::IsAborted(*result) &&
        absl::IsAborted(*first))
      rank = static_cast<int>(i);
  }
  const absl::Status& status = *shared_->results[static_cast<size_t>(rank)];
  // These errors name the failing rank already.
  if (shared_->communicators[static_cast<size_t>(rank)]->agreed() ||
      absl::IsAborted(status) || absl::IsDeadlineExceeded(status))
    return status;
  return absl::Status(status.code(),
                      absl::StrCat("rank ", rank, ": ", status.message()));
}

bool RankThreads::Await(std::unique_lock<std::mutex>& lock,
                        std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const auto finished = [&] {
    return shared_->done == shared_->results.size() || shared_->failed >= 0;
  };
  const auto slice = std::clamp<std::chrono::milliseconds>(
      timeout / 4, std::chrono::milliseconds(1), std::chrono::seconds(1));
  Clock::time_point since = Clock::now();
  uint64_t seen = 0;
  while (!shared_->changed.wait_for(lock, slice, finished)) {
    uint64_t state = shared_->done;
    for (const auto& communicator : shared_->communicators)
      state += communicator->Beats();
    if (state != seen) since = Clock::now();
    seen = state;
    // Waiting ranks detect a stalled peer sooner than this.
    if (Clock::now() - since > 3 * timeout) return false;
  }
  return true;
}

absl::Status RankThreads::Run(Job job, int timeout_factor) {
  std::unique_lock<std::mutex> lock(shared_->mutex);
  if (shared_->failed >= 0) return Result();
  for (auto& result : shared_->results) result.reset();
  shared_->done = 0;
  shared_->job = std::move(job);
  ++shared_->number;
  shared_->changed.notify_all();
  const auto all_done = [&] {
    return shared_->done == shared_->results.size();
  };
  // Ranks watch each other; this wait matters once all others are done.
  if (!Await(lock, timeout_factor * timeout_)) {
    for (size_t i = 0; i < shared_->results.size(); ++i) {
      if (shared_->results[i]) continue;
      shared_->failed = static_cast<int>(i);
      shared_->failure = absl::DeadlineExceededError(
          absl::StrCat("rank ", i,
                       " did not finish its step and made no "
                       "progress for ",
                       (3 * timeout_factor * timeout_).count(), " ms"));
      shared_->communicators[i]->Fail(shared_->failure);
      break;
    }
  }
  // After the first failure the other ranks only need to notice it.
  if (!all_done()) {
    const auto grace =
        std::min(timeout_, std::chrono::milliseconds(kGraceMilliseconds));
    shared_->changed.wait_for(lock, grace, all_done);
  }
  shared_->job = nullptr;
  return Result();
}

}  // namespace partita::executor
