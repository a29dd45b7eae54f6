// Tests of importing small hand-made models: accepted ones, and every refusal.
#include "frontends/onnx/importer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "frontends/onnx/importer_fixture.h"
#include "frontends/onnx/test_model.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::onnx {
namespace {

TEST_F(ImporterTest, KeepsWeightsInTheFile) {
  auto module = import(model(
      graph({node("Add", {"x", "m.w"}, {"y"})}, {kX}, {kY},
            {floats("unused", {2}, {0, 0}), floats("m.w", {3}, {1, 2, 3})})));
  ASSERT_TRUE(module) << errors_;
  auto main = mainOf(module);
  ASSERT_EQ(main.getNumArguments(), 2u);
  EXPECT_EQ(argAttr(main, 0, nn::kKindAttr), "input");
  EXPECT_EQ(argAttr(main, 0, nn::kNameAttr), "x");
  EXPECT_EQ(argAttr(main, 1, nn::kKindAttr), "parameter");
  EXPECT_EQ(argAttr(main, 1, nn::kNameAttr), "m.w");
  auto source = main.getArgAttrOfType<nn::FileAttr>(1, nn::kSourceAttr);
  ASSERT_TRUE(source);
  EXPECT_EQ(source.getPath().str(), path_);
  EXPECT_EQ(source.getBytes(), 12u);
  std::ifstream file(path_, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(source.getOffset()));
  float values[3];
  file.read(reinterpret_cast<char*>(values), sizeof(values));
  EXPECT_EQ(values[2], 3);
}

TEST_F(ImporterTest, TellsKindsOfWeightsApart) {
  Message g = graph({node("Mul", {"x", "m.w"}, {"a"}),
                     node("Mul", {"a", "m.bn.running_mean"}, {"b"}),
                     node("Mul", {"b", "onnx::Mul_3"}, {"c"}),
                     node("Mul", {"c", "frozen.w"}, {"y"})},
                    {kX}, {kY},
                    {floats("m.w", {3}, {1, 2, 3}),
                     floats("m.bn.running_mean", {3}, {1, 2, 3}),
                     floats("onnx::Mul_3", {3}, {1, 2, 3}),
                     floats("frozen.w", {3}, {1, 2, 3})});
  ImportOptions options;
  options.constant_globs = {"frozen.*"};
  auto module = import(model(g), options);
  ASSERT_TRUE(module) << errors_;
  auto main = mainOf(module);
  EXPECT_EQ(argAttr(main, 1, nn::kKindAttr), "parameter");
  EXPECT_EQ(argAttr(main, 2, nn::kKindAttr), "buffer");
  EXPECT_EQ(argAttr(main, 3, nn::kKindAttr), "constant");
  EXPECT_EQ(argAttr(main, 4, nn::kKindAttr), "constant");
}

// A mask that hides keys is a constant; numbers like those of weights are not.
TEST_F(ImporterTest, MasksAreConstants) {
  const float lowest = std::numeric_limits<float>::lowest();
  for (const auto& [numbers, is_mask] :
       {std::pair(std::vector<float>{0, lowest, 0, -1e4f, 0, 0}, true),
        {{0, lowest, 1, lowest, 0, 0}, false},
        {{0, 0, 0, 0, 0, 0}, false},
        {{lowest, lowest, lowest, lowest, lowest, lowest}, false}}) {
    auto module = import(model(graph({node("Add", {"x", "m.w"}, {"y"})}, {kX},
                                     {kY}, {floats("m.w", {2, 3}, numbers)})));
    ASSERT_TRUE(module) << errors_;
    EXPECT_EQ(mainOf(module).getNumArguments(), is_mask ? 1u : 2u);
  }
}

TEST_F(ImporterTest, IdentityOfAnInitializerIsAnotherParameter) {
  auto module = import(model(graph(
      {node("Identity", {"a.w"}, {"b.w"}), node("Mul", {"x", "a.w"}, {"t"}),
       node("Mul", {"t", "b.w"}, {"y"})},
      {kX}, {kY}, {floats("a.w", {3}, {1, 1, 1})})));
  ASSERT_TRUE(module) << errors_;
  auto main = mainOf(module);
  ASSERT_EQ(main.getNumArguments(), 3u);
  std::vector<std::string> names = {argAttr(main, 1, nn::kNameAttr),
                                    argAttr(main, 2, nn::kNameAttr)};
  EXPECT_EQ(names, (std::vector<std::string>{"a.w", "b.w"}));
  EXPECT_EQ(main.getArgAttr(1, nn::kSourceAttr),
            main.getArgAttr(2, nn::kSourceAttr));
}

// `alias` and `clone` of a weight, as DeBERTa has them.
TEST_F(ImporterTest, IdentityOfAnExportedProgramIsTheSameParameter) {
  auto module = import(model(graph(
      {withMetadata(node("Identity", {"a.w"}, {"alias_1"}),
                    "pkg.torch.onnx.fx_node",
                    "%alias_1 : [num_users=1] = call_function"),
       node("Mul", {"x", "a.w"}, {"t"}), node("Mul", {"t", "alias_1"}, {"y"})},
      {kX}, {kY}, {floats("a.w", {3}, {1, 1, 1})})));
  ASSERT_TRUE(module) << errors_;
  auto main = mainOf(module);
  ASSERT_EQ(main.getNumArguments(), 2u);
  EXPECT_EQ(argAttr(main, 1, nn::kNameAttr), "a.w");
}

TEST_F(ImporterTest, SingleFloatsOfModulesAreTrainedUnlessLifted) {
  auto module = import(model(graph(
      {node("Mul", {"x", "a.scale"}, {"t"}),
       node("Mul", {"t", "a.lifted_tensor_0"}, {"y"})},
      {kX}, {kY},
      {floats("a.scale", {}, {1}), floats("a.lifted_tensor_0", {}, {2})})));
  ASSERT_TRUE(module) << errors_;
  auto main = mainOf(module);
  ASSERT_EQ(main.getNumArguments(), 2u);
  EXPECT_EQ(argAttr(main, 1, nn::kNameAttr), "a.scale");
}

TEST_F(ImporterTest, RestoresFoldedWeights) {
  // Two linear layers: "val_1" is stored only transposed, "val_2" beside the
  // embedding that it is tied to.
  const auto linear = [](const char* input, const char* weight,
                         const char* output, const char* parameter,
                         const char* module) {
    return withMetadata(
        withMetadata(node("MatMul", {input, weight}, {output}),
                     "pkg.torch.onnx.fx_node",
                     std::string("%linear : [num_users=1] = call_function"
                                 "[target=torch.ops.aten.linear.default]"
                                 "(args = (%x, %p_") +
                         parameter + "), kwargs = {})"),
        "pkg.torch.onnx.name_scopes",
        std::string("['', '") + module + "', 'linear']");
  };
  const auto tied = [&](float last) {
    return model(graph({linear("x", "val_1", "h", "up_weight", "up"),
                        linear("h", "val_2", "t", "table_weight", "head"),
                        node("Add", {"t", "i.b"}, {"u"}),
                        node("MatMul", {"u", "table.weight"}, {"y"})},
                       {kX}, {kY},
                       {floats("val_1", {3, 2}, {1, 2, 3, 4, 5, 6}),
                        floats("table.weight", {3, 2}, {1, 2, 3, 4, 5, 6}),
                        floats("val_2", {2, 3}, {1, 3, 5, 2, 4, last}),
                        floats("i.b", {3}, {0, 0, 0})}));
  };
  auto module = import(tied(6));
  ASSERT_TRUE(module) << errors_;
  EXPECT_EQ(errors_ + remarks_, "");
  auto main = mainOf(module);
  ASSERT_EQ(main.getNumArguments(), 4u);
  EXPECT_EQ(argAttr(main, 1, nn::kNameAttr), "up.weight.T");
  EXPECT_EQ(argAttr(main, 1, nn::kKindAttr), "parameter");
  EXPECT_EQ(argAttr(main, 2, nn::kNameAttr), "table.weight");

  // A copy that was changed after the export is a weight of its own.
  module = import(tied(7));
  ASSERT_TRUE(module);
  EXPECT_NE(remarks_.find("expected 'val_2' to be the transpose of "
                          "'table.weight'"),
            std::string::npos)
      << remarks_;
  ASSERT_EQ(mainOf(module).getNumArguments(), 5u);
  EXPECT_EQ(argAttr(mainOf(module), 2, nn::kNameAttr), "val_2");
  EXPECT_EQ(argAttr(mainOf(module), 2, nn::kKindAttr), "constant");

  // Tensors that are marked for writing keep their names.
  ImportOptions options;
  options.mark_tensors = true;
  module = import(tied(6), options);
  ASSERT_TRUE(module);
  EXPECT_EQ(argAttr(mainOf(module), 1, nn::kNameAttr), "val_1");
}

TEST_F(ImporterTest, RefusesWindowsThatDoNotFitTheirImage) {
  const auto folding = [](std::vector<int64_t> image,
                          const std::vector<Message>& attributes = {}) {
    return model(
        graph({node("Col2Im", {"c", "image", "block"}, {"y"}, attributes)},
              {valueInfo("c", kF32, {"1", "4", "9"})}, {kY},
              {int64s("image", {2}, image), int64s("block", {2}, {2, 2})}),
        18);
  };
  EXPECT_TRUE(import(folding({4, 4}))) << errors_;
  expectRefused(folding({4, 5}),
                {"expected windows of the shape [N, C * 4, 12], found "
                 "[1, 4, 9]"});
  expectRefused(folding({4, 0}), {"expected a positive image_shape"});
  expectRefused(folding({4, 4}, {attribute("pads", std::vector<int64_t>{1})}),
                {"fit the dimensions of image_shape"});
  expectRefused(folding({int64_t{1} << 30, int64_t{1} << 30}),
                {"expected windows with at most 4194304 elements"});
}

TEST_F(ImporterTest, FoldsShapeCode) {
  // y = Reshape(x, Concat(Shape(x)[0:1], [-1])), with the size of batch given.
  Message input = valueInfo("x", kF32, {"batch", "2", "3"});
  Message g = graph(
      {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"b"}),
       node("Concat", {"b", "rest"}, {"t"}, {attribute("axis", int64_t{0})}),
       node("Reshape", {"x", "t"}, {"y"})},
      {input}, {kY}, {int64s("zero", {1}, {0}), int64s("rest", {1}, {-1})});
  ImportOptions options;
  options.dims["batch"] = 4;
  auto module = import(model(g), options);
  ASSERT_TRUE(module) << errors_;
  auto main = mainOf(module);
  auto type = mlir::cast<mlir::RankedTensorType>(main.getResultTypes()[0]);
  EXPECT_EQ(type.getShape(), llvm::ArrayRef<int64_t>({4, 6}));
  EXPECT_EQ(main.front().getOperations().size(), 2u);  // reshape, return
}

