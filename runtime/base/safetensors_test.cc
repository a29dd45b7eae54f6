// Every rule of the safetensors header, followed and broken.
#include "runtime/base/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace partita::base {
namespace {

std::string File(const std::string& json, size_t data_bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i)
    file.push_back(static_cast<char>(json.size() >> (8 * i) & 0xff));
  return file + json + std::string(data_bytes, '\1');
}

std::string Refusal(const std::string& file) {
  const auto header = ParseSafetensors(file, "f");
  return header.ok() ? "accepted" : std::string(header.status().message());
}

std::string RefusalOf(const std::string& json, size_t data_bytes = 8) {
  return Refusal(File(json, data_bytes));
}

TEST(Safetensors, ReadsNamesTypesShapesAndPlaces) {
  const std::string json =
      R"({"__metadata__":{"format":"pt"},)"
      R"("b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},)"
      R"("a":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
      R"("e":{"shape":[4,0],"data_offsets":[20,20],"dtype":"F32"}}   )";
  const auto header = ParseSafetensors(File(json, 20), "f");
  ASSERT_TRUE(header.ok()) << header.status().message();
  EXPECT_EQ(header->metadata.at("format"), "pt");
  const uint64_t start = 8 + json.size();
  const SafetensorsEntry& b = header->tensors.at("b");
  EXPECT_EQ(b.stored, "BF16");
  EXPECT_EQ(b.dtype, DType::kBF16);
  EXPECT_EQ(b.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(b.offset, start + 8);
  EXPECT_EQ(b.bytes, 12u);
  EXPECT_TRUE(header->tensors.at("a").shape.empty());
  EXPECT_EQ(header->tensors.at("e").bytes, 0u);
}

TEST(Safetensors, KnowsTypesThatWeCannotCompute) {
  const auto header = ParseSafetensors(
      File(R"({"x":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}})", 2), "f");
  ASSERT_TRUE(header.ok()) << header.status().message();
  EXPECT_FALSE(header->tensors.at("x").dtype.has_value());
}

TEST(Safetensors, AcceptsNoTensors) {
  const auto header = ParseSafetensors(File("{}", 0), "f");
  ASSERT_TRUE(header.ok());
  EXPECT_TRUE(header->tensors.empty());
}

TEST(Safetensors, RefusesWhatIsNotSuchAFile) {
  EXPECT_EQ(Refusal("1234"),
            "f: expected a safetensors file, found only 4 bytes");
  EXPECT_EQ(Refusal("PK\3\4PK\3\4 zip"),
            "f: expected a header of at most 100000000 bytes, found a length "
            "of 289157608118635344 (is this a safetensors file?)");
  EXPECT_EQ(Refusal(File("{}", 0).substr(0, 9)),
            "f: expected a header of 2 bytes, found the file to end after 1 "
            "(is it truncated?)");
  EXPECT_EQ(RefusalOf("[]"),
            "f: expected a header that starts with '{' at byte 8, found "
            "another byte");
}

TEST(Safetensors, RefusesBadJsonWithItsPosition) {
  EXPECT_EQ(RefusalOf(R"({"x":{"dtype":"F32",}})").substr(0, 48),
            "f: safetensors header: not JSON at byte 29: pars");
  EXPECT_EQ(RefusalOf(R"({} x)").substr(0, 46),
            "f: safetensors header: not JSON at byte 12: pa");
}

TEST(Safetensors, RefusesOtherStructure) {
  EXPECT_EQ(RefusalOf(R"({"x":3})"),
            "f: safetensors header: 'x': expected an object, found a number");
  EXPECT_EQ(RefusalOf(R"({"x":{"dtype":"F32","shape":[2]}})"),
            "f: safetensors header: tensor 'x': expected dtype, shape and "
            "data_offsets, found no data_offsets");
  EXPECT_EQ(RefusalOf(R"({"x":{"dtype":3}})"),
            "f: safetensors header: tensor 'x': dtype: expected a string, "
            "found a number");
  EXPECT_EQ(
      RefusalOf(R"({"x":{"shape":[-1]}})"),
      "f: safetensors header: tensor 'x': shape: expected an array of numbers "
      "that are not negative, found a negative number");
  EXPECT_EQ(RefusalOf(R"({"x":{"shape":[[1]]}})"),
            "f: safetensors header: tensor 'x': shape: expected an array of "
            "numbers that are not negative, found an array");
  EXPECT_EQ(RefusalOf(R"({"x":{"more":1}})"),
            "f: safetensors header: tensor 'x': expected dtype, shape or "
            "data_offsets, found 'more'");
  EXPECT_EQ(RefusalOf(R"({"__metadata__":{"a":1}})"),
            "f: safetensors header: __metadata__ 'a': expected a string, "
            "found a number");
}

