// Compares attention by warpgroups, which are emulated, with the interpreter.
// Checks that the emulation finds errors, that ptxas spills nothing, and how
// many registers it uses.
#include <gtest/gtest.h>

#include "compiler/kernels/attention_cases.h"
#include "compiler/kernels/damaged_kernels.h"
#include "compiler/kernels/emit_tile_ring.h"
#include "compiler/kernels/ptxas.h"
#include "compiler/kernels/warpgroup_emulation.h"

namespace partita::kernels {
namespace {

// Queries of one band and of two; keys in one tile, in whole tiles, and in more
// than two, so that each buffer is filled again.
class WarpgroupAttention : public testing::TestWithParam<Case> {};

TEST_P(WarpgroupAttention, EqualsTheInterpreter) {
  PtxKernel launch;
  const std::string ptx = ptxOf(textOf(GetParam()), "sm_90a", launch);
  EXPECT_NE(ptx.find("wgmma.mma_async"), std::string::npos);
  EXPECT_NE(ptx.find("cp.async.bulk.tensor.4d"), std::string::npos);
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(textOf(GetParam()), emulated("sm_90a"));
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->code().team, kBlock);
  EXPECT_EQ(kernel->difference(GetParam().tolerance, GetParam().tolerance), "");
}

const Case kGroupCases[] = {
    {"whole_tiles", 2, 1, 1, 64, 64, 64, 64, "", ""},
    {"two_bands", 1, 1, 1, 150, 130, 64, 64, "", ""},
    {"many_tiles", 1, 1, 1, 70, 330, 64, 64, "", ""},
    {"one_query", 2, 2, 2, 1, 100, 64, 64, "", ""},
    {"one_key", 1, 2, 2, 9, 1, 64, 64, "", ""},
    {"large_heads", 1, 1, 1, 140, 200, 128, 128, "", ""},
    {"larger_values", 1, 1, 1, 70, 75, 64, 128, "", ""},
    {"smaller_values", 1, 1, 1, 70, 75, 128, 64, "", ""},
    {"causal", 1, 2, 2, 200, 200, 64, 64, "causal_offset = 0", ""},
    {"causal_large_heads", 1, 1, 1, 150, 150, 128, 128, "causal_offset = 0",
     ""},
    {"causal_past", 1, 1, 1, 70, 140, 64, 64, "causal_offset = 70", ""},
    {"causal_sees_nothing", 1, 1, 1, 100, 60, 64, 64, "causal_offset = -30",
     ""},
    {"shared_keys", 2, 4, 2, 20, 70, 64, 64, "causal_offset = 50", ""},
    {"softcap", 1, 1, 1, 20, 70, 64, 64, "causal_offset = 50 softcap = 2.0",
     ""},
    {"window", 1, 2, 2, 400, 400, 64, 64, "causal_offset = 0 window = 100", ""},
    {"two_sided_window", 2, 2, 1, 300, 330, 64, 64,
     "causal_offset = 60 window = 121", ""},
    {"window_before_all_keys", 1, 1, 1, 150, 200, 64, 64,
     "causal_offset = -140 window = 3", ""},
    {"window_behind_all_keys", 1, 1, 1, 150, 130, 128, 128,
     "causal_offset = 200 window = 90", ""},
    // The second block of keys is hidden from the first block of queries, and
    // the last block of queries sees no key.
    {"blocks", 1, 2, 1, 300, 390, 64, 64,
     "blocks = dense<[[[1, 0, 1, 1], [0, 1, 0, 0], [0, 0, 0, 0]]]> : "
     "tensor<1x3x4xi1> block_size = 128",
     ""},
    {"causal_blocks_of_heads", 1, 2, 2, 256, 256, 128, 64,
     "causal_offset = 0 blocks = dense<[[[1, 1], [0, 1]], [[1, 0], [1, 0]]]> "
     ": tensor<2x2x2xi1> block_size = 128",
     ""},
    {"f16", 1, 2, 2, 70, 90, 64, 64, "causal_offset = 20", "", "f16", 2e-3},
    {"f16_large_heads", 1, 2, 2, 70, 90, 128, 128, "causal_offset = 20", "",
     "f16", 2e-3},
    {"lse", 2, 2, 1, 100, 130, 64, 64, "", "", "bf16", 2e-2, true},
    {"lse_of_two_bands", 1, 1, 1, 150, 150, 128, 128, "causal_offset = 0", "",
     "f16", 2e-3, true},
    {"lse_of_hidden_keys", 1, 1, 1, 100, 60, 64, 64, "causal_offset = -30", "",
     "bf16", 2e-2, true},
    {"lse_of_window", 1, 2, 1, 300, 330, 64, 64,
     "causal_offset = 60 window = 121 softcap = 2.0", "", "bf16", 2e-2, true},
    {"lse_of_blocks", 1, 1, 1, 300, 300, 64, 128,
     "blocks = dense<[[[1, 0, 1], [0, 1, 0], [0, 0, 0]]]> : "
     "tensor<1x3x3xi1> block_size = 128",
     "", "bf16", 2e-2, true},
};
INSTANTIATE_TEST_SUITE_P(Codegen, WarpgroupAttention,
                         testing::ValuesIn(kGroupCases),
                         [](const auto& info) { return info.param.name; });

// The layout of keys and values in memory decides how they are copied.
struct Place {
  std::string name;
  std::string keys;   // text that makes %k from %x and %s
  std::string types;  // of %x
  bool boxes, copies;
  std::string shape;
  TensorMap map = {};  // of the keys
};
void PrintTo(const Place& place, std::ostream* out) { *out << place.name; }

std::string textOf(const Place& place) {
  const std::string heads = "tensor<" + place.shape + "x64xbf16>";
  return "func.func @k(%q: tensor<2x3x70x64xbf16>, %x: tensor<" + place.types +
         "xbf16>, %v: " + heads +
         ", %s: tensor<bf16>) -> tensor<2x3x70x64xbf16> {\n" + place.keys +
         "  %r = nn.attention %q, %k, %v scale = 2.5e-1 : "
         "(tensor<2x3x70x64xbf16>, " +
         heads + ", " + heads +
         ") -> tensor<2x3x70x64xbf16>\n  return %r : "
         "tensor<2x3x70x64xbf16> }";
}

class WarpgroupAttentionPlaces : public testing::TestWithParam<Place> {};

TEST_P(WarpgroupAttentionPlaces, EqualTheInterpreter) {
  const Place& place = GetParam();
  PtxKernel launch;
  const std::string ptx = ptxOf(textOf(place), "sm_90a", launch);
  EXPECT_NE(ptx.find("wgmma.mma_async"), std::string::npos);
  EXPECT_EQ(ptx.find("cp.async.bulk") != std::string::npos, place.boxes);
  EXPECT_EQ(launch.maps.size(), place.boxes ? 2u : 0u);
  if (!launch.maps.empty()) {
    const TensorMap &keys = launch.maps[0], &values = launch.maps[1];
    EXPECT_EQ(keys.argument, 1);
    EXPECT_EQ(keys.offset, place.map.offset);
    EXPECT_EQ(keys.shape, place.map.shape);
    EXPECT_EQ(keys.strides, place.map.strides);
    EXPECT_EQ(keys.box, (std::vector<int64_t>{1, 1, 64, 64}));
    EXPECT_EQ(values.argument, 2);
    EXPECT_EQ(values.offset, 0);
  }
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(textOf(place), emulated("sm_90a"));
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->difference(2e-2, 2e-2), "");
}

