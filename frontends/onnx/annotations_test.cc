// Tests of device annotations on small hand-made models: the resulting
// shardings, and every refusal.
#include "frontends/onnx/annotations.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "frontends/builder/import_fixture.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/test_model.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::onnx {
namespace {

const Message kX = valueInfo("x", kF32, {"4", "6"});
const Message kW = valueInfo("w", kF32, {"6", "8"});
const Message kY = valueInfo("y", kF32, {});

// y = x w on 2 x 2 devices. The grid's rows divide M, its columns N.
const Message kSpecX = shardingSpec("x", {-1, -2}, {{-1, {0, 1}}, {-2, {2, 3}}},
                                    {shardedDim(0, 2)});
const Message kSpecW = shardingSpec("w", {-1, -2}, {{-1, {0, 2}}, {-2, {1, 3}}},
                                    {shardedDim(-1, 2)});
const Message kSpecY =
    shardingSpec("y", {0, 1, 2, 3}, {}, {shardedDim(0, 2), shardedDim(1, 2)});

Message product(const std::vector<Message>& specs,
                const std::string& configuration = "tp") {
  return graph(
      {onDevices(node("MatMul", {"x", "w"}, {"y"}), configuration, specs)},
      {kX, kW}, {kY});
}

class AnnotationsTest : public builder::ImportFixture {
 protected:
  // The module's text; empty if the import was refused.
  std::string import(const Message& model,
                     const std::string& configuration = "") {
    errors_.clear();
    ImportOptions options;
    options.configuration = configuration;
    auto module =
        importOnnxBytes(model.encoded(), "m.onnx", options, &context_);
    std::string text;
    llvm::raw_string_ostream stream(text);
    if (module) module->print(stream);
    return text;
  }

  void expect(const Message& model, const std::vector<std::string>& parts,
              const std::string& configuration = "") {
    const std::string text = import(model, configuration);
    for (const std::string& part : parts)
      EXPECT_NE(text.find(part), std::string::npos)
          << "expected '" << part << "' in:\n"
          << text << errors_;
  }

  void refuse(const Message& model, const std::vector<std::string>& parts,
              const std::string& configuration = "") {
    EXPECT_EQ(import(model, configuration), "");
    for (const std::string& part : parts)
      EXPECT_NE(errors_.find(part), std::string::npos)
          << "expected '" << part << "' in:\n"
          << errors_;
  }

