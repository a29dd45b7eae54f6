// Threads of the CPU device. They are OpenMP's pool, so generated kernels and
// oneDNN share one set of threads.
#ifndef PARTITA_RUNTIME_CPU_THREADS_H_
#define PARTITA_RUNTIME_CPU_THREADS_H_

namespace partita::cpu {

// Returns the number of processors available to this process.
int AvailableProcessors();

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
