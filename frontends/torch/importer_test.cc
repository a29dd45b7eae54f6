// Small programs, and ways in which a file can be wrong.
#include "frontends/torch/importer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "dialects/nn/interpreter.h"
#include "frontends/builder/import_fixture.h"
#include "frontends/torch/test_archive.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::torch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ImporterTest : public builder::ImportFixture {
 protected:
  mlir::OwningOpRef<mlir::ModuleOp> import(const std::string& bytes,
                                           const ImportOptions& options = {}) {
    return importTorchBytes(bytes, "model.pt2", options, &context_);
  }

  void expectRefused(const std::string& bytes, const std::string& reason,
                     const ImportOptions& options = {}) {
    errors_.clear();
    EXPECT_FALSE(import(bytes, options));
    EXPECT_THAT(errors_, HasSubstr(reason));
  }

  // Runs a program without weights on one input of this shape.
  std::vector<double> run(TestProgram& program,
                          const std::vector<int64_t>& shape,
                          const std::vector<double>& values) {
    auto module = import(program.bytes());
    EXPECT_TRUE(module) << errors_;
    if (!module) return {};
    auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
    nn::Tensor input(
        mlir::RankedTensorType::get(shape, mlir::Float32Type::get(&context_)));
    for (size_t i = 0; i < values.size(); ++i)
      input.setFloat(static_cast<int64_t>(i), values[i]);
    auto results = nn::interpret(main, {input});
    EXPECT_TRUE(mlir::succeeded(results));
    std::vector<double> output;
    if (mlir::failed(results)) return output;
    for (int64_t i = 0; i < results->front().size(); ++i)
      output.push_back(results->front().getFloat(i));
    return output;
  }
};

// y = x w^T, with a symbolic batch.
TestProgram linear() {
  TestProgram program;
  program.parameter("p_w", "blocks.0.a.weight", {4, 2},
                    {1, 2, 3, 4, 5, 6, 7, 8});
  program.input("x", {-1, 2});
  program.node("aten.linear.default",
               {{"input", TestProgram::tensor("x")},
                {"weight", TestProgram::tensor("p_w")}},
               "linear_1", {-1, 4}, "blocks.0.a");
  program.output("linear_1");
  return program;
}

ImportOptions batch(int64_t size) {
  ImportOptions options;
  options.dims["batch"] = size;
  return options;
}

TEST_F(ImporterTest, WeightsAreRangesOfTheFile) {
  const std::string bytes = linear().bytes();
  auto module = import(bytes, batch(3));
  ASSERT_TRUE(module) << errors_;
  auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
  ASSERT_EQ(main.getNumArguments(), 2u);
  const auto text = [&](unsigned i, const char* name) {
    return main.getArgAttrOfType<mlir::StringAttr>(i, name).str();
  };
  EXPECT_EQ(text(0, nn::kNameAttr), "x");
  EXPECT_EQ(text(0, nn::kKindAttr), "input");
  EXPECT_EQ(text(1, nn::kNameAttr), "blocks.0.a.weight");
  EXPECT_EQ(text(1, nn::kKindAttr), "parameter");
  auto source = main.getArgAttrOfType<nn::FileAttr>(1, nn::kSourceAttr);
  ASSERT_TRUE(source);
  const float first = 1;
  EXPECT_EQ(bytes.substr(source.getOffset(), sizeof first),
            std::string(reinterpret_cast<const char*>(&first), sizeof first));
}

TEST_F(ImporterTest, LocationsHaveModuleAndLine) {
  auto module = import(linear().bytes(), batch(3));
  ASSERT_TRUE(module) << errors_;
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, mlir::OpPrintingFlags().enableDebugInfo(true));
  EXPECT_THAT(text, HasSubstr("\"/blocks/0/a/linear_1\""));
  EXPECT_THAT(text, HasSubstr("\"model.py\":18"));
}

TEST_F(ImporterTest, SizesHaveSeveralNames) {
  const std::string bytes = linear().bytes();
  for (const char* name : {"batch", "x.0", "s0"}) {
    ImportOptions options;
    options.dims[name] = 3;
    EXPECT_TRUE(import(bytes, options)) << name << errors_;
  }
  ImportOptions shapes;
  shapes.input_shapes["x"] = {3, 2};
  EXPECT_TRUE(import(bytes, shapes)) << errors_;
  expectRefused(bytes,
                "sizes are not known: batch; give them, as in --dim "
                "batch=8");
  ImportOptions wrong = batch(3);
  wrong.dims["seq"] = 5;
  expectRefused(
      bytes, "no dimension named 'seq'; they have: batch or x.0 or s0", wrong);
  shapes.input_shapes["x"] = {3, 4};
  expectRefused(bytes, "the shape given for input 'x' contradicts the model's",
                shapes);
}