TEST_F(ImporterTest, InlinesFunctions) {
  Message body;
  body.bytes(1, "Twice").bytes(4, "a").bytes(5, "r").bytes(10, "custom");
  body.message(7, node("Add", {"a", "a"}, {"r"}));
  body.message(9, Message().bytes(1, "").varint(2, 17));
  auto module = import(
      model(graph({node("Twice", {"x"}, {"y"}, {}, "custom")}, {kX}, {kY}), 17,
            {body}));
  ASSERT_TRUE(module) << errors_;
  nn::Tensor x(
      mlir::RankedTensorType::get({2, 3}, mlir::Float32Type::get(&context_)));
  x.setFloat(5, 3);
  auto results = nn::interpret(mainOf(module), {x});
  ASSERT_TRUE(mlir::succeeded(results));
  EXPECT_EQ((*results)[0].getFloat(5), 6);
}

TEST_F(ImporterTest, InlinesTheBranchOfAConstantCondition) {
  Message then_branch =
      graph({node("Neg", {"x"}, {"n"})}, {}, {valueInfo("n", kF32, {})});
  // The other branch is never imported.
  Message else_branch =
      graph({node("Unknown", {"x"}, {"u"})}, {}, {valueInfo("u", kF32, {})});
  Message cast = attribute("to", int64_t{9});
  auto module =
      import(model(graph({node("Cast", {"one"}, {"c"}, {cast}),
                          node("If", {"c"}, {"y"},
                               {attribute("then_branch", then_branch),
                                attribute("else_branch", else_branch)})},
                         {kX}, {kY}, {int64s("one", {}, {1})})));
  ASSERT_TRUE(module) << errors_;
}

