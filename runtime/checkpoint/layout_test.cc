#include "runtime/checkpoint/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/base/safetensors.h"
#include "runtime/checkpoint/checkpoint_testing.h"

namespace partita::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Names(const Layout& layout) {
  std::vector<std::string> names;
  for (const Layout::File& file : layout.files) names.push_back(file.name);
  for (const Layout::Index& index : layout.indexes) names.push_back(index.name);
  return names;
}

// Files and indexes agree with the places for every size of shards.
TEST(LayoutTest, FilesAreSafetensorsAndIndexed) {
  const std::vector<Entry> entries = TestEntries(0);
  for (int64_t shard_bytes : {1, 200, 1000, 100000}) {
    const auto layout = MakeLayout(entries, shard_bytes);
    ASSERT_TRUE(layout.ok()) << layout.status();
    std::vector<base::SafetensorsHeader> headers;
    for (const Layout::File& file : layout->files) {
      std::string bytes = file.header;
      bytes.resize(static_cast<size_t>(file.bytes));
      const auto header = base::ParseSafetensors(bytes, file.name);
      ASSERT_TRUE(header.ok()) << header.status();
      EXPECT_EQ(header->metadata.at("format"), "pt");
      EXPECT_EQ(file.header.size() % 64, 0u);
      headers.push_back(*header);
    }
    for (size_t i = 0; i < entries.size(); ++i) {
      const base::TensorSpec& spec = entries[i].spec;
      const Layout::Place& place = layout->places[i];
      const base::SafetensorsEntry& entry =
          headers[place.file].tensors.at(spec.name);
      EXPECT_EQ(entry.dtype, spec.dtype);
      EXPECT_EQ(entry.shape, spec.shape);
      EXPECT_EQ(static_cast<int64_t>(entry.offset), place.offset);
      EXPECT_EQ(place.offset % base::SizeOf(spec.dtype), 0);
      const bool is_model = entries[i].group == Group::kModel;
      const auto index =
          nlohmann::json::parse(layout->indexes[is_model ? 0 : 1].content);
      EXPECT_EQ(index["weight_map"][spec.name], layout->files[place.file].name);
    }
  }
}

TEST(LayoutTest, NamesAreHuggingFaces) {
  EXPECT_THAT(Names(*MakeLayout(TestEntries(0), 1000)),
              ElementsAre("model-00001-of-00002.safetensors",
                          "model-00002-of-00002.safetensors",
                          "optimizer-00001-of-00003.safetensors",
                          "optimizer-00002-of-00003.safetensors",
                          "optimizer-00003-of-00003.safetensors",
                          "model.safetensors.index.json",
                          "optimizer.safetensors.index.json"));
  const auto index = nlohmann::json::parse(
      MakeLayout(TestEntries(0), 1000)->indexes[0].content);
  EXPECT_EQ(index["metadata"]["total_size"], 7 * 33 * 4 + 3 + 16 * 9 * 2 + 4);
}

TEST(LayoutTest, AModelWithoutStateHasNoOptimizerFiles) {
  std::vector<Entry> entries = TestEntries(0);
  entries.resize(5);
  EXPECT_THAT(Names(*MakeLayout(entries, 1 << 30)),
              ElementsAre("model-00001-of-00001.safetensors",
                          "model.safetensors.index.json"));
}

TEST(LayoutTest, PartsAreTensorsOneAfterTheOther) {
  Entry experts =
      WholeEntry({"experts.*.up", base::DType::kF32, {3, 2, 5}, 120},
                 Group::kModel, nullptr);
  experts.in_parts = true;
  const auto layout = MakeLayout({experts}, 1000);
  ASSERT_TRUE(layout.ok()) << layout.status();
  std::string bytes = layout->files[0].header;
  bytes.resize(static_cast<size_t>(layout->files[0].bytes));
  const auto header = base::ParseSafetensors(bytes, "model");
  ASSERT_TRUE(header.ok()) << header.status();
  ASSERT_EQ(header->tensors.size(), 3u);
  const auto index = nlohmann::json::parse(layout->indexes[0].content);
  EXPECT_EQ(index["metadata"]["total_size"], 120);
  for (int i = 0; i < 3; ++i) {
    const std::string name = "experts." + std::to_string(i) + ".up";
    const base::SafetensorsEntry& part = header->tensors.at(name);
    EXPECT_EQ(part.shape, (std::vector<int64_t>{2, 5}));
    EXPECT_EQ(static_cast<int64_t>(part.offset),
              layout->places[0].offset + 40 * i);
    EXPECT_EQ(index["weight_map"][name], layout->files[0].name);
  }
  Entry other = experts;
  other.spec.name = "experts.1.up";
  other.in_parts = false;
  EXPECT_THAT(
      std::string(MakeLayout({experts, other}, 1000).status().message()),
      HasSubstr("found 'experts.1.up' twice"));
}

TEST(LayoutTest, RefusesNamesTwice) {
  std::vector<Entry> entries = TestEntries(0);
  entries.push_back(entries.front());
  EXPECT_THAT(std::string(MakeLayout(entries, 1000).status().message()),
              HasSubstr("expected another name for each tensor, found "
                        "'embed.weight' twice"));
}

}  // namespace
}  // namespace partita::checkpoint
