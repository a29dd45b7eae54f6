// Kills a training run at random moments, a third of them while a checkpoint is
// written, and compares it with an undisturbed run. Arguments: partita-run, the
// number of kills, and, for states in files, "files".
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random_fill.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/folder.h"
#include "runtime/tools/train_process_testing.h"

namespace partita::tools {
namespace {

using std::chrono::microseconds;
using Losses = std::map<int64_t, double>;

std::string program;
int kills = 0;
bool states_in_files = false;
constexpr int64_t kEvery = 20;

// True if this process has an unfinished checkpoint. Earlier processes'
// unfinished checkpoints are removed when it starts.
bool IsSaving(const std::string& folder, pid_t process) {
  const std::string owner = "-" + std::to_string(process) + "-";
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const size_t partial = name.find(".partial-");
    if (partial != std::string::npos &&
        name.find(owner, partial) != std::string::npos)
      return true;
  }
  return false;
}

// The step of the newest checkpoint; all must be complete. 0: there is none.
int64_t LatestStep(const std::string& folder) {
  std::vector<std::string> skipped;
  const auto latest =
      checkpoint::OpenLatest(folder, checkpoint::Verify::kChecksums, &skipped);
  EXPECT_THAT(skipped, testing::IsEmpty());
  if (absl::IsNotFound(latest.status())) return 0;
  EXPECT_TRUE(latest.ok()) << latest.status();
  return latest.ok() ? latest->state().step : -1;
}

class TrainKillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    files_.folder = testing::TempDir() + "/train_kill_XXXXXX";
    ASSERT_NE(mkdtemp(files_.folder.data()), nullptr);
    const absl::Status written = TrainFiles::Write(files_.folder);
    ASSERT_TRUE(written.ok()) << written;
  }
  ~TrainKillTest() override { std::filesystem::remove_all(files_.folder); }

  // The log shows how far the run is.
  void WaitForStep(TrainProcess& process, int64_t step) {
    while (process.Runs() && CountLines(files_.Log("killed")) < step)
      std::this_thread::sleep_for(microseconds(200));
  }

  // Kills at a random moment: during a save, between steps, or during start-up.
  void RunAndKill(int64_t from, bool while_saving, uint64_t random,
                  bool& was_saving) {
    TrainProcess process(program, files_.Arguments("killed", steps_, kEvery));
    const int64_t steps = static_cast<int64_t>(random % (4 * kEvery));
    microseconds more((random >> 16) % 1500);
    if (while_saving) {
      WaitForStep(process, from + steps);
      while (process.Runs() && !IsSaving(files_.Path("killed"), process.id()))
        continue;
    } else if ((random >> 32) % 3 > 0) {
      WaitForStep(process, from + steps);
    } else {
      more *= 20;
    }
    std::this_thread::sleep_for(more);
    process.Send(SIGKILL);
    ASSERT_EQ(process.Wait(), -SIGKILL) << "ended by itself\n"
                                        << process.Said();
    was_saving = IsSaving(files_.Path("killed"), process.id());
    const std::string said = process.Said();
    if (said.find("going on from ") != std::string::npos)
      EXPECT_THAT(said, testing::HasSubstr(
                            checkpoint::StepPath(files_.Path("killed"), from)));
  }

  TrainFiles files_;
  const int64_t steps_ = kills * 8 * kEvery;
};

// Only killed processes leave files of states behind.
TEST_F(TrainKillTest, GoesOnAsIfNothingHadHappened) {
  TrainProcess undisturbed(program, files_.Arguments("whole", steps_, 0));
  ASSERT_EQ(undisturbed.Wait(), 0) << undisturbed.Said();
  const std::string states = files_.Path("states");
  if (states_in_files) {
    std::filesystem::create_directory(states);
    files_.more = {"--offload-dir", states};
  }
  const Losses whole = ReadLosses(files_.Log("whole"));
  ASSERT_EQ(whole.size(), static_cast<size_t>(steps_));

  int64_t saved = 0, most_lost = 0;
  int while_saving = 0;
  for (int i = 0; i < kills; ++i) {
    bool was_saving = false;
    RunAndKill(saved, while_saving * 3 <= i,
               base::RandomWord(13, static_cast<uint64_t>(i)), was_saving);
    if (HasFatalFailure()) return;
    while_saving += was_saving;
    // Its steps have the same losses as in the undisturbed run.
    const Losses losses = ReadLosses(files_.Log("killed"));
    const auto done = static_cast<int64_t>(losses.size());
    EXPECT_EQ(losses, Losses(whole.begin(), std::next(whole.begin(), done)));
    // Complete checkpoints stay. When a save begins, the previous one has
    // ended. So at most one interval is lost, plus the steps run during the
    // interrupted save.
    const int64_t before = saved;
    saved = LatestStep(files_.Path("killed"));
    const int64_t begun = (done - 1) / kEvery * kEvery;
    ASSERT_GE(saved, std::max(before, begun - kEvery)) << done;
    ASSERT_LE(saved, done);
    most_lost = std::max(most_lost, done - saved);
  }
  // Without enough kills during saves, the test checks nothing.
  EXPECT_GE(while_saving * 3, kills);
  EXPECT_GT(saved, kEvery);

  TrainProcess last(program, files_.Arguments("killed", steps_, 0));
  ASSERT_EQ(last.Wait(), 0) << last.Said();
  EXPECT_EQ(ReadLosses(files_.Log("killed")), whole);
  if (states_in_files) EXPECT_TRUE(std::filesystem::is_empty(states));
  for (const char* group : {"model", "optimizer"}) {
    const auto bytes = [&](const std::string& run) {
      return ReadFile(checkpoint::StepPath(files_.Path(run), steps_) + "/" +
                      group + "-00001-of-00001.safetensors");
    };
    EXPECT_GT(bytes("whole").size(), 0u);
    EXPECT_EQ(bytes("whole"), bytes("killed")) << group;
  }
  std::cout << kills << " kills, " << while_saving << " while saving; interval "
            << kEvery << " steps, at most " << most_lost << " lost; " << saved
            << " of " << steps_ << " steps saved before the last session"
            << std::endl;
}

}  // namespace
}  // namespace partita::tools

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc < 3) return 2;
  partita::tools::program = argv[1];
  partita::tools::kills = std::atoi(argv[2]);
  partita::tools::states_in_files = argc > 3 && argv[3] == std::string("files");
  return RUN_ALL_TESTS();
}
