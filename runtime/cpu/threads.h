// Threads of the CPU device. They are OpenMP's pool, so generated kernels and
// oneDNN share one set of threads.
#ifndef PARTITA_RUNTIME_CPU_THREADS_H_
#define PARTITA_RUNTIME_CPU_THREADS_H_

#include <string>

namespace partita::cpu {

// Returns the number of processors that this process may use at a time: those
// of its affinity mask, or fewer if its cgroup's share of time is smaller
// (cpu.max, or cpu.cfs_quota_us of version 1). At least 1.
int AvailableProcessors();

// The share of `/proc/self/cgroup` and the files below `root`
// ("/sys/fs/cgroup") in processors, rounded up; 0 if there is no limit.
int CgroupProcessors(const std::string& cgroups, const std::string& root);

// Makes waiting threads of OpenMP regions sleep after some 10 us. libgomp lets
// them spin for 3 ms otherwise, which takes processors from whoever else has
// work: from other processes, and from the threads that are waited for. Call it
// before regions of `threads` threads; later calls do nothing.
//
// libgomp spins shortly when it manages more threads than there are processors
// (do_spin in its config/linux/wait.h), so a few idle threads are added, which
// sleep until the process ends. Does nothing where OMP_WAIT_POLICY or
// GOMP_SPINCOUNT is set, or where that would take more idle threads than twice
// `threads`: then processors are left for others.
void LimitSpinning(int threads);

// Sets the number of threads of OpenMP regions that the calling thread starts,
// which are oneDNN's.
void SetOpenMpThreads(int threads);

// Calls function(data, i, n) for each i in [0, n) on n threads, n being at most
// `threads`. Returns when all are done. libgomp ends and starts threads when
// the region size changes, so always pass the same number.
void RunOnThreads(int threads,
                  void (*function)(void* data, int thread, int threads),
                  void* data);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_THREADS_H_
