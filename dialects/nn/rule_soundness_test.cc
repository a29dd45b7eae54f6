// Tests that every sharding rule of nn, arith and math is sound, and that the
// checker rejects unsound ones.
#include "dialects/nn/rule_soundness.h"

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <sstream>

#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter_fixture.h"
#include "dialects/nn/ordered.h"
#include "dialects/nn/rule_examples_fixture.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::nn {
namespace {

using testing::HasSubstr;

constexpr int64_t kMaxShards = 8;

// Operations of arith and math by operand types. "F" is a float tensor and "I"
// an integer tensor.
struct Elementwise {
  const char* operands;   // "F F"
  const char* signature;  // after the colon
  const char* names;
  const char* prefix = "";  // before the operands
};

constexpr Elementwise kElementwise[] = {
    {"F", "F",
     "arith.negf math.absf math.acos math.acosh math.asin math.asinh math.atan "
     "math.atanh math.cbrt math.ceil math.cos "
     "math.cosh math.erf math.erfc math.exp math.exp2 math.expm1 math.floor "
     "math.log math.log10 math.log1p math.log2 "
     "math.roundeven math.round math.rsqrt math.sin math.sinh math.sqrt "
     "math.tan math.tanh math.trunc"},
    {"F F", "F",
     "arith.addf arith.subf arith.mulf arith.divf arith.remf arith.maximumf "
     "arith.minimumf arith.maxnumf arith.minnumf "
     "math.atan2 math.copysign math.powf"},
    {"F F F", "F", "math.fma"},
    {"F I", "F, I", "math.fpowi"},
    {"F", "F", "math.isfinite math.isinf math.isnan"},
    {"I", "I", "math.absi math.ctlz math.cttz math.ctpop"},
    {"I I", "I",
     "arith.addi arith.subi arith.muli arith.divui arith.divsi arith.ceildivui "
     "arith.ceildivsi arith.floordivsi "
     "arith.remui arith.remsi arith.andi arith.ori arith.xori arith.shli "
     "arith.shrui arith.shrsi arith.maxsi arith.maxui "
     "arith.minsi arith.minui math.ipowi"},
    {"F F", "F", "arith.cmpf", "olt, "},
    {"I I", "I", "arith.cmpi", "slt, "},
    {"B F F", "B, F", "arith.select"},
    {"F", "F to D", "arith.extf"},
    {"F", "F to H", "arith.truncf"},
    {"I", "I to L", "arith.extsi arith.extui"},
    {"I", "I to S", "arith.trunci"},
    {"I", "I to X", "arith.index_cast arith.index_castui"},
    {"I", "I to F", "arith.sitofp arith.uitofp arith.bitcast"},
    {"F", "F to I", "arith.fptosi arith.fptoui"},
};

// Replaces each letter in e.g. "F to D" with a tensor type.
std::string withTypes(const std::string& pattern) {
  const std::map<char, std::string> elements = {
      {'F', "f32"}, {'D', "f64"}, {'H', "f16"}, {'I', "i32"},
      {'L', "i64"}, {'S', "i8"},  {'B', "i1"},  {'X', "index"}};
  std::string text;
  for (char c : pattern) {
    const auto element = elements.find(c);
    text += element == elements.end() ? std::string(1, c)
                                      : "tensor<3x5x" + element->second + ">";
  }
  return text;
}

class RuleSoundnessTest : public InterpreterFixture {
 protected:
  RuleSoundnessTest() {
    mlir::DialectRegistry registry;
    registerOrderedOperations(registry);
    context_.appendDialectRegistry(registry);
  }

  mlir::Operation* operation(const std::string& arguments,
                             const std::string& line) {
    modules_.push_back(
        parse("func.func @f(" + arguments + ") {\n" + line + "\nreturn\n}"));
    if (!modules_.back()) return nullptr;
    return &functionNamed(*modules_.back(), "f").front().front();
  }

