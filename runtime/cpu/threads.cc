// Calls libgomp directly: clang comes without libgomp's headers, and clang's
// OpenMP runtime would add a second thread pool.
#include "runtime/cpu/threads.h"

#include <dlfcn.h>
#include <sched.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "absl/status/statusor.h"
#include "runtime/base/library.h"
#include "runtime/base/processors.h"
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

// Rounds of waiting before a thread sleeps. A round is one pause instruction,
// which takes 10 to 40 ns. Measured on ViT-Ti on two threads of two processors,
// with 2,000 / 3,000 / 5,000 rounds beside two busy processes: a run takes 2.4
// / 2.8 / 3.4 times as long as on an idle machine, and 48 times with libgomp's
// 300,000.
constexpr char kRoundsBesideOthers[] = "3000";
// Between regions, steps run on one thread, and whoever fell asleep comes late
// to the next region. Measured with real-time priority on two threads, 30,000
// rounds take 0.6 of the time of 3,000 for EfficientFormerV2-S1 and
// MobileNetV3-L, 0.87 for ResNet-50, and as much as 300,000.
constexpr char kRoundsAlone[] = "30000";

// In percent; above 0 for the processes that come and go on an idle machine.
constexpr double kMostWaitingAlone = 1;

bool HasProcessorsAlone() {
  // Ordinary processes cannot take a processor from a real-time process.
  const int policy = sched_getscheduler(0);
  if (policy == SCHED_FIFO || policy == SCHED_RR) return true;
  // Waiting threads would spend a container's share of time.
  std::ifstream groups("/proc/self/cgroup");
  if (base::CgroupProcessors({std::istreambuf_iterator<char>(groups), {}},
                             "/sys/fs/cgroup") > 0)
    return false;
  std::ifstream file("/proc/pressure/cpu");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::optional<double> waiting = WaitingPercent(text);
  return waiting.has_value() && *waiting <= kMostWaitingAlone;
}

struct OpenMp {
  void (*parallel)(void (*function)(void*), void* data, unsigned threads,
                   unsigned flags) = nullptr;
  int (*thread)() = nullptr;
  int (*threads)() = nullptr;
  int (*most_threads)() = nullptr;
  void (*set_threads)(int threads) = nullptr;
};

absl::StatusOr<OpenMp> Open() {
  constexpr char kSpin[] = "GOMP_SPINCOUNT";
  const bool configures =
      dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD) == nullptr &&
      std::getenv("OMP_WAIT_POLICY") == nullptr &&
      std::getenv(kSpin) == nullptr;
  if (configures) {
    setenv(kSpin, HasProcessorsAlone() ? kRoundsAlone : kRoundsBesideOthers,
           /*overwrite=*/1);
  }
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
      library->Load("omp_get_max_threads", &functions.most_threads));
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

std::optional<double> WaitingPercent(const std::string& pressure) {
  std::istringstream words(pressure);
  std::string some, average;
  words >> some >> average;
  constexpr char kAverage[] = "avg10=";
  if (some != "some" || average.rfind(kAverage, 0) != 0) return std::nullopt;
  std::istringstream number(average.substr(sizeof(kAverage) - 1));
  double percent = 0;
  if (!(number >> percent)) return std::nullopt;
  return percent;
}

absl::Status OpenOpenMp() { return Opened().status(); }

OpenMpThreads::OpenMpThreads(int threads) : before_(Opened()->most_threads()) {
  Opened()->set_threads(threads);
}

OpenMpThreads::~OpenMpThreads() { Opened()->set_threads(before_); }

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
