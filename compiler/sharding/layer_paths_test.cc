#include "compiler/sharding/layer_paths.h"

#include <gtest/gtest.h>

namespace partita::sharding {
namespace {

TEST(LayerPaths, NamesOfExporters) {
  EXPECT_EQ(layerOfName("/m/transformer/h.0/attn/c_attn/Gemm"),
            "m.transformer.h.0.attn.c_attn");
  EXPECT_EQ(layerOfName("/m/stages/stages.1/blocks/blocks.0/Add"),
            "m.stages.1.blocks.0");
  EXPECT_EQ(layerOfName("h.3.attn"), "h.3.attn");
  EXPECT_EQ(layerOfName("/MatMul"), "");
  EXPECT_EQ(layerOfName("onnx::MatMul_12"), "");
}

TEST(LayerPaths, WhatTwoHaveInCommon) {
  EXPECT_EQ(commonLayer("h.0.mlp.up", "h.0.mlp.down"), "h.0.mlp");
  EXPECT_EQ(commonLayer("h.1.mlp", "h.10.mlp"), "h");
  EXPECT_EQ(commonLayer("h.0", "h.0"), "h.0");
  EXPECT_EQ(commonLayer("wte", "h.0"), "");
}

}  // namespace
}  // namespace partita::sharding
