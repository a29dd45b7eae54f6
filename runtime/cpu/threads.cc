// Calls libgomp directly: clang comes without libgomp's headers, and clang's
// OpenMP runtime would add a second thread pool.
#include "runtime/cpu/threads.h"

#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

extern "C" {
void GOMP_parallel(void (*function)(void*), void* data, unsigned threads,
                   unsigned flags);
int omp_get_thread_num();
int omp_get_num_procs();
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

int CgroupProcessors(const std::string& cgroups, const std::string& root) {
  double least = 0;
  const auto limit = [&](double quota, double period) {
    if (quota > 0 && period > 0 && (least == 0 || quota / period < least))
      least = quota / period;
  };
  std::istringstream lines(cgroups);
  // A line is ID:CONTROLLERS:PATH; version 2 has neither ID nor controllers.
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers =
        "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",cpu,") == std::string::npos) continue;
    // A limit of any ancestor holds as well. In a container the path may not
    // exist below the mounted root, which is the container's own group then.
    for (std::string path = line.substr(second + 1);;
         path.resize(path.rfind('/'))) {
      if (path == "/") path.clear();
      double quota = 0, period = 0;
      if (unified) {
        // "max 100000" has no number first, and so leaves quota 0.
        std::ifstream(root + path + "/cpu.max") >> quota >> period;
      } else {
        const std::string folder = root + "/cpu" + path;
        std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
        std::ifstream(folder + "/cpu.cfs_period_us") >> period;
      }
      limit(quota, period);
      if (path.empty() || path.find('/') == std::string::npos) break;
    }
  }
  const int whole = static_cast<int>(least);
  return whole < least ? whole + 1 : whole;
}

int AvailableProcessors() {
  cpu_set_t set;
  int count = static_cast<int>(std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
    count = CPU_COUNT(&set);
  std::ostringstream cgroups;
  cgroups << std::ifstream("/proc/self/cgroup").rdbuf();
  const int share = CgroupProcessors(cgroups.str(), "/sys/fs/cgroup");
  return std::max(share > 0 ? std::min(share, count) : count, 1);
}

void LimitSpinning(int threads) {
  static std::once_flag once;
  const int idle = omp_get_num_procs() - threads + 1;
  if (threads <= 1 || idle <= 0 || idle > 2 * threads ||
      std::getenv("OMP_WAIT_POLICY") != nullptr ||
      std::getenv("GOMP_SPINCOUNT") != nullptr)
    return;
  std::call_once(once, [idle] {
    // A pool lives as long as the thread that made it, so that one sleeps for
    // the rest of the process. Its state is never destroyed.
    struct Ready {
      std::mutex mutex;
      std::condition_variable changed;
      bool yes = false;
    };
    Ready* const ready = new Ready;
    std::thread([idle, ready] {
      GOMP_parallel([](void*) {}, nullptr, static_cast<unsigned>(idle) + 1, 0);
      std::unique_lock<std::mutex> lock(ready->mutex);
      ready->yes = true;
      ready->changed.notify_all();
      ready->changed.wait(lock, [] { return false; });
    }).detach();
    std::unique_lock<std::mutex> lock(ready->mutex);
    ready->changed.wait(lock, [ready] { return ready->yes; });
  });
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
