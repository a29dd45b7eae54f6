// Calls libgomp directly: clang comes without libgomp's headers, and its own
// OpenMP runtime would be a second pool.
#include "runtime/cpu/threads.h"

#include <sched.h>

#include <thread>

extern "C" {
void GOMP_parallel(void (*function)(void*), void* data, unsigned threads,
                   unsigned flags);
int omp_get_thread_num();
int omp_get_num_threads();
void omp_set_num_threads(int threads);
}

namespace partita::cpu {
namespace {

struct Region {
  void (*function)(void* data, int thread, int threads);
  void* data;
};

void RunRegion(void* data) {
  const Region& region = *static_cast<const Region*>(data);
  region.function(region.data, omp_get_thread_num(), omp_get_num_threads());
}

}  // namespace

int AvailableProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
    return CPU_COUNT(&set);
  const unsigned count = std::thread::hardware_concurrency();
  return count > 0 ? static_cast<int>(count) : 1;
}

void SetOpenMpThreads(int threads) { omp_set_num_threads(threads); }

void RunOnThreads(int threads,
                  void (*function)(void* data, int thread, int threads),
                  void* data) {
  if (threads <= 1) return function(data, 0, 1);
  Region region = {function, data};
  GOMP_parallel(&RunRegion, &region, static_cast<unsigned>(threads), 0);
}

}  // namespace partita::cpu
