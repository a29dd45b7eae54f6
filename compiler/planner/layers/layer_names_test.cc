// Tests that layers are found from module names, and named together by
// patterns.
#include "compiler/planner/layers/layer_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace partita::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

LayerNames Coatnet() {
  LayerNames names;
  for (const char* module :
       {"stem.conv1", "stem.norm1", "stages.0.blocks.0.conv1_1x1",
        "stages.0.blocks.0.se.fc1", "stages.0.blocks.1.se.fc1",
        "stages.1.blocks.0.attn.qkv", "head.fc"})
    names.Add(module);
  return names;
}

TEST(LayerNames, AreTheLargestModulesWithoutLists) {
  const LayerNames names = Coatnet();
  EXPECT_EQ(names.LayerOf("stages.0.blocks.1.se.fc1"), "stages.0.blocks.1");
  EXPECT_EQ(names.LayerOf("stages.1.blocks.0"), "stages.1.blocks.0");
  EXPECT_EQ(names.LayerOf("stem.conv1"), "stem");
  EXPECT_EQ(names.LayerOf("head"), "head");
  // A module that contains several layers is not a layer.
  EXPECT_EQ(names.LayerOf("stages.0"), "");
  EXPECT_EQ(names.LayerOf("stages"), "");
}

// Numbered parts without parts of their own form one layer, e.g. an MLP.
TEST(LayerNames, KeepSequencesOfOperationsTogether) {
  LayerNames names;
  for (const char* module : {"vit.embeddings", "vit.layer.0.mlp.0",
                             "vit.layer.0.mlp.2", "vit.layer.1.mlp.0"})
    names.Add(module);
  EXPECT_EQ(names.LayerOf("vit.layer.0.mlp.2"), "vit.layer.0");
  EXPECT_EQ(names.LayerOf("vit.embeddings"), "vit.embeddings");
}

TEST(PatternsOf, HoldTheLayersAndNoOther) {
  const std::set<std::string> all = {
      "head",
      "stem",
      "stages.0.blocks.0",
      "stages.0.blocks.1",
      "stages.1.blocks.0",
      "stages.1.blocks.1",
      "stages.1.blocks.2",
      "stages.10.blocks.0",
  };
  EXPECT_THAT(PatternsOf({"stem"}, all), ElementsAre("stem"));
  EXPECT_THAT(PatternsOf({"stages.0.blocks.0", "stages.0.blocks.1"}, all),
              ElementsAre("stages.0.*"));
  EXPECT_THAT(PatternsOf({"stages.0.blocks.0", "stages.0.blocks.1",
                          "stages.10.blocks.0", "stem"},
                         all),
              ElementsAre("stages.{0,10}.*", "stem"));
  EXPECT_THAT(PatternsOf({"stages.1.blocks.0", "stages.1.blocks.2"}, all),
              ElementsAre("stages.1.blocks.{0,2}"));
  EXPECT_THAT(PatternsOf(all, all), ElementsAre("head", "stages.*", "stem"));
  EXPECT_THAT(PatternsOf({}, all), IsEmpty());
}

}  // namespace
}  // namespace partita::planner
