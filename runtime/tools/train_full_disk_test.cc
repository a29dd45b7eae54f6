// Simulates a full disk under a training run with a limit on file sizes, then
// lifts the limit. Argument: partita-run.
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/tools/train_process_testing.h"

namespace partita::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string program;
constexpr int64_t kSteps = 2000, kEvery = 10;

// Writes beyond this size fail; no limit, no failures.
void Limit(const TrainProcess& process, rlim_t bytes) {
  const struct rlimit limit = {bytes, RLIM_INFINITY};
  ASSERT_EQ(prlimit(process.id(), RLIMIT_FSIZE, &limit, nullptr), 0);
}

TEST(TrainFullDiskTest, TrainingGoesOn) {
  TrainFiles files{testing::TempDir() + "/train_full_XXXXXX"};
  ASSERT_NE(mkdtemp(files.folder.data()), nullptr);
  const absl::Status written = TrainFiles::Write(files.folder);
  ASSERT_TRUE(written.ok()) << written;
  TrainProcess undisturbed(program, files.Arguments("whole", kSteps, 0));
  ASSERT_EQ(undisturbed.Wait(), 0) << undisturbed.Said();
  const std::map<int64_t, double> whole = ReadLosses(files.Log("whole"));
  ASSERT_EQ(whole.size(), static_cast<size_t>(kSteps));

  TrainProcess process(program, files.Arguments("full", kSteps, kEvery));
  ASSERT_TRUE(process.WaitUntilSaid("saved ")) << process.Said();
  Limit(process, 100);
  const std::string end = "; those before are intact, training goes on\n";
  ASSERT_TRUE(process.WaitUntilSaid(end)) << process.Said();
  // Complete checkpoints stay complete while new ones fail.
  std::vector<std::string> skipped;
  const auto saved = checkpoint::OpenLatest(
      files.Path("full"), checkpoint::Verify::kChecksums, &skipped);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_THAT(skipped, IsEmpty());
  ASSERT_TRUE(process.WaitUntilSaid(end, process.Said().size()));
  const std::string troubles = process.Said();
  EXPECT_THAT(troubles, HasSubstr(": File too large; "));
  // The failed log is reported once.
  EXPECT_THAT(troubles,
              HasSubstr(files.Log("full") +
                        ": cannot write: File too large; training goes on\n"));

  Limit(process, RLIM_INFINITY);
  ASSERT_TRUE(process.WaitUntilSaid("saved ", troubles.size()));
  process.Send(SIGTERM);
  ASSERT_EQ(process.Wait(), 0) << process.Said();
  EXPECT_THAT(process.Said(), HasSubstr("by SIGTERM; saved in "));
  TrainProcess last(program, files.Arguments("full", kSteps, 0));
  ASSERT_EQ(last.Wait(), 0) << last.Said();

  // The log lacks the steps that did not fit, and has no others.
  const std::map<int64_t, double> losses = ReadLosses(files.Log("full"));
  EXPECT_LT(losses.size(), whole.size());
  for (const auto& [step, loss] : losses) EXPECT_EQ(loss, whole.at(step));
  EXPECT_EQ(losses.count(kSteps), 1u);
  std::filesystem::remove_all(files.folder);
}

}  // namespace
}  // namespace partita::tools

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) return 2;
  partita::tools::program = argv[1];
  return RUN_ALL_TESTS();
}