const Place kPlaces[] = {
    {"packed",
     R"(  %a = nn.slice %x starts = [0, 0, 192] strides = [1, 1, 1] : tensor<2x75x584xbf16> -> tensor<2x75x192xbf16>
  %b = nn.reshape %a : tensor<2x75x192xbf16> -> tensor<2x75x3x64xbf16>
  %k = nn.transpose %b perm = [0, 2, 1, 3] : tensor<2x75x3x64xbf16> -> tensor<2x3x75x64xbf16>
)",
     "2x75x584",
     true,
     true,
     "2x3x75",
     {1, 384, {2, 3, 75, 64}, {75 * 1168, 128, 1168}, {}}},
    {"one_head_every_second_row",
     R"(  %a = nn.slice %x starts = [0, 0, 1, 0] strides = [1, 1, 2, 1] : tensor<2x1x150x64xbf16> -> tensor<2x1x75x64xbf16>
  %k = nn.reshape %a : tensor<2x1x75x64xbf16> -> tensor<2x1x75x64xbf16>
)",
     "2x1x150x64",
     true,
     true,
     "2x1x75",
     {1, 128, {2, 1, 75, 64}, {150 * 128, 128, 256}, {}}},
    // Rows in groups, with other rows between them.
    {"groups_of_rows",
     R"(  %a = nn.slice %x starts = [0, 0, 0, 0, 0] strides = [1, 1, 1, 1, 1] : tensor<2x3x4x24x64xbf16> -> tensor<2x3x4x20x64xbf16>
  %k = nn.reshape %a : tensor<2x3x4x20x64xbf16> -> tensor<2x3x80x64xbf16>
)",
     "2x3x4x24x64", false, true, "2x3x80"},
    // Rows of 392 bytes.
    {"rows_at_8_bytes",
     R"(  %a = nn.slice %x starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x75x196xbf16> -> tensor<2x75x192xbf16>
  %b = nn.reshape %a : tensor<2x75x192xbf16> -> tensor<2x75x3x64xbf16>
  %k = nn.transpose %b perm = [0, 2, 1, 3] : tensor<2x75x3x64xbf16> -> tensor<2x3x75x64xbf16>
)",
     "2x75x196", false, false, "2x3x75"},
    {"columns_apart",
     R"(  %k = nn.transpose %x perm = [0, 1, 3, 2] : tensor<2x3x64x75xbf16> -> tensor<2x3x75x64xbf16>
)",
     "2x3x64x75", false, false, "2x3x75"},
    {"computed",
     R"(  %b = nn.broadcast %s dims = [] : tensor<bf16> -> tensor<2x3x75x64xbf16>
  %k = arith.mulf %x, %b : tensor<2x3x75x64xbf16>
)",
     "2x3x75x64", false, false, "2x3x75"},
};
INSTANTIATE_TEST_SUITE_P(Codegen, WarpgroupAttentionPlaces,
                         testing::ValuesIn(kPlaces),
                         [](const auto& info) { return info.param.name; });

