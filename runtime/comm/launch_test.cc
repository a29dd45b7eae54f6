// What launchers leave in the environment.
#include "runtime/comm/launch.h"

#include <map>
#include <string>

#include "gtest/gtest.h"

namespace partita::comm {
namespace {

std::optional<Launch> Detect(const std::map<std::string, std::string>& values) {
  return DetectLaunch([&](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  });
}

TEST(LaunchTest, NobodyStartedIt) {
  EXPECT_FALSE(Detect({}));
  EXPECT_FALSE(Detect(
      {{"OMPI_COMM_WORLD_SIZE", "many"}, {"OMPI_COMM_WORLD_RANK", "0"}}));
}

TEST(LaunchTest, Mpirun) {
  const auto launch = Detect({{"OMPI_COMM_WORLD_SIZE", "8"},
                              {"OMPI_COMM_WORLD_RANK", "3"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                              // mpirun inside a Slurm job sees the job's.
                              {"SLURM_NTASKS", "2"},
                              {"SLURM_PROCID", "0"}});
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->launcher, "mpirun");
  EXPECT_EQ(launch->size, 8);
  EXPECT_EQ(launch->rank, 3);
  EXPECT_EQ(launch->local_rank, 1);
  EXPECT_EQ(launch->local_size, 4);
}

TEST(LaunchTest, Srun) {
  const auto launch = Detect({{"SLURM_STEP_ID", "0"},
                              {"SLURM_STEP_NUM_TASKS", "4"},
                              {"SLURM_NTASKS", "16"},
                              {"SLURM_PROCID", "2"},
                              {"SLURM_LOCALID", "0"}});
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->launcher, "srun");
  EXPECT_EQ(launch->size, 4);
  EXPECT_EQ(launch->rank, 2);
}

TEST(LaunchTest, ABatchScriptIsNotAStep) {
  EXPECT_FALSE(Detect({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}));
  EXPECT_FALSE(Detect(
      {{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_PROCID", "0"}}));
}

TEST(LaunchTest, Pmi) {
  const auto launch = Detect({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}});
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->size, 2);
  EXPECT_EQ(launch->rank, 1);
}

}  // namespace
}  // namespace partita::comm
