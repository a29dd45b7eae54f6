// MPI_Allreduce on the tensor of allreduce_bench.cc.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long megabytes = argc > 1 ? std::atol(argv[1]) : 64;
  const int count = static_cast<int>(megabytes * 1000 * 1000 / 4096 * 4096 / 4);
  std::vector<float> from(static_cast<size_t>(count), 1.0f);
  std::vector<float> to(static_cast<size_t>(count), 0.0f);
  double best = 1e9;
  for (int i = 0; i < 40; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    MPI_Allreduce(from.data(), to.data(), count, MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX,
                  MPI_COMM_WORLD);
    best = std::min(best, seconds);
  }
  if (rank == 0) {
    const double moved = 4.0 * count * 2 * (ranks - 1);
    std::printf("MPI_Allreduce          %7.2f ms  %7.2f GB/s\n", best * 1e3,
                moved / best * 1e-9);
  }
  MPI_Finalize();
  return to[0] == static_cast<float>(ranks) ? 0 : 1;
}
