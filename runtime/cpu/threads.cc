// Calls libgomp directly: clang comes without libgomp's headers, and clang's
// OpenMP runtime would add a second thread pool.
#include "runtime/cpu/threads.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/status/statusor.h"
#include "runtime/base/library.h"
#include "runtime/base/status_macros.h"

extern "C" {
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

// Rounds of waiting before a thread sleeps: a round is one pause instruction,
// some 10 to 40 ns. Measured on ViT-Ti on two threads: with 100 rounds a quiet
// run takes 15 % longer, with 1,500 it takes 3 %, with 3,000 none; beside two
// busy processes it takes 1.9, 2.3 and 2.8 times as long, and 5 to 45 times
// with libgomp's 300,000.
constexpr char kSpinRounds[] = "2000";

struct OpenMp {
  void (*parallel)(void (*function)(void*), void* data, unsigned threads,
                   unsigned flags) = nullptr;
  int (*thread)() = nullptr;
  int (*threads)() = nullptr;
  void (*set_threads)(int threads) = nullptr;
};

absl::StatusOr<OpenMp> Open() {
  constexpr char kSpin[] = "GOMP_SPINCOUNT";
  const bool configures = std::getenv("OMP_WAIT_POLICY") == nullptr &&
                          std::getenv(kSpin) == nullptr;
  if (configures) setenv(kSpin, kSpinRounds, /*overwrite=*/1);
  const absl::StatusOr<base::Library> library =
      base::Library::Open({"libgomp.so.1"}, "libgomp, OpenMP's runtime",
                          "install it (Debian 12: libgomp1)");
  if (configures) unsetenv(kSpin);
  PARTITA_RETURN_IF_ERROR(library.status());
  OpenMp functions;
  PARTITA_RETURN_IF_ERROR(library->Load("GOMP_parallel", &functions.parallel));
  PARTITA_RETURN_IF_ERROR(
      library->Load("omp_get_thread_num", &functions.thread));
  PARTITA_RETURN_IF_ERROR(
      library->Load("omp_get_num_threads", &functions.threads));
  PARTITA_RETURN_IF_ERROR(
      library->Load("omp_set_num_threads", &functions.set_threads));
  return functions;
}

const absl::StatusOr<OpenMp>& Opened() {
  static const auto* const opened = new absl::StatusOr<OpenMp>(Open());
  return *opened;
}

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
  region.function(region.data, Opened()->thread(), Opened()->threads());
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

absl::Status OpenOpenMp() { return Opened().status(); }

void SetOpenMpThreads(int threads) { Opened()->set_threads(threads); }

void RunOnThreads(int threads,
                  void (*function)(void* data, int thread, int threads),
                  void* data) {
  if (threads <= 1) return function(data, 0, 1);
  Region region = {function, data};
  Release(&region);
  Opened()->parallel(&RunRegion, &region, static_cast<unsigned>(threads), 0);
  Acquire(&region);
}

}  // namespace partita::cpu