// y = the parts of x, swapped, along a new dimension.
TEST_F(ImporterTest, SequencesAreListsOfTensors) {
  Message g = graph({node("SplitToSequence", {"x", "size"}, {"s"},
                          {attribute("axis", int64_t{1})}),
                     node("SequenceAt", {"s", "zero"}, {"first"}),
                     node("SequenceAt", {"s", "last"}, {"second"}),
                     node("Add", {"second", "second"}, {"twice"}),
                     node("SequenceConstruct", {"twice", "first"}, {"swapped"}),
                     node("ConcatFromSequence", {"swapped"}, {"y"},
                          {attribute("axis", int64_t{0}),
                           attribute("new_axis", int64_t{1})})},
                    {valueInfo("x", kF32, {"1", "4"})}, {kY},
                    {int64s("size", {}, {2}), int64s("zero", {}, {0}),
                     int64s("last", {}, {-1})});
  auto module = import(model(g));
  ASSERT_TRUE(module) << errors_;
  nn::Tensor x(
      mlir::RankedTensorType::get({1, 4}, mlir::Float32Type::get(&context_)));
  for (int64_t i = 0; i < 4; ++i) x.setFloat(i, static_cast<double>(i));
  auto results = nn::interpret(mainOf(module), {x});
  ASSERT_TRUE(mlir::succeeded(results));
  EXPECT_EQ(results->front().type().getShape(),
            llvm::ArrayRef<int64_t>({2, 1, 2}));
  const double expected[] = {4, 6, 0, 1};
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(results->front().getFloat(i), expected[i]);
}

