// Detection of launchers from their environment variables.
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
                              // mpirun inside a Slurm job sees the job's
                              // variables.
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

std::map<std::string, std::string> Torchrun() {
  return {{"RANK", "5"},
          {"WORLD_SIZE", "8"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "4"},
          {"MASTER_ADDR", "node07"},
          {"MASTER_PORT", "29500"},
          // One torchrun per node, started by srun.
          {"SLURM_STEP_ID", "0"},
          {"SLURM_STEP_NUM_TASKS", "2"},
          {"SLURM_PROCID", "1"}};
}

TEST(LaunchTest, Torchrun) {
  auto values = Torchrun();
  const auto launch = Detect(values);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->launcher, "torchrun");
  EXPECT_EQ(launch->size, 8);
  EXPECT_EQ(launch->rank, 5);
  EXPECT_EQ(launch->local_rank, 1);
  EXPECT_EQ(launch->local_size, 4);
  EXPECT_EQ(launch->meet_at, "tcp://node07:29500");
  // torchrun's own store holds the port.
  values["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_EQ(Detect(values)->meet_at, "tcp://node07:29501");
  values.erase("MASTER_PORT");
  EXPECT_EQ(Detect(values)->launcher, "srun");
  EXPECT_EQ(Detect(values)->meet_at, "");
}

// Ranks are threads, as without a launcher, whatever started torchrun.
TEST(LaunchTest, TorchrunOfOneProcessIsNoLaunch) {
  auto values = Torchrun();
  values["RANK"] = values["LOCAL_RANK"] = "0";
  values["WORLD_SIZE"] = values["LOCAL_WORLD_SIZE"] = "1";
  EXPECT_FALSE(Detect(values));
  values["PARTITA_MEET_AT"] = "tcp://node01:4000";
  const auto asked = Detect(values);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->launcher, "torchrun");
  EXPECT_EQ(asked->size, 1);
}

TEST(LaunchTest, AnAddressToMeetAt) {
  // RANK and WORLD_SIZE alone mean nothing without an address.
  EXPECT_FALSE(Detect({{"RANK", "0"}, {"WORLD_SIZE", "2"}}));
  const auto plain = Detect({{"RANK", "0"},
                             {"WORLD_SIZE", "2"},
                             {"PARTITA_MEET_AT", "file:///shared/meet"}});
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->size, 2);
  EXPECT_EQ(plain->meet_at, "file:///shared/meet");
  // Takes precedence over MPI and torchrun's address.
  const auto srun = Detect({{"SLURM_STEP_ID", "0"},
                            {"SLURM_STEP_NUM_TASKS", "4"},
                            {"SLURM_PROCID", "2"},
                            {"PARTITA_MEET_AT", "tcp://node01:4000"}});
  ASSERT_TRUE(srun);
  EXPECT_EQ(srun->launcher, "srun");
  EXPECT_EQ(srun->rank, 2);
  EXPECT_EQ(srun->meet_at, "tcp://node01:4000");
  auto values = Torchrun();
  values["PARTITA_MEET_AT"] = "tcp://node01:4000";
  EXPECT_EQ(Detect(values)->meet_at, "tcp://node01:4000");
}

}  // namespace
}  // namespace partita::comm
