// Threads of the CPU device: OpenMP's own pool, so that generated kernels and
// oneDNN share one set of threads.
#ifndef PARTITA_RUNTIME_CPU_THREADS_H_
#define PARTITA_RUNTIME_CPU_THREADS_H_

namespace partita::cpu {

// Processors that this process may use.
int AvailableProcessors();

// Sets how many threads OpenMP regions started by the calling thread use
// (oneDNN's, that is).
void SetOpenMpThreads(int threads);

// Calls function(data, i, n) for each i in [0, n) on n threads, n being at most
// `threads`; returns when all are done. Regions of different sizes make libgomp
// end and start threads: always pass the same number.
void RunOnThreads(int threads,
                  void (*function)(void* data, int thread, int threads),
                  void* data);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_THREADS_H_
