// Writes .npy files and reads them back, reads files as NumPy writes them, and
// refuses malformed ones.
#include "runtime/base/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

namespace partita::base {
namespace {

std::string Refusal(const std::string& bytes) {
  const auto array = ParseNpy(bytes, "f");
  return array.ok() ? "accepted" : std::string(array.status().message());
}

std::string Raw(char version, const std::string& dict,
                const std::string& data) {
  std::string bytes = std::string("\x93NUMPY") + version + '\0';
  bytes.push_back(static_cast<char>(dict.size()));
  bytes.push_back('\0');
  if (version > 1) bytes += std::string(2, '\0');
  return bytes + dict + data;
}

TEST(Npy, WritesAndReads) {
  const std::string path = std::string(getenv("TEST_TMPDIR")) + "/a.npy";
  const float values[6] = {1, -2, 3.5f, 0, 1e30f, -0.0f};
  ASSERT_TRUE(WriteNpy(path, DType::kF32, {2, 3}, values).ok());
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const auto array = ParseNpy(bytes, path);
  ASSERT_TRUE(array.ok()) << array.status().message();
  EXPECT_EQ(array->dtype, DType::kF32);
  EXPECT_EQ(array->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(array->data.data(), values, sizeof(values)), 0);
  EXPECT_EQ((bytes.size() - array->data.size()) % 64, 0u);
}

TEST(Npy, WidensBf16) {
  const std::string path = std::string(getenv("TEST_TMPDIR")) + "/b.npy";
  const uint16_t values[2] = {0x3f80, 0xc000};  // 1, -2
  ASSERT_TRUE(WriteNpy(path, DType::kBF16, {2}, values).ok());
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const auto array = ParseNpy(bytes, path);
  ASSERT_TRUE(array.ok()) << array.status().message();
  EXPECT_EQ(array->dtype, DType::kF32);
  float read[2];
  std::memcpy(read, array->data.data(), sizeof(read));
  EXPECT_EQ(read[0], 1.0f);
  EXPECT_EQ(read[1], -2.0f);
}

TEST(Npy, ReadsWhatNumPyWrites) {
  const auto scalar = ParseNpy(
      Raw(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (), }  \n",
          std::string(8, '\1')),
      "f");
  ASSERT_TRUE(scalar.ok()) << scalar.status().message();
  EXPECT_TRUE(scalar->shape.empty());
  const auto vector = ParseNpy(
      Raw(2, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }\n",
          std::string(3, '\1')),
      "f");
  ASSERT_TRUE(vector.ok()) << vector.status().message();
  EXPECT_EQ(vector->dtype, DType::kI1);
  EXPECT_EQ(vector->shape, (std::vector<int64_t>{3}));
}

TEST(Npy, Refuses) {
  EXPECT_EQ(Refusal("not an array"),
            "f: expected a .npy file, found other content");
  EXPECT_EQ(Refusal(Raw(9, "{}", "")),
            "f: expected .npy version 1, 2 or 3, found 9");
  EXPECT_EQ(Refusal(Raw(1, "{'descr': '<f4', 'shape': (1,)}", "1234")),
            "f: expected {'descr': ..., 'fortran_order': ..., 'shape': (...)}, "
            "found something else at byte 41");
  EXPECT_EQ(
      Refusal(Raw(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (1,1)}",
                  "1234")),
      "f: expected row-major order, found fortran_order True; save "
      "numpy.ascontiguousarray(array)");
  EXPECT_EQ(
      Refusal(Raw(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}",
                  "1234")),
      "f: expected a little-endian dtype of <f4, <f8, <f2, |b1, |i1, <i2, <i4, "
      "<i8, |u1, <u2, <u4, <u8, found '>f4'; convert with array.astype(...)");
  EXPECT_EQ(
      Refusal(Raw(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
                  "1234")),
      "f: expected 8 bytes for f32[2], found 4");
  EXPECT_EQ(
      Refusal(Raw(1,
                  "{'descr': '<f4', 'fortran_order': False, 'shape': "
                  "(4294967296, 4294967296)}",
                  "1234")),
      "f: expected too many bytes for f32[4294967296,4294967296], found 4");
}

// Every truncation is refused, and no changed byte crashes.
TEST(Npy, SurvivesDamage) {
  const std::string good = NpyHeader(DType::kF32, {2}) + std::string(8, '\1');
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_NE(Refusal(good.substr(0, size)), "accepted") << size;
  for (size_t i = 0; i < good.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      const auto array = ParseNpy(bad, "f");
      if (array.ok()) {
        EXPECT_EQ(ByteCount(array->dtype, array->shape),
                  static_cast<int64_t>(array->data.size()));
      }
    }
}

}  // namespace
}  // namespace partita::base
