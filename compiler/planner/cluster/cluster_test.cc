#include "compiler/planner/cluster/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace partita::planner {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Refusal(const std::string& text) {
  absl::StatusOr<Cluster> cluster = ReadCluster(text, "c.yaml");
  return cluster.ok() ? "accepted" : std::string(cluster.status().message());
}

TEST(BuiltIn, EveryOneIsSoundAndReadsBackAsItself) {
  for (const std::string& name : BuiltInNames()) {
    absl::StatusOr<Cluster> cluster = BuiltInCluster(name);
    ASSERT_TRUE(cluster.ok()) << name << cluster.status();
    EXPECT_TRUE(CheckCluster(*cluster).ok()) << CheckCluster(*cluster);
    const std::string text = WriteCluster(*cluster);
    absl::StatusOr<Cluster> back = ReadCluster(text, "back.yaml");
    ASSERT_TRUE(back.ok()) << back.status() << text;
    EXPECT_EQ(WriteCluster(*back), text);
    EXPECT_EQ(back->device.peak, cluster->device.peak);
    EXPECT_EQ(back->device.room(), cluster->device.room());
    EXPECT_EQ(back->devices, cluster->devices);
    EXPECT_EQ(back->levels.size(), cluster->levels.size());
  }
}

TEST(BuiltIn, ANumberIsOfDevicesOrOfNodes) {
  EXPECT_EQ(BuiltInCluster("a100-80-sxm")->devices, 8);
  EXPECT_EQ(BuiltInCluster("16x a100-80-sxm")->devices, 16);
  EXPECT_EQ(BuiltInCluster("16x a100-80-sxm")->levels.size(), 2u);
  EXPECT_EQ(BuiltInCluster("4 x h100")->devices, 4);
  EXPECT_EQ(BuiltInCluster("4 x h100")->levels.size(), 1u);
  EXPECT_EQ(BuiltInCluster("2 nodes x perlmutter")->devices, 8);
  EXPECT_EQ(BuiltInCluster("1x h200")->levels.size(), 0u);
  EXPECT_EQ(BuiltInCluster("h200")->device.memory, 139.8 * 1073741824);
  EXPECT_EQ(BuiltInCluster("h200")->device.context, 1e9);
  EXPECT_EQ(BuiltInCluster("gb200")->devices, 4);
  EXPECT_EQ(BuiltInCluster("16x b200")->devices, 16);
  EXPECT_EQ(BuiltInCluster("32x gb200")->levels.back().devices, 32);
  EXPECT_EQ(BuiltInCluster("32x gb200")->levels.back().bandwidth, 900e9);
  EXPECT_EQ(BuiltInCluster("128x gb200")->levels.size(), 3u);
  EXPECT_EQ(BuiltInCluster("72x gb200")->levels.back().bandwidth, 900e9);
  EXPECT_EQ(BuiltInCluster("72x gb200")->levels.back().devices, 72);
  EXPECT_EQ(BuiltInCluster("100x gb200")->levels.size(), 2u);
}

TEST(BuiltIn, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(BuiltInCluster("a100-80-sxn").status().message(),
              HasSubstr("did you mean 'a100-80-sxm'?"));
  EXPECT_THAT(BuiltInCluster("12x a100-80-sxm").status().message(),
              HasSubstr("expected whole units of 8 devices (nvlink), found "
                        "12"));
  EXPECT_THAT(BuiltInCluster("0x h100").status().message(),
              HasSubstr("expected a cluster of 1 to 16777216 devices, found "
                        "'0x h100'"));
  EXPECT_FALSE(BuiltInCluster("99999999999999999999x h100").ok());
  EXPECT_FALSE(BuiltInCluster("9999999 nodes x h100").ok());
  EXPECT_FALSE(BuiltInCluster("").ok());
  EXPECT_FALSE(BuiltInCluster("16").ok());
}