TEST_F(ImporterTest, SizesOutsideTheExportAreRemarked) {
  TestProgram program = linear();
  program.json()["range_constraints"] = {
      {"s0", {{"min_val", 2}, {"max_val", 16}}}};
  EXPECT_TRUE(import(program.bytes(), batch(1))) << errors_;
  EXPECT_THAT(remarks_, HasSubstr("batch = 1 (exported for 2 to 16)"));
}

TEST_F(ImporterTest, TiedWeightsAreOneArgument) {
  TestProgram program = linear();
  program.parameter("p_head", "head.weight", {4, 2}, {});
  program.node("aten.linear.default",
               {{"input", TestProgram::tensor("x")},
                {"weight", TestProgram::tensor("p_head")}},
               "linear_2", {-1, 4});
  program.output("linear_2");
  auto entries = program.entries();
  auto config =
      nlohmann::json::parse(entries["data/weights/model_weights_config.json"]);
  config["config"]["head.weight"] = config["config"]["blocks.0.a.weight"];
  entries["data/weights/model_weights_config.json"] = config.dump();
  // The program uses the second name only, as torch's does.
  auto json = nlohmann::json::parse(entries["models/model.json"]);
  json["graph_module"]["graph"]["nodes"][0]["inputs"][1]["arg"] =
      TestProgram::tensor("p_head");
  entries["models/model.json"] = json.dump();
  auto module = import(archiveOf(entries), batch(3));
  ASSERT_TRUE(module) << errors_;
  auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
  ASSERT_EQ(main.getNumArguments(), 2u);
  EXPECT_EQ(main.getArgAttrOfType<mlir::StringAttr>(1, nn::kNameAttr).str(),
            "blocks.0.a.weight");
}

// z = x.clone(); z[1] += 1: z shows the change, and so does its transpose.
TEST_F(ImporterTest, ChangesInPlaceShowInOtherViews) {
  TestProgram program;
  using P = TestProgram;
  program.input("x", {2, 3});
  program.node("aten.clone.default", {{"self", P::tensor("x")}}, "z", {2, 3});
  program.node("aten.t.default", {{"self", P::tensor("z")}}, "t", {3, 2});
  program.node("aten.select.int",
               {{"self", P::tensor("z")},
                {"dim", P::integer(0)},
                {"index", P::integer(1)}},
               "row", {3});
  program.node("aten.slice.Tensor",
               {{"self", P::tensor("row")},
                {"dim", P::integer(0)},
                {"start", P::integer(0)},
                {"end", P::integer(3)},
                {"step", P::integer(2)}},
               "part", {2});
  program.node("aten.add_.Tensor",
               {{"self", P::tensor("part")}, {"other", P::integer(10)}}, "add_",
               {2});
  program.output("t");
  EXPECT_THAT(run(program, {2, 3}, {0, 1, 2, 3, 4, 5}),
              ElementsAre(0, 13, 1, 4, 2, 15));
}

// Operators with a scaled or swapped operand, against PyTorch's definitions.
TEST_F(ImporterTest, ComputesAsPyTorchDefines) {
  using P = TestProgram;
  struct Case {
    const char* target;
    std::vector<std::pair<std::string, TestProgram::Json>> more;
    std::vector<double> expected;  // for x = 1, 2, 6 (and other = x)
  };
  const auto x = P::tensor("x");
  for (const Case& each : std::vector<Case>{
           {"aten.sub.Tensor",
            {{"other", x}, {"alpha", P::integer(3)}},
            {-2, -4, -12}},
           {"aten.add.Tensor",
            {{"other", x}, {"alpha", P::integer(3)}},
            {4, 8, 24}},
           {"aten.rsub.Scalar",
            {{"other", P::integer(10)}, {"alpha", P::integer(3)}},
            {7, 4, -8}},
           {"aten.mul.Tensor", {{"other", x}}, {1, 4, 36}},
           {"aten.multiply.Tensor", {{"other", x}}, {1, 4, 36}},
           {"aten.maximum.default", {{"other", x}}, {1, 2, 6}},
       }) {
    TestProgram program;
    program.input("x", {3});
    auto inputs = each.more;
    inputs.insert(inputs.begin(), {"self", x});
    program.node(each.target, inputs, "y", {3});
    program.output("y");
    EXPECT_EQ(run(program, {3}, {1, 2, 6}), each.expected) << each.target;
  }
}

