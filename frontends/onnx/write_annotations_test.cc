// Tests that the written annotations are the given ones, and that everything
// else is unchanged.
#include "frontends/onnx/write_annotations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/onnx/model.h"
#include "frontends/onnx/test_model.h"

namespace partita::onnx {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::Pointee;
using testing::SizeIs;

ShardingSpec halves(int64_t axis) {
  ShardingSpec spec;
  spec.devices = {-1, -2};
  spec.groups = {{-1, {0, 1}}, {-2, {2, 3}}};
  SimpleSharding rows;
  rows.size = 3;
  rows.shards = 2;
  SimpleSharding rest;
  rest.size = 2;
  rest.shards = 1;
  spec.dims = {{axis, {rows, rest}}};
  return spec;
}

struct Written {
  std::string bytes;
  Model model;
  AnnotationCounts counts;
};

void write(const Message& model, const ModelAnnotations& annotations,
           Written& written) {
  WireError error;
  ASSERT_TRUE(writeAnnotations(model.encoded(), annotations, written.bytes,
                               written.counts, error))
      << error.str();
  ASSERT_TRUE(parseModel(written.bytes, written.model, error)) << error.str();
}

const NodeConfiguration& configurationOf(const Node& node, size_t i = 0) {
  return node.device_configurations->at(i);
}

const Message kModel =
    model(graph({node("Relu", {"x"}, {"t"}), node("Exp", {"t"}, {"u"}),
                 node("Abs", {"t"}, {"y"})},
                {valueInfo("x", kF32, {"6"})}, {valueInfo("y", kF32, {"6"})},
                {floats("w", {2}, {1, 2})}));

TEST(WriteAnnotations, OnTheNodesThatHaveTheTensors) {
  ModelAnnotations annotations{"tp", 4, {}, {}};
  annotations.tensors["t"] = halves(0);
  annotations.uses[{"u", "t"}] = halves(-1);
  Written written;
  write(kModel, annotations, written);
  EXPECT_EQ(written.model.ir_version, 11);
  EXPECT_EQ(written.counts.nodes, 3);
  EXPECT_EQ(written.counts.annotated_nodes, 3);
  EXPECT_EQ(written.counts.tensors, 4);
  EXPECT_EQ(written.counts.annotated_tensors, 1);
  EXPECT_THAT(written.model.graph.initializers, SizeIs(1));
  EXPECT_THAT(written.model.opsets, SizeIs(1));

  ASSERT_THAT(written.model.configurations, SizeIs(1));
  const DeviceConfiguration& configuration = written.model.configurations[0];
  EXPECT_EQ(configuration.name, "tp");
  EXPECT_EQ(configuration.num_devices, 4);

  const std::vector<Node>& nodes = written.model.graph.nodes;
  const NodeConfiguration relu = configurationOf(nodes[0]);
  EXPECT_EQ(relu.configuration, "tp");
  ASSERT_THAT(relu.specs, SizeIs(1));
  EXPECT_EQ(relu.specs[0].tensor, "t");
  EXPECT_THAT(relu.specs[0].devices, ElementsAre(-1, -2));
  EXPECT_THAT(relu.specs[0].groups, ElementsAre(Pair(-1, ElementsAre(0, 1)),
                                                Pair(-2, ElementsAre(2, 3))));
  ASSERT_THAT(relu.specs[0].dims, SizeIs(1));
  ASSERT_THAT(relu.specs[0].dims[0].factors, SizeIs(2));
  EXPECT_EQ(relu.specs[0].dims[0].factors[0].size, 3);
  EXPECT_EQ(relu.specs[0].dims[0].factors[0].shards, 2);
  // The sharding of the node's use.
  EXPECT_EQ(configurationOf(nodes[1]).specs[0].dims[0].axis, -1);
  EXPECT_EQ(configurationOf(nodes[2]).specs[0].dims[0].axis, 0);
}

TEST(WriteAnnotations, ReplacesTheSameAndKeepsOthers) {
  const Message before = withDevices(
      withDevices(
          model(graph({onDevices(onDevices(node("Relu", {"x"}, {"y"}), "tp",
                                           {shardingSpec("x", {0}, {}, {})}),
                                 "dp", {shardingSpec("x", {0}, {}, {})})},
                      {valueInfo("x", kF32, {"6"})},
                      {valueInfo("y", kF32, {"6"})})),
          "tp", 2),
      "dp", 8);
  ModelAnnotations annotations{"tp", 4, {}, {}};
  annotations.tensors["y"] = halves(0);
  Written written;
  write(before, annotations, written);
  EXPECT_THAT(written.model.configurations, SizeIs(2));
  const Node& node = written.model.graph.nodes[0];
  ASSERT_THAT(node.device_configurations, Pointee(SizeIs(2)));
  EXPECT_EQ(configurationOf(node, 0).configuration, "dp");
  EXPECT_EQ(configurationOf(node, 1).configuration, "tp");
  EXPECT_EQ(configurationOf(node, 1).specs[0].tensor, "y");
  // Writing again changes nothing.
  Written again;
  ModelAnnotations none{"tp", 4, {}, {}};
  WireError error;
  ASSERT_TRUE(
      writeAnnotations(written.bytes, none, again.bytes, again.counts, error));
  ASSERT_TRUE(parseModel(again.bytes, again.model, error));
  EXPECT_THAT(again.model.configurations, SizeIs(2));
  EXPECT_THAT(again.model.graph.nodes[0].device_configurations,
              Pointee(SizeIs(1)));
  EXPECT_EQ(again.counts.annotated_nodes, 0);
}

TEST(WriteAnnotations, RefusesWhatIsNoModel) {
  std::string out;
  AnnotationCounts counts;
  WireError error;
  EXPECT_FALSE(writeAnnotations("\x3a\x7f", {}, out, counts, error));
  EXPECT_THAT(error.str(), testing::HasSubstr("truncated"));
}

}  // namespace
}  // namespace partita::onnx