// A near miss is answered with the possible forms and a suggestion in the same
// form.
TEST(BuiltIn, SaysWhatMayHaveBeenMeant) {
  const auto said = [](const std::string& text) {
    return std::string(BuiltInCluster(text).status().message());
  };
  EXPECT_EQ(said("8x-a100"),
            "expected a cluster.yaml, a built-in name for one node "
            "('a100-80-sxm'), or one with a number of devices ('16x "
            "a100-80-sxm') or nodes ('2 nodes x a100-80-sxm'), with a name of "
            "v100-16-sxm2, "
            "v100-32-sxm2, a100-40-sxm, a100-80-sxm, h100-sxm, h100-96-sxm, "
            "h200-sxm, "
            "a800-80-sxm, h800-sxm, b200-sxm, b300-sxm, gh200, gb200, gb300, "
            "dgx-2, selene, jean-zay-v100, jean-zay-a100, perlmutter, austral, "
            "cpu; found "
            "'8x-a100'; did you mean '8x a100-40-sxm' or '8x a100-80-sxm' or "
            "'8x jean-zay-a100'?");
  EXPECT_THAT(said("8 H100"),
              HasSubstr("did you mean '8x h100-sxm' or '8x h100-96-sxm'?"));
  EXPECT_THAT(said("2 nodes v100-32"),
              HasSubstr("did you mean '2 nodes x v100-32-sxm2'?"));
  EXPECT_THAT(said("4 nodes x perlmuter"),
              HasSubstr("did you mean '4 nodes x perlmutter'?"));
  EXPECT_THAT(said("tpu-v9"), Not(HasSubstr("did you mean")));
  EXPECT_EQ(OpenCluster("no/such.yaml").status().message(),
            "expected a cluster.yaml that can be read, found 'no/such.yaml', "
            "which cannot");
}

TEST(ReadCluster, TakesADeviceLikeAnother) {
  absl::StatusOr<Cluster> cluster = ReadCluster(R"(
name: mine
devices: 64
device: {like: a100-80-sxm, memory: 64 GiB, peak: {f8: 600 TFLOP/s}}
levels:
  - {name: nvlink, devices: 4, bandwidth: 300 GB/s, latency: 3.4 us}
  - {devices: 64, bandwidth: 100 Gbit/s, latency: 14us, efficiency: 0.8}
)",
                                                "c.yaml");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->devices, 64);
  EXPECT_EQ(cluster->devices_per_node(), 4);
  EXPECT_DOUBLE_EQ(cluster->device.memory, 64.0 * 1073741824);
  EXPECT_DOUBLE_EQ(cluster->device.peak[1], 312e12);
  EXPECT_DOUBLE_EQ(cluster->device.peak[3], 600e12);
  EXPECT_DOUBLE_EQ(cluster->levels[1].bandwidth, 12.5e9);
  EXPECT_DOUBLE_EQ(cluster->levels[1].latency, 14e-6);
  EXPECT_EQ(cluster->levels[1].name, "level 2");
}

// A device is a GPU or a processor, whatever else is said about it.
TEST(ReadCluster, KnowsGpusFromProcessors) {
  const std::string sizes =
      "peak: {bf16: 312 TFLOP/s}, memory: 80 GB, memory_bandwidth: 2 TB/s";
  const auto isGpu = [](const std::string& device) {
    const absl::StatusOr<Cluster> cluster =
        ReadCluster("device: " + device + "\n", "c.yaml");
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    return cluster.ok() && cluster->device.is_gpu;
  };
  EXPECT_TRUE(isGpu("{kind: gpu, " + sizes + "}"));
  EXPECT_FALSE(isGpu("{kind: cpu, " + sizes + "}"));
  EXPECT_TRUE(isGpu("{like: h100-sxm, memory: 78 GB}"));
  EXPECT_FALSE(isGpu("{like: cpu, memory: 78 GB}"));
  EXPECT_TRUE(isGpu("{host_memory: 125 GB, " + sizes + "}"));
  // A file that `partita measure` wrote before `kind` existed.
  EXPECT_FALSE(isGpu("{cycle: 0.3 ns, overlaps: false, " + sizes + "}"));
  EXPECT_EQ(Refusal("device: {" + sizes + "}\n"),
            "c.yaml:1:9: device: expected 'kind: gpu' or 'kind: cpu', which "
            "says whose programs it runs, found no 'kind'");
  EXPECT_EQ(Refusal("device: {kind: tpu, " + sizes + "}\n"),
            "c.yaml:1:16: kind: expected gpu or cpu, found 'tpu'");
  EXPECT_THAT(Refusal("device: {like: h100-sxm, kind: cpu}\n"),
              HasSubstr("c.yaml:1:32: kind: expected gpu, because only a "
                        "GPU's host has host_memory, found cpu"));
}

