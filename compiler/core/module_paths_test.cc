#include "compiler/core/module_paths.h"

#include <gtest/gtest.h>

namespace partita::core {
namespace {

TEST(ModulePathsTest, NamesOfExporters) {
  EXPECT_EQ(ModuleOf("/m/transformer/h.0/attn/c_attn/Gemm"),
            "m.transformer.h.0.attn.c_attn");
  EXPECT_EQ(ModuleOf("/m/stages/stages.1/blocks/blocks.0/Add"),
            "m.stages.1.blocks.0");
  EXPECT_EQ(ModuleOf("h.3.attn"), "h.3.attn");
  EXPECT_EQ(ModuleOf("/MatMul"), "");
  EXPECT_EQ(ModuleOf("onnx::MatMul_12"), "");
}

TEST(ModulePathsTest, ModuleOfTwo) {
  EXPECT_EQ(CommonModule("h.0.mlp.up", "h.0.mlp.down"), "h.0.mlp");
  EXPECT_EQ(CommonModule("h.1.mlp", "h.10.mlp"), "h");
  EXPECT_EQ(CommonModule("h.0", "h.0"), "h.0");
  EXPECT_EQ(CommonModule("wte", "h.0"), "");
}

TEST(ModulePathsTest, PatternOfTwo) {
  EXPECT_EQ(CommonPattern("h.0.ln_1", "h.0.ln_1"), "h.0.ln_1");
  EXPECT_EQ(CommonPattern("h.0.ln_1", "h.11.ln_1"), "h.*.ln_1");
  EXPECT_EQ(CommonPattern("h.*.ln_1", "h.2.ln_1"), "h.*.ln_1");
  EXPECT_EQ(CommonPattern("h.0.ln_1", "h.1.ln_2"), "h.*");
  EXPECT_EQ(CommonPattern("m.h.*.ln_1", "m.ln_f"), "m.*");
  EXPECT_EQ(CommonPattern("m.wte.weight", "m.h.0.mlp.weight"), "m.*.weight");
  // A star matches at least one word.
  EXPECT_EQ(CommonPattern("h.0", "h.0.mlp"), "h.*");
  EXPECT_EQ(CommonPattern("h", "h.0"), "*");
  EXPECT_EQ(CommonPattern("wte", "h.0"), "*");
  EXPECT_EQ(CommonPattern("", "h.0"), "");
}

TEST(ModulePathsTest, Words) {
  EXPECT_TRUE(WordsOf("").empty());
  EXPECT_EQ(JoinWords(WordsOf("h.0.mlp"), 1, 3), "0.mlp");
  EXPECT_TRUE(IsNumber("12"));
  EXPECT_FALSE(IsNumber("1b"));
  EXPECT_FALSE(IsNumber(""));
}

}  // namespace
}  // namespace partita::core