TEST_F(ImporterTest, RefusesWrongUsesOfSequences) {
  const Message split = node("SplitToSequence", {"x"}, {"s"});
  const Message position = int64s("p", {}, {2});
  expectRefused(model(graph({split, node("SequenceAt", {"s", "p"}, {"y"})},
                            {kX}, {kY}, {position})),
                {"expected a position within the 2 tensors of the sequence"});
  expectRefused(model(graph({split, node("Neg", {"s"}, {"y"})}, {kX}, {kY})),
                {"expected tensors, found the sequence 's'"});
  expectRefused(model(graph({node("SequenceAt", {"x", "p"}, {"y"})}, {kX}, {kY},
                            {position})),
                {"expected input 0 to be a sequence, found the tensor 'x'"});
  expectRefused(
      model(graph({node("SplitToSequence", {"x"}, {"y"})}, {kX}, {kY})),
      {"output 'y' is a sequence"});
  const Message one = int64s("one", {}, {1}),
                length = node("SequenceLength", {"s"}, {"y"});
  const Message tall = valueInfo("x", kF32, {"1099511627776"});
  expectRefused(model(graph({split, length}, {tall}, {kY})),
                {"expected at most 4096 parts of an axis"});
  expectRefused(
      model(graph({node("SplitToSequence", {"x", "one"}, {"s"}), length},
                  {tall}, {kY}, {one})),
      {"expected at most 4096 parts of an axis"});
}

// Two training dropouts: different numbers in each, the same for the same seed.
TEST_F(ImporterTest, DropoutFollowsTheSeed) {
  const auto dropout = [](const std::string& from, const std::string& to,
                          const std::string& mask) {
    return node("Dropout", {from, "ratio", "training"}, {to, mask});
  };
  auto module = import(model(
      graph({node("Cast", {"one"}, {"training"}, {attribute("to", int64_t{9})}),
             dropout("x", "a", "ma"), dropout("x", "b", "mb")},
            {valueInfo("x", kF32, {"64", "64"})},
            {valueInfo("a", kF32, {}), valueInfo("b", kF32, {}),
             valueInfo("ma", 9, {})},
            {int64s("one", {}, {1}), floats("ratio", {}, {0.25f})})));
  ASSERT_TRUE(module) << errors_;
  auto main = mainOf(module);
  ASSERT_EQ(main.getNumArguments(), 2u);
  EXPECT_EQ(argAttr(main, 1, nn::kNameAttr), "seed");
  EXPECT_EQ(argAttr(main, 1, nn::kRoleAttr), "seed");
  nn::Tensor x(
      mlir::RankedTensorType::get({64, 64}, mlir::Float32Type::get(&context_)));
  for (int64_t i = 0; i < 4096; ++i) x.setFloat(i, 3);
  const auto run = [&](int64_t seed) {
    nn::Tensor s(
        mlir::RankedTensorType::get({}, mlir::IntegerType::get(&context_, 64)));
    s.setInt(0, seed);
    return nn::interpret(mainOf(module), {x, s});
  };
  auto first = run(5), again = run(5), other = run(6);
  ASSERT_TRUE(mlir::succeeded(first) && mlir::succeeded(again) &&
              mlir::succeeded(other));
  int dropped = 0, unlike_second = 0, unlike_other = 0;
  for (int64_t i = 0; i < 4096; ++i) {
    const double a = (*first)[0].getFloat(i);
    EXPECT_TRUE(a == 0 || std::abs(a - 4) < 1e-6) << a;
    EXPECT_EQ((*first)[2].getInt(i) != 0, a != 0);
    EXPECT_EQ(a, (*again)[0].getFloat(i));
    dropped += a == 0;
    unlike_second += a != (*first)[1].getFloat(i);
    unlike_other += a != (*other)[0].getFloat(i);
  }
  EXPECT_NEAR(dropped, 1024, 120);  // 4 standard deviations
  EXPECT_NEAR(unlike_second, 1536, 140);
  EXPECT_NEAR(unlike_other, 1536, 140);
}