TEST_F(ImporterTest, WritesToEverySecondRow) {
  using P = TestProgram;
  TestProgram program;
  program.input("x", {5});
  program.node("aten.clone.default", {{"self", P::tensor("x")}}, "c", {5});
  program.node("aten.slice.Tensor",
               {{"self", P::tensor("c")},
                {"dim", P::integer(0)},
                {"start", P::integer(1)},
                {"end", P::integer(5)},
                {"step", P::integer(2)}},
               "s", {2});
  program.node("aten.add_.Tensor",
               {{"self", P::tensor("s")}, {"other", P::integer(10)}}, "t", {2});
  program.output("c");
  EXPECT_THAT(run(program, {5}, {0, 1, 2, 3, 4}), ElementsAre(0, 11, 2, 13, 4));
}

// Small files that ask for much.
TEST_F(ImporterTest, RefusesMorePartsThanResults) {
  using P = TestProgram;
  TestProgram program;
  program.input("x", {int64_t{1} << 47});
  program.node("aten.split.Tensor",
               {{"self", P::tensor("x")}, {"split_size", P::integer(1)}}, "y",
               {1});
  program.output("y");
  expectRefused(program.bytes(), "expected a result for each part");
}

TEST_F(ImporterTest, RefusesPoolsOfNothing) {
  using P = TestProgram;
  TestProgram program;
  program.input("x", {1, 1, 0, 4});
  program.node("aten.adaptive_avg_pool2d.default",
               {{"self", P::tensor("x")}, {"output_size", P::integers({2, 2})}},
               "y", {1, 1, 2, 2});
  program.output("y");
  expectRefused(program.bytes(), "expected positive sizes with a product");
}

// Windows of 2 x 2 of a padded 2 x 3 image, and their sum as windows without
// padding.
TEST_F(ImporterTest, WindowsAreTakenAndSummed) {
  using P = TestProgram;
  const auto pair = [](int64_t a, int64_t b) { return P::integers({a, b}); };
  for (const char* output : {"w", "y"}) {
    TestProgram program;
    program.input("x", {1, 1, 2, 3});
    program.node("aten.im2col.default",
                 {{"self", P::tensor("x")},
                  {"kernel_size", pair(2, 2)},
                  {"dilation", pair(1, 1)},
                  {"padding", pair(0, 1)},
                  {"stride", pair(1, 2)}},
                 "w", {1, 4, 2});
    program.node("aten.col2im.default",
                 {{"self", P::tensor("w")},
                  {"output_size", pair(2, 3)},
                  {"kernel_size", pair(2, 2)},
                  {"dilation", pair(1, 1)},
                  {"padding", pair(0, 0)},
                  {"stride", pair(1, 1)}},
                 "y", {1, 1, 2, 3});
    program.output(output);
    const auto found = run(program, {1, 1, 2, 3}, {1, 2, 3, 4, 5, 6});
    if (output[0] == 'w')
      EXPECT_THAT(found, ElementsAre(0, 2, 1, 3, 0, 5, 4, 6));
    else
      EXPECT_THAT(found, ElementsAre(0, 2 + 1, 3, 0, 5 + 4, 6));
  }
}

TEST_F(ImporterTest, IndexedDimensionsStayInPlace) {
  TestProgram program;
  using P = TestProgram;
  program.input("x", {2, 3});
  program.node("aten.arange.start_step",
               {{"start", P::integer(2)},
                {"end", P::integer(-1)},
                {"step", P::integer(-1)}},
               "i", {3});
  program.json()["graph_module"]["graph"]["tensor_values"]["i"]["dtype"] = 5;
  program.node("aten.index.Tensor",
               {{"self", P::tensor("x")},
                {"indices",
                 {{"as_optional_tensors",
                   {{{"as_none", true}}, {{"as_tensor", {{"name", "i"}}}}}}}}},
               "y", {2, 3});
  program.output("y");
  EXPECT_THAT(run(program, {2, 3}, {0, 1, 2, 3, 4, 5}),
              ElementsAre(2, 1, 0, 5, 4, 3));
}

TEST_F(ImporterTest, RefusesUnknownOperatorsAtOnce) {
  TestProgram program = linear();
  for (const char* target : {"aten.fft_fft.default", "mine.attention.default"})
    program.node(target, {{"self", TestProgram::tensor("x")}}, target, {-1, 2},
                 "blocks.1");
  errors_.clear();
  EXPECT_FALSE(import(program.bytes(), batch(3)));
  EXPECT_THAT(errors_, HasSubstr("aten.fft_fft.default, 1 node: "
                                 "'aten.fft_fft.default' in blocks.1 at "
                                 "model.py:18"));
  EXPECT_THAT(errors_, HasSubstr("mine.attention.default, 1 node"));
}

