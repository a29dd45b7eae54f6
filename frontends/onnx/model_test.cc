#include "frontends/onnx/model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "frontends/onnx/open_dims.h"
#include "frontends/onnx/test_model.h"

namespace partita::onnx {
namespace {

Message smallModel() {
  Message branch =
      graph({node("Neg", {"x"}, {"n"})}, {}, {valueInfo("n", kF32, {"2"})});
  return model(graph(
      {node("Add", {"x", "w"}, {"s"}, {}, "", "add"),
       node("If", {"c"}, {"y"},
            {attribute("then_branch", branch), attribute("k", int64_t{-3})})},
      {valueInfo("x", kF32, {"batch", "2"})},
      {valueInfo("y", kF32, {"batch", "2"})},
      {floats("w", {2}, {1.5f, -2}), int64s("i", {1}, {7})}));
}

bool parses(const std::string& bytes, std::string* message = nullptr) {
  Model model;
  WireError error;
  bool ok = parseModel(bytes, model, error);
  if (message) *message = error.str();
  EXPECT_NE(ok, error.isSet());
  EXPECT_LE(error.offset, bytes.size());
  return ok;
}

TEST(ModelTest, ReadsWhatWasWritten) {
  std::string bytes = smallModel().encoded();
  Model model;
  WireError error;
  ASSERT_TRUE(parseModel(bytes, model, error)) << error.str();
  EXPECT_EQ(model.ir_version, 10);
  ASSERT_EQ(model.opsets.size(), 1u);
  EXPECT_EQ(model.opsets[0].version, 17);
  const Graph& graph = model.graph;
  ASSERT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(graph.nodes[0].op_type, "Add");
  EXPECT_EQ(graph.nodes[0].name, "add");
  EXPECT_EQ(graph.nodes[0].inputs, (std::vector<std::string_view>{"x", "w"}));
  ASSERT_EQ(graph.nodes[1].attributes.size(), 2u);
  ASSERT_TRUE(graph.nodes[1].attributes[0].g);
  EXPECT_EQ(graph.nodes[1].attributes[0].g->nodes[0].op_type, "Neg");
  EXPECT_EQ(graph.nodes[1].attributes[1].i, -3);
  ASSERT_EQ(graph.inputs.size(), 1u);
  EXPECT_EQ(graph.inputs[0].type, DataType::kFloat);
  EXPECT_EQ(graph.inputs[0].shape[0].param, "batch");
  EXPECT_EQ(graph.inputs[0].shape[1].value, 2);
}

TEST(ModelTest, OpenDimsAreNamedOnceInOrder) {
  std::string bytes = model(graph({},
                                  {valueInfo("x", kF32, {"seq", "2", "batch"}),
                                   valueInfo("y", kF32, {"batch", ""})},
                                  {}))
                          .encoded();
  Model model;
  WireError error;
  ASSERT_TRUE(parseModel(bytes, model, error)) << error.str();
  EXPECT_EQ(openDims(model.graph),
            (std::vector<std::string>{"seq", "batch", "y.1"}));
  const std::string path = testing::TempDir() + "/open_dims.onnx";
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(openDims(path), openDims(model.graph));
  std::ofstream(path, std::ios::binary) << "no model";
  EXPECT_TRUE(openDims(path).empty());
}

TEST(ModelTest, PointsAtRawDataInsteadOfCopyingIt) {
  std::string bytes = smallModel().encoded();
  Model model;
  WireError error;
  ASSERT_TRUE(parseModel(bytes, model, error));
  const TensorProto& weight = model.graph.initializers[0];
  ASSERT_TRUE(weight.has_raw);
  EXPECT_EQ(weight.raw.data(), bytes.data() + weight.raw_offset);
  float values[2];
  ASSERT_EQ(weight.raw.size(), sizeof(values));
  std::memcpy(values, weight.raw.data(), sizeof(values));
  EXPECT_EQ(values[1], -2);
}

TEST(ModelTest, ReadsTypedFieldsPackedAndNot) {
  Message tensor;
  tensor.varint(1, 3).varint(2, kI64).varint(7, 1).varint(7, uint64_t(-2));
  tensor.bytes(7, std::string("\x05", 1));
  TensorProto proto;
  WireError error;
  ASSERT_TRUE(parseTensor(tensor.encoded(), proto, error));
  EXPECT_EQ(proto.ints, (std::vector<int64_t>{1, -2, 5}));
}

TEST(ModelTest, EveryTruncationSaysWhere) {
  std::string bytes = smallModel().encoded();
  int refused = 0;
  for (size_t size = 0; size < bytes.size(); ++size)
    refused += !parses(bytes.substr(0, size));
  // The one readable prefix ends between two fields of the model, after the
  // graph. Its opset is missing, which the importer reports.
  EXPECT_EQ(refused, static_cast<int>(bytes.size()) - 1);
}

TEST(ModelTest, RandomDamageIsSurvived) {
  std::string good = smallModel().encoded();
  std::mt19937 random(11);
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good;
    for (int flips = 1 + round % 4; flips > 0; --flips)
      bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
    parses(bad);
  }
}

TEST(ModelTest, RefusesWrongWireTypes) {
  std::string message;
  EXPECT_FALSE(parses(Message().varint(7, 5).encoded(), &message));
  EXPECT_EQ(message,
            "at byte 1: expected GraphProto (field 7) to be length-delimited, "
            "found varint");
  EXPECT_FALSE(parses("\x0b", &message));
  EXPECT_EQ(message,
            "at byte 0: expected wire type 0, 1, 2 or 5: not a protocol "
            "buffer, or corrupt");
}

TEST(ModelTest, RefusesLengthsBeyondTheEnd) {
  std::string message;
  EXPECT_FALSE(parses(std::string("\x3a\x7f\x01", 3), &message));
  EXPECT_EQ(message,
            "at byte 2: expected 127 bytes, found 1: the file is truncated or "
            "corrupt");
}

TEST(ModelTest, RefusesOverlongVarints) {
  EXPECT_FALSE(parses("\x08" + std::string(9, '\xff') + "\x02"));
  EXPECT_FALSE(parses("\x08" + std::string(20, '\xff')));
}

TEST(ModelTest, BoundsDepth) {
  Message inner = graph({}, {}, {});
  for (int i = 0; i < 100; ++i)
    inner =
        graph({node("If", {}, {}, {attribute("then_branch", inner)})}, {}, {});
  std::string message;
  EXPECT_FALSE(parses(model(inner).encoded(), &message));
  EXPECT_NE(message.find("nested at most 64 deep"), std::string::npos)
      << message;
}

TEST(ModelTest, BoundsTheNumberOfMessages) {
  // Five million dimensions: two bytes each in the file, twelve times that in
  // memory.
  std::string dims;
  for (int i = 0; i < 5 * 1000 * 1000; ++i) dims += std::string("\x0a\0", 2);
  Message shape = Message().message(1, Message().bytes(2, dims));
  Message input = Message().bytes(1, "x").message(2, shape);
  Message file = Message().message(7, Message().message(11, input));
  std::string message;
  EXPECT_FALSE(parses(file.encoded(), &message));
  EXPECT_NE(message.find("at most 4194304 messages"), std::string::npos);
}

// Shapes and device annotations of a file share one limit.
TEST(ModelTest, BoundsTheNumberOfMessagesOfAllKinds) {
  std::string many;
  for (int i = 0; i < 2200 * 1000; ++i) many += std::string("\x0a\0", 2);
  std::string factors = many;
  for (size_t i = 0; i < factors.size(); i += 2) factors[i] = '\x12';
  Message shape = Message().message(1, Message().bytes(2, many));
  Message input = Message().bytes(1, "x").message(2, shape);
  Message spec = Message().bytes(4, factors);
  Message node = Message().message(10, Message().message(2, spec));
  std::string message;
  EXPECT_TRUE(parses(
      Message().message(7, Message().message(11, input)).encoded(), &message))
      << message;
  EXPECT_TRUE(parses(Message().message(7, Message().message(1, node)).encoded(),
                     &message))
      << message;
  Message both = Message().message(11, input).message(1, node);
  EXPECT_FALSE(parses(Message().message(7, both).encoded(), &message));
  EXPECT_NE(message.find("at most 4194304 messages"), std::string::npos);
}

TEST(ModelTest, RefusesWhatIsNoModel) {
  std::string message;
  EXPECT_FALSE(parses("", &message));
  EXPECT_NE(message.find("expected a graph"), std::string::npos) << message;
}

}  // namespace
}  // namespace partita::onnx
