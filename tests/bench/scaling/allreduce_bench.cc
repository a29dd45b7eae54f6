// Measures how fast the ranks of one process sum a tensor, compared with the
// machine's copy bandwidth and with Open MPI.
//
//   allreduce_bench [MB] [RANKS]                 in process
//   mpirun -np RANKS allreduce_bench_mpi [MB]    MPI_Allreduce
//
// An all-reduce of S bytes on n ranks must move 2 (n-1)/n S bytes through every
// rank. On a machine that copies C bytes per second (all ranks at once, each
// its own bytes), n * 2 (n-1)/n * S / C seconds is the lower bound.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/comm/local.h"

namespace partita::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRuns = 40;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Free {
  void operator()(char* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<char, Free>;

Memory Touched(size_t bytes, int value) {
  Memory memory(static_cast<char*>(std::aligned_alloc(4096, bytes)));
  std::memset(memory.get(), value, bytes);
  return memory;
}

// The buffers of one rank.
struct Rank {
  Memory from, to;
  std::shared_ptr<Collective> sum;
};

Rank MakeRank(Communicator& communicator, int64_t bytes) {
  Operation operation;
  operation.input_shape = operation.output_shape = {bytes / 4};
  operation.name = "bench";
  std::vector<int> group;
  for (int i = 0; i < communicator.size(); ++i) group.push_back(i);
  return {Touched(static_cast<size_t>(bytes), 0),
          Touched(static_cast<size_t>(bytes), 0),
          std::move(communicator.Prepare(operation, group)).value()};
}

enum Task { kCopy, kReduce, kReduceInPlace, kTasks };

void Perform(Task task, Communicator& communicator, Rank& rank, size_t bytes) {
  if (task == kCopy) {
    std::memcpy(rank.to.get(), rank.from.get(), bytes);
    return;
  }
  char* out = task == kReduce ? rank.to.get() : rank.from.get();
  if (!communicator.Run(*rank.sum, rank.from.get(), out).ok()) std::abort();
}

// The best time of each task that all ranks run together, from the first start
// to the last end. Tasks alternate, so that other load on the machine affects
// all of them.
std::vector<double> BestTimes(int64_t bytes, int ranks) {
  const auto communicators = MakeLocalCommunicators(ranks);
  std::vector<std::vector<double>> times(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < times.size(); ++i) {
    threads.emplace_back([&, i] {
      Communicator& communicator = *communicators[i];
      Rank rank = MakeRank(communicator, bytes);
      for (int run = 0; run < kRuns * kTasks; ++run) {
        if (!communicator.Agree(absl::OkStatus()).ok()) std::abort();
        const Clock::time_point begin = Clock::now();
        Perform(static_cast<Task>(run % kTasks), communicator, rank,
                static_cast<size_t>(bytes));
        times[i].push_back(SecondsSince(begin));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<double> best(kTasks, 1e9);
  for (size_t run = 0; run < kRuns * kTasks; ++run) {
    double slowest = 0;
    for (const auto& list : times) slowest = std::max(slowest, list[run]);
    best[run % kTasks] = std::min(best[run % kTasks], slowest);
  }
  return best;
}

void Measure(int64_t bytes, int ranks) {
  const std::vector<double> seconds = BestTimes(bytes, ranks);
  const double n = ranks;
  const double total = static_cast<double>(bytes) * n;
  const double moved = total * 2 * (n - 1) / n;
  const double copying = total / seconds[kCopy];
  std::printf("%.0f MB on %d ranks, best of %d\n",
              static_cast<double>(bytes) / 1e6, ranks, kRuns);
  std::printf("each copies its own    %7.2f ms  %7.2f GB/s\n",
              seconds[kCopy] * 1e3, copying * 1e-9);
  for (const Task task : {kReduce, kReduceInPlace}) {
    std::printf("all-reduce %-10s  %7.2f ms  %7.2f GB/s  %5.1f %% of copying\n",
                task == kReduceInPlace ? "in place" : "", seconds[task] * 1e3,
                moved / seconds[task] * 1e-9,
                100 * moved / seconds[task] / copying);
  }
}

}  // namespace
}  // namespace partita::comm

int main(int argc, char** argv) {
  const long megabytes = argc > 1 ? std::atol(argv[1]) : 64;
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 2;
  if (megabytes < 1 || ranks < 1) return 2;
  partita::comm::Measure(megabytes * 1000 * 1000 / 4096 * 4096, ranks);
  return 0;
}
