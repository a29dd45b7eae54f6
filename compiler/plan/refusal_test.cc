// Tests the whole text of every refusal: what was expected, what was found,
// where, and what to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "compiler/plan/names.h"
#include "compiler/plan/plan.h"

namespace partita::plan {
namespace {

std::string Refusal(const std::string& text) {
  return std::string(ParsePlan(text, "p.yaml").status().message());
}

// Pairs of a plan and its refusal.
void Expect(const std::vector<std::pair<std::string, std::string>>& cases) {
  for (const auto& [text, message] : cases)
    EXPECT_EQ(Refusal(text), message) << text;
}

const char kFields[] =
    "mesh, shard, zero, gather, microbatches, schedule, stages, recompute, "
    "precision, offload, attention, experts, memory, overrides, budgets, "
    "names";

TEST(Refusals, OfTheFile) {
  Expect({{"", "p.yaml:1:1: plan: expected a map of " + std::string(kFields) +
                   ", found nothing"},
          {"[1]", "p.yaml:1:1: plan: expected a map of " +
                      std::string(kFields) + ", found a list"},
          {"mesh: {a: 2}\nshard: [{B: a}\n",
           "p.yaml:3:1: expected YAML, found an error: end of sequence flow "
           "not found"},
          {"mesh: {}\n---\nmesh: {}\n",
           "p.yaml:3:1: expected one document, found a second"},
          {"mesh: &m {}\nshard: *m\n",
           "p.yaml:2:8: expected a value, found an alias; write the value "
           "out"}});
  EXPECT_EQ(ReadPlan("no/such.yaml").status().message(),
            "expected a plan to read, found no file 'no/such.yaml'");
  EXPECT_EQ(ReadPlan(testing::TempDir()).status().message(),
            "expected a plan to read, found '" + testing::TempDir() +
                "', which cannot be read");
  const std::string deep = std::string(40, '[') + std::string(40, ']');
  EXPECT_EQ(Refusal("mesh: " + deep),
            "p.yaml:1:38: expected values nested at most 32 deep, found "
            "another");
}

TEST(Refusals, OfFields) {
  Expect({{"mesh: {a: 2}\nshards: []\n",
           "p.yaml:2:1: plan: expected " + std::string(kFields) +
               ", found 'shards'; did you mean 'shard'?"},
          {"shard: []", "p.yaml:1:1: plan: expected 'mesh', found none"},
          {"mesh: {}\nzero: 1\nzero: 2\n",
           "p.yaml:3:1: plan: expected 'zero' once, found it at line 2 too"},
          {"mesh: {}\nzero: 4",
           "p.yaml:2:7: zero: expected a whole number from 0 to 3, found '4'"},
          {"mesh: {}\nmicrobatches: many",
           "p.yaml:2:15: microbatches: expected a whole number from 1 to "
           "1048576, found 'many'"},
          {"mesh: {}\nmicrobatches: 0",
           "p.yaml:2:15: microbatches: expected a whole number from 1 to "
           "1048576, found '0'"},
          {"mesh: {}\nprecision: bf61",
           "p.yaml:2:12: precision: expected f32, bf16, f16, f8, found 'bf61'; "
           "did you mean 'bf16'?"},
          {"mesh: {}\nprecision: fp8",
           "p.yaml:2:12: precision: expected f32, bf16, f16, f8, found 'fp8'; "
           "did you mean 'f8'?"},
          {"mesh: {}\noffload: optimiser",
           "p.yaml:2:10: offload: expected none, optimizer, found "
           "'optimiser'; did you mean 'optimizer'?"},
          {"mesh: {}\noffload: {optimizer: nvme}",
           "p.yaml:2:10: offload: expected path: DIR, the folder for the "
           "states of optimizer: nvme, found none"},
          {"mesh: {}\noffload: {optimizer: host, path: s}",
           "p.yaml:2:34: offload: expected path and buffers with optimizer: "
           "nvme only, found them with host"},
          {"mesh: {}\noffload: {optimizer: nvme, path: s, buffers: 0 MB}",
           "p.yaml:2:46: offload buffers: expected more than 0 bytes, found '0 "
           "MB'; leave it out for the default"},
          {"mesh: {}\noffload: {optimizer: ssd, path: s}",
           "p.yaml:2:22: offload optimizer: expected host, nvme, found 'ssd'"},
          {"mesh: {}\nattention: rings",
           "p.yaml:2:12: attention: expected gather, ulysses, ring, found "
           "'rings'; did you mean 'ring'?"},
          {"mesh: {}\nexperts: {exchange: row}",
           "p.yaml:2:21: experts exchange: expected gather, rows, found 'row'; "
           "did you mean 'rows'?"},
          {"mesh: {}\nexperts: {rows: 0.5}",
           "p.yaml:2:17: experts rows: expected a number from 1 to 1000000, "
           "found '0.5'"},
          {"mesh: {}\nmemory: 78",
           "p.yaml:2:9: memory: expected a number and a unit of B, kB, MB, GB, "
           "TB, KiB, MiB, GiB or TiB, such as '78 GB', found '78'"},
          {"mesh: {}\nmemory: 78 Gb",
           "p.yaml:2:9: memory: expected a number and a unit of B, kB, MB, GB, "
           "TB, KiB, MiB, GiB or TiB, such as '78 GB', found '78 Gb'"},
          {"mesh: {}\ngather: {prefetch: 1, hold: stop}",
           "p.yaml:2:29: gather hold: expected use, step, found 'stop'; did "
           "you mean 'step'?"},
          {"mesh: {}\ngather: {fetch: 1}",
           "p.yaml:2:10: gather: expected prefetch, hold, found 'fetch'"},
          {"mesh: {}\nschedule: 1f1f",
           "p.yaml:2:11: schedule: expected gpipe, 1f1b, interleaved(2), "
           "zb-h1, zb-v, async-2bw, async, a file.csv, found '1f1f'; did you "
           "mean '1f1b'?"},
          {"mesh: {}\nschedule: interleaved(1)",
           "p.yaml:2:11: schedule: interleaved: expected a whole number from 2 "
           "to 65536 of stages per device, found '1'"},
          {"mesh: {}\nschedule: interleaved",
           "p.yaml:2:11: schedule: expected gpipe, 1f1b, interleaved(2), "
           "zb-h1, zb-v, async-2bw, async, a file.csv, found "
           "'interleaved'"},
          {"mesh: {}\nschedule: [gpipe]",
           "p.yaml:2:11: schedule: expected gpipe, 1f1b, interleaved(2), "
           "zb-h1, zb-v, async-2bw, async, a file.csv, found a list"},
          {"mesh: {}\nstages: 4",
           "p.yaml:2:9: stages: expected auto or a list, as [{to: \"h.7\"}, "
           "{to: \"h.15\"}], found '4'"},
          {"mesh: {a: 2}\nstages: [{to: x, mesh: {a: 3}}, {to: y}]",
           "p.yaml:2:10: stages: expected 2 devices, as every stage has, found "
           "3 in mesh {a: 3}"},
          {"mesh: {}\nrecompute: {policy: full}",
           "p.yaml:2:12: recompute: expected 'at', found none"},
          {"mesh: {}\nrecompute: always",
           "p.yaml:2:12: recompute: expected none, selective, full, budget, "
           "found 'always'"},
          {"mesh: {}\nbudgets: {allgather: 0 MB}",
           "p.yaml:2:11: budgets: expected all_gather, all_reduce, "
           "reduce_scatter, all_to_all, exchange, permute, send_rows, "
           "return_rows, total, found 'allgather'; did you mean 'all_gather'?"},
          {"mesh: {}\nbudgets: {total: much}",
           "p.yaml:2:18: budgets total: expected a number and a unit of B, kB, "
           "MB, GB, TB, KiB, MiB, GiB or TiB, such as '78 GB', found "
           "'much'"}});
}

TEST(Refusals, OfTheMesh) {
  Expect({{"mesh: 4", "p.yaml:1:7: mesh: expected a map, found '4'"},
          {"mesh: {a: 0}",
           "p.yaml:1:11: mesh axis 'a': expected a whole number from 1 to "
           "16777216, found '0'"},
          {"mesh: {a: -2}",
           "p.yaml:1:11: mesh axis 'a': expected a whole number from 1 to "
           "16777216, found '-2'"},
          {"mesh: {a: 2, a: 3}",
           "p.yaml:1:14: mesh: expected 'a' once, found it at line 1 too"},
          {"mesh: {\"a b\": 2}",
           "p.yaml:1:7: mesh: expected an axis named by letters, digits and _, "
           "found 'a b'"},
          {"mesh: {a: 100000, b: 100000}",
           "p.yaml:1:7: mesh: expected a mesh of at most 16777216 devices, "
           "found more"},
          {"mesh: {axes: {a: 2}, device_ids: [0, 0]}",
           "p.yaml:1:34: mesh: expected device_ids to have each of 0 to 1 "
           "once, found 0 twice"},
          {"mesh: {axes: {a: 2}, device_ids: [0, 2]}",
           "p.yaml:1:34: mesh: expected device_ids to have each of 0 to 1 "
           "once, found 2"},
          {"mesh: {axes: {a: 2}, device_ids: [0]}",
           "p.yaml:1:34: mesh: expected device_ids to have each of 0 to 1 "
           "once, found 1 numbers"},
          {"mesh: {a: 2, device_ids: [1, 0]}",
           "p.yaml:1:14: mesh: expected the axes under 'axes' where device_ids "
           "is given, as {axes: {data: 2}, device_ids: [1, 0]}, found them "
           "beside it"}});
}

TEST(Refusals, OfEntries) {
  const auto shard = [](const std::string& entries) {
    return "mesh: {data: 2, tensor: 4}\nshard: [" + entries + "]\n";
  };
  Expect(
      {{"mesh: {a: 2}\nshard: {B: a}",
        "p.yaml:2:8: shard: expected a list of entries in order of priority, "
        "as [{B: data}, {M: tensor}], found a map"},
       {shard("{B: daat}"),
        "p.yaml:2:13: shard 'B': expected an axis of the mesh (data, tensor), "
        "found 'daat'; did you mean 'data'?"},
       {shard("{b: data}"),
        "p.yaml:2:10: shard: expected a dimension (B, D, M, N, E, L, V, H, W, "
        "X), found 'b'; did you mean 'B'?"},
       {shard("{rows: data}"),
        "p.yaml:2:10: shard: expected a dimension (B, D, M, N, E, L, V, H, W, "
        "X), found 'rows'"},
       {shard("{L': data}"),
        "p.yaml:2:10: shard: expected a dimension (B, D, M, N, E, L, V, H, W, "
        "X), found 'L''"},
       {shard("{B: [data, data]}"),
        "p.yaml:2:10: shard 'B': expected each axis once in a dimension, found "
        "'data' twice"},
       {shard("{M: [tensor, tensor:(2)2]}"),
        "p.yaml:2:10: shard 'M': expected each axis once in a dimension, found "
        "'tensor:(2)2' and 'tensor'"},
       {shard("{M: tensor:(1)3}"),
        "p.yaml:2:13: shard 'M': expected a part (m)k of axis 'tensor' where k "
        "is at least 2 and m * k divides its 4 positions, found (1)3"},
       {shard("{M: tensor:2}"),
        "p.yaml:2:13: shard 'M': expected an axis or a part of one, as tensor "
        "or tensor:(1)2, found 'tensor:2'"},
       {shard("{B: data, L: data}"),
        "p.yaml:2:19: shard: expected dimensions of one tensor to have "
        "different axes within an entry, found 'data' for both 'B' and 'L'; "
        "put the one that is to keep the axis into an earlier entry of its "
        "own"},
       {shard("{B: data, D: data}"),
        "p.yaml:2:10: shard: expected axis 'data' to be of 'D' alone, whose "
        "devices run different layers, found it for 'B' too"},
       {shard("{D: data, at: h.0}"),
        "p.yaml:2:10: shard: expected 'D' in an entry for the whole model, "
        "found it under 'at'; stages says which layers go where"},
       {shard("{D: data, stage: 0}"),
        "p.yaml:2:10: shard: expected 'D' in an entry for the whole model, "
        "found it under 'stage'; stages says which layers go where"},
       {shard("{M: data, stage: []}"),
        "p.yaml:2:26: stage: expected at least one stage of the pipeline, from "
        "0, found none"},
       {shard("{M: data, stage: first}"),
        "p.yaml:2:26: stage: expected a whole number from 0 to 1048575, found "
        "'first'"},
       {shard("{M: []}"),
        "p.yaml:2:10: shard 'M': expected at least one axis, found none"},
       {shard("{M: {a: 2}}"),
        "p.yaml:2:13: shard 'M': expected an axis or a list of axes, found a "
        "map"},
       {shard("{}"),
        "p.yaml:2:9: shard: expected a dimension and its axes, as M: tensor, "
        "found none"},
       {shard("{M: tensor, at: \"h.{0\"}"),
        "p.yaml:2:25: at: expected a pattern such as h.*.mlp or "
        "stages.{0,1}.*, found 'h.{0', which does not close '{'"},
       {"mesh: {}\nshard: [{B: data}]",
        "p.yaml:2:13: shard 'B': expected a mesh that has axis 'data', found "
        "one without axes"}});
}

TEST(Refusals, OfOverridesAndNames) {
  const auto override = [](const std::string& sharding) {
    return "mesh: {a: 2, b: 4}\noverrides: [{tensor: x, sharding: \"" +
           sharding + "\"}]\n";
  };
  Expect(
      {{override("[{a}, {a}]"),
        "p.yaml:2:35: overrides sharding: expected each axis once in a "
        "sharding, found 'a' twice"},
       {override("[{c}]"),
        "p.yaml:2:35: overrides sharding: expected an axis of the mesh (a, b), "
        "found 'c'"},
       {override("{a}"),
        "p.yaml:2:35: overrides sharding: expected '[' at character 1 of a "
        "sharding such as [{}, {tensor}], found '{a}'"},
       {override("[{a}"),
        "p.yaml:2:35: overrides sharding: expected ',' or ']' at character 5 "
        "of a sharding such as [{}, {tensor}], found the end"},
       {override("[{?, a}]"),
        "p.yaml:2:35: overrides sharding: expected '}' after '?' at character "
        "5 of a sharding such as [{}, {tensor}], found ' a}]'"},
       {override("[{}|3]"),
        "p.yaml:2:35: overrides sharding: expected axes before a number of "
        "rows at character 5 of a sharding such as [{}, {tensor}], found "
        "'3]'"},
       {override("[{a}] replicate={b}"),
        "p.yaml:2:35: overrides sharding: expected replicated={...} or "
        "unreduced={...}, each once, at character 7 of a sharding such as [{}, "
        "{tensor}], found 'replicate={b}'"},
       {"mesh: {}\noverrides: [{tensor: x}]",
        "p.yaml:2:13: overrides: expected 'sharding', found none"},
       {"mesh: {}\nnames: [\"up.weight=M\"]",
        "p.yaml:2:9: names: expected a tensor, a dimension's number and its "
        "name, as h.*.up.weight:1=M, found 'up.weight=M'"},
       {"mesh: {}\nnames: [{up.weight: M}]",
        "p.yaml:2:9: names: expected a tensor, a dimension's number and its "
        "name in one text, as \"h.*.up.weight:1=M\", found a map"},
       {"mesh: {}\nnames: [\"up.weight:1=m\"]",
        "p.yaml:2:9: names: expected the name of a dimension of tensors, B, M, "
        "N, E, L, V, H, W, X, found 'm'; did you mean 'M'?"},
       {"mesh: {}\nnames: [\"up.weight:1=gates\"]",
        "p.yaml:2:9: names: expected the name of a dimension of tensors, B, M, "
        "N, E, L, V, H, W, X, found 'gates'"},
       {"mesh: {}\nnames: [\"up.weight:1=D\"]",
        "p.yaml:2:9: names: expected the name of a dimension of tensors, B, M, "
        "N, E, L, V, H, W, X, found 'D'"}});
}

// (1)2 splits six positions 2 x 3, and (3)2 splits them 3 x 2.
TEST(Refusals, OfPartsOfTwoSplits) {
  Expect(
      {{"mesh: {a: 6}\nshard: [{N: a:(1)2}, {L: a:(3)2}]",
        "p.yaml:2:23: expected parts of axis 'a' that fit one split of its "
        "6 positions, found 'a:(3)2' and 'a:(1)2'; give each part its own "
        "axis in the mesh"},
       {"mesh: {a: 6}\nshard: [{N: a:(1)2}]\noverrides: [{tensor: x, sharding: "
        "\"[{a:(3)2}]\"}]",
        "p.yaml:3:13: expected parts of axis 'a' that fit one split of its "
        "6 positions, found 'a:(3)2' and 'a:(1)2'; give each part its own "
        "axis in the mesh"}});
  EXPECT_TRUE(
      ParsePlan("mesh: {a: 6}\nshard: [{N: a:(1)2}, {L: a:(2)3}]", "p.yaml")
          .ok());
}

TEST(Refusals, OfOverridesOverDepth) {
  Expect(
      {{"mesh: {a: 2}\nshard: [{D: a}]\noverrides: [{tensor: x, sharding: "
        "\"[{a}]\"}]",
        "p.yaml:3:13: overrides: expected axes that divide tensors, found "
        "'a', which is of 'D': devices along it have different tensors"}});
}

TEST(Refusals, OfOptions) {
  EXPECT_EQ(ParseMeshOption("data").status().message(),
            "--mesh: expected axes and their sizes, as data=2,tensor=4, found "
            "'data'");
  EXPECT_EQ(ParseMeshOption("data=0").status().message(),
            "--mesh: expected axis 'data' to have at least 1 position, found "
            "0");
  EXPECT_EQ(ParseMeshOption("a=2,a=2").status().message(),
            "--mesh: expected axes of different names, found 'a' twice");
  const core::Mesh mesh = *ParseMeshOption("data=2,tensor=2");
  const auto shard = [&](const std::string& text) {
    return std::string(ParseShardOption(text, mesh).status().message());
  };
  EXPECT_EQ(shard("B"),
            "--shard: expected a dimension and its axes, as M=tensor or "
            "B=data+fsdp, found 'B'");
  EXPECT_EQ(shard("B=data;M=tensr"),
            "--shard: expected an axis of the mesh (data, tensor), found "
            "'tensr'; did you mean 'tensor'?");
  EXPECT_EQ(shard("Batch=data"),
            "--shard: shard: expected a dimension (B, D, M, N, E, L, V, H, W, "
            "X), found 'Batch'");
  EXPECT_EQ(shard("B=data+data"),
            "--shard: shard 'B': expected each axis once in a dimension, found "
            "'data' twice");
  EXPECT_EQ(shard("B=data;M=tensor;B=tensor+data"),
            "--shard: shard 'B': expected each axis once for a dimension, "
            "found 'data' here and in entry 1; leave out one of the two");
  EXPECT_EQ(shard("M=data@stage(1,2)"),
            "--shard: stage: expected stages of the pipeline, from 0, as "
            "@stage(0) or @stage(0+1), found 'stage(1,2)'");
}

}  // namespace
}  // namespace partita::plan
