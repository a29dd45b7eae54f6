// Mapped and atomic files, and checksums.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/checksum.h"
#include "runtime/base/mapped_file.h"

namespace partita::base {
namespace {

using ::testing::HasSubstr;

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    folder_ = ::testing::TempDir() + "/file_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/file";
  }
  ~FileTest() override { std::filesystem::remove_all(folder_); }

  std::string Content() {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file),
            std::istreambuf_iterator<char>()};
  }
  int Files() {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      count += entry.exists() ? 1 : 0;
    return count;
  }

  std::string folder_, path_;
};

TEST_F(FileTest, MappedFilesMoveAndRelease) {
  ASSERT_TRUE(WriteFileAtomically(path_, std::string(20000, 'a') + "end").ok());
  MappedFile file = std::move(MappedFile::Open(path_)).value();
  MappedFile moved = std::move(file);
  EXPECT_EQ(moved.bytes().size(), 20003u);
  EXPECT_EQ(moved.path(), path_);
  moved.Release(0, 20003);
  moved.Release(19000, 5000);  // beyond the end: nothing happens
  EXPECT_EQ(moved.bytes().substr(20000), "end");
  EXPECT_EQ(moved.bytes()[5000], 'a');
}

TEST_F(FileTest, EmptyFilesMap) {
  ASSERT_TRUE(WriteFileAtomically(path_, "").ok());
  EXPECT_EQ(MappedFile::Open(path_)->bytes(), "");
}

TEST_F(FileTest, WhatCannotBeMappedIsNamed) {
  EXPECT_EQ(MappedFile::Open(path_).status().message(),
            path_ + ": no such file");
  EXPECT_TRUE(absl::IsNotFound(MappedFile::Open(path_).status()));
  EXPECT_EQ(MappedFile::Open(folder_).status().message(),
            folder_ + ": expected a file, found a folder");
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::Open(path_).status().message(),
            path_ + ": expected a file, found a device or pipe");
}

TEST_F(FileTest, AppendsAndOverwrites) {
  std::unique_ptr<AtomicFile> file =
      std::move(AtomicFile::Create(path_)).value();
  ASSERT_TRUE(file->Append("head").ok());
  ASSERT_TRUE(file->Append("tail").ok());
  ASSERT_TRUE(file->WriteAt(0, "HE").ok());
  EXPECT_FALSE(file->WriteAt(7, "xx").ok());
  EXPECT_EQ(file->size(), 8);
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(Content(), "HEadtail");
  EXPECT_EQ(Files(), 1);
}

TEST_F(FileTest, WithoutCommitNothingHappens) {
  ASSERT_TRUE(WriteFileAtomically(path_, "before").ok());
  {
    std::unique_ptr<AtomicFile> file =
        std::move(AtomicFile::Create(path_)).value();
    ASSERT_TRUE(file->Append("after").ok());
    EXPECT_EQ(Files(), 2);
  }
  EXPECT_EQ(Content(), "before");
  EXPECT_EQ(Files(), 1);
}

TEST_F(FileTest, AFullDiskIsReportedAndLeavesNothing) {
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const struct rlimit small = {1000, old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status =
      WriteFileAtomically(path_, std::string(5000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(status.message(), path_ +
                                  ": cannot write 5000 bytes at byte 0 "
                                  "(nothing was written): File too large");
  EXPECT_EQ(Files(), 0);
}

TEST_F(FileTest, AfterAFailureNothingCanBeWritten) {
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const struct rlimit small = {1000, old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::unique_ptr<AtomicFile> file =
      std::move(AtomicFile::Create(path_)).value();
  EXPECT_FALSE(file->Append(std::string(5000, 'x')).ok());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(file->Append("more")));
  EXPECT_TRUE(absl::IsFailedPrecondition(file->Commit()));
  EXPECT_EQ(Files(), 0);
}

TEST(ChecksumTest, KnownValuesAndChaining) {
  EXPECT_EQ(Crc32(""), 0u);
  EXPECT_EQ(Crc32("123456789"), 0xCBF43926u);
  EXPECT_EQ(Crc32("6789", Crc32("", Crc32("12345"))), 0xCBF43926u);
}

}  // namespace
}  // namespace partita::base