TEST_F(ImporterTest, RefusesChangesOfInputsAndWeights) {
  for (const char* name : {"x", "p_w"}) {
    TestProgram program = linear();
    program.node(
        "aten.mul_.Tensor",
        {{"self", TestProgram::tensor(name)}, {"other", TestProgram::real(2)}},
        "mul_",
        name[0] == 'x' ? std::vector<int64_t>{-1, 2}
                       : std::vector<int64_t>{4, 2});
    expectRefused(program.bytes(), "in place is not supported", batch(3));
  }
}

TEST_F(ImporterTest, RefusesResultsThatContradictTheFile) {
  TestProgram program = linear();
  program.json()["graph_module"]["graph"]["tensor_values"]["linear_1"]["sizes"]
                [1] = {{"as_int", 5}};
  expectRefused(program.bytes(),
                "expected a result of type float32 [3, 5] as the file says, "
                "found f32 [3, 4]",
                batch(3));
}

TEST_F(ImporterTest, RefusesOtherSchemas) {
  TestProgram program = linear();
  program.json()["schema_version"] = {{"major", 9}, {"minor", 1}};
  expectRefused(program.bytes(),
                "expected schema version 8 (torch 2.9 and newer), found 9.1");
  program.json().erase("schema_version");
  expectRefused(program.bytes(), "expected a member 'schema_version'");
}

TEST_F(ImporterTest, RefusesDamagedArchives) {
  const std::string bytes = linear().bytes();
  expectRefused(bytes.substr(0, bytes.size() / 2),
                "expected a zip file, found no zip directory at its end");
  expectRefused("", "expected a zip file");
  expectRefused(zipOf({{"model/../../etc/passwd", ""}}),
                "expected a relative path inside the archive");
  expectRefused(zipOf({{"/etc/passwd", ""}}),
                "expected a relative path inside the archive");
  expectRefused(zipOf({{"model/a", "x"}, {"model/a", "y"}}), "exists twice");
  expectRefused(zipOf({{"model/a", "x"}}, /*method=*/8),
                "stored without compression");
  expectRefused(zipOf({{"model/a", "x"}}),
                "expected an entry models/NAME.json");
  expectRefused(zipOf({{"serialized_exported_program.json", "{}"}}),
                "the one of an older torch");
}

TEST_F(ImporterTest, RefusesMissingWeights) {
  auto entries = linear().entries();
  auto without = entries;
  without.erase("data/weights/weight_0");
  expectRefused(archiveOf(without), "which the archive lacks", batch(3));
  auto shorter = entries;
  shorter["data/weights/weight_0"].resize(31);
  expectRefused(archiveOf(shorter), "of 31 bytes, but it needs more", batch(3));
  auto config =
      nlohmann::json::parse(entries["data/weights/model_weights_config.json"]);
  const auto damaged = [&](const char* key, const nlohmann::json& value) {
    auto copy = config;
    copy["config"]["blocks.0.a.weight"][key] = value;
    auto changed = entries;
    changed["data/weights/model_weights_config.json"] = copy.dump();
    return archiveOf(changed);
  };
  expectRefused(damaged("path_name", "../../../etc/passwd"),
                "which the archive lacks", batch(3));
  expectRefused(damaged("use_pickle", true), "is a pickled tensor subclass",
                batch(3));
  expectRefused(damaged("path_name", 7), "expected a string, found number",
                batch(3));
  auto without_table = entries;
  without_table.erase("data/weights/model_weights_config.json");
  expectRefused(archiveOf(without_table),
                "expected an entry data/weights/model_weights_config.json");
  config["config"].clear();
  auto empty = entries;
  empty["data/weights/model_weights_config.json"] = config.dump();
  expectRefused(archiveOf(empty),
                "expected data of 'blocks.0.a.weight' in the archive's tables",
                batch(3));
}

TEST_F(ImporterTest, RefusesInconsistentPrograms) {
  TestProgram program = linear();
  program.output("nothing");
  expectRefused(program.bytes(), "tensor 'nothing' is not the result",
                batch(3));
  auto entries = linear().entries();
  entries["models/model.json"] = "{\"graph_module\":";
  expectRefused(archiveOf(entries), "expected JSON, found syntax error");
  entries["models/model.json"] = std::string(300, '[');
  expectRefused(archiveOf(entries), "found more than 256 levels");
}

}  // namespace
}  // namespace partita::torch