TEST(ReadCluster, RefusesWithThePlace) {
  EXPECT_EQ(Refusal("device: a100-80-sxm\ndevices: 4\n"),
            "c.yaml:2:10: devices: expected 'levels', which link devices, the "
            "last with all 4, found none");
  EXPECT_EQ(
      Refusal("device: h100\nlevels:\n  - {devices: 8, bandwidth: 1 GB/s, "
              "latency: 1 us}\n  - {devices: 12, bandwidth: 1 GB/s, latency: "
              "1 us}\n"),
      "c.yaml:4:15: devices of level 'level 2': expected a multiple of 8, "
      "which level 'level 1' before it has, found 12");
  EXPECT_EQ(Refusal("device: h100\nnodes: 3\n"),
            "c.yaml:2:1: a cluster: expected one of name, devices, device, "
            "levels, found 'nodes'");
  EXPECT_THAT(Refusal("device: {like: h100, memory: 80}\n"),
              HasSubstr("c.yaml:1:30: memory: expected a number and a unit of "
                        "B, kB, MB, GB, TB, KiB, MiB, GiB, found '80'"));
  EXPECT_THAT(Refusal("device: {memory: 80 GB, memory_bandwidth: 1 TB/s}\n"),
              HasSubstr("expected 'peak', found none"));
  EXPECT_THAT(Refusal("device: {like: h100, memory: 0 GB}\n"),
              HasSubstr("c.yaml:1:30: memory: expected a number above 0, found "
                        "'0 GB'"));
  EXPECT_THAT(Refusal("device: {like: h100, matmul: 1.5}\n"),
              HasSubstr("c.yaml:1:30: matmul: expected a number above 0, at "
                        "most 1, found '1.5'"));
  EXPECT_THAT(Refusal("device: {like: h100, units: 0}\n"),
              HasSubstr("units: expected a whole number"));
  EXPECT_THAT(Refusal("device: {like: nothing}\n"),
              HasSubstr("c.yaml:1:16: device: expected a cluster.yaml, a "
                        "built-in name"));
  EXPECT_THAT(Refusal("device: {like: h100, memory: nan GB}\n"),
              HasSubstr("memory: expected a number"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("a cluster: expected a map"));
  EXPECT_THAT(Refusal("{"), HasSubstr("c.yaml"));
  EXPECT_THAT(Refusal("device: {like: h100, peak: {f32: 0 FLOP/s, bf16: 0 "
                      "FLOP/s, f16: 0 FLOP/s, f8: 0 FLOP/s}}\n"),
              HasSubstr("c.yaml:1:28: peak: expected a peak of some precision "
                        "above 0"));
}

// Contradictions are refused at the line that contradicts.
TEST(ReadCluster, RefusesContradictionsAtTheirLine) {
  const auto levels = [](const std::string& node, const std::string& network) {
    return "device: h100\nlevels:\n  - {devices: 8, " + node +
           "}\n  - {devices: 16, " + network + "}\n";
  };
  const std::string link = "bandwidth: 1 GB/s, latency: 1 us";
  EXPECT_EQ(Refusal(levels(link, link)), "accepted");
  EXPECT_EQ(Refusal(levels(link, "bandwidth: 0 GB/s, latency: 1 us")),
            "c.yaml:4:30: bandwidth: expected a number above 0, found '0 "
            "GB/s'");
  EXPECT_THAT(Refusal(levels("bandwidth: 300 GBps, latency: 1 us", link)),
              HasSubstr("c.yaml:3:29: bandwidth: expected a number and a unit "
                        "of B/s, MB/s, GB/s, TB/s, Mbit/s, Gbit/s, found '300 "
                        "GBps'"));
  EXPECT_EQ(Refusal(levels(link, link + ", efficiency: 2.5")),
            "c.yaml:4:65: efficiency: expected a number above 0, at most 2, "
            "found '2.5'");
  EXPECT_EQ(Refusal(levels(link, link + ", latency: 2 us")),
            "c.yaml:4:53: levels: expected 'latency' once, found another one "
            "in line 4");
  EXPECT_EQ(Refusal("device: h100\nlevels:\n  - {devices: 8, " + link +
                    "}\n  - {devices: 4, " + link + "}\n"),
            "c.yaml:4:15: devices of level 'level 2': expected a multiple of "
            "8, which level 'level 1' before it has, found 4");
  EXPECT_THAT(Refusal("device: h100\nlevels:\n  - {name: a, devices: 8, " +
                      link + "}\n  - {name: a, devices: 16, " + link + "}\n"),
              HasSubstr("expected levels of different names, found 'a' again"));
  EXPECT_THAT(Refusal(levels(link, link + ", efficiency: -1")),
              HasSubstr("efficiency: expected a number above 0, at most 2, "
                        "found '-1'"));
  EXPECT_EQ(Refusal(levels(link, link) + "devices: 24\n"),
            "c.yaml:5:10: devices: expected the 16 that the levels link, found "
            "24");
  EXPECT_EQ(Refusal("device:\n  like: h100\n  memory: 4 GB\n  context: 5 GB\n"),
            "c.yaml:3:11: memory: expected more than the 5 GB that the driver "
            "and communicators take (context), found 4 GB");
}

}  // namespace
}  // namespace partita::planner