TEST_F(ImporterTest, ReadsExternalData) {
  write("w.bin", std::string(8, '\0') + std::string(12, '\1'));
  auto module = import(model(graph({node("Add", {"x", "w"}, {"y"})}, {kX}, {kY},
                                   {external("w", {3}, "w.bin", "8")})));
  ASSERT_TRUE(module) << errors_;
  auto source =
      mainOf(module).getArgAttrOfType<nn::FileAttr>(1, nn::kSourceAttr);
  EXPECT_EQ(source.getPath().str(), folder_ + "/w.bin");
  EXPECT_EQ(source.getOffset(), 8u);
}

TEST_F(ImporterTest, ListsAllUnsupportedOperatorsAtOnce) {
  Message scoped = node("Loop", {"a"}, {"b"}, {}, "", "loop_1");
  scoped.message(
      9, Message().bytes(1, "namespace").bytes(2, "model/encoder/layer.3"));
  expectRefused(
      model(graph({node("Foo", {"x"}, {"a"}, {}, "my.domain", "foo_1"), scoped,
                   node("Foo", {"b"}, {"y"}, {}, "my.domain", "foo_2")},
                  {kX}, {kY})),
      {"m.onnx\":0:0", "operators that are not supported (opset 17):",
       "\n  Loop, 1 node: 'loop_1' in model/encoder/layer.3",
       "\n  my.domain::Foo, 2 nodes: 'foo_1', 'foo_2'"});
  EXPECT_EQ(report_.unsupported,
            (std::vector<std::string>{"Loop", "my.domain::Foo"}));
}

TEST_F(ImporterTest, RefusesUnsupportedAttributesByName) {
  expectRefused(
      model(graph({node("MaxPool", {"x"}, {"y", "i"},
                        {attribute("kernel_shape", std::vector<int64_t>{2})},
                        "", "pool")},
                  {valueInfo("x", kF32, {"1", "2", "4"})}, {kY})),
      {"loc(\"pool\"): MaxPool: Indices is not supported"});
  EXPECT_EQ(report_.unsupported, std::vector<std::string>{"MaxPool(Indices)"});
}

TEST_F(ImporterTest, RefusesCycles) {
  expectRefused(model(graph({node("Add", {"x", "b"}, {"a"}, {}, "", "first"),
                             node("Neg", {"a"}, {"b"}, {}, "", "second"),
                             node("Neg", {"b"}, {"y"})},
                            {kX}, {kY})),
                {"loc(\"first\")",
                 "input 'b' comes from the later node "
                 "'second': the graph has a cycle"});
}

TEST_F(ImporterTest, RefusesMissingValues) {
  expectRefused(model(graph({node("Neg", {"q"}, {"y"})}, {kX}, {kY})),
                {"input 'q' is not the output of any node"});
  expectRefused(model(graph({node("Neg", {"x"}, {"z"})}, {kX}, {kY})),
                {"no node computes output 'y'"});
}

TEST_F(ImporterTest, RefusesUnknownSizesWithAdvice) {
  Message g = graph({node("Neg", {"x"}, {"y"})},
                    {valueInfo("x", kF32, {"batch", "seq"})}, {kY});
  expectRefused(model(g), {"sizes are not known: batch, seq; give them, as in "
                           "--dim batch=8,seq=8"});
  ImportOptions options;
  options.dims["bach"] = 2;
  expectRefused(model(g), {"no dimension named 'bach'; they have: batch, seq"},
                options);
  options.dims.clear();
  options.input_shapes["x"] = {2, 3, 4};
  expectRefused(model(g), {"contradicts"}, options);
}

TEST_F(ImporterTest, NamesSizesThatHaveNoName) {
  Message g = graph({node("Neg", {"x"}, {"y"})},
                    {valueInfo("x", kF32, {"", "3"})}, {kY});
  expectRefused(model(g), {"sizes are not known: x.0;", "--dim x.0=8"});
  ImportOptions options;
  options.dims["x.0"] = 2;
  EXPECT_TRUE(import(model(g), options)) << errors_;
}