  // One spec of x on four devices.
  void refuseSpec(const Message& spec, const std::vector<std::string>& parts) {
    refuse(withDevices(model(product({spec})), "tp", 4), parts);
  }
};

TEST_F(AnnotationsTest, AMatMulOnAGrid) {
  expect(withDevices(model(product({kSpecX, kSpecW, kSpecY})), "tp", 4),
         {"dist.annotations = 1", "dist.mesh @mesh <[\"x\"=2, \"y\"=2]>",
          "%arg0: tensor<4x6xf32> {dist.sharding = "
          "#dist.sharding<[{\"x\"}, {}]>",
          "%arg1: tensor<6x8xf32> {dist.sharding = "
          "#dist.sharding<[{}, {\"y\"}]>",
          "dist.shardings = [#dist.sharding<[{\"x\"}, {\"y\"}]>]"});
}

TEST_F(AnnotationsTest, UnevenRowsAndWholeTensors) {
  const Message spec = shardingSpec(
      "x", {-1, -2, -3, -4}, {{-1, {0}}, {-2, {1}}, {-3, {2}}, {-4, {3}}},
      {shardedDim(1, 4, 6)});
  const Message whole = shardingSpec("w", {7}, {{7, {0, 1, 2, 3}}}, {});
  expect(withDevices(model(product({spec, whole})), "tp", 4),
         {"<[\"x\"=4]>", "#dist.sharding<[{}, {\"x\"}]>",
          "#dist.sharding<[{}, {}]>"});
}

// Rows of 2 x 3, divided along the 2: blocks of 3.
TEST_F(AnnotationsTest, AFusedAxis) {
  Message dim = Message()
                    .varint(1, 1)
                    .message(2, Message().varint(1, 3).varint(3, 2))
                    .message(2, Message().varint(1, 2).varint(3, 1));
  expect(withDevices(model(product({shardingSpec("x", {0, 1}, {}, {dim})})),
                     "tp", 2),
         {"#dist.sharding<[{}, {\"x\"}|4]>"});
}

TEST_F(AnnotationsTest, AnotherOrderOfDevices) {
  expect(withDevices(model(product({shardingSpec("x", {2, 3, 0, 1}, {},
                                                 {shardedDim(0, 4)})})),
                     "tp", 4),
         {"dist.mesh @mesh <[\"x\"=4]> device_ids = [2, 3, 0, 1]"});
}

// Producer and user specify different shardings: a reshard at that use.
TEST_F(AnnotationsTest, UnequalSpecsReshardAtTheUse) {
  const Message rows = shardingSpec("t", {0, 1}, {}, {shardedDim(0, 2)});
  const Message columns = shardingSpec("t", {0, 1}, {}, {shardedDim(1, 2)});
  expect(withDevices(
             model(graph({onDevices(node("Relu", {"x"}, {"t"}), "tp", {rows}),
                          onDevices(node("Exp", {"t"}, {"y"}), "tp", {columns}),
                          onDevices(node("Abs", {"t"}, {"z"}), "tp", {rows})},
                         {kX}, {kY, valueInfo("z", kF32, {})})),
             "tp", 2),
         {"dist.shardings = [#dist.sharding<[{\"x\"}, {}]>]",
          "%1 = dist.constraint %0 <[{}, {\"x\"}]>", "math.exp %1",
          "math.absf %0"});
}

TEST_F(AnnotationsTest, AConfigurationIsChosen) {
  const Message both =
      withDevices(withDevices(model(product({kSpecX})), "tp", 4), "wide", 16);
  expect(both, {"<[\"x\"=2, \"y\"=2]>"}, "tp");
  expect(both, {"<[\"x\"=16]>"}, "wide");
  EXPECT_EQ(import(both, "none").find("dist."), std::string::npos);
  refuse(both, {"several device configurations: tp, wide", "none"});
  refuse(both, {"expected one of", "tp, wide", "found 'dp'"}, "dp");
  refuse(model(product({})), {"configuration_id", "has none", "'tp'"});
}

// Unknown configurations are ignored if another one is requested.
TEST_F(AnnotationsTest, UnknownConfigurations) {
  const Message file = withDevices(model(product({kSpecX}, "gone")), "tp", 4);
  refuse(file, {"expected configuration_id to name a configuration of the "
                "model, tp; found 'gone'",
                "\"MatMul -> y\"", "--onnx-configuration"});
  expect(file, {"<[\"x\"=4]>"}, "tp");
  EXPECT_EQ(import(file, "none").find("dist."), std::string::npos);
}

TEST_F(AnnotationsTest, RefusesConfigurations) {
  const Message file = model(product({}));
  refuse(withDevices(file, "tp", 0), {"num_devices from 1", "found 0"});
  refuse(withDevices(file, "tp", int64_t{1} << 40), {"num_devices"});
  refuse(withDevices(withDevices(file, "tp", 2), "tp", 4), {"'tp' twice"});
  Message named = file;
  named.message(26, Message().bytes(1, "tp").varint(2, 2).bytes(3, "cpu:0"));
  refuse(named, {"expected 2 names of devices", "found 1"});
}

TEST_F(AnnotationsTest, RefusesAxes) {
  for (int64_t axis : {2, -3})
    refuseSpec(
        shardingSpec("x", {0, 1, 2, 3}, {}, {shardedDim(axis, 4)}),
        {"'x'", "expected axis from -2 to 1", "found " + std::to_string(axis)});
  refuseSpec(shardingSpec("x", {0, 1, 2, 3}, {},
                          {shardedDim(1, 2), shardedDim(-1, 2)}),
             {"each axis in sharded_dim once", "found 1 twice"});
  refuseSpec(shardingSpec("x", {0, 1, 2, 3}, {}, {Message().varint(1, 1)}),
             {"expected a simple_sharding for axis 1"});
  refuseSpec(shardingSpec("x", {0, 1, 2, 3}, {}, {shardedDim(1, 4, 5)}),
             {"expected dim_value to give the 6 rows of axis 1, found 5"});
}

TEST_F(AnnotationsTest, RefusesTensorsOfOtherNodes) {
  refuseSpec(shardingSpec("u", {0, 1, 2, 3}, {}, {shardedDim(0, 4)}),
             {"'u'", "an input or output of the node, x, w, y"});
}

TEST_F(AnnotationsTest, RefusesShards) {
  for (int64_t shards : {0, -2})
    refuseSpec(shardingSpec("x", {0, 1, 2, 3}, {}, {shardedDim(0, shards)}),
               {"expected a positive num_shards for axis 0, found " +
                std::to_string(shards)});
  refuseSpec(shardingSpec("x", {0, 1, 2, 3}, {}, {shardedDim(0, 8)}),
             {"at most as many shards as devices, 4"});
  refuseSpec(shardingSpec("x", {0, 1}, {}, {shardedDim(0, 4)}),
             {"one entry of device per shard, 4", "found 2"});
  // A shard of the inner factor is not a run of rows.
  refuseSpec(
      shardingSpec("x", {0, 1, 2, 3}, {},
                   {Message()
                        .varint(1, 1)
                        .message(2, Message().varint(1, 3).varint(3, 1))
                        .message(2, Message().varint(1, 2).varint(3, 4))}),
      {"from the first on", "not supported"});
}

TEST_F(AnnotationsTest, RefusesDevices) {
  const std::vector<Message> halves = {shardedDim(0, 2)};
  refuseSpec(shardingSpec("x", {0, 1, 2, 4}, {}, {shardedDim(0, 4)}),
             {"devices 0 to 3 of the configuration, found 4"});
  refuseSpec(shardingSpec("x", {0, 1, 2, -1}, {}, {shardedDim(0, 4)}),
             {"keys of index_to_device_group_map, found -1"});
  refuseSpec(shardingSpec("x", {0, 1, 2, 2}, {}, {shardedDim(0, 4)}),
             {"device 2 twice"});
  refuseSpec(shardingSpec("x", {0, 1}, {}, halves),
             {"a shard on each of the 4 devices", "found 2"});
  refuseSpec(shardingSpec("x", {-1, -2}, {{-1, {0, 1}}, {-2, {}}}, halves),
             {"devices in group -2", "found none"});
  refuseSpec(shardingSpec("x", {-1, -2}, {{-1, {0, 1}}, {-1, {2, 3}}}, halves),
             {"found -1 twice"});
  refuseSpec(shardingSpec("x", {-1, -2},
                          {{-1, {0, 1}}, {-2, {2, 3}}, {-3, {0}}}, halves),
             {"to stand in device, found -3"});
  refuseSpec(shardingSpec("x", {-1, -2}, {{-1, {0}}, {-2, {1, 2, 3}}}, halves),
             {"rows and columns of one grid of the 4 devices"});
}

TEST_F(AnnotationsTest, RefusesContradictions) {
  const Message one = shardingSpec("x", {0, 1}, {}, {shardedDim(0, 2)});
  const Message other = shardingSpec("x", {0, 1}, {}, {shardedDim(1, 2)});
  refuse(withDevices(model(product({one, other})), "tp", 2),
         {"'x'", "contradict each other"});
  refuse(withDevices(
             model(graph({onDevices(onDevices(node("MatMul", {"x", "w"}, {"y"}),
                                              "tp", {one}),
                                    "tp", {other})},
                         {kX, kW}, {kY})),
             "tp", 2),
         {"one device configuration 'tp' per node"});
}

TEST_F(AnnotationsTest, RefusesBytesThatAreNoMessage) {
  Message file = model(product({}));
  file.bytes(26, "\x0a\x7f");
  refuse(file, {"not an ONNX model, at byte"});
  refuse(
      withDevices(
          model(graph(
              {node("MatMul", {"x", "w"}, {"y"}).bytes(10, "\x12\x02\x0a\x7f")},
              {kX, kW}, {kY})),
          "tp", 2),
      {"not an ONNX model, at byte"});
}

}  // namespace
}  // namespace partita::onnx
