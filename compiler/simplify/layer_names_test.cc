#include "compiler/simplify/layer_names.h"

#include <gtest/gtest.h>

namespace partita::simplify {
namespace {

TEST(LayerNamesTest, WhatMostOperationsCount) {
  EXPECT_EQ(
      layerName(
          {{"/m/transformer/h.0/ln_1/Add", "/m/transformer/h.1/ln_1/Add"},
           {"/m/transformer/h.0/mlp/MatMul", "/m/transformer/h.1/mlp/MatMul"},
           {"/m/transformer/Add_1", "/m/transformer/h.0/Add"}}),
      "h");
}

TEST(LayerNamesTest, GeneralWordsGetTheOneBefore) {
  EXPECT_EQ(layerName({{"bert.encoder.layer.0.output",
                        "bert.encoder.layer.1.output"}}),
            "encoder_layer");
  EXPECT_EQ(layerName({{"/m/stages/stages.2/blocks/blocks.1/Add",
                        "/m/stages/stages.2/blocks/blocks.2/Add"}}),
            "stages_2_blocks");
  EXPECT_EQ(layerName({{"layers.0.Add", "layers.1.Add"}}), "layers");
}

TEST(LayerNamesTest, NamesThatSayNothing) {
  EXPECT_EQ(layerName({}), "layer");
  EXPECT_EQ(layerName({{"", ""}, {"Add_1", "Add_7"}, {"/0/Add", "/1/Add"}}),
            "layer");
}

TEST(LayerNamesTest, OnlyWhatASymbolMayContain) {
  EXPECT_EQ(layerName({{"/my layer/enc-dec.0/Add", "/my layer/enc-dec.1/Add"}}),
            "enc_dec");
}

}  // namespace
}  // namespace partita::simplify
