// Compares bytes with the format's definition.
#include "runtime/train/event_file.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"

namespace partita::train {
namespace {

std::string Bytes(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes.push_back(static_cast<char>(value));
  return bytes;
}

TEST(EventFileTest, Checksum) {
  // RFC 3720, B.4.
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising.push_back(static_cast<char>(i));
  EXPECT_EQ(Crc32c(rising), 0x46dd794eu);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
}

TEST(EventFileTest, Events) {
  // 1.5 is 0x3ff8 and zeros; 300 is ac 02 as a varint.
  const std::string time = Bytes({0x09, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f});
  EXPECT_EQ(VersionEvent(1.5), time + Bytes({0x1a, 13}) + "brain.Event:2");
  EXPECT_EQ(StartEvent(1.5, 300),
            time + Bytes({0x10, 0xac, 0x02, 0x3a, 2, 0x08, 1}));
  // 0.5f is 0x3f000000, -2f 0xc0000000.
  EXPECT_EQ(
      ScalarsEvent(1.5, 300, {{"loss", 0.5}, {"x", -2}}),
      time + Bytes({0x10, 0xac, 0x02, 0x2a, 23}) +
          Bytes({0x0a, 11, 0x0a, 4, 'l', 'o', 's', 's', 0x15, 0, 0, 0, 0x3f}) +
          Bytes({0x0a, 8, 0x0a, 1, 'x', 0x15, 0, 0, 0, 0xc0}));
}

TEST(EventFileTest, Records) {
  // Same bytes as framed by TensorFlow's writer; all its files begin like this,
  // except for the time.
  const std::string record = FrameRecord(VersionEvent(0));
  ASSERT_EQ(record.size(), 8 + 4 + 24 + 4u);
  EXPECT_EQ(record.substr(0, 12),
            Bytes({24, 0, 0, 0, 0, 0, 0, 0, 0xa3, 0x7f, 0x4b, 0x22}));
  const uint32_t crc = Crc32c(record.substr(12, 24));
  const uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8;
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(static_cast<uint8_t>(record[36 + i]), (masked >> (8 * i)) & 0xff);
}

TEST(EventFileTest, FilesOfARun) {
  std::string folder = ::testing::TempDir() + "/events_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto file = EventFile::Create(folder + "/a/b", 4);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->path().rfind(folder + "/a/b/events.out.tfevents.", 0), 0u);
  StepRecord record;
  record.step = 5;
  record.loss = 0.5;
  record.scalars = {{"grad_norm", 3}};
  ASSERT_TRUE((*file)->OnStep(record).ok());
  std::ifstream stream((*file)->path(), std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(stream),
                            std::istreambuf_iterator<char>()};
  const size_t second = FrameRecord(VersionEvent(0)).size();
  const size_t third = second + FrameRecord(StartEvent(0, 5)).size();
  // After the wall time, which is now.
  EXPECT_EQ(content.substr(second + 12 + 9, 6),
            Bytes({0x10, 5, 0x3a, 2, 0x08, 1}));
  const std::string scalars =
      ScalarsEvent(0, 5, {{"loss", 0.5}, {"lr", 0}, {"grad_norm", 3}});
  EXPECT_EQ(content.size(), third + 16 + scalars.size());
  EXPECT_EQ(content.substr(third + 12 + 9, scalars.size() - 9),
            scalars.substr(9));
  std::filesystem::remove_all(folder);
}

TEST(EventFileTest, AFileInTheWay) {
  EXPECT_EQ(EventFile::Create("/dev/null/x", 0).status().message(),
            "/dev/null/x: cannot create the folder: Not a directory");
}

}  // namespace
}  // namespace partita::train
