// Tests how layers are computed: the collectives of transformers under
// Megatron-LM's and other plans. D cases come from tests of Alpa and
// AutoParallel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/core/projection.h"
#include "compiler/core/propagate.h"
#include "compiler/core/test_resolve.h"

namespace partita::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(ResolveTest, MegatronLayer) {
  MakeMesh({{"data", 2}, {"tensor", 2}});
  const Layer layer = AddLayer();
  Seed(layer.x, 0, "data", 0);
  Propagate(graph_, 0, shardings_);
  Seed(layer.up, 1, "tensor", 1);
  Propagate(graph_, 1, shardings_);
  EXPECT_EQ(Text(layer.h), "[{data}, {}, {tensor}]");
  EXPECT_EQ(Text(layer.down), "[{tensor}, {}]");
  EXPECT_EQ(Text(layer.sum), "[{data}, {}, {}]");
  EXPECT_EQ(Shown(layer.up_op),
            "[{data}, {}, {}] [{}, {tensor}] -> [{data}, {}, {tensor}]");
  EXPECT_EQ(Shown(layer.down_op),
            "[{data}, {}, {tensor}] [{tensor}, {}] -> [{data}, {}, {}] "
            "unreduced={tensor}");
  for (size_t op = 0; op < graph_.ops.size(); ++op)
    EXPECT_THAT(Reasons(static_cast<int>(op)), IsEmpty());
}

// L on the same axis in a later entry: a gather where the width needs the axis,
// and a reduce-scatter into L after it.
TEST_F(ResolveTest, SequenceParallelLayer) {
  MakeMesh({{"data", 2}, {"tensor", 2}});
  const Layer layer = AddLayer();
  Seed(layer.x, 0, "data", 0);
  Propagate(graph_, 0, shardings_);
  Seed(layer.up, 1, "tensor", 1);
  Propagate(graph_, 1, shardings_);
  for (int value : {layer.x, layer.norm, layer.h, layer.gelu, layer.y})
    Seed(value, 1, "tensor", 2);
  Propagate(graph_, 2, shardings_);
  EXPECT_EQ(Text(layer.norm), "[{data}, {tensor}, {}]");
  EXPECT_EQ(Text(layer.h), "[{data}, {}, {tensor}]");
  EXPECT_EQ(Text(layer.sum), "[{data}, {tensor}, {}]");
  EXPECT_EQ(Shown(layer.up_op),
            "[{data}, {}, {}] [{}, {tensor}] -> [{data}, {}, {tensor}]");
  EXPECT_EQ(Shown(layer.down_op),
            "[{data}, {}, {tensor}] [{tensor}, {}] -> [{data}, {}, {}] "
            "unreduced={tensor}");
  EXPECT_EQ(Shown(layer.sum_op),
            "[{data}, {tensor}, {}] [{data}, {tensor}, {}] -> "
            "[{data}, {tensor}, {}]");
  EXPECT_THAT(Reasons(layer.up_op),
              ElementsAre("Axis 'tensor' stays with dimension 1 of "
                          "'up.weight': its entry (priority 1) comes before "
                          "that of dimension 1 of 'norm' (priority 2)"));
  EXPECT_THAT(Reasons(layer.down_op),
              ElementsAre("Axis 'tensor' stays with dimension 2 of 'gelu': its "
                          "entry (priority 1) comes before that of dimension 1 "
                          "of 'y' (priority 2)"));
}

// Weights divided over the axis of B too, as in ZeRO: gathered where B uses it.
TEST_F(ResolveTest, WeightsOverTheBatchAxisAreGathered) {
  MakeMesh({{"data", 2}, {"tensor", 2}});
  const Layer layer = AddLayer();
  Seed(layer.x, 0, "data", 0);
  Propagate(graph_, 0, shardings_);
  Seed(layer.up, 1, "tensor", 1);
  Propagate(graph_, 1, shardings_);
  Seed(layer.up, 0, "data", 2);
  Seed(layer.down, 1, "data", 2);
  Propagate(graph_, 2, shardings_);
  EXPECT_EQ(Text(layer.x), "[{data}, {}, {}]");
  EXPECT_EQ(Shown(layer.up_op),
            "[{data}, {}, {}] [{}, {tensor}] -> [{data}, {}, {tensor}]");
  EXPECT_EQ(Shown(layer.down_op),
            "[{data}, {}, {tensor}] [{tensor}, {}] -> [{data}, {}, {}] "
            "unreduced={tensor}");
}

// D9, AutoParallel's tests/test_optimize_placement.py on 32 x 8 devices: images
// or sequences over the first axis, widths over the second, parameters over
// both. The first weight, (S0, S0), is stored as outputs x inputs, and tensor
// comes first here, so that the rows gathered over data are contiguous.
TEST_F(ResolveTest, D9FeedForwardOnTwoAxes) {
  MakeMesh({{"data", 32}, {"tensor", 8}});
  const int x = AddValue({8192, 1024}), up = AddValue({4096, 1024});
  const int h = AddValue({8192, 4096}), down = AddValue({1024, 4096});
  const int y = AddValue({8192, 1024});
  const int mm1 = AddOp("b e, m e -> b m", {x, up}, {h});
  const int mm2 = AddOp("b m, e m -> b e", {h, down}, {y});
  Append(x, 0, "data", 0);
  Run(0);
  Append(up, 0, "tensor", 1);
  Run(1);
  Append(up, 0, "data", 2);
  Append(down, 0, "data", 2);
  Run(2);
  EXPECT_EQ(Text(up), "[{tensor, data}, {}]");
  EXPECT_EQ(Text(down), "[{data}, {tensor}]");
  EXPECT_EQ(Shown(mm1), "[{data}, {}] [{tensor}, {}] -> [{data}, {tensor}]");
  EXPECT_EQ(Shown(mm2),
            "[{data}, {tensor}] [{}, {tensor}] -> [{data}, {}] "
            "unreduced={tensor}");
  // Weights are gathered, activations stay.
  EXPECT_EQ(Moves(mm1), (Counts{{"all_gather", 1}}));
  EXPECT_EQ(Moves(mm2), (Counts{{"all_gather", 1}, {"all_reduce", 1}}));
}

