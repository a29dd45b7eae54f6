// Format of lines, and the log of a resumed run.
#include "runtime/train/log.h"

#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::train {
namespace {

using ::testing::HasSubstr;

StepRecord Record(int64_t step) {
  StepRecord record;
  record.step = step;
  record.loss = 2.5;
  record.rate = 0.125;
  record.seconds = 0.5;
  record.examples = 4;
  return record;
}

class LogTest : public ::testing::Test {
 protected:
  LogTest() {
    folder_ = ::testing::TempDir() + "/log_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/run.jsonl";
  }
  ~LogTest() override { std::filesystem::remove_all(folder_); }

  void Put(const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  std::string Content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file),
            std::istreambuf_iterator<char>()};
  }
  std::string folder_, path_;
};

TEST(JsonLineTest, Fields) {
  StepRecord record = Record(3);
  EXPECT_EQ(ToJsonLine(record),
            "{\"step\":3,\"loss\":2.5,\"lr\":0.125,\"seconds\":0.5,"
            "\"examples\":4,\"examples_per_second\":8.0}\n");
  record.loss = std::numeric_limits<double>::quiet_NaN();
  record.examples = 0;
  record.tokens = 32;
  record.scalars = {{"grad_norm", 1.5}, {"step", 77}, {"a\"b\n", 1}};
  EXPECT_EQ(ToJsonLine(record),
            "{\"step\":3,\"loss\":null,\"lr\":0.125,\"seconds\":0.5,"
            "\"tokens\":32,\"tokens_per_second\":64.0,\"grad_norm\":1.5,"
            "\"a\\\"b\\n\":1.0}\n");
}

TEST_F(LogTest, LinesAreThereAtOnce) {
  const auto log = JsonLog::Open(path_, 0);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->OnStep(Record(1)).ok());
  EXPECT_EQ(Content(), ToJsonLine(Record(1)));
  ASSERT_TRUE((*log)->OnStep(Record(2)).ok());
  EXPECT_EQ(Content(), ToJsonLine(Record(1)) + ToJsonLine(Record(2)));
}

TEST_F(LogTest, AResumedRunLogsEachStepOnce) {
  std::string lines;
  for (int64_t step = 1; step <= 5; ++step) lines += ToJsonLine(Record(step));
  Put(lines + "{\"step\":6,\"lo");
  const auto log = JsonLog::Open(path_, 3);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->OnStep(Record(4)).ok());
  std::string expected;
  for (int64_t step = 1; step <= 4; ++step)
    expected += ToJsonLine(Record(step));
  EXPECT_EQ(Content(), expected);
}

TEST_F(LogTest, ANewRunBeginsAnew) {
  Put(ToJsonLine(Record(1)));
  ASSERT_TRUE(JsonLog::Open(path_, 0).ok());
  EXPECT_EQ(Content(), "");
}

TEST_F(LogTest, OtherFilesAreNotTouched) {
  const std::string other = ToJsonLine(Record(1)) + "dear diary\n";
  Put(other);
  const auto log = JsonLog::Open(path_, 0);
  EXPECT_THAT(std::string(log.status().message()),
              HasSubstr("run.jsonl, line 2: expected the log of a run"));
  EXPECT_EQ(Content(), other);
}

TEST_F(LogTest, Failures) {
  EXPECT_THAT(
      std::string(
          JsonLog::Open(folder_ + "/no/run.jsonl", 0).status().message()),
      HasSubstr("no/run.jsonl: cannot open it for writing: No such file"));
  const auto full = JsonLog::Open("/dev/full", 0);
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_EQ((*full)->OnStep(Record(1)).message(),
            "/dev/full: cannot write: No space left on device");
}

}  // namespace
}  // namespace partita::train
