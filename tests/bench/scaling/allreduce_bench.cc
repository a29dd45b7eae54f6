// How fast ranks of one process sum a tensor, beside what the machine copies
// and beside Open MPI.
//
//   allreduce_bench [MB] [RANKS]                 in process
//   mpirun -np RANKS allreduce_bench_mpi [MB]    MPI_Allreduce
//
// An all-reduce of S bytes on n ranks must move 2 (n-1)/n S bytes through every
// rank, which a machine that copies C bytes a second (bytes copied, all ranks
// at once, each its own) does in no less than n * 2 (n-1)/n * S / C seconds.
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

constexpr int kRuns = 15;

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

// Best time of a body that all ranks run at once, from the first to start to
// the last to end.
template <typename Body>
double BestTime(int ranks, const Body& make_body) {
  const auto meet = MakeLocalCommunicators(ranks);
  std::vector<std::vector<double>> times(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto body = make_body(rank);
      for (int i = 0; i < kRuns; ++i) {
        (void)meet[static_cast<size_t>(rank)]->Agree(absl::OkStatus());
        const Clock::time_point begin = Clock::now();
        body();
        times[static_cast<size_t>(rank)].push_back(SecondsSince(begin));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  double best = 1e9;
  for (size_t i = 0; i < kRuns; ++i) {
    double slowest = 0;
    for (const auto& list : times) slowest = std::max(slowest, list[i]);
    best = std::min(best, slowest);
  }
  return best;
}

void Measure(int64_t bytes, int ranks) {
  const size_t size = static_cast<size_t>(bytes);
  const double copy = BestTime(ranks, [&](int) {
    auto from = std::make_shared<Memory>(Touched(size, 1));
    auto to = std::make_shared<Memory>(Touched(size, 2));
    return [from, to, size] { std::memcpy(to->get(), from->get(), size); };
  });
  const auto communicators = MakeLocalCommunicators(ranks);
  const auto reduce = [&](bool in_place) {
    return BestTime(ranks, [&, in_place](int rank) {
      Operation operation;
      operation.input_shape = operation.output_shape = {bytes / 4};
      operation.name = "bench";
      std::vector<int> group;
      for (int i = 0; i < ranks; ++i) group.push_back(i);
      Communicator* communicator =
          communicators[static_cast<size_t>(rank)].get();
      std::shared_ptr<Collective> collective =
          std::move(communicator->Prepare(operation, group)).value();
      auto from = std::make_shared<Memory>(Touched(size, 0));
      auto to = std::make_shared<Memory>(Touched(in_place ? 4096 : size, 0));
      return [=] {
        char* out = in_place ? from->get() : to->get();
        const absl::Status status =
            communicator->Run(*collective, from->get(), out);
        if (!status.ok()) std::abort();
      };
    });
  };
  const double n = ranks;
  const double total = static_cast<double>(bytes) * n;
  const double moved = total * 2 * (n - 1) / n;
  std::printf("%.0f MB on %d ranks, best of %d\n",
              static_cast<double>(bytes) / 1e6, ranks, kRuns);
  std::printf("copy of own memory, all at once  %7.2f GB/s\n",
              total / copy * 1e-9);
  for (const bool in_place : {false, true}) {
    const double seconds = reduce(in_place);
    std::printf("all-reduce %-12s %7.2f ms  %7.2f GB/s  %5.1f %% of copying\n",
                in_place ? "in place" : "", seconds * 1e3,
                moved / seconds * 1e-9,
                100 * (moved / seconds) / (total / copy));
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
