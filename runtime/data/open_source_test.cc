#include "runtime/data/open_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "runtime/data/source_testing.h"

namespace partita::data {
namespace {

using base::DType;
using testing::ElementsAre;
using testing::HasSubstr;

SourceOptions InOrder() {
  SourceOptions options;
  options.order.shuffle = false;
  return options;
}

std::vector<base::TensorSpec> Tokens() {
  return {Spec("input_ids", DType::kI64, {1, 2})};
}

// A safetensors file with i64 'x' [2, 1] of a and b, and another tensor.
std::string BatchBytes(int64_t a, int64_t b) {
  const std::string json =
      R"({"other":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
      R"("x":{"dtype":"I64","shape":[2,1],"data_offsets":[1,17]}})";
  return BytesOf<uint64_t>({json.size()}) + json + "o" +
         BytesOf<int64_t>({a, b});
}

TEST(OpenSourceTest, TheFormOfTheNameDecides) {
  const std::string text = WriteTestFile("a.txt", "abcd");
  const std::string words = WriteTestFile("a.bin", "abcdef");
  const std::string plain = WriteTestFile("a", "abcdefghijkl");
  const auto first = [](const std::string& data) {
    auto source = OpenSource(data, Tokens(), InOrder());
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? Draw(**source, 1)[0] : -1;
  };
  EXPECT_EQ(first(text), 0x61);
  EXPECT_EQ(first(words), 0x6261);
  EXPECT_EQ(first("text:" + plain), 0x61);
  EXPECT_EQ(first("u16:" + plain), 0x6261);
  EXPECT_EQ(first("u32:" + plain), 0x64636261);
}

TEST(OpenSourceTest, ImagesFindTheirLabels) {
  WriteTestFile("t-labels-idx1-ubyte", std::string("\0\0\x8\1\0\0\0\1\5", 9));
  const std::string images =
      WriteTestFile("t-images-idx3-ubyte",
                    std::string("\0\0\x8\3\0\0\0\1\0\0\0\1\0\0\0\2\0\xff", 18));
  const std::vector<base::TensorSpec> specs = {
      Spec("pixels", DType::kF32, {1, 1, 2}),
      Spec("targets", DType::kI32, {1})};
  auto source = OpenSource(images, specs, InOrder());
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT(Draw(**source, 1, 0), ElementsAre(0, 1));
  EXPECT_THAT(Draw(**source, 1, 1), ElementsAre(5));
}

TEST(OpenSourceTest, SaysWhatItTakes) {
  for (const char* text : {"model.onnx", "", "no such file"})
    EXPECT_THAT(std::string(OpenSource(text, Tokens(), {}).status().message()),
                HasSubstr(absl::StrCat("data '", text,
                                       "': expected one of\n  FILE.bin")));
  for (const char* text : {"x=", "=y", "x=y,", "x=y,z"})
    EXPECT_THAT(std::string(OpenSource(text, Tokens(), {}).status().message()),
                HasSubstr("expected INPUT=FILE,INPUT=FILE..., found '"));
  EXPECT_THAT(
      std::string(OpenSource("x=a,x=b", Tokens(), {}).status().message()),
      HasSubstr("input 'x' is given twice"));
  EXPECT_THAT(
      std::string(OpenSource("none.txt", Tokens(), {}).status().message()),
      HasSubstr("none.txt"));
}

TEST(BatchFolderTest, GivesFilesInTheOrderOfTheirNames) {
  const std::string folder = testing::TempDir() + "/batches";
  std::filesystem::create_directories(folder);
  WriteTestFile("batches/b10.safetensors", BatchBytes(3, 4));
  WriteTestFile("batches/b02.safetensors", BatchBytes(1, 2));
  WriteTestFile("batches/readme.txt", "no batch");
  const std::vector<base::TensorSpec> specs = {Spec("x", DType::kI32, {2, 1})};
  auto source = OpenSource(folder, specs, InOrder());
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT(Draw(**source, 3), ElementsAre(1, 2, 3, 4, 1, 2));

  SourceOptions options = InOrder();
  options.rows = {1, 1};
  auto part = OpenSource(folder, specs, options);
  ASSERT_TRUE(part.ok()) << part.status();
  ASSERT_TRUE((*part)->Restore((*source)->State()).ok());
  EXPECT_THAT(Draw(**part, 1), ElementsAre(0, 4));
}

TEST(BatchFolderTest, RefusesBatchesThatDoNotFit) {
  const std::string path = WriteTestFile("one.safetensors", BatchBytes(1, 2));
  const auto refusal = [&](const std::string& data, base::TensorSpec spec) {
    auto source = OpenSource(data, {std::move(spec)}, InOrder());
    EXPECT_TRUE(source.ok()) << source.status();
    Batch batch = NewBatch(**source);
    const absl::Status status = (*source)->Next(batch);
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(path, Spec("x", DType::kI64, {2})),
              HasSubstr("one.safetensors: tensor 'x': expected i64[2], found "
                        "i64[2,1]"));
  EXPECT_THAT(refusal(path, Spec("y", DType::kI64, {2})),
              HasSubstr("found none named 'y' (i64[2])"));
  const std::string cut =
      WriteTestFile("cut.safetensors", BatchBytes(1, 2).substr(0, 100));
  EXPECT_THAT(refusal(cut, Spec("x", DType::kI64, {2, 1})),
              HasSubstr("cut.safetensors: expected a header of"));
  const std::string empty = testing::TempDir() + "/empty";
  std::filesystem::create_directories(empty);
  EXPECT_THAT(
      std::string(OpenSource(empty, Tokens(), {}).status().message()),
      HasSubstr("expected a folder of batches, *.safetensors, found none"));
}

}  // namespace
}  // namespace partita::data
