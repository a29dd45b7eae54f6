// Threads of the CPU device. They are OpenMP's pool, so generated kernels and
// oneDNN share one set of threads.
#ifndef PARTITA_RUNTIME_CPU_THREADS_H_
#define PARTITA_RUNTIME_CPU_THREADS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"

namespace partita::cpu {

// Opens libgomp, OpenMP's runtime, once. Waiting threads spin, and then sleep:
// for 0.3 to 1.2 ms if hardly any process of the machine has waited for a
// processor lately and this process has no quota of time (cgroups), or if it
// has real-time priority; else for 30 to 120 us,
// because libgomp's own 3 ms would take processors from whoever else has work,
// the threads that are waited for among them. This is chosen once, as libgomp
// reads it once, and does not follow later load. OMP_WAIT_POLICY and
// GOMP_SPINCOUNT in the environment take precedence, and so does the
// configuration of a program that has loaded libgomp before.
// FailedPrecondition, with what to install, if it is missing. Any thread may
// call it; the first call writes to the environment for a moment, so no other
// thread may do so then.
absl::Status OpenOpenMp();

// The share of time, in percent, in which a thread of the machine waited for a
// processor: the kernel's average over about ten seconds. `pressure` is the
// text of /proc/pressure/cpu; nullopt if it is something else, such as empty
// because the kernel has none.
std::optional<double> WaitingPercent(const std::string& pressure);

// The functions below need OpenOpenMp to have returned OK.

// While it lives, OpenMP regions that the calling thread starts, which are
// oneDNN's, have this many threads. Then they have as many as before: other
// libraries of the program may use OpenMP, such as PyTorch.
class OpenMpThreads {
 public:
  explicit OpenMpThreads(int threads);
  ~OpenMpThreads();
  OpenMpThreads(const OpenMpThreads&) = delete;

 private:
  int before_;
};

// Calls function(data, i, n) for each i in [0, n) on n threads, n being at most
// `threads`. Returns when all are done. libgomp ends and starts threads when
// the region size changes, so always pass the same number.
void RunOnThreads(int threads,
                  void (*function)(void* data, int thread, int threads),
                  void* data);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_THREADS_H_
