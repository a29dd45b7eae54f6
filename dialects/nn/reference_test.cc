// Tests of references on inputs small enough to check by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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

}  // namespace
}  // namespace partita::nn
