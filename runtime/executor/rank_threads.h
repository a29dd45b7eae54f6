// One thread per rank, kept from job to job because OpenMP's thread pools
// belong to the threads that use them.
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
  // Threads still working on a job that Run gave up are left behind and keep
  // the job alive.
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  using Job = std::function<absl::Status(comm::Communicator&)>;

  // Runs `job` on every rank. If a rank fails, the others are told. If a rank
  // neither returns nor makes progress for `timeout_factor` times 3 timeouts,
  // Run returns without it. Returns the first error, with its rank. After an
  // error every Run fails.
  absl::Status Run(Job job, int timeout_factor = 1);

 private:
  struct Shared;
  static void Work(std::shared_ptr<Shared> shared, int rank);
  absl::Status Result() const;
  // Returns true once all ranks are done or one has failed; false if no rank
  // makes progress.
  bool Await(std::unique_lock<std::mutex>& lock,
             std::chrono::milliseconds timeout);

  const std::chrono::milliseconds timeout_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_RANK_THREADS_H_
