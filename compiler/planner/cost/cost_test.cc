#include "compiler/planner/cost/cost.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace partita::planner {
namespace {

using core::CollectiveKind;
using core::Precision;

// AutoParallel's nodes (cases D10): eight A100 whose rings move 87.7 GB/s.
Cluster Nodes(int devices) {
  Cluster cluster;
  cluster.device = BuiltInCluster("a100-80-sxm")->device;
  cluster.levels = {{"nvlink", 8, 87.7e9, 3.4e-6, 1}};
  if (devices > 8) cluster.levels.push_back({"net", devices, 20e9, 14e-6, 1});
  cluster.devices = devices;
  return cluster;
}

TEST(Collective, RingsAndTreesOfOneNodeAreNccls) {  // D10
  const Cluster cluster = Nodes(8);
  const GroupShape all = ShapeOfStride(cluster, 1, 8);
  EXPECT_NEAR(LargeMessageBandwidth(cluster, CollectiveKind::kAllReduce,
                                    Algorithm::kRing, all),
              50.1e9, 0.05e9);
  EXPECT_NEAR(LargeMessageBandwidth(cluster, CollectiveKind::kAllGather,
                                    Algorithm::kRing, all),
              100.2e9, 0.05e9);
  EXPECT_NEAR(
      PlainLatency(cluster, CollectiveKind::kAllReduce, Algorithm::kRing, all),
      8.4e-6 + 14 * 3.4e-6, 1e-12);
  EXPECT_NEAR(
      PlainLatency(cluster, CollectiveKind::kAllReduce, Algorithm::kTree, all),
      8.4e-6 + 14 * 4.0e-6, 1e-12);
  EXPECT_TRUE(Offers(CollectiveKind::kAllReduce, Algorithm::kTree));
  EXPECT_FALSE(Offers(CollectiveKind::kAllGather, Algorithm::kTree));
}

TEST(Group, AMeshOverNodesHasRanksPerNode) {  // D10: mesh (2, 4, 4)
  const Cluster cluster = Nodes(32);
  EXPECT_EQ(ShapeOfStride(cluster, 1, 4).size, (std::vector<int>{4, 1}));
  EXPECT_EQ(ShapeOfStride(cluster, 4, 4).size, (std::vector<int>{2, 2}));
  EXPECT_EQ(ShapeOfStride(cluster, 16, 2).size, (std::vector<int>{1, 2}));
}

TEST(Group, StridesAreLikeTheRanksThemselves) {
  Cluster cluster = Nodes(64);
  cluster.levels.push_back({"island", 512, 10e9, 20e-6, 1});
  cluster.devices = 512;
  for (int stride = 1; stride <= 256; stride *= 2)
    for (int count = 1; stride * count <= 512; count *= 2) {
      std::vector<int> ranks;
      for (int i = 0; i < count; ++i) ranks.push_back(i * stride);
      EXPECT_EQ(ShapeOfStride(cluster, stride, count).size,
                ShapeOfRanks(cluster, ranks).size)
          << stride << " x " << count;
    }
  EXPECT_EQ(ShapeOfRanks(cluster, {0, 1, 2, 8}).members(), 6);
}

TEST(Collective, TermsAreAlpas) {  // D4: all-reduce 2 (n-1)/n B, half for one
  const Cluster cluster = Nodes(8);
  const double bytes = 1e12;  // so large that latencies do not matter
  for (int n : {2, 4, 8}) {
    const GroupShape group = ShapeOfStride(cluster, 1, n);
    const double unit = bytes * (n - 1) / n / 87.7e9;
    const auto time = [&](CollectiveKind kind) {
      return CollectiveTime(cluster, kind, bytes, group);
    };
    EXPECT_NEAR(time(CollectiveKind::kAllReduce), 2 * unit, 1e-4 * unit);
    EXPECT_NEAR(time(CollectiveKind::kReduceScatter), unit, 1e-4 * unit);
    EXPECT_NEAR(time(CollectiveKind::kAllGather), unit, 1e-4 * unit);
    // `bytes` is the local tensor. Alpa's B is the whole tensor, and n/2 a
    // penalty on top.
    EXPECT_NEAR(time(CollectiveKind::kAllToAll), unit, 1e-4 * unit);
    EXPECT_EQ(time(CollectiveKind::kAllSlice), 0);
  }
}

TEST(Collective, NetworksAreSharedByTheMembersOfANode) {
  const Cluster cluster = Nodes(32);
  const auto bandwidth = [&](int stride, int count) {
    const GroupShape group = ShapeOfStride(cluster, stride, count);
    return LargeMessageBandwidth(cluster, CollectiveKind::kAllGather,
                                 Algorithm::kRing, group) *
           (count - 1) / count;
  };
  EXPECT_NEAR(bandwidth(8, 4), 20e9, 1);  // only its own interface
  EXPECT_NEAR(bandwidth(4, 8), 40e9, 1);  // two interfaces per node
  EXPECT_NEAR(bandwidth(1, 32), 87.7e9,
              1);  // bound by the ring within the node
}

TEST(Collective, SmallOnesOverManyNodesAreNoRings) {
  const Cluster cluster = *BuiltInCluster("1024x a100-80-sxm");
  const GroupShape all = ShapeOfStride(cluster, 1, 1024);
  const CollectiveCost small =
      CostOfCollective(cluster, CollectiveKind::kAllReduce, 1024, all);
  EXPECT_NE(small.algorithm, Algorithm::kRing);
  EXPECT_LT(small.time, 1e-3);
  EXPECT_EQ(CostOfCollective(cluster, CollectiveKind::kAllReduce, 64e9, all)
                .algorithm,
            Algorithm::kRing);
}

TEST(Collective, MoreBytesOrMembersNeverTakeLess) {
  const Cluster cluster = *BuiltInCluster("512x h100");
  for (CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
        CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
        CollectiveKind::kPermute}) {
    for (int n = 1; n <= 512; n *= 2) {
      double before = 0;
      for (double bytes = 1; bytes < 1e12; bytes *= 4) {
        const double time =
            CollectiveTime(cluster, kind, bytes, ShapeOfStride(cluster, 1, n));
        EXPECT_GE(time, before);
        if (n > 1 && kind != CollectiveKind::kPermute)
          EXPECT_GE(time * (1 + 1e-9),
                    CollectiveTime(cluster, kind, bytes / 4,
                                   ShapeOfStride(cluster, 1, n / 2)));
        before = time;
      }
    }
  }
}

