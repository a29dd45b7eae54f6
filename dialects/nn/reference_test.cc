// Tests of references on inputs small enough to check by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dialects/nn/interpreter.h"
#include "dialects/nn/interpreter_fixture.h"

namespace partita::nn {
namespace {

using Numbers = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

class ReferenceTest : public InterpreterFixture {
 protected:
  // 0, 1, 2 ...
  Tensor count(const std::string& type) {
    Tensor result(typeFrom(type));
    for (int64_t i = 0; i < result.size(); ++i) {
      result.isFloat() ? result.setFloat(i, i) : result.setInt(i, i);
    }
    return result;
  }

  // The interpreter must report that the operation is undefined for its
  // operands.
  void expectNoMeaning(const std::string& body, const std::string& type,
                       const std::vector<Tensor>& arguments) {
    auto module = parse("func.func @f(%a: " + type + ", %b: " + type + ") -> " +
                        type + " {\n" + body + "\nreturn %r : " + type + "\n}");
    std::string message;
    mlir::ScopedDiagnosticHandler handler(
        &context_,
        [&](mlir::Diagnostic& diagnostic) { message = diagnostic.str(); });
    EXPECT_TRUE(
        mlir::failed(interpret(functionNamed(*module, "f"), arguments)));
    EXPECT_NE(message.find("has no meaning"), std::string::npos) << message;
  }
};

TEST_F(ReferenceTest, Broadcast) {
  EXPECT_EQ(
      evaluate(
          "%r = nn.broadcast %a dims = [1] : tensor<2xf32> -> tensor<2x2xf32>",
          "tensor<2x2xf32>", {tensor("tensor<2xf32>", {5, 6})}),
      (Numbers{5, 6, 5, 6}));
  EXPECT_EQ(evaluate("%r = nn.broadcast %a dims = [0, 1] : tensor<2x1xf32> -> "
                     "tensor<2x3xf32>",
                     "tensor<2x3xf32>", {tensor("tensor<2x1xf32>", {5, 6})}),
            (Numbers{5, 5, 5, 6, 6, 6}));
}

TEST_F(ReferenceTest, ReshapeAndTranspose) {
  EXPECT_EQ(evaluate("%r = nn.reshape %a : tensor<2x3xi8> -> tensor<3x2xi8>",
                     "tensor<3x2xi8>", {count("tensor<2x3xi8>")}),
            (Numbers{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(evaluate("%r = nn.transpose %a perm = [2, 0, 1] : tensor<1x2x3xi8> "
                     "-> tensor<3x1x2xi8>",
                     "tensor<3x1x2xi8>", {count("tensor<1x2x3xi8>")}),
            (Numbers{0, 3, 1, 4, 2, 5}));
}

TEST_F(ReferenceTest, SliceForwardsAndBackwards) {
  EXPECT_EQ(evaluate("%r = nn.slice %a starts = [1, 3] strides = [1, -2] : "
                     "tensor<2x4xi8> -> tensor<1x2xi8>",
                     "tensor<1x2xi8>", {count("tensor<2x4xi8>")}),
            (Numbers{7, 5}));
}

TEST_F(ReferenceTest, PadInEachMode) {
  const std::pair<const char*, Numbers> cases[] = {
      {"constant", {9, 9, 0, 1, 2, 9}},
      {"edge", {0, 0, 0, 1, 2, 2}},
      {"reflect", {2, 1, 0, 1, 2, 1}},
      {"wrap", {1, 2, 0, 1, 2, 0}}};
  for (const auto& [mode, expected] : cases) {
    EXPECT_EQ(
        evaluate(
            std::string("%r = nn.pad %a, %b low = [2] high = [1] mode = ") +
                mode + " : tensor<3xi8>, tensor<i8> -> tensor<6xi8>",
            "tensor<6xi8>", {count("tensor<3xi8>"), tensor("tensor<i8>", {9})}),
        expected)
        << mode;
  }
}

TEST_F(ReferenceTest, Concat) {
  EXPECT_EQ(
      evaluate("%r = nn.concat %a, %b axis = 1 : (tensor<2x1xi8>, "
               "tensor<2x2xi8>) -> tensor<2x3xi8>",
               "tensor<2x3xi8>",
               {tensor("tensor<2x1xi8>", {7, 8}), count("tensor<2x2xi8>")}),
      (Numbers{7, 0, 1, 8, 2, 3}));
}

TEST_F(ReferenceTest, GatherClamps) {
  EXPECT_EQ(evaluate("%r = nn.gather %a[%b] axes = [0] : tensor<3x2xi8>, "
                     "tensor<4x1xi32> -> tensor<4x2xi8>",
                     "tensor<4x2xi8>",
                     {count("tensor<3x2xi8>"),
                      tensor("tensor<4x1xi32>", {2, 0, -5, 9})}),
            (Numbers{4, 5, 0, 1, 0, 1, 4, 5}));
}

TEST_F(ReferenceTest, GatherWithBatchAndTwoAxes) {
  EXPECT_EQ(evaluate("%r = nn.gather %a[%b] axes = [1] batch_dims = 1 : "
                     "tensor<2x3xi8>, tensor<2x2x1xi32> -> tensor<2x2xi8>",
                     "tensor<2x2xi8>",
                     {count("tensor<2x3xi8>"),
                      tensor("tensor<2x2x1xi32>", {0, 2, 1, 1})}),
            (Numbers{0, 2, 4, 4}));
  // Axes out of order: entry 0 selects the column.
  EXPECT_EQ(evaluate("%r = nn.gather %a[%b] axes = [1, 0] : tensor<2x3xi8>, "
                     "tensor<2x2xi32> -> tensor<2xi8>",
                     "tensor<2xi8>",
                     {count("tensor<2x3xi8>"),
                      tensor("tensor<2x2xi32>", {2, 0, 0, 1})}),
            (Numbers{2, 3}));
}

TEST_F(ReferenceTest, ScatterOfEachKindDropsWhatIsOutside) {
  const std::pair<const char*, Numbers> cases[] = {{"set", {30, 1, 20}},
                                                   {"add", {40, 1, 22}},
                                                   {"mul", {0, 1, 40}},
                                                   {"max", {30, 1, 20}},
                                                   {"min", {0, 1, 2}}};
  for (const auto& [kind, expected] : cases) {
    EXPECT_EQ(
        evaluate(
            std::string("%r = nn.scatter %a[%b], %c axes = [0] kind = ") +
                kind +
                " : tensor<3xf32>, tensor<4x1xi64>, tensor<4xf32> -> "
                "tensor<3xf32>",
            "tensor<3xf32>",
            {count("tensor<3xf32>"), tensor("tensor<4x1xi64>", {0, 2, 0, 3}),
             tensor("tensor<4xf32>", {10, 20, 30, 40})}),
        expected)
        << kind;
  }
}

TEST_F(ReferenceTest, Iota) {
  EXPECT_EQ(
      evaluate("%r = nn.iota dim = 1 : tensor<2x3xf32>", "tensor<2x3xf32>", {}),
      (Numbers{0, 1, 2, 0, 1, 2}));
}

TEST_F(ReferenceTest, TopKKeepsTheOrderOfEquals) {
  const Tensor input = tensor("tensor<1x5xf32>", {2, 7, 2, 7, 1});
  for (const auto& [largest, values, indices] :
       {std::tuple("true", Numbers{7, 7, 2}, Numbers{1, 3, 0}),
        std::tuple("false", Numbers{1, 2, 2}, Numbers{4, 0, 2})}) {
    const auto results =
        run(std::string("func.func @f(%x: tensor<1x5xf32>) -> "
                        "(tensor<1x3xf32>, tensor<1x3xi64>) {\n"
                        "%v, %i = nn.top_k %x largest = ") +
                largest +
                " : tensor<1x5xf32> -> tensor<1x3xf32>, tensor<1x3xi64>\n"
                "return %v, %i : tensor<1x3xf32>, tensor<1x3xi64>\n}",
            {input});
    EXPECT_EQ(results, (std::vector<Numbers>{values, indices}));
  }
}

TEST_F(ReferenceTest, DotGeneral) {
  EXPECT_EQ(evaluate("%r = nn.dot_general %a, %b contract = [1] x [0] : "
                     "tensor<2x2xi8>, tensor<2x2xi8> -> tensor<2x2xi8>",
                     "tensor<2x2xi8>",
                     {tensor("tensor<2x2xi8>", {1, 2, 3, 4}),
                      tensor("tensor<2x2xi8>", {5, 6, 7, 8})}),
            (Numbers{19, 22, 43, 50}));
  // The batch dimension is last on the left and first on the right: [row, k,
  // batch] x [batch, column, k].
  EXPECT_EQ(evaluate("%r = nn.dot_general %a, %b batch = [2] x [0] contract = "
                     "[1] x [2] : tensor<1x2x2xf32>, "
                     "tensor<2x1x2xf32> -> tensor<2x1x1xf32>",
                     "tensor<2x1x1xf32>",
                     {tensor("tensor<1x2x2xf32>", {1, 2, 3, 4}),
                      tensor("tensor<2x1x2xf32>", {5, 6, 7, 8})}),
            (Numbers{1 * 5 + 3 * 6, 2 * 7 + 4 * 8}));
}

TEST_F(ReferenceTest, ConvWithStrideAndPadding) {
  // 1 2 3 / 4 5 6 / 7 8 9 with a border of zeros, under [[1, 0], [0, 1]].
  EXPECT_EQ(
      evaluate(
          "%r = nn.conv %a, %b strides = [2, 2] dilations = [1, 1] low = [1, "
          "1] high = [0, 0] groups = 1 : "
          "tensor<1x1x3x3xf32>, tensor<1x1x2x2xf32> -> tensor<1x1x2x2xf32>",
          "tensor<1x1x2x2xf32>",
          {tensor("tensor<1x1x3x3xf32>", {1, 2, 3, 4, 5, 6, 7, 8, 9}),
           tensor("tensor<1x1x2x2xf32>", {1, 0, 0, 1})}),
      (Numbers{1, 3, 7, 5 + 9}));
}

TEST_F(ReferenceTest, ConvInGroupsDilated) {
  // Two channels, each with its own filter [1, 10] and dilation 2.
  EXPECT_EQ(
      evaluate("%r = nn.conv %a, %b strides = [1] dilations = [2] low = [0] "
               "high = [0] groups = 2 : "
               "tensor<1x2x4xf32>, tensor<2x1x2xf32> -> tensor<1x2x2xf32>",
               "tensor<1x2x2xf32>",
               {count("tensor<1x2x4xf32>"),
                tensor("tensor<2x1x2xf32>", {1, 10, 1, 100})}),
      (Numbers{20, 31, 604, 705}));
}

TEST_F(ReferenceTest, ConvWithChannelsLastIsTheSameTransposed) {
  const std::vector<Tensor> arguments = {
      random(typeFrom("tensor<2x4x5x6xf32>")),
      random(typeFrom("tensor<6x2x3x2xf32>"))};
  const std::string attributes =
      " strides = [1, 2] dilations = [1, 1] low = [1, 0] high = [1, 1] groups "
      "= 2";
  const auto results = run(
      "func.func @f(%x: tensor<2x4x5x6xf32>, %w: tensor<6x2x3x2xf32>) -> "
      "(tensor<2x6x5x3xf32>, tensor<2x6x5x3xf32>) {\n"
      "%0 = nn.conv %x, %w" +
          attributes +
          " : tensor<2x4x5x6xf32>, tensor<6x2x3x2xf32> -> tensor<2x6x5x3xf32>\n"
          "%1 = nn.transpose %x perm = [0, 2, 3, 1] : tensor<2x4x5x6xf32> -> "
          "tensor<2x5x6x4xf32>\n"
          "%2 = nn.conv %1, %w" +
          attributes +
          " channels_last : tensor<2x5x6x4xf32>, tensor<6x2x3x2xf32> -> "
          "tensor<2x5x3x6xf32>\n"
          "%3 = nn.transpose %2 perm = [0, 3, 1, 2] : tensor<2x5x3x6xf32> -> "
          "tensor<2x6x5x3xf32>\n"
          "return %0, %3 : tensor<2x6x5x3xf32>, tensor<2x6x5x3xf32>\n}",
      arguments);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0], results[1]);
}

TEST_F(ReferenceTest, ReduceOfEachKind) {
  const std::pair<const char*, Numbers> cases[] = {
      {"sum", {3, 12}}, {"prod", {0, 60}}, {"max", {2, 5}}, {"min", {0, 3}}};
  for (const auto& [kind, expected] : cases) {
    for (const char* type : {"f32", "i32"}) {
      const std::string in = std::string("tensor<2x3x") + type + ">",
                        out = std::string("tensor<2x") + type + ">";
      EXPECT_EQ(evaluate(std::string("%r = nn.reduce ") + kind +
                             " %a dims = [1] : " + in + " -> " + out,
                         out, {count(in)}),
                expected)
          << kind;
    }
  }
}

TEST_F(ReferenceTest, ReduceOfNothingIsNeutral) {
  const std::pair<const char*, Numbers> floats[] = {
      {"sum", {0}}, {"prod", {1}}, {"max", {-kInfinity}}, {"min", {kInfinity}}};
  const std::pair<const char*, Numbers> bytes[] = {
      {"sum", {0}}, {"prod", {1}}, {"max", {-128}}, {"min", {127}}};
  const std::pair<const char*, Numbers> bools[] = {{"max", {0}}, {"min", {1}}};
  const auto check = [&](const std::string& element, const auto& cases) {
    for (const auto& [kind, expected] : cases) {
      EXPECT_EQ(evaluate("%r = nn.reduce " + std::string(kind) +
                             " %a dims = [0] : tensor<0x" + element +
                             "> -> tensor<" + element + ">",
                         "tensor<" + element + ">",
                         {count("tensor<0x" + element + ">")}),
                expected)
          << kind << element;
    }
  };
  check("f32", floats);
  check("i8", bytes);
  check("i1", bools);
}

TEST_F(ReferenceTest, ReduceMaxKeepsNan) {
  const Numbers found = evaluate(
      "%r = nn.reduce max %a dims = [1] : tensor<2x2xf32> -> tensor<2xf32>",
      "tensor<2xf32>", {tensor("tensor<2x2xf32>", {kNan, 1, 1, kNan})});
  EXPECT_TRUE(std::isnan(found[0]) && std::isnan(found[1]));
}

TEST_F(ReferenceTest, ReduceWindow) {
  EXPECT_EQ(evaluate("%r = nn.reduce_window max %a window = [3] strides = [2] "
                     "dilations = [1] low = [1] high = [1] : "
                     "tensor<5xf32> -> tensor<3xf32>",
                     "tensor<3xf32>",
                     {tensor("tensor<5xf32>", {-5, -3, -4, -1, -2})}),
            (Numbers{-3, -1, -1}));
  EXPECT_EQ(evaluate("%r = nn.reduce_window sum %a window = [2] strides = [1] "
                     "dilations = [2] low = [0] high = [0] : "
                     "tensor<4xf32> -> tensor<2xf32>",
                     "tensor<2xf32>", {count("tensor<4xf32>")}),
            (Numbers{2, 4}));
}

// All scores are equal, so results are means of the visible values, and lse is
// the logarithm of their number.
// Uniform weights: a result is the mean of the values that a query sees.
TEST_F(ReferenceTest, AttentionSinksAndBlocks) {
  const std::string four = "tensor<1x1x4x1xf32>";
  const auto attend = [&](const std::string& attributes) {
    return evaluate(
        "%r = nn.attention %a, %a, %b scale = 1.0 " + attributes + " : (" +
            four + ", " + four + ", " + four + ") -> " + four,
        four, {tensor(four, {0, 0, 0, 0}), tensor(four, {1, 2, 4, 8})});
  };
  EXPECT_EQ(attend("causal_offset = 0 window = 1 sinks = 1"),
            (Numbers{1, 1.5, 2.5, 4.5}));
  EXPECT_EQ(attend("blocks = dense<[[[0, 1], [1, 0]]]> : tensor<1x2x2xi1> "
                   "block_size = 2"),
            (Numbers{6, 6, 1.5, 1.5}));
  EXPECT_EQ(attend("causal_offset = 0 blocks = dense<[[[1, 0, 0, 0], [0, 1, "
                   "0, 0], [1, 0, 1, 1], [0, 0, 0, 0]]]> : tensor<1x4x4xi1> "
                   "block_size = 1"),
            (Numbers{1, 2, 2.5, 0}));
}

TEST_F(ReferenceTest, AttentionMasks) {
  const std::string four = "tensor<1x1x4x1xf32>", segment = "tensor<1x4xi32>";
  const std::vector<Tensor> arguments = {
      tensor(four, {0, 0, 0, 0}),    tensor(four, {1, 2, 3, 4}),
      tensor("tensor<i64>", {1}),    tensor(segment, {5, 5, 9, 9}),
      tensor(segment, {5, 5, 5, 9}),
  };
  const auto attend = [&](const std::string& operands,
                          const std::string& attributes,
                          const std::string& types, bool wants_lse) {
    return evaluate(std::string(wants_lse ? "%y, %r" : "%r, %lse") +
                        " = nn.attention %a, %a, %b " + operands +
                        " scale = 1.0 " + attributes + " : (" + four + ", " +
                        four + ", " + four + types + ") -> (" + four +
                        ", tensor<1x1x4xf32>)",
                    wants_lse ? "tensor<1x1x4xf32>" : four, arguments);
  };
  const std::string window = "causal_offset = 0 window = 2";
  EXPECT_EQ(attend("", window, "", false), (Numbers{1, 1.5, 2.5, 3.5}));
  const Numbers lse = attend("", window, "", true);
  EXPECT_EQ(lse[0], 0);
  EXPECT_NEAR(lse[3], std::log(2), 1e-6);
  EXPECT_EQ(attend("shift(%c)", "causal_offset = -1 window = 3",
                   ", tensor<i64>", false),
            (Numbers{1, 1.5, 2, 3}));
  EXPECT_EQ(
      attend("segments(%d, %e)", "", ", " + segment + ", " + segment, false),
      (Numbers{2, 2, 4, 4}));
  // Query 2 sees no key.
  EXPECT_EQ(attend("segments(%d, %e)", "causal_offset = 0",
                   ", " + segment + ", " + segment, true)[2],
            -kInfinity);
}

TEST_F(ReferenceTest, SoftmaxAndNorms) {
  const Numbers softmax =
      evaluate("%r = nn.softmax %a axis = 0 : tensor<2xf64>", "tensor<2xf64>",
               {tensor("tensor<2xf64>", {0, std::log(3)})});
  EXPECT_NEAR(softmax[0], 0.25, 1e-15);
  EXPECT_NEAR(softmax[1], 0.75, 1e-15);
  EXPECT_EQ(evaluate("%r = nn.layer_norm %a scale(%b : tensor<2xf32>) bias(%c "
                     ": tensor<2xf32>) axis = 0 epsilon = 0.0 : tensor<2xf32>",
                     "tensor<2xf32>",
                     {tensor("tensor<2xf32>", {1, 5}),
                      tensor("tensor<2xf32>", {2, 3}),
                      tensor("tensor<2xf32>", {10, 20})}),
            (Numbers{8, 23}));
  EXPECT_EQ(
      evaluate("%r = nn.rms_norm %a axis = 0 epsilon = 0.0 : tensor<4xf32>",
               "tensor<4xf32>", {tensor("tensor<4xf32>", {2, -2, 2, 2})}),
      (Numbers{1, -1, 1, 1}));
  EXPECT_EQ(
      evaluate(
          "%r = nn.batch_norm %a, %b, %c, %d, %e feature = 0 epsilon = 0.0 : "
          "(tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, "
          "tensor<2xf32>) -> tensor<2xf32>",
          "tensor<2xf32>",
          {tensor("tensor<2xf32>", {5, 7}), tensor("tensor<2xf32>", {1, 10}),
           tensor("tensor<2xf32>", {0, 1}), tensor("tensor<2xf32>", {1, 2}),
           tensor("tensor<2xf32>", {4, 25})}),
      (Numbers{2, 11}));
}

TEST_F(ReferenceTest, CrossEntropyOfEvenLogits) {
  const Numbers found = evaluate(
      "%r = nn.cross_entropy %a, %b ignore_index = 1 : tensor<2x4xf32>, "
      "tensor<2xi64> -> tensor<2xf32>",
      "tensor<2xf32>",
      {tensor("tensor<2x4xf32>", Numbers(8, 5)),
       tensor("tensor<2xi64>", {3, 1})});
  EXPECT_NEAR(found[0], std::log(4), 1e-7);
  EXPECT_EQ(found[1], 0);
}

TEST_F(ReferenceTest, DequantizeReadsLowBitsFirst) {
  // 0x81 and 0xf0 as signed bytes.
  const Tensor packed = tensor("tensor<2x1xi8>", {-127, -16}),
               scale = tensor("tensor<2xf32>", {2, -0.5});
  EXPECT_EQ(evaluate("%r = nn.dequantize %a scale(%b) : (tensor<2x1xi8>, "
                     "tensor<2xf32>) -> tensor<2x2xf32>",
                     "tensor<2x2xf32>", {packed, scale}),
            (Numbers{-14, 0, 4, -3.5}));
  EXPECT_EQ(
      evaluate("%r = nn.dequantize %a scale(%b) zero(%c) : (tensor<2x1xi8>, "
               "tensor<2xf32>, tensor<2xi8>) -> tensor<2x2xf32>",
               "tensor<2x2xf32>",
               {packed, scale, tensor("tensor<2xi8>", {0, 15})}),
      (Numbers{2, 16, 7.5, 0}));
}

TEST_F(ReferenceTest, IntegerArithmeticWrapsAndKnowsSigns) {
  const Tensor a = tensor("tensor<3xi8>", {127, -128, -7}),
               b = tensor("tensor<3xi8>", {1, 2, 2});
  const std::pair<const char*, Numbers> cases[] = {
      {"addi", {-128, -126, -5}},     {"muli", {127, 0, -14}},
      {"divsi", {127, -64, -3}},      {"divui", {127, 64, 124}},
      {"floordivsi", {127, -64, -4}}, {"ceildivsi", {127, -64, -3}},
      {"remsi", {0, 0, -1}},          {"remui", {0, 0, 1}},
      {"maxsi", {127, 2, 2}},         {"maxui", {127, -128, -7}},
      {"shrsi", {63, -32, -2}},       {"shrui", {63, 32, 62}},
      {"shli", {-2, 0, -28}},         {"xori", {126, -126, -5}}};
  for (const auto& [op, expected] : cases) {
    EXPECT_EQ(
        evaluate(std::string("%r = arith.") + op + " %a, %b : tensor<3xi8>",
                 "tensor<3xi8>", {a, b}),
        expected)
        << op;
  }
}

TEST_F(ReferenceTest, WhatHasNoMeaningFails) {
  const Tensor lowest = tensor("tensor<1xi8>", {-128}),
               zero = tensor("tensor<1xi8>", {0}),
               minus = tensor("tensor<1xi8>", {-1});
  for (const char* op :
       {"divsi", "divui", "remsi", "remui", "floordivsi", "ceildivui"}) {
    expectNoMeaning(std::string("%r = arith.") + op + " %a, %b : tensor<1xi8>",
                    "tensor<1xi8>", {lowest, zero});
  }
  expectNoMeaning("%r = arith.divsi %a, %b : tensor<1xi8>", "tensor<1xi8>",
                  {lowest, minus});
  expectNoMeaning("%r = arith.shli %a, %b : tensor<1xi8>", "tensor<1xi8>",
                  {lowest, tensor("tensor<1xi8>", {8})});
  expectNoMeaning("%r = math.ipowi %a, %b : tensor<1xi8>", "tensor<1xi8>",
                  {zero, minus});
}

TEST_F(ReferenceTest, TrueIsMinusOneToSignedArithmetic) {
  const Tensor a = tensor("tensor<2xi1>", {1, 0}),
               b = tensor("tensor<2xi1>", {0, 0});
  EXPECT_EQ(evaluate("%r = arith.cmpi slt, %a, %b : tensor<2xi1>",
                     "tensor<2xi1>", {a, b}),
            (Numbers{1, 0}));
  EXPECT_EQ(evaluate("%r = arith.cmpi ugt, %a, %b : tensor<2xi1>",
                     "tensor<2xi1>", {a, b}),
            (Numbers{1, 0}));
  EXPECT_EQ(evaluate("%r = arith.extsi %a : tensor<2xi1> to tensor<2xi32>",
                     "tensor<2xi32>", {a}),
            (Numbers{-1, 0}));
  EXPECT_EQ(evaluate("%r = arith.extui %a : tensor<2xi1> to tensor<2xi32>",
                     "tensor<2xi32>", {a}),
            (Numbers{1, 0}));
  EXPECT_EQ(evaluate("%r = arith.uitofp %a : tensor<2xi1> to tensor<2xf32>",
                     "tensor<2xf32>", {a}),
            (Numbers{1, 0}));
}

TEST_F(ReferenceTest, FloatComparisons) {
  const Tensor a = tensor("tensor<4xf32>", {1, 2, 3, kNan}),
               b = tensor("tensor<4xf32>", {2, 2, 2, 2});
  const std::pair<const char*, Numbers> cases[] = {
      {"false", {0, 0, 0, 0}}, {"oeq", {0, 1, 0, 0}}, {"ogt", {0, 0, 1, 0}},
      {"oge", {0, 1, 1, 0}},   {"olt", {1, 0, 0, 0}}, {"ole", {1, 1, 0, 0}},
      {"one", {1, 0, 1, 0}},   {"ord", {1, 1, 1, 0}}, {"ueq", {0, 1, 0, 1}},
      {"ugt", {0, 0, 1, 1}},   {"uge", {0, 1, 1, 1}}, {"ult", {1, 0, 0, 1}},
      {"ule", {1, 1, 0, 1}},   {"une", {1, 0, 1, 1}}, {"uno", {0, 0, 0, 1}},
      {"true", {1, 1, 1, 1}}};
  for (const auto& [predicate, expected] : cases) {
    EXPECT_EQ(evaluate(std::string("%r = arith.cmpf ") + predicate +
                           ", %a, %b : tensor<4xf32>",
                       "tensor<4xi1>", {a, b}),
              expected)
        << predicate;
  }
}

TEST_F(ReferenceTest, FloatExtremesAndSelection) {
  const Tensor a = tensor("tensor<3xf32>", {1, kNan, -0.0}),
               b = tensor("tensor<3xf32>", {2, 5, 0.0});
  const Numbers maximum = evaluate("%r = arith.maximumf %a, %b : tensor<3xf32>",
                                   "tensor<3xf32>", {a, b});
  EXPECT_TRUE(maximum[0] == 2 && std::isnan(maximum[1]) &&
              !std::signbit(maximum[2]));
  const Numbers minimum = evaluate("%r = arith.minimumf %a, %b : tensor<3xf32>",
                                   "tensor<3xf32>", {a, b});
  EXPECT_TRUE(minimum[0] == 1 && std::isnan(minimum[1]) &&
              std::signbit(minimum[2]));
  EXPECT_EQ(evaluate("%r = arith.maxnumf %a, %b : tensor<3xf32>",
                     "tensor<3xf32>", {a, b}),
            (Numbers{2, 5, 0}));
  EXPECT_EQ(
      evaluate("%r = arith.select %c, %a, %b : tensor<3xi1>, tensor<3xf32>",
               "tensor<3xf32>",
               {b, tensor("tensor<3xf32>", {7, 8, 9}),
                tensor("tensor<3xi1>", {1, 0, 1})}),
      (Numbers{2, 8, 0}));
}

TEST_F(ReferenceTest, ConversionsSaturateAndRound) {
  EXPECT_EQ(evaluate("%r = arith.fptosi %a : tensor<4xf32> to tensor<4xi8>",
                     "tensor<4xi8>",
                     {tensor("tensor<4xf32>", {-2.9, 300, -kInfinity, kNan})}),
            (Numbers{-2, 127, -128, 0}));
  EXPECT_EQ(evaluate("%r = arith.fptoui %a : tensor<3xf32> to tensor<3xi8>",
                     "tensor<3xi8>", {tensor("tensor<3xf32>", {200, 300, -5})}),
            (Numbers{-56, -1, 0}));
  EXPECT_EQ(
      evaluate("%r = arith.truncf %a : tensor<2xf32> to tensor<2xbf16>",
               "tensor<2xbf16>", {tensor("tensor<2xf32>", {1.00390625, 3.0})}),
      (Numbers{1, 3}));
  EXPECT_EQ(evaluate("%r = arith.bitcast %a : tensor<1xf32> to tensor<1xi32>",
                     "tensor<1xi32>", {tensor("tensor<1xf32>", {1})}),
            (Numbers{0x3F800000}));
}

TEST_F(ReferenceTest, MathFunctions) {
  const Tensor half = tensor("tensor<1xf64>", {0.5});
  const std::pair<const char*, double> cases[] = {{"exp", std::exp(0.5)},
                                                  {"log", std::log(0.5)},
                                                  {"log1p", std::log1p(0.5)},
                                                  {"expm1", std::expm1(0.5)},
                                                  {"sqrt", std::sqrt(0.5)},
                                                  {"rsqrt", 1 / std::sqrt(0.5)},
                                                  {"tanh", std::tanh(0.5)},
                                                  {"erf", std::erf(0.5)},
                                                  {"sin", std::sin(0.5)},
                                                  {"acos", std::acos(0.5)},
                                                  {"asinh", std::asinh(0.5)},
                                                  {"cbrt", std::cbrt(0.5)},
                                                  {"roundeven", 0.0},
                                                  {"round", 1.0},
                                                  {"floor", 0.0},
                                                  {"ceil", 1.0}};
  for (const auto& [op, expected] : cases) {
    EXPECT_EQ(evaluate(std::string("%r = math.") + op + " %a : tensor<1xf64>",
                       "tensor<1xf64>", {half}),
              Numbers{expected})
        << op;
  }
  EXPECT_EQ(evaluate("%s, %c = math.sincos %a : tensor<1xf64>\n"
                     "%r = nn.concat %s, %c axis = 0 : (tensor<1xf64>, "
                     "tensor<1xf64>) -> tensor<2xf64>",
                     "tensor<2xf64>", {half}),
            (Numbers{std::sin(0.5), std::cos(0.5)}));
  EXPECT_EQ(evaluate("%r = math.ipowi %a, %b : tensor<3xi32>", "tensor<3xi32>",
                     {tensor("tensor<3xi32>", {3, -1, 2}),
                      tensor("tensor<3xi32>", {4, -3, -1})}),
            (Numbers{81, -1, 0}));
}

}  // namespace
}  // namespace partita::nn