  mlir::Operation* operation(const Example& example) {
    const std::string types = example.operands;
    std::string arguments;
    char name = 'a';
    for (size_t at = 0; at < types.size();) {
      const size_t end = std::min(types.find(", ", at), types.size());
      arguments += std::string(name == 'a' ? "%" : ", %") + name + ": tensor<" +
                   types.substr(at, end - at) + ">";
      ++name;
      at = end + 2;
    }
    const std::string line = example.operation;
    // One result per type after the last arrow.
    const std::string types_of_results = line.substr(line.rfind("-> ") + 1);
    const int64_t results =
        line.find("-> ") == std::string::npos
            ? 1
            : llvm::StringRef(types_of_results).count("tensor<");
    return operation(arguments, "%r:" + std::to_string(results) + " = " + line);
  }

  void expectSound(mlir::Operation* op) {
    ASSERT_TRUE(op);
    const auto rule = shardingRuleOf(op);
    ASSERT_TRUE(rule) << "expected a rule of "
                      << op->getName().getStringRef().str();
    EXPECT_EQ(findUnsoundness(op, *rule, kMaxShards, 1), "")
        << op->getName().getStringRef().str() << " " << ToString(*rule);
    checked_.insert(op->getName().getStringRef().str());
  }

  template <size_t count>
  void expectAllSound(const Example (&examples)[count]) {
    for (const Example& example : examples) expectSound(operation(example));
  }

  // The operations of these dialects that have a reference and are not yet
  // checked.
  std::vector<std::string> unchecked(const std::set<std::string>& dialects) {
    std::vector<std::string> names;
    for (mlir::RegisteredOperationName name :
         context_.getRegisteredOperations()) {
      const std::string text = name.getStringRef().str();
      if (dialects.count(name.getDialectNamespace().str()) &&
          name.hasInterface<ReferenceOpInterface>() && !checked_.count(text))
        names.push_back(text);
    }
    return names;
  }