// A member's links lead to single peers, so a pair has one seventh of them.
TEST(Collective, WithoutASwitchAGroupHasItsOwnLinks) {
  Cluster cluster = Nodes(8);
  const auto bandwidth = [&](int members) {
    return LargeMessageBandwidth(cluster, CollectiveKind::kAllGather,
                                 Algorithm::kRing,
                                 ShapeOfStride(cluster, 1, members)) *
           (members - 1) / members;
  };
  const double whole = bandwidth(8);
  EXPECT_DOUBLE_EQ(bandwidth(2), whole);
  const double send = TransferTime(cluster, 0, 1, 1e9);
  cluster.levels[0].switched = false;
  EXPECT_DOUBLE_EQ(bandwidth(8), whole);
  EXPECT_NEAR(bandwidth(4), whole * 3 / 7, 1e-6 * whole);
  EXPECT_NEAR(bandwidth(2), whole / 7, 1e-6 * whole);
  EXPECT_GT(TransferTime(cluster, 0, 1, 1e9), 6.9 * send);
}

TEST(Collective, NcclGathersInRingsAlone) {
  const Cluster cluster = Nodes(512);
  const GroupShape all = ShapeOfStride(cluster, 1, 512);
  for (CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter})
    EXPECT_GT(NcclTime(cluster, kind, 1e6, all),
              1.5 * CollectiveTime(cluster, kind, 1e6, all));
  EXPECT_EQ(NcclTime(cluster, CollectiveKind::kAllGather, 1e6,
                     ShapeOfStride(cluster, 1, 1)),
            0);
}

// nccl_collectives.csv: all-reduces of 8 devices in a node, in microseconds, on
// vTrain's A100 and on stas00's H100 (a newer NCCL).
TEST(Collective, IsNearWhatNcclTestsMeasured) {
  const Cluster a100 = *BuiltInCluster("a100-80-sxm");
  const auto time = [](const Cluster& cluster, double bytes) {
    return 1e6 * CollectiveTime(cluster, CollectiveKind::kAllReduce, bytes,
                                ShapeOfStride(cluster, 1, 8));
  };
  EXPECT_NEAR(time(a100, 1 << 30), 8196, 0.05 * 8196);
  EXPECT_NEAR(time(a100, 1 << 26), 580, 0.15 * 580);
  EXPECT_NEAR(time(a100, 1 << 23), 130, 0.25 * 130);
  const Cluster h100 = *BuiltInCluster("h100-sxm");
  EXPECT_NEAR(time(h100, 1024), 16.9, 0.25 * 16.9);
  EXPECT_NEAR(time(h100, 1 << 20), 27.4, 0.4 * 27.4);
}

