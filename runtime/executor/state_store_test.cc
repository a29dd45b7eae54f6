// The store gives the same bytes as memory would, window by window, and names
// what is wrong with its folder and file.
#include "runtime/executor/state_store.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random_fill.h"
#include "runtime/cpu/cpu_device.h"

namespace partita::executor {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kPage = program::kStatePage;

class StateStoreTest : public ::testing::Test {
 protected:
  StateStoreTest() : cpu_(std::move(cpu::MakeCpuDevice({1})).value()) {
    folder_ = ::testing::TempDir() + "/states_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~StateStoreTest() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<std::unique_ptr<StateStore>> Create(
      const std::map<size_t, int64_t>& bytes, int64_t buffers = 0) {
    return StateStore::Create({folder_, buffers}, "s.bin", bytes);
  }
  std::string Path() const { return folder_ + "/s.bin"; }

  std::unique_ptr<device::Device> cpu_;
  std::string folder_;
};

// Adds `step` to every byte of the unit's states; a plain array is the oracle.
TEST_F(StateStoreTest, EveryWindowSizeGivesTheSameBytes) {
  const std::map<size_t, int64_t> bytes = {
      {2, 5000}, {3, 1}, {5, 9000}, {8, 4096}, {9, 20'001}};
  const std::vector<std::vector<int>> units = {{2, 3}, {5}, {3},    {8, 2}, {9},
                                               {2},    {},  {3, 9}, {5, 2}};
  for (const int64_t buffers : {int64_t{0}, 18 * kPage}) {
    std::map<size_t, std::vector<char>> expected;
    auto store = Create(bytes, buffers);
    ASSERT_TRUE(store.ok()) << store.status();
    for (const auto& [state, size] : bytes) {
      for (int64_t i = 0; i < size; ++i)
        expected[state].push_back(static_cast<char>(
            base::RandomWord(state, static_cast<uint64_t>(i))));
      ASSERT_TRUE((*store)->Write(state, expected[state].data()).ok());
    }
    ASSERT_TRUE((*store)->Plan(units, *cpu_).ok());
    EXPECT_EQ((*store)->windows(), buffers == 0 ? 1 : 6);
    for (int step = 1; step <= 5; ++step) {
      (*store)->BeginRun();
      int window = -1;
      for (size_t unit = 0; unit < units.size(); ++unit) {
        const int next = (*store)->WindowOf(unit);
        if (next != window) {
          if (window >= 0) (*store)->Leave(window);
          ASSERT_TRUE((*store)->Enter(window = next).ok());
        }
        for (const int state : units[unit]) {
          std::vector<char>& whole = expected[static_cast<size_t>(state)];
          char* const found = (*store)->AddressOf(window, state);
          ASSERT_EQ(std::memcmp(found, whole.data(), whole.size()), 0)
              << state << " in step " << step;
          for (size_t i = 0; i < whole.size(); ++i)
            found[i] = whole[i] = static_cast<char>(whole[i] + step);
        }
      }
      (*store)->Leave(window);
    }
    for (const auto& [state, whole] : expected) {
      std::vector<char> found(whole.size());
      ASSERT_TRUE((*store)->Read(state, found.data()).ok());
      EXPECT_EQ(found, whole) << state;
    }
    EXPECT_EQ((*store)->FileBytes(),
              2 * kPage + kPage + 3 * kPage + kPage + 5 * kPage);
    EXPECT_LE((*store)->BufferBytes(), buffers == 0 ? 12 * kPage : buffers);
  }
}

TEST_F(StateStoreTest, TheFileHasItsSizeAtOnceAndIsRemoved) {
  {
    const auto store = Create({{0, 10'000}, {1, 1}});
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ(std::filesystem::file_size(Path()), 4u * kPage);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  // Without states there is no file.
  const auto none = Create({});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

// A killed process leaves such a file.
TEST_F(StateStoreTest, AFileThatIsLeftIsUsedAgain) {
  std::ofstream(Path()) << std::string(99'999, 'x');
  const auto store = Create({{0, 10}});
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(std::filesystem::file_size(Path()), static_cast<size_t>(kPage));
  char found[10];
  ASSERT_TRUE((*store)->Read(0, found).ok());
  EXPECT_TRUE(std::all_of(found, found + 10, [](char c) { return c == 0; }));
}

TEST_F(StateStoreTest, Refusals) {
  const std::string missing = folder_ + "/none";
  EXPECT_EQ(StateStore::Create({missing, 0}, "s", {{0, 4}}).status().message(),
            missing +
                ": expected a folder for optimizer states, which must "
                "exist: No such file or directory");
  std::ofstream(folder_ + "/file") << "x";
  EXPECT_THAT(
      std::string(StateStore::Create({folder_ + "/file", 0}, "s", {{0, 4}})
                      .status()
                      .message()),
      HasSubstr("/file: expected a folder for optimizer states, which must "
                "exist: Not a directory"));
  // The name stays in the folder.
  const std::string elsewhere = folder_ + "/elsewhere";
  ASSERT_EQ(symlink(elsewhere.c_str(), Path().c_str()), 0);
  EXPECT_EQ(Create({{0, 4}}).status().message(),
            Path() +
                ": cannot create the file of optimizer states: Too many "
                "levels of symbolic links");
  EXPECT_FALSE(std::filesystem::exists(elsewhere));
  ASSERT_EQ(unlink(Path().c_str()), 0);
  const int other = open(Path().c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  EXPECT_THAT(std::string(Create({{0, 4}}).status().message()),
              HasSubstr("another process keeps its optimizer states"));
  // It remains the other process's file.
  EXPECT_TRUE(std::filesystem::exists(Path()));
  close(other);
  auto store = Create({{0, 3 * kPage}}, 2 * kPage);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(
      (*store)->Plan({{0}}, *cpu_).message(),
      "expected at least 12288 bytes for the buffers of optimizer states "
      "(3 times the states of the largest tensor), found 8192; raise "
      "--offload-buffers, or the plan's offload: buffers, or leave it out");
}

// As the process that has the file does when it ends.
TEST_F(StateStoreTest, AFileThatIsRemovedBeforeItIsLockedIsMadeAgain) {
  const int other = open(Path().c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  absl::StatusOr<std::unique_ptr<StateStore>> store;
  std::thread waits([&] { store = Create({{0, 10}}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(unlink(Path().c_str()), 0);
  close(other);
  waits.join();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(std::filesystem::file_size(Path()), static_cast<size_t>(kPage));
}

// Root writes everywhere.
TEST_F(StateStoreTest, AFolderWithoutPermission) {
  if (geteuid() == 0) {
    EXPECT_THAT(
        std::string(
            StateStore::Create({"/proc", 0}, "s", {{0, 4}}).status().message()),
        HasSubstr("/proc/s: cannot create the file of optimizer states: "));
    return;
  }
  std::filesystem::permissions(folder_, std::filesystem::perms::owner_read);
  EXPECT_EQ(Create({{0, 4}}).status().code(),
            absl::StatusCode::kPermissionDenied);
  std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
}

TEST_F(StateStoreTest, NoRoomIsSaidAtOnce) {
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit limit = {10'000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status status = Create({{0, 1'000'000}}).status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            Path() +
                ": expected room for 1.0 MB of optimizer states: File too "
                "large");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(StateStoreTest, AShortenedFileIsNamed) {
  auto store = Create({{0, 2 * kPage}});
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE((*store)->Plan({{0}}, *cpu_).ok());
  ASSERT_EQ(truncate(Path().c_str(), kPage), 0);
  (*store)->BeginRun();
  const absl::Status status = (*store)->Enter(0);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(Path() + ": expected 4096 bytes at byte 4096, but the "
                                 "file has 4096; another process changed its "
                                 "length"));
}

}  // namespace
}  // namespace partita::executor
