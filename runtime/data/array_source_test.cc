#include "runtime/data/array_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/npy.h"
#include "runtime/base/random_fill.h"
#include "runtime/data/idx.h"
#include "runtime/data/source_testing.h"

namespace partita::data {
namespace {

using base::DType;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Idx(const std::vector<int>& shape, const std::string& elements) {
  std::string bytes = {0, 0, 8, static_cast<char>(shape.size())};
  for (int size : shape)
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<char>(size >> shift & 255));
  return bytes + elements;
}

// Three images of 2 x 2 and their labels.
std::map<std::string, std::string> Images(const std::string& stem) {
  std::string pixels;
  for (int i = 0; i < 12; ++i)
    pixels.push_back(static_cast<char>(51 * i % 256));
  return {{"images", WriteTestFile(stem + ".images", Idx({3, 2, 2}, pixels))},
          {"targets", WriteTestFile(stem + ".labels",
                                    Idx({3}, std::string("\x7\0\x9", 3)))}};
}

ArrayOptions InOrder() {
  ArrayOptions options;
  options.order.shuffle = false;
  return options;
}

std::string Refusal(const std::map<std::string, std::string>& files,
                    const std::vector<base::TensorSpec>& specs,
                    const ArrayOptions& options) {
  const auto source = OpenArrays(files, specs, options);
  EXPECT_FALSE(source.ok());
  return std::string(source.status().message());
}

std::vector<base::TensorSpec> ImageSpecs(int64_t batch) {
  return {Spec("images", DType::kF32, {batch, 1, 2, 2}),
          Spec("targets", DType::kI64, {batch})};
}

TEST(ArraySourceTest, ScalesImagesAndKeepsLabels) {
  auto source = OpenArrays(Images("plain"), ImageSpecs(2), InOrder());
  ASSERT_TRUE(source.ok()) << source.status();
  Batch batch = NewBatch(**source);
  ASSERT_TRUE((*source)->Next(batch).ok());
  const std::vector<double> pixels = Values(batch, 0);
  for (int i = 0; i < 8; ++i)
    EXPECT_FLOAT_EQ(static_cast<float>(pixels[static_cast<size_t>(i)]),
                    static_cast<float>(51 * i % 256) / 255);
  EXPECT_THAT(Values(batch, 1), ElementsAre(7, 0));
}

TEST(ArraySourceTest, NormalizesAndFrames) {
  ArrayOptions options = InOrder();
  options.mean = 0.5;
  options.deviation = 0.25;
  const std::vector<base::TensorSpec> specs = {
      Spec("images", DType::kF32, {1, 4, 3}),
      Spec("targets", DType::kI32, {1, 1})};
  auto source = OpenArrays(Images("frame"), specs, options);
  ASSERT_TRUE(source.ok()) << source.status();
  const std::vector<double> pixels = Draw(**source, 1);
  const double zero = (0 - 0.5) / 0.25;
  std::vector<double> wanted(12, zero);
  wanted[4] = (51 / 255.0 - 0.5) / 0.25;
  wanted[6] = (102 / 255.0 - 0.5) / 0.25;
  wanted[7] = (153 / 255.0 - 0.5) / 0.25;
  for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(pixels[i], wanted[i], 1e-6) << i;
}

TEST(ArraySourceTest, ReadsNpyAndKeepsSamplesTogether) {
  std::vector<float> features;
  std::vector<int64_t> values;
  for (int i = 0; i < 50; ++i) {
    features.push_back(static_cast<float>(i));
    features.push_back(static_cast<float>(-i));
    values.push_back(1000 + i);
  }
  const std::string x = testing::TempDir() + "/x.npy";
  const std::string y = testing::TempDir() + "/y.npy";
  ASSERT_TRUE(base::WriteNpy(x, DType::kF32, {50, 2}, features.data()).ok());
  ASSERT_TRUE(base::WriteNpy(y, DType::kI64, {50}, values.data()).ok());
  const std::vector<base::TensorSpec> specs = {Spec("x", DType::kBF16, {5, 2}),
                                               Spec("y", DType::kF32, {5, 1})};
  ArrayOptions options;
  options.order.seed = 4;
  auto source = OpenArrays({{"x", x}, {"y", y}}, specs, options);
  ASSERT_TRUE(source.ok()) << source.status();
  Batch batch = NewBatch(**source);
  bool moved = false;
  for (int step = 0; step < 20; ++step) {
    ASSERT_TRUE((*source)->Next(batch).ok());
    for (size_t row = 0; row < 5; ++row) {
      const double sample = Values(batch, 1)[row] - 1000;
      EXPECT_EQ(Values(batch, 0)[2 * row], sample);
      EXPECT_EQ(Values(batch, 0)[2 * row + 1], -sample);
      moved |= sample != 5 * step + static_cast<double>(row);
    }
  }
  EXPECT_TRUE(moved);
}

TEST(ArraySourceTest, RefusesWhatDoesNotFit) {
  const auto files = Images("refuse");
  EXPECT_THAT(Refusal(files, ImageSpecs(4), {}),
              HasSubstr("expected at least 4 samples, one batch, found 3"));
  EXPECT_THAT(
      Refusal(files,
              {Spec("images", DType::kF32, {1, 3, 2, 2}), ImageSpecs(1)[1]},
              {}),
      HasSubstr("for input 'images': expected samples of f32[1,3,2,2] along "
                "the first dimension, no larger in the others, found "
                "u8[3,2,2]"));
  EXPECT_THAT(Refusal(files, {ImageSpecs(1)[0]}, {}),
              HasSubstr("expected one of the model's inputs 'images', found "
                        "'targets'"));
  EXPECT_THAT(Refusal({{"images", files.at("images")}}, ImageSpecs(1), {}),
              HasSubstr("found none for 'targets'; name it as targets=FILE"));
  ArrayOptions options;
  options.classes = 9;
  EXPECT_THAT(Refusal(files, ImageSpecs(1), options),
              HasSubstr("expected labels from 0 to 8, found 9 at sample 2"));
  auto other = files;
  other["targets"] = WriteTestFile("two.labels", Idx({2}, "ab"));
  EXPECT_THAT(Refusal(other, ImageSpecs(1), {}),
              HasSubstr("expected 3 samples"));
}

TEST(IdxTest, RefusesEveryCut) {
  const std::string good = Idx({2, 3}, "abcdef");
  ASSERT_TRUE(ParseIdx(good, "f").ok());
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(ParseIdx(good.substr(0, size), "f").ok()) << size;
  EXPECT_FALSE(ParseIdx(good + "g", "f").ok());
  EXPECT_THAT(std::string(ParseIdx(good.substr(0, 14), "f").status().message()),
              HasSubstr("f: expected 6 bytes for u8[2,3], found 2 (is the file "
                        "truncated?)"));
}

TEST(IdxTest, SaysWhatOtherFilesAre) {
  EXPECT_THAT(
      std::string(ParseIdx("\x1f\x8b\x08", "f.gz").status().message()),
      HasSubstr("f.gz: expected an IDX file, found one that gzip compressed; "
                "run gunzip -k on it"));
  EXPECT_THAT(
      std::string(ParseIdx(std::string("\0\0\x0d\1\0\0\0\1xxxx", 12), "f")
                      .status()
                      .message()),
      HasSubstr("found type 13 at byte 2; convert the array to .npy"));
}

// Random headers are refused, or describe exactly the bytes in the file.
TEST(IdxTest, SurvivesRandomHeaders) {
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    std::string bytes = Idx({2, 3}, "abcdef");
    for (uint64_t change = 0; change < 1 + seed % 3; ++change) {
      const uint64_t word = base::RandomWord(seed, change);
      bytes[word % bytes.size()] = static_cast<char>(word >> 32);
    }
    bytes.resize(bytes.size() - base::RandomWord(seed, 9) % 3);
    const auto array = ParseIdx(bytes, "f");
    if (array.ok())
      EXPECT_EQ(base::ByteCount(array->dtype, array->shape),
                static_cast<int64_t>(array->data.size()));
    else
      EXPECT_THAT(std::string(array.status().message()), HasSubstr("f: "));
  }
}

}  // namespace
}  // namespace partita::data