  std::set<std::string> checked_;
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules_;
};

TEST_F(RuleSoundnessTest, EveryOperationOfTheDialectHasASoundRule) {
  expectAllSound(kMovement);
  expectAllSound(kContractions);
  expectAllSound(kGradients);
  expectAllSound(kComposites);
  expectAllSound(kExperts);
  EXPECT_GT(checked_.size(), 20u);
  // Its rule divides nothing.
  EXPECT_THAT(unchecked({"nn"}), testing::ElementsAre("nn.loop"));
}

TEST_F(RuleSoundnessTest, EveryElementwiseOperationHasASoundRule) {
  for (const Elementwise& kind : kElementwise) {
    std::istringstream names(kind.names);
    for (std::string name; names >> name;) {
      std::string arguments, values;
      char value = 'a';
      for (char type : std::string(kind.operands)) {
        if (type == ' ') continue;
        const std::string comma = value == 'a' ? "" : ", ";
        arguments += comma + "%" + value + ": " + withTypes({type});
        values += comma + "%" + value++;
      }
      expectSound(operation(arguments, "%r = " + name + " " + kind.prefix +
                                           values + " : " +
                                           withTypes(kind.signature)));
    }
  }
  expectSound(operation("%a: tensor<3x4xf32>, %b: tensor<3x4xf32>",
                        "%r = math.clampf %a to [%b, %a] : tensor<3x4xf32>"));
  expectSound(operation("%a: tensor<3x4xf32>",
                        "%r:2 = math.sincos %a : tensor<3x4xf32>"));
  expectSound(operation("",
                        "%r = arith.constant dense<[[1, 2], [3, 4], [5, 6]]> : "
                        "tensor<3x2xi32>"));
  expectSound(
      operation("", "%r = arith.constant dense<1.5> : tensor<3x2xf32>"));
  EXPECT_THAT(unchecked({"arith", "math"}), testing::IsEmpty());
}

TEST_F(RuleSoundnessTest, OfShapesTooLargeToExecuteIsCheckedShrunken) {
  const Example examples[] = {
      {"64x9999x512xf32, 512x70000xf32",
       "nn.dot_general %a, %b contract = [2] x [0] : tensor<64x9999x512xf32>, "
       "tensor<512x70000xf32> -> tensor<64x9999x70000xf32>"},
      {"70000x512xf32, 64x999x1xi64",
       "nn.gather %a[%b] axes = [0] : tensor<70000x512xf32>, "
       "tensor<64x999x1xi64> -> tensor<64x999x512xf32>"},
      {"64x512x999x999xf32, 512x1x3x3xf32",
       "nn.conv %a, %b strides = [2, 1] dilations = [1, 2] low = [1, 2] high = "
       "[1, 2] groups = 512 : tensor<64x512x999x999xf32>, "
       "tensor<512x1x3x3xf32> -> tensor<64x512x500x999xf32>"},
      {"64x800x512xf32",
       "nn.reshape %a : tensor<64x800x512xf32> -> tensor<51200x8x64xf32>"},
      {"", "nn.iota dim = 1 : tensor<70000x70000xi64>"},
  };
  for (const Example& example : examples) {
    mlir::Operation* op = operation(example);
    ASSERT_TRUE(op);
    EXPECT_EQ(findUnsoundnessShrunken(op, *shardingRuleOf(op), kMaxShards, 1),
              "")
        << example.operation;
  }
  mlir::Operation* op = operation(examples[0]);
  ShardingRule rule = *shardingRuleOf(op);
  rule.factors[3].reduction = Reduction::kMax;
  EXPECT_THAT(findUnsoundnessShrunken(op, rule, kMaxShards, 1),
              HasSubstr("with l=5 in 2 blocks of 3: result 0 at [0, 0, 0]: "
                        "expected "));
}

// Unsound rules and the expected complaints.
class UnsoundRuleTest : public RuleSoundnessTest {
 protected:
  std::string findIn(const Example& example, const std::string& text) {
    mlir::Operation* op = operation(example);
    const auto rule =
        mlir::dyn_cast_or_null<RuleAttr>(parseRule("#nn.rule<" + text + ">"));
    if (!op || !rule) return "expected an operation and a rule";
    return findUnsoundness(op, rule.getRule(), kMaxShards, 1);
  }
  mlir::Attribute parseRule(const std::string& text);
};

mlir::Attribute UnsoundRuleTest::parseRule(const std::string& text) {
  return mlir::parseAttribute(text, &context_);
}

constexpr Example kProduct = {
    "3x4xf32, 4x5xf32",
    "nn.dot_general %a, %b contract = [1] x [0] : tensor<3x4xf32>, "
    "tensor<4x5xf32> -> tensor<3x5xf32>"};

TEST_F(UnsoundRuleTest, SoundRuleAsText) {
  EXPECT_EQ(findIn(kProduct,
                   "([i, k], [k, j]) -> ([i, j]) {i=3, j=5, k=4} "
                   "reduced={k} multilinear={0, 1}"),
            "");
}

TEST_F(UnsoundRuleTest, RemovedReductionFactor) {
  EXPECT_EQ(findIn(kProduct, "([i, 1], [1, j]) -> ([i, j]) {i=3, j=5}"),
            "expected the factors of dimension 1 of operand 0 to multiply to "
            "its size 4, found 1");
}

TEST_F(UnsoundRuleTest, ReductionNotCombined) {
  mlir::Operation* op = operation(kProduct);
  ShardingRule rule = *shardingRuleOf(op);
  rule.factors[2].kind = FactorKind::kCarried;
  EXPECT_THAT(findUnsoundness(op, rule, kMaxShards, 1),
              HasSubstr("expected factor k, which is carried, in a result"));
  const Tensor a = random(typeFrom("tensor<3x4xf32>")),
               b = random(typeFrom("tensor<4x5xf32>"));
  EXPECT_THAT(
      findUnsoundness(op, rule, {FactorDivision{2, 2, 2}}, {a, b}),
      HasSubstr("shards of the factor k, which is not reduced, compute"));
}

TEST_F(UnsoundRuleTest, WrongReduction) {
  EXPECT_THAT(findIn(kProduct,
                     "([i, k], [k, j]) -> ([i, j]) {i=3, j=5, k=4} "
                     "reduced={k:max}"),
              HasSubstr("with k=4 in 2 blocks of 2: result 0 at [0, 0]: "
                        "expected "));
}

TEST_F(UnsoundRuleTest, ReductionOfOneOperandOnly) {
  EXPECT_THAT(findIn(kProduct,
                     "([i, l], [k, j]) -> ([i, j]) {i=3, j=5, k=4, "
                     "l=4} reduced={k} whole={l}"),
              HasSubstr("the operation on a shard's types is invalid"));
}

TEST_F(UnsoundRuleTest, SoftmaxCarriedAlongItsAxis) {
  EXPECT_THAT(findIn({"3x4xf32", "nn.softmax %a axis = 1 : tensor<3x4xf32>"},
                     "([i, j]) -> ([i, j]) {i=3, j=4}"),
              HasSubstr("with j=4 in 2 blocks of 2: result 0 at [0, 0]: "
                        "expected "));
}

TEST_F(UnsoundRuleTest, ConvolutionWithoutHalo) {
  EXPECT_THAT(
      findIn({"1x2x6xf32, 3x2x3xf32",
              "nn.conv %a, %b strides = [1] dilations = [1] low = [1] high = "
              "[1] groups = 1 : tensor<1x2x6xf32>, tensor<3x2x3xf32> -> "
              "tensor<1x3x6xf32>"},
             "([i, k, l], [j, k, m]) -> ([i, j, l]) {i=1, j=3, k=2, l=6, m=3} "
             "reduced={k} whole={m}"),
      HasSubstr("with l=6 in 2 blocks of 3: result 0 at [0, 0, 2]: expected "));
}

TEST_F(UnsoundRuleTest, ReshapeWithFactorsInTheWrongOrder) {
  EXPECT_THAT(
      findIn({"2x3xf32", "nn.reshape %a : tensor<2x3xf32> -> tensor<6xf32>"},
             "([i, j]) -> ([ji]) {i=2, j=3}"),
      HasSubstr("with i=2 in 2 blocks of 1: result 0 at [1]: expected "));
}

TEST_F(UnsoundRuleTest, UnmaskedDimensionIsNoSum) {
  EXPECT_THAT(
      findIn({"4xf32",
              "nn.reduce max %a dims = [0] : tensor<4xf32> -> "
              "tensor<f32>"},
             "([i]) -> ([]) {i=4} reduced={i}"),
      HasSubstr("with i=4 in 2 blocks of 2: result 0 at []: expected "));
}

TEST_F(UnsoundRuleTest, FalseLinearity) {
  const char* const message = "not linear in the operands given as such";
  EXPECT_THAT(findIn({"4xf32", "math.exp %a : tensor<4xf32>"},
                     "([i]) -> ([i]) {i=4} linear={0}"),
              HasSubstr(message));
  // (a + b) (c + d) is not a c + b d.
  EXPECT_THAT(findIn(kProduct,
                     "([i, k], [k, j]) -> ([i, j]) {i=3, j=5, k=4} "
                     "reduced={k} linear={0, 1}"),
              HasSubstr(message));
  // a + b is not linear in a alone: each shard would add b.
  EXPECT_THAT(findIn({"4xf32, 4xf32", "arith.addf %a, %b : tensor<4xf32>"},
                     "([i], [i]) -> ([i]) {i=4} linear={0}"),
              HasSubstr(message));
}

}  // namespace
}  // namespace partita::nn
