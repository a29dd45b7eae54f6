// Calls libgomp directly: clang comes without libgomp's headers, and clang's
// OpenMP runtime would add a second thread pool.
#include "runtime/cpu/threads.h"

#include <sched.h>

#include <thread>

extern "C" {
void GOMP_parallel(void (*function)(void*), void* data, unsigned threads,
                   unsigned flags);
int omp_get_thread_num();
int omp_get_num_threads();
void omp_set_num_threads(int threads);
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PARTITA_TSAN
void __tsan_acquire(void* address);
void __tsan_release(void* address);
#endif
#endif
}

namespace partita::cpu {
namespace {

// Tells ThreadSanitizer where libgomp's threads begin and end a region.
void Acquire([[maybe_unused]] void* region) {
#ifdef PARTITA_TSAN
  __tsan_acquire(region);
#endif
}

void Release([[maybe_unused]] void* region) {
#ifdef PARTITA_TSAN
  __tsan_release(region);
#endif
}

struct Region {
  void (*function)(void* data, int thread, int threads);
  void* data;
};

void RunRegion(void* data) {
  Acquire(data);
  const Region& region = *static_cast<const Region*>(data);
  region.function(region.data, omp_get_thread_num(), omp_get_num_threads());
  Release(data);
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
  Release(&region);
  GOMP_parallel(&RunRegion, &region, static_cast<unsigned>(threads), 0);
  Acquire(&region);
}

}  // namespace partita::cpu
