// A thread per rank, kept from one job to the next: OpenMP's pools belong to
// the threads that use them.
#ifndef PARTITA_RUNTIME_EXECUTOR_RANK_THREADS_H_
#define PARTITA_RUNTIME_EXECUTOR_RANK_THREADS_H_

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/communicator.h"

namespace partita::executor {

class RankThreads {
 public:
  RankThreads(int ranks, const comm::CommOptions& options);
  // Threads that still work on a job that Run gave up are left behind; what the
  // job holds lives as long as they do.
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  using Job = std::function<absl::Status(comm::Communicator&)>;

  // Runs `job` on every rank. When one fails, the others learn of it; when one
  // neither comes back nor makes progress for `timeout_factor` times the usual
  // timeout, Run returns without it. Returns the error that came first, with
  // the rank. After an error every Run fails.
  absl::Status Run(Job job, int timeout_factor = 1);

 private:
  struct Shared;
  static void Work(std::shared_ptr<Shared> shared, int rank);
  absl::Status Result() const;
  // Whether all ranks are done, or some failed; false if none progresses.
  bool Await(std::unique_lock<std::mutex>& lock,
             std::chrono::milliseconds timeout);

  const std::chrono::milliseconds timeout_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_RANK_THREADS_H_