TEST(Transfer, CostsWhatTheInnermostCommonLevelTakes) {
  const Cluster cluster = Nodes(32);
  EXPECT_EQ(TransferTime(cluster, 3, 3, 1e9), 0);
  EXPECT_NEAR(TransferTime(cluster, 0, 7, 87.7e9), 1 + 3.4e-6, 1e-9);
  EXPECT_NEAR(TransferTime(cluster, 7, 8, 20e9), 1 + 14e-6, 1e-9);
  EXPECT_EQ(LevelOf(cluster, 0, 7), 0);
  EXPECT_EQ(LevelOf(cluster, 0, 31), 1);
}

TEST(Matmul, IsNeverFasterThanPeakOrMemory) {
  const Device device = BuiltInCluster("a100-80-sxm")->device;
  std::mt19937 random(1);
  std::uniform_int_distribution<int> size(1, 9000);
  for (int i = 0; i < 2000; ++i) {
    const int64_t m = size(random), n = size(random), k = size(random);
    const double time = MatmulTime(device, Precision::kBF16, 1, m, n, k);
    EXPECT_GE(time, 2.0 * m * n * k / device.peak[1]);
    EXPECT_GE(time, 2.0 * (m * k + k * n + m * n) / device.memory_bandwidth);
  }
  EXPECT_EQ(MatmulTime(device, Precision::kBF16, 1, 0, 5, 5), 0);
}

TEST(Matmul, HasTilesAndWaves) {
  Device device = BuiltInCluster("a100-80-sxm")->device;
  device.kernel = 0;
  const auto rate = [&](int64_t batch, int64_t m, int64_t n, int64_t k) {
    return 2.0 * batch * m * n * k /
           MatmulTime(device, Precision::kBF16, batch, m, n, k) /
           (device.peak[1] * device.matmul);
  };
  // 9 x 12 tiles of 256 x 128 fill a wave of 108. More tiles need a second
  // wave.
  EXPECT_NEAR(rate(1, 2304, 1536, 4096), 1, 1e-9);
  EXPECT_LT(rate(1, 2304, 1664, 4096), 0.75);
  // One extra column adds a column of tiles.
  EXPECT_LT(rate(1, 8192, 129, 4096), rate(1, 8192, 128, 4096));
  // A long reduction with few tiles is split.
  EXPECT_GT(rate(1, 1024, 1024, 65536), 0.5);
}

// gemm_efficiency.csv: A100, m = n = k, TFLOP/s read off a plot.
TEST(Matmul, IsNearWhatWasMeasuredOnSquares) {
  Device device = BuiltInCluster("a100-80-sxm")->device;
  device.matmul = 0.94;  // before clocks drop
  const int sizes[] = {1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192};
  const double measured[] = {89, 195, 235, 259, 261, 277, 281, 292};
  double error = 0;
  for (int i = 0; i < 8; ++i) {
    const double n = sizes[i];
    const double time =
        device.launch +
        MatmulTime(device, Precision::kBF16, 1, sizes[i], sizes[i], sizes[i]);
    const double rate = 2 * n * n * n / time / 1e12;
    EXPECT_NEAR(rate, measured[i], 0.2 * measured[i]) << n;
    error += std::abs(rate / measured[i] - 1) / 8;
  }
  EXPECT_LT(error, 0.1);
}

// A memory-bound product of M tokens by N columns over T devices. Divided by
// columns, a device reads MK + KN/T. Divided by tokens, it reads MK/T + KN.
TEST(Matmul, ReadsLessDividedByTheMoreNumerous) {  // D11
  Device device = BuiltInCluster("a100-80-sxm")->device;
  for (double& peak : device.peak) peak *= 1e6;
  device.kernel = 0;
  const double bandwidth = device.memory_bandwidth * device.streaming;
  const int64_t k = 64, t = 8;
  for (const int64_t m : {2048, 4096, 8192}) {
    const int64_t n = 4096;
    const double columns = MatmulTime(device, Precision::kBF16, 1, m, n / t, k);
    const double tokens = MatmulTime(device, Precision::kBF16, 1, m / t, n, k);
    const double read = 2.0 * (m * k + k * n / t);
    EXPECT_NEAR(columns * bandwidth, read + 2.0 * m * n / t, 1e-6 * read);
    EXPECT_EQ(columns < tokens, m < n) << m;
    if (m == n) EXPECT_DOUBLE_EQ(columns, tokens);
  }
}

TEST(MemoryBound, IsBytesOverBandwidth) {
  Device device;
  device.memory_bandwidth = 1e12;
  device.streaming = 0.5;
  device.kernel = 2e-6;
  EXPECT_NEAR(MemoryBoundTime(device, 5e6), 12e-6, 1e-12);
  EXPECT_EQ(MemoryBoundTime(device, 0), 0);
}

}  // namespace
}  // namespace partita::planner
