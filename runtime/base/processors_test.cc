// Tests of counting processors.
#include "runtime/base/processors.h"

#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace partita::base {
namespace {

// Files of a cgroup below `root`.
void WriteLimit(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(
      std::filesystem::path(path).parent_path());
  std::ofstream(path) << text << "\n";
}

TEST(ProcessorsTest, CgroupsLimitThem) {
  const std::string root = ::testing::TempDir() + "/cgroups";
  std::filesystem::remove_all(root);
  EXPECT_EQ(CgroupProcessors("0::/job/step\n", root), 0);
  WriteLimit(root + "/job/step/cpu.max", "max 100000");
  EXPECT_EQ(CgroupProcessors("0::/job/step\n", root), 0);
  WriteLimit(root + "/job/cpu.max", "250000 100000");
  EXPECT_EQ(CgroupProcessors("0::/job/step\n", root), 3);
  WriteLimit(root + "/cpu.max", "50000 100000");
  EXPECT_EQ(CgroupProcessors("0::/job/step\n", root), 1);
  EXPECT_EQ(CgroupProcessors("0::/\n", root), 1);
  WriteLimit(root + "/cpu/job/cpu.cfs_quota_us", "400000");
  WriteLimit(root + "/cpu/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(CgroupProcessors("3:cpu,cpuacct:/job\n2:memory:/job\n", root), 4);
  WriteLimit(root + "/cpu/job/cpu.cfs_quota_us", "-1");
  EXPECT_EQ(CgroupProcessors("3:cpu,cpuacct:/job\n", root), 0);
  for (const char* const damaged : {"", ":", "::", "0::", "x\n0:cpu"})
    EXPECT_GE(CgroupProcessors(damaged, root + "/absent"), 0) << damaged;
}

TEST(ProcessorsTest, TheAffinityMaskLimitsThem) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(AffinityProcessors(), CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  const int machine = MachineProcessors();
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(AffinityProcessors(), 1);
  EXPECT_EQ(AvailableProcessors(), 1);
  EXPECT_EQ(MachineProcessors(), machine);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace partita::base