TEST_F(ImporterTest, RefusesShapesThatDependOnInputs) {
  Message shape = valueInfo("s", kI64, {"1"});
  expectRefused(model(graph({node("Reshape", {"x", "s"}, {"y"}, {}, "", "r")},
                            {kX, shape}, {kY})),
                {"loc(\"r\"): Reshape: input 1 ('s') must be known"});
  EXPECT_EQ(report_.needs_constant_inputs, std::vector<std::string>{"s"});
}

TEST_F(ImporterTest, RefusesWrongShapesAndTypes) {
  expectRefused(
      model(graph({node("Add", {"x", "w"}, {"y"}, {}, "", "sum")}, {kX}, {kY},
                  {floats("w", {2}, {1, 2})})),
      {"loc(\"sum\"): expected shapes that broadcast to one, found [2, 3] and "
       "[2]"});
  expectRefused(model(graph({node("Add", {"x", "i"}, {"y"})}, {kX}, {kY},
                            {int64s("i", {1}, {2})})),
                {"expected operands of one element type, found f32 and i64"});
  expectRefused(model(graph({node("Neg", {"x"}, {"y"})}, {kX},
                            {valueInfo("y", kI64, {})})),
                {"output 'y' is declared as INT64, but its value is FLOAT"});
  expectRefused(model(graph({node("Identity", {"x"}, {"y"})},
                            {valueInfo("x", kString, {"2"})}, {kY})),
                {"input 'x' is of type STRING: not supported"});
}

TEST_F(ImporterTest, RefusesTensorsOfTheWrongSize) {
  expectRefused(model(graph({node("Add", {"x", "w"}, {"y"})}, {kX}, {kY},
                            {floats("w", {3}, {1, 2})})),
                {"initializer 'w'",
                 "expected 12 bytes for its shape and type FLOAT, found 8"});
}

TEST_F(ImporterTest, ConfinesExternalData) {
  auto with = [&](const Message& weight) {
    return model(graph({node("Add", {"x", "w"}, {"y"})}, {kX}, {kY}, {weight}));
  };
  expectRefused(with(external("w", {3}, "../w.bin")),
                {"must be a relative path without '..'"});
  expectRefused(with(external("w", {3}, "/etc/passwd")),
                {"must be a relative path without '..'"});
  expectRefused(with(external("w", {3}, "")),
                {"must be a relative path without '..'"});
  expectRefused(with(external("w", {3}, "absent.bin")),
                {"cannot open its external data"});
  std::filesystem::remove(folder_ + "/link.bin");
  std::filesystem::create_symlink("/etc/passwd", folder_ + "/link.bin");
  expectRefused(with(external("w", {3}, "link.bin")),
                {"leads outside of the model's folder"});
  write("short.bin", "12345678");
  expectRefused(with(external("w", {3}, "short.bin")),
                {"ends beyond", "offset 0, length 12, file size 8"});
}

TEST_F(ImporterTest, RefusesOpsetsAndFilesItDoesNotKnow) {
  Message g = graph({node("Neg", {"x"}, {"y"})}, {kX}, {kY});
  expectRefused(model(g, 99), {"opset 99 is not supported: expected"});
  expectRefused(Message().message(7, g), {"expected an opset_import"});
  EXPECT_FALSE(importOnnx(folder_ + "/none.onnx", {}, &context_));
  EXPECT_NE(errors_.find("cannot open"), std::string::npos);
}

TEST_F(ImporterTest, RefusesFunctionsThatCallThemselves) {
  Message body;
  body.bytes(1, "Again").bytes(4, "a").bytes(5, "r").bytes(10, "custom");
  body.message(7, node("Again", {"a"}, {"r"}, {}, "custom"));
  body.message(9, Message().bytes(1, "").varint(2, 17));
  expectRefused(
      model(graph({node("Again", {"x"}, {"y"}, {}, "custom")}, {kX}, {kY}), 17,
            {body}),
      {"does a function call itself?"});
}

TEST_F(ImporterTest, EveryTruncationIsRefused) {
  std::string bytes = model(graph({node("Add", {"x", "w"}, {"y"})}, {kX}, {kY},
                                  {floats("w", {3}, {1, 2, 3})}))
                          .encoded();
  for (size_t size = 0; size < bytes.size(); ++size) {
    errors_.clear();
    std::string path = write("cut.onnx", bytes.substr(0, size));
    EXPECT_FALSE(importOnnx(path, {}, &context_)) << size;
    EXPECT_FALSE(errors_.empty()) << size;
  }
}

}  // namespace
}  // namespace partita::onnx
