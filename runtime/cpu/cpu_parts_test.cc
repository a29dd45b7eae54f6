// Tests of the CPU device's parts that need no program: features, threads, ELF
// checks.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/processors.h"
#include "runtime/cpu/elf_check.h"
#include "runtime/cpu/features.h"
#include "runtime/cpu/threads.h"

namespace partita::cpu {
namespace {

using ::testing::HasSubstr;

TEST(FeaturesTest, MissingOnesAreNamed) {
  const std::set<std::string> flags = {"avx", "avx2", "sse4_1"};
  EXPECT_TRUE(CheckFeatures("", flags).ok());
  EXPECT_TRUE(CheckFeatures("+avx2,+sse4.1,-avx512f", flags).ok());
  // Features that no generated code uses are ignored.
  EXPECT_TRUE(CheckFeatures("+avx,+invpcid,+64bit", flags).ok());
  const absl::Status status =
      CheckFeatures("+avx2,+avx512f,+avx512bf16", flags);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("a processor with avx512f, avx512bf16, which this one lacks"));
}

TEST(FeaturesTest, ThisProcessorIsKnown) {
  EXPECT_GT(HostFlags().count("sse2") + HostFlags().count("asimd"), 0u);
}

TEST(ThreadsTest, EveryThreadRunsOnce) {
  struct Seen {
    std::mutex mutex;
    std::vector<int> threads;
    int count = 0;
  };
  ASSERT_TRUE(OpenOpenMp().ok()) << OpenOpenMp();
  for (const int wanted : {1, 2, 4}) {
    Seen seen;
    RunOnThreads(
        wanted,
        [](void* data, int thread, int threads) {
          Seen& seen = *static_cast<Seen*>(data);
          const std::lock_guard<std::mutex> lock(seen.mutex);
          seen.threads.push_back(thread);
          seen.count = threads;
        },
        &seen);
    std::sort(seen.threads.begin(), seen.threads.end());
    EXPECT_LE(seen.count, wanted);
    std::vector<int> expected;
    for (int i = 0; i < seen.count; ++i) expected.push_back(i);
    EXPECT_EQ(seen.threads, expected);
  }
}

// Processor time of this process, of all threads, in seconds.
double ProcessorSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) / 1e9;
}

TEST(ThreadsTest, WaitingThreadsSleep) {
  const int processors = base::AvailableProcessors();
  if (processors < 2) return;
  for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"})
    if (std::getenv(name) != nullptr) return;  // the user's choice
  ASSERT_TRUE(OpenOpenMp().ok()) << OpenOpenMp();
  const auto noop = [](void*, int, int) {};
  const double begin = ProcessorSeconds();
  // Between regions this thread sleeps for 20 ms: the others must, too.
  for (int i = 0; i < 20; ++i) {
    RunOnThreads(processors, noop, nullptr);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  // With libgomp's own configuration, each spinning thread uses 60 ms at least.
  EXPECT_LT(ProcessorSeconds() - begin, 0.04 * (processors - 1));
}

TEST(ThreadsTest, WaitingPercentIsRead) {
  EXPECT_EQ(WaitingPercent("some avg10=12.50 avg60=3.00 avg300=0.10 total=9\n"
                           "full avg10=1.00 avg60=0.00 avg300=0.00 total=3\n"),
            12.5);
  EXPECT_EQ(WaitingPercent("some avg10=0.00 avg60=3.00"), 0.0);
  for (const char* other : {"", "some", "full avg10=1.00", "some avg10=",
                            "some avg10=x avg60=1", "some avg60=1.00"})
    EXPECT_EQ(WaitingPercent(other), std::nullopt) << other;
}

TEST(ElfCheckTest, OnlyWholeLibrariesPass) {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::string code{std::istreambuf_iterator<char>(file),
                   std::istreambuf_iterator<char>()};
  ASSERT_GT(code.size(), 10000u);
  // This program is position independent, so the checker accepts it as a shared
  // library.
  EXPECT_TRUE(CheckSharedLibrary(code).ok()) << CheckSharedLibrary(code);
  EXPECT_THAT(std::string(CheckSharedLibrary("").message()),
              HasSubstr("it has 0 bytes"));
  EXPECT_THAT(std::string(CheckSharedLibrary(std::string(1000, 'x')).message()),
              HasSubstr("it is not an ELF file"));
  EXPECT_THAT(std::string(CheckSharedLibrary(code.substr(0, 100)).message()),
              HasSubstr("it is truncated"));
  EXPECT_THAT(std::string(CheckSharedLibrary(code.substr(0, 5000)).message()),
              HasSubstr("it is truncated"));
  std::string other = code;
  other[4] = 1;  // 32 bit
  EXPECT_THAT(std::string(CheckSharedLibrary(other).message()),
              HasSubstr("another kind of processor"));
}

}  // namespace
}  // namespace partita::cpu