TEST_F(ResolveTest, D9AttentionOnTwoAxes) {
  MakeMesh({{"data", 32}, {"tensor", 8}});
  const int q = AddValue({256, 48, 256, 128}),
            k = AddValue({256, 48, 256, 128});
  const int v = AddValue({256, 48, 256, 128}),
            o = AddValue({256, 48, 256, 128});
  const int attention =
      AddOp("b n l h, b n k h, b n k v -> b n l v", {q, k, v}, {o}, {},
            {{'k', FactorKind::kWhole}, {'h', FactorKind::kWhole}});
  Append(q, 0, "data", 0);
  Run(0);
  Append(q, 1, "tensor", 1);
  Run(1);
  const std::string both = "[{data}, {tensor}, {}, {}]";
  EXPECT_EQ(Shown(attention), both + " " + both + " " + both + " -> " + both);
  EXPECT_EQ(Moves(attention), Counts());
}

// D5, Alpa's tests/shard_parallel/test_moe.py: 64 sequences of 16 tokens, 16
// experts, four devices. Tokens travel to their experts and back, and so do
// their gradients: four all-to-alls. The entry of B comes first, but the entry
// of X places the operands and results of experts. Experts' gradients are
// complete at once. Gradients of the gate and of attention are partial sums,
// which one bucket reduces.
TEST_F(ResolveTest, D5ExpertsExchangeTokensFourTimes) {
  MakeMesh({{"d", 4}});
  const int64_t g = 64, s = 16, e = 64, x = 16, c = 2, f = 256;
  const int tokens = AddValue({g, s, e}, "d, ,"), gate = AddValue({e, x}, " ,");
  const int scores = AddValue({g, s, x}, "d, ,");
  const int mask = AddValue({g, s, x, c}, "d, , ,");
  const int up = AddValue({x, e, f}, "d, ,", "", 1),
            down = AddValue({x, f, e}, "d, ,", "", 1);
  const int sent = AddValue({x, g, c, e}, "d, , ,", "", 1);
  const int inner = AddValue({x, g, c, f}, "d, , ,", "", 1);
  const int back = AddValue({x, g, c, e}, "d, , ,", "", 1);
  const int out = AddValue({g, s, e}, "d, ,");
  // Gradients have the sharding of their values by default.
  const int of_out = AddValue({g, s, e}, "d, ,");
  const int of_back = AddValue({x, g, c, e}, "d, , ,", "", 1);
  const int of_inner = AddValue({x, g, c, f}, "d, , ,", "", 1);
  const int of_sent = AddValue({x, g, c, e}, "d, , ,", "", 1);
  const int of_tokens = AddValue({g, s, e}, "d, ,");
  const int of_down = AddValue({x, f, e}, "d, ,", "", 1);
  const int of_up = AddValue({x, e, f}, "d, ,", "", 1);
  const int of_scores = AddValue({g, s, x}, "d, ,");
  const int of_gate = AddValue({e, x}, " ,");
  AddOp("g s e, e x -> g s x", {tokens, gate}, {scores});
  AddOp("g s x c, g s e -> x g c e", {mask, tokens}, {sent});
  AddOp("x g c e, x e f -> x g c f", {sent, up}, {inner});
  AddOp("x g c f, x f e -> x g c e", {inner, down}, {back});
  AddOp("g s x c, x g c e -> g s e", {mask, back}, {out});
  AddOp("g s x c, g s e -> x g c e", {mask, of_out}, {of_back});
  AddOp("x g c e, x f e -> x g c f", {of_back, down}, {of_inner});
  AddOp("x g c f, x g c e -> x f e", {inner, of_back}, {of_down});
  AddOp("x g c f, x e f -> x g c e", {of_inner, up}, {of_sent});
  AddOp("x g c e, x g c f -> x e f", {sent, of_inner}, {of_up});
  AddOp("g s x c, x g c e -> g s e", {mask, of_sent}, {of_tokens});
  const int gate_op =
      AddOp("g s e, g s x -> e x", {tokens, of_scores}, {of_gate});
  Counts moves;
  for (size_t op = 0; op < graph_.ops.size(); ++op)
    for (const auto& [kind, times] : Moves(static_cast<int>(op)))
      moves[kind] += times;
  EXPECT_EQ(moves, (Counts{{"all_reduce", 1}, {"all_to_all", 4}}));
  EXPECT_EQ(Shown(gate_op),
            "[{d}, {}, {}] [{d}, {}, {}] -> [{}, {}] unreduced={d}");
}

}  // namespace
}  // namespace partita::core