// The same code with an error in its waits or fences.
class WarpgroupAttentionDamage : public testing::TestWithParam<Damage> {};

TEST_P(WarpgroupAttentionDamage, IsFound) {
  // Two items, with more tiles than the ring has stages.
  const Case test = {"", 1, 2, 1, 70, 330, 64, 64, "", ""};
  expectFound(
      textOf(test), emulated("sm_90a"), GetParam(),
      [](CompiledKernel& kernel) { return kernel.difference(2e-2, 2e-2); });
}

// The first of two waits is for readers, the second for tiles.
const Damage kDamages[] = {
    {"no_wait_for_tiles", kBarrierWait, 1, 0,
     "arrives at a barrier at which all have arrived"},
    {"tiles_of_another_phase", kBarrierWait, 1, 1, ""},
    {"no_wait_for_readers", kBarrierWait, 0, 0,
     "a box over memory that warp [0-3] may still read"},
    {"readers_of_another_phase", kBarrierWait, 0, 1, "waits forever"},
    {"no_release", kBarrierArrive, -1, 0, "waits forever"},
    {"no_bytes_expected", kBarrierExpect, -1, 0,
     "more bytes have come than were expected"},
    {"too_many_bytes", kBarrierExpect, -1, 128, "waits forever"},
    {"too_few_bytes", kBarrierExpect, -1, -128,
     "more bytes have come than were expected"},
    {"one_more_reader", kBarrierMake, -1, 1, "waits forever"},
    {"no_fence", kFenceTiles, -1, 0,
     "a box for a barrier that was made without a fence"},
    // The first of two fences is the ring's, the second one is for queries.
    {"one_thread_fences", kFenceTiles, 0, kAlone,
     "a box over memory that thread 1 may have written without a fence"},
    {"one_thread_fences_queries", kFenceTiles, 1, kAlone,
     "a product of memory that thread 1 has written without a fence"},
    {"barriers_left", kBarrierEnd, -1, 0,
     "a barrier is made where there is one"},
};
INSTANTIATE_TEST_SUITE_P(Codegen, WarpgroupAttentionDamage,
                         testing::ValuesIn(kDamages),
                         [](const auto& info) { return info.param.name; });

