// Reads see the writes before them, with either method; errors name the file.
#include "runtime/base/file_queue.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::base {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBytes = int64_t{5} << 20;

class FileQueueTest : public ::testing::TestWithParam<FileQueue::Method> {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/file_queue_XXXXXX";
    descriptor_ = mkstemp(path_.data());
    ASSERT_GE(descriptor_, 0);
    ASSERT_EQ(posix_fallocate(descriptor_, 0, kBytes), 0);
    auto queue = FileQueue::Make(descriptor_, path_, GetParam());
    ASSERT_TRUE(queue.ok()) << queue.status();
    queue_ = *std::move(queue);
  }
  void TearDown() override {
    queue_.reset();
    close(descriptor_);
    unlink(path_.c_str());
  }

  std::string path_;
  int descriptor_ = -1;
  std::unique_ptr<FileQueue> queue_;
};

// More parts than are in flight at once.
TEST_P(FileQueueTest, BatchesRunInOrder) {
  std::vector<char> source(kBytes), found(kBytes);
  int64_t last = 0;
  for (int round = 1; round <= 20; ++round) {
    for (size_t i = 0; i < source.size(); ++i)
      source[i] = static_cast<char>(i * i / 7 + static_cast<size_t>(round));
    std::vector<FileTransfer> writes, reads;
    for (int64_t at = 0; at < kBytes; at += 70'001) {
      const int64_t bytes = std::min<int64_t>(70'001, kBytes - at);
      writes.push_back({at, source.data() + at, bytes});
      reads.insert(reads.begin(), {at, found.data() + at, bytes});
    }
    const int64_t written = queue_->Write(writes);
    last = queue_->Read(reads);
    EXPECT_EQ(last, written + 1);
    ASSERT_EQ(queue_->Wait(last), absl::OkStatus());
    ASSERT_EQ(found, source) << round;
  }
  EXPECT_EQ(last, 40);
}

TEST_P(FileQueueTest, EmptyBatches) {
  EXPECT_EQ(queue_->Wait(0), absl::OkStatus());
  EXPECT_EQ(queue_->Wait(queue_->Read({})), absl::OkStatus());
  EXPECT_EQ(queue_->Wait(queue_->Write({{0, nullptr, 0}})), absl::OkStatus());
}

TEST_P(FileQueueTest, ShortFile) {
  std::vector<char> memory(4096);
  ASSERT_EQ(ftruncate(descriptor_, 1000), 0);
  EXPECT_EQ(queue_->Wait(queue_->Read({{0, memory.data(), 500}})),
            absl::OkStatus());
  const absl::Status status =
      queue_->Wait(queue_->Read({{0, memory.data(), 4096}}));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(),
            path_ +
                ": expected 3096 bytes at byte 1000, but the file has "
                "1000; another process changed its length");
  // The first error stays.
  EXPECT_EQ(queue_->Wait(queue_->Read({{0, memory.data(), 500}})), status);
}

TEST_P(FileQueueTest, FileTooLarge) {
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit limit = {kBytes, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::vector<char> memory(4096);
  const absl::Status status =
      queue_->Wait(queue_->Write({{kBytes, memory.data(), 4096}}));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      status.message(),
      path_ + ": cannot write 4096 bytes at byte 5242880: File too large");
}

TEST_P(FileQueueTest, SystemCallsOnRequest) {
  if (GetParam() == FileQueue::Method::kSystem)
    EXPECT_FALSE(queue_->UsesRing());
  else
    RecordProperty("ring", queue_->UsesRing());
}

// The descriptor becomes one at which the kernel refuses the ring's calls.
TEST_P(FileQueueTest, SystemCallsTakeOverFromARingThatFails) {
  if (!queue_->UsesRing()) return;
  std::vector<char> source(kBytes, 'a'), found(kBytes);
  ASSERT_EQ(queue_->Wait(queue_->Write({{0, source.data(), kBytes}})),
            absl::OkStatus());
  const int other = open("/dev/null", O_RDWR | O_CLOEXEC);
  int replaced = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    if (std::error_code error;
        std::filesystem::read_symlink(entry, error).string().find("io_uring") !=
        std::string::npos)
      replaced += dup2(other, std::stoi(entry.path().filename().string())) >= 0;
  close(other);
  ASSERT_EQ(replaced, 1);
  source.assign(kBytes, 'b');
  const int64_t written = queue_->Write({{0, source.data(), kBytes}});
  ASSERT_EQ(queue_->Wait(written), absl::OkStatus());
  ASSERT_EQ(queue_->Wait(queue_->Read({{0, found.data(), kBytes}})),
            absl::OkStatus());
  EXPECT_EQ(found, source);
}

INSTANTIATE_TEST_SUITE_P(Methods, FileQueueTest,
                         ::testing::Values(FileQueue::Method::kBest,
                                           FileQueue::Method::kSystem),
                         [](const auto& info) {
                           return info.param == FileQueue::Method::kBest
                                      ? "Best"
                                      : "System";
                         });

}  // namespace
}  // namespace partita::base
