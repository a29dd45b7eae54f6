// Kills a process that saves checkpoints, at random moments, and checks the
// remaining files. Arguments: the program, and the number of kills.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/random_fill.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_testing.h"
#include "runtime/checkpoint/folder.h"

namespace partita::checkpoint {
namespace {

std::string program;
int kills = 0;

// Output of a process before it was killed.
struct Story {
  int64_t last_step = 0;  // last checkpoint reported as complete
  bool killed = false;    // it did not end by itself
};

bool HasPartial(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().string().find(".partial-") != std::string::npos)
      return true;
  return false;
}

// Stops the child while a part of a checkpoint is on disk, however short that
// time is. False if this fails at many moments.
bool StopWhileWriting(pid_t child, const std::string& folder) {
  for (int moment = 0; moment < 1000; ++moment) {
    kill(child, SIGSTOP);
    int status = 0;
    if (waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status))
      return false;
    if (HasPartial(folder)) return true;
    kill(child, SIGCONT);
    std::this_thread::sleep_for(std::chrono::microseconds(
        base::RandomWord(12, static_cast<uint64_t>(moment)) % 2000));
  }
  return false;
}

enum class Moment { kAny, kWriting };

// Lets the program print `lines` lines and run for some more time; then kills
// it, at once or as soon as it writes.
Story RunAndKill(const std::string& folder, int lines,
                 std::chrono::microseconds more, Moment moment) {
  Story story;
  int ends[2];
  if (pipe(ends) != 0) return story;
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    execl(program.c_str(), program.c_str(), folder.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  char byte = 0;
  while (lines > 0 && read(ends[0], &byte, 1) == 1) {
    text.push_back(byte);
    lines -= byte == '\n';
  }
  std::this_thread::sleep_for(more);
  if (moment == Moment::kWriting)
    EXPECT_TRUE(StopWhileWriting(child, folder)) << "it never writes";
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  while (read(ends[0], &byte, 1) == 1) text.push_back(byte);
  close(ends[0]);
  story.killed = WIFSIGNALED(status);
  const size_t end = text.rfind('\n');
  if (end != std::string::npos) {
    const size_t before = end == 0 ? end : text.rfind('\n', end - 1);
    story.last_step = std::atoll(
        text.c_str() + (before == std::string::npos ? 0 : before + 1));
  }
  return story;
}

TEST(KillTest, NoCheckpointIsLostOrHalf) {
  const std::string folder = testing::TempDir() + "/killed";
  std::filesystem::remove_all(folder);
  int64_t step = 0;
  int while_writing = 0;
  for (int i = 0; i < kills; ++i) {
    const uint64_t word = base::RandomWord(11, static_cast<uint64_t>(i));
    const Story story =
        RunAndKill(folder, 1 + static_cast<int>(word % 3),
                   std::chrono::microseconds((word >> 32) % 40000),
                   i % 3 == 0 ? Moment::kWriting : Moment::kAny);
    ASSERT_TRUE(story.killed) << "the program ended by itself";
    ASSERT_GT(story.last_step, step);
    while_writing += HasPartial(folder);
    // Folders with a checkpoint's name are complete, and no checkpoint reported
    // as complete is missing.
    std::vector<std::string> skipped;
    const auto latest = OpenLatest(folder, Verify::kChecksums, &skipped);
    ASSERT_TRUE(latest.ok()) << latest.status();
    EXPECT_THAT(skipped, testing::IsEmpty());
    EXPECT_GE(latest->state().step, story.last_step);
    EXPECT_EQ(Difference(*latest), "");
    step = latest->state().step;
    const auto steps = ListSteps(folder);
    ASSERT_TRUE(steps.ok());
    EXPECT_GE(steps->size(), std::min<size_t>(2, static_cast<size_t>(step)));
  }
  // Without enough kills during writes, the test checks nothing.
  EXPECT_GE(while_writing * 3, kills);
}

}  // namespace
}  // namespace partita::checkpoint

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 3) return 2;
  partita::checkpoint::program = argv[1];
  partita::checkpoint::kills = std::atoi(argv[2]);
  return RUN_ALL_TESTS();
}