TEST(Safetensors, RefusesDuplicates) {
  const std::string x = R"("x":{"dtype":"F32","shape":[2],)"
                        R"("data_offsets":[0,8]})";
  EXPECT_EQ(RefusalOf("{" + x + "," + x + "}"),
            "f: safetensors header: tensor 'x' appears twice");
  EXPECT_EQ(RefusalOf(R"({"x":{"shape":[2],"shape":[2]}})"),
            "f: safetensors header: tensor 'x': shape appears twice");
  EXPECT_EQ(RefusalOf(R"({"__metadata__":{},"__metadata__":{}})"),
            "f: safetensors header: __metadata__ appears twice");
}

TEST(Safetensors, RefusesWrongTypesAndSizes) {
  EXPECT_EQ(
      RefusalOf(R"({"x":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})")
          .substr(0, 48),
      "f: tensor 'x': expected a dtype of BOOL, U8, I8,");
  EXPECT_EQ(
      RefusalOf(R"({"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})"),
      "f: tensor 'x': expected 12 bytes for F32[3], found 8 in "
      "data_offsets [0, 8]");
  EXPECT_EQ(
      RefusalOf(R"({"x":{"dtype":"F4","shape":[3],"data_offsets":[0,8]}})"),
      "f: tensor 'x': expected a size of whole bytes below 2^61, found "
      "F4[3]");
  EXPECT_EQ(
      RefusalOf(
          R"({"x":{"dtype":"F32","shape":[9223372036854775807,4],"data_offsets":[0,8]}})"),
      "f: tensor 'x': expected a size of whole bytes below 2^61, found "
      "F32[9223372036854775807,4]");
  EXPECT_EQ(
      RefusalOf(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8,9]}})"),
      "f: tensor 'x': expected 2 data_offsets, begin and end, found 3");
}

TEST(Safetensors, RefusesHolesOverlapsAndTails) {
  const std::string x = R"({"x":{"dtype":"F32","shape":[1],)";
  EXPECT_EQ(RefusalOf(x + R"("data_offsets":[8,12]}})"),
            "f: tensor 'x': expected data_offsets within the 8 bytes of data, "
            "begin first, found [8, 12]");
  EXPECT_EQ(RefusalOf(x + R"("data_offsets":[4,0]}})"),
            "f: tensor 'x': expected data_offsets within the 8 bytes of data, "
            "begin first, found [4, 0]");
  EXPECT_EQ(RefusalOf(x + R"("data_offsets":[4,8]}})"),
            "f: tensor 'x': expected to begin at byte 0 of the data, the "
            "first, found 4 (a hole)");
  EXPECT_EQ(RefusalOf(x + R"("data_offsets":[0,4]}})"),
            "f: expected tensors to fill all 8 bytes of data, found 4 unused "
            "at the end");
  EXPECT_EQ(RefusalOf(x + R"("data_offsets":[0,4]},)"
                          R"("y":{"dtype":"F32","shape":[1],)"
                          R"("data_offsets":[2,6]}})"),
            "f: tensor 'y': expected to begin at byte 4 of the data, where "
            "'x' ends, found 2 (an overlap)");
}

// 100 GB of zeros need no disk space, and opening them reads only the header.
TEST(Safetensors, OpensAHundredGigabytes) {
  const std::string path =
      std::string(getenv("TEST_TMPDIR") ? getenv("TEST_TMPDIR") : "/tmp") +
      "/large.safetensors";
  const std::string head = File(
      R"({"x":{"dtype":"F32","shape":[25000000000],"data_offsets":[0,100000000000]}})",
      0);
  std::ofstream(path, std::ios::binary) << head;
  if (truncate(path.c_str(), static_cast<off_t>(head.size()) + 100000000000) !=
      0)
    GTEST_SKIP() << "this file system holds no sparse file of 100 GB";
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const SafetensorsEntry& x = file->header().tensors.at("x");
  EXPECT_EQ(x.bytes, 100000000000u);
  EXPECT_EQ(file->BytesOf(x).back(), '\0');
  unlink(path.c_str());
}

TEST(Safetensors, SaysWhichFileIsMissing) {
  const auto file = SafetensorsFile::Open("/nowhere/x.safetensors");
  EXPECT_EQ(file.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(file.status().message()).find("/nowhere/x.safetensors"),
            std::string::npos);
}

}  // namespace
}  // namespace partita::base