// The products of warpgroups of a kernel that is run several times.
int64_t productsOf(const Case& test) {
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(textOf(test), emulated("sm_90a"));
  const int64_t before = multipliedGroups();
  EXPECT_EQ(kernel->difference(test.tolerance, test.tolerance), "");
  return multipliedGroups() - before;
}

// Blocks of 128 queries see tiles of 64 keys: with a causal mask, one block
// sees two and the other four; with a window of 64 keys, two and three. The
// table shows two of the three blocks of keys to one of three blocks of
// queries, and one to another.
TEST(WarpgroupAttentionTest, VisitsOnlyTilesThatAreSeen) {
  Case test = {"", 1, 1, 1, 256, 256, 64, 64, "causal_offset = 0", ""};
  const int64_t causal = productsOf(test);
  EXPECT_GT(causal, 0);
  test.attributes += " window = 64";
  EXPECT_EQ(6 * productsOf(test), 5 * causal);
  test = {"", 1, 1, 1, 384, 384, 64, 64, "", ""};
  const int64_t all = productsOf(test);
  test.attributes =
      "blocks = dense<[[[1, 0, 1], [0, 1, 0], [0, 0, 0]]]> : "
      "tensor<1x3x3xi1> block_size = 128";
  EXPECT_EQ(9 * productsOf(test), 3 * all);
}

// Warps multiply the cases that warpgroups do not.
TEST(WarpgroupAttentionTest, OthersHaveWarps) {
  for (const Case& test : {Case{"", 1, 1, 1, 20, 20, 32, 64, "", ""},
                           Case{"", 1, 1, 1, 20, 20, 64, 80, "", ""},
                           Case{"", 1, 1, 1, 20, 20, 64, 64, "", "1x1x20x20"},
                           Case{"", 1, 1, 1, 20, 20, 64, 64, "", "", "f32"}}) {
    PtxKernel launch;
    const std::string ptx = ptxOf(textOf(test), "sm_90a", launch);
    EXPECT_NE(ptx.find("mma.sync.aligned"), std::string::npos);
    EXPECT_EQ(ptx.find("wgmma"), std::string::npos);
  }
}

struct GroupSize {
  std::string element;
  int64_t head;
  std::string attributes;
  // Registers per thread: the count of ptxas 13.0 plus a margin of at most 8.
  // 255 is the hardware's limit; there the check is that nothing is spilled.
  int most_registers;
  int64_t shared_bytes;  // that a launch requests
  bool lse = false;
};
void PrintTo(const GroupSize& size, std::ostream* out) {
  *out << size.element << "_" << size.head << " " << size.attributes
       << (size.lse ? " lse" : "");
}
class WarpgroupAttentionCode : public testing::TestWithParam<GroupSize> {};

