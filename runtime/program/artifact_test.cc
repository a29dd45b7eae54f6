// Writes and opens artifacts, and damages files.
#include "runtime/program/artifact.h"

#include <stdlib.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/program/test_program.h"

namespace partita::program {
namespace {

using ::testing::HasSubstr;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
}

void WriteAll(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class ArtifactTest : public ::testing::Test {
 protected:
  ArtifactTest() {
    folder_ = ::testing::TempDir() + "/artifact_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/model.partita";
  }
  ~ArtifactTest() override { std::filesystem::remove_all(folder_); }

  std::string Message(const OpenOptions& options = {}) {
    const absl::StatusOr<Artifact> artifact = Artifact::Open(path_, options);
    return artifact.ok() ? "" : std::string(artifact.status().message());
  }
  int Files() {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      count += entry.exists() ? 1 : 0;
    return count;
  }

  std::string folder_, path_;
};

TEST_F(ArtifactTest, RoundTrip) {
  const SampleProgram sample;
  const ArtifactParts parts = sample.Parts("code");
  ASSERT_TRUE(WriteArtifact(path_, parts).ok());
  const absl::StatusOr<Artifact> artifact = Artifact::Open(path_);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  EXPECT_EQ(artifact->code(), "code");
  EXPECT_EQ(artifact->data().size(), 128u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(artifact->data().data()) % 4096, 0u);
  EXPECT_EQ(artifact->program().inputs()->size(), 2u);
  EXPECT_EQ(artifact->program().inputs()->Get(1)->name()->str(), "image");
  EXPECT_EQ(artifact->file_bytes(),
            static_cast<int64_t>(ReadAll(path_).size()));
  EXPECT_EQ(Files(), 1);
}

TEST_F(ArtifactTest, DataComesFromFilesToo) {
  const std::string source = folder_ + "/weights.bin";
  WriteAll(source, "0123456789");
  SampleProgram sample;
  auto file = std::make_shared<base::MappedFile>(
      std::move(base::MappedFile::Open(source)).value());
  EXPECT_EQ(sample.data.AddFromFile(file, 3, 4), 128);
  EXPECT_EQ(sample.data.Add("end"), 192);
  ASSERT_TRUE(WriteArtifact(path_, sample.Parts()).ok());
  const absl::StatusOr<Artifact> artifact = Artifact::Open(path_);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  EXPECT_EQ(artifact->data().substr(128, 5), std::string("3456\0", 5));
  EXPECT_EQ(artifact->data().substr(192, 3), "end");
}

TEST_F(ArtifactTest, InvalidProgramsAreNotWritten) {
  SampleProgram sample;
  sample.program.entries[0]->main = 7;
  const absl::Status status = WriteArtifact(path_, sample.Parts());
  EXPECT_EQ(status.message(), path_ + ": main: function 7 of 3");
  EXPECT_EQ(Files(), 0);
}

TEST_F(ArtifactTest, OtherFilesAreRefusedByName) {
  EXPECT_THAT(Message(), HasSubstr("no such file"));
  WriteAll(path_, "");
  EXPECT_THAT(Message(),
              HasSubstr("expected a compiled Partita model, found 0 bytes"));
  WriteAll(path_, std::string(1000, 'x'));
  EXPECT_THAT(Message(), HasSubstr("found another kind of file"));
  const absl::StatusOr<Artifact> folder = Artifact::Open(folder_);
  EXPECT_THAT(std::string(folder.status().message()),
              HasSubstr("expected a file, found a folder"));
}

TEST_F(ArtifactTest, OtherVersionsAreRefused) {
  ASSERT_TRUE(WriteArtifact(path_, SampleProgram().Parts()).ok());
  std::string bytes = ReadAll(path_);
  bytes[8] = 99;
  WriteAll(path_, bytes);
  EXPECT_THAT(
      Message(),
      HasSubstr(
          "expected format version 9, found 99; compile the model again"));
}

TEST_F(ArtifactTest, EveryTruncationIsFound) {
  ASSERT_TRUE(WriteArtifact(path_, SampleProgram().Parts("some code")).ok());
  const std::string bytes = ReadAll(path_);
  for (size_t size = 0; size < bytes.size(); size += 64) {
    WriteAll(path_, bytes.substr(0, size));
    EXPECT_THAT(Message(), HasSubstr(path_)) << size;
  }
  WriteAll(path_, bytes + "x");
  EXPECT_THAT(Message(), HasSubstr("the file was cut or extended"));
}

TEST_F(ArtifactTest, EveryChangedByteIsFound) {
  ASSERT_TRUE(WriteArtifact(path_, SampleProgram().Parts("some code")).ok());
  const std::string bytes = ReadAll(path_);
  const size_t program_end = 4096 + SampleProgram().Parts().program.size();
  int found = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    // Only the padding between sections has no checksum.
    const bool gap = (i >= 100 && i < 4096) || (i >= program_end && i < 8192) ||
                     (i >= 8192 + 9 && i < 12288);
    if (gap && i % 64 != 0) continue;
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    WriteAll(path_, changed);
    EXPECT_EQ(Message().empty(), gap) << i;
    found += gap ? 0 : 1;
  }
  EXPECT_EQ(found, 100 + static_cast<int>(program_end - 4096) + 9 + 128);
}

TEST_F(ArtifactTest, WithoutChecksumsDamageIsRefusedOrHarmless) {
  // A damaged program that Open accepts may mean something else, but must be
  // safe to walk.
  ASSERT_TRUE(WriteArtifact(path_, SampleProgram().Parts("some code")).ok());
  const std::string bytes = ReadAll(path_);
  const size_t size = SampleProgram().Parts().program.size();
  int refused = 0;
  for (size_t i = 0; i < size; ++i) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string changed = bytes;
      changed[4096 + i] = static_cast<char>(changed[4096 + i] ^ flip);
      WriteAll(path_, changed);
      const absl::StatusOr<Artifact> artifact = Artifact::Open(path_, {false});
      if (!artifact.ok()) {
        ++refused;
        continue;
      }
      // Walks every table and string, under the sanitizers.
      const std::unique_ptr<ProgramT> unpacked(artifact->program().UnPack());
      EXPECT_FALSE(SerializeProgram(*unpacked).empty());
    }
  }
  EXPECT_GT(refused, static_cast<int>(size) / 2);
}

// The file size limit simulates a full disk.
TEST_F(ArtifactTest, AFullDiskLeavesNothingBehind) {
  WriteAll(path_, "what was there before");
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const struct rlimit small = {5000, old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status =
      WriteArtifact(path_, SampleProgram().Parts("some code"));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(path_ + ": cannot write "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("File too large"));
  EXPECT_EQ(ReadAll(path_), "what was there before");
  EXPECT_EQ(Files(), 1);
}

TEST_F(ArtifactTest, MissingFoldersAreNamed) {
  const absl::Status status =
      WriteArtifact(folder_ + "/absent/model.partita", SampleProgram().Parts());
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cannot create a file in " + folder_ + "/absent"));
  EXPECT_THAT(
      std::string(WriteArtifact(folder_, SampleProgram().Parts()).message()),
      HasSubstr("expected a file to write, found a folder"));
}

}  // namespace
}  // namespace partita::program