// Two blocks must fit on a multiprocessor, which has 64 K registers and 227 KiB
// of shared memory for them.
TEST_P(WarpgroupAttentionCode, FitsIntoRegistersAndSharedMemory) {
  const GroupSize& size = GetParam();
  PtxKernel launch;
  Case test = {"", 8, 12, 12, 1024, 1024, size.head, size.head};
  test.attributes = size.attributes;
  test.element = size.element;
  test.lse = size.lse;
  const std::string ptx = ptxOf(textOf(test), "sm_90a", launch);
  ASSERT_NE(ptx, "");
  EXPECT_NE(
      ptx.find("wgmma.mma_async.sync.aligned.m64n64k16.f32." + size.element),
      std::string::npos);
  EXPECT_NE(ptx.find("cp.async.bulk.tensor.4d.shared::cluster.global.tile."
                     "mbarrier::complete_tx::bytes"),
            std::string::npos);
  EXPECT_NE(ptx.find("mbarrier.try_wait.parity.shared"), std::string::npos);
  EXPECT_NE(ptx.find(size.lse ? ".param .align 64 .b8 k_param_6[128]"
                              : ".param .align 64 .b8 k_param_5[128]"),
            std::string::npos);
  EXPECT_EQ(ptx.find(" mma.sync"), std::string::npos);
  // Copies of boxes read the maps in the parameters, not a copy on the stack.
  EXPECT_EQ(ptx.find("__local_depot"), std::string::npos);
  EXPECT_EQ(launch.blocks, 8 * 12 * (1024 / 128));
  EXPECT_EQ(launch.scratch_bytes, 0);
  EXPECT_EQ(launch.shared_bytes, size.shared_bytes);
  if (!hasPtxas()) GTEST_SKIP() << kWithoutPtxas;
  const Assembled assembled = assemble(ptx, "sm_90a");
  ASSERT_TRUE(assembled.ok) << assembled.report;
  // Otherwise ptxas reports that it makes products wait for each other.
  EXPECT_EQ(assembled.report.find("serialized"), std::string::npos)
      << assembled.report;
  const Assembled::Kernel& kernel = assembled.kernels.at("k");
  EXPECT_EQ(kernel.spilled_bytes, 0) << assembled.report;
  EXPECT_LE(kernel.registers, size.most_registers);
  EXPECT_LE(2 * (kernel.shared_bytes + launch.shared_bytes + 1024), 228 * 1024);
}
const GroupSize kGroupSizes[] = {
    {"bf16", 64, "", 180, 80 * 1024 + kRingBytes},
    {"bf16", 64, "causal_offset = 0", 180, 80 * 1024 + kRingBytes},
    {"f16", 64, "causal_offset = 0", 180, 80 * 1024 + kRingBytes},
    {"bf16", 128, "", 254, 96 * 1024 + kRingBytes},
    {"bf16", 128, "causal_offset = 0", 255, 96 * 1024 + kRingBytes},
    // Training keeps the log-sum-exp.
    {"bf16", 64, "causal_offset = 0", 180, 80 * 1024 + kRingBytes, true},
    {"bf16", 128, "causal_offset = 0", 255, 96 * 1024 + kRingBytes, true}};
INSTANTIATE_TEST_SUITE_P(Codegen, WarpgroupAttentionCode,
                         testing::ValuesIn(kGroupSizes), [](const auto& info) {
                           return info.param.element + "Heads" +
                                  std::to_string(info.param.head) +
                                  (info.param.attributes.empty() ? ""
                                                                 : "Causal") +
                                  (info.param.lse ? "Lse" : "");
                         });

// Tiles for warps need less shared memory, so they are used if it is short.
TEST(WarpgroupAttention, BlocksAskForNoMoreThanTheyCanHave) {
  Case test = {"", 1, 1, 1, 64, 64, 128, 128};
  test.element = "bf16";
  CodegenOptions options = emulated("sm_90a");
  const auto scratch = [&] {
    std::unique_ptr<CompiledKernel> kernel =
        CompiledKernel::fromText(textOf(test), options);
    EXPECT_EQ(kernel->difference(0.02, 0.02), "");
    return kernel->code().scratch_bytes;
  };
  EXPECT_GT(scratch(), 64 * 1024);
  options.shared_bytes = 64 * 1024;
  EXPECT_LE(scratch(), 48 * 1024);
}

}  // namespace
}  // namespace partita::kernels
