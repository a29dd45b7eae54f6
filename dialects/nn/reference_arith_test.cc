// Tests of arithmetic on elements with known results.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "dialects/nn/interpreter.h"
#include "dialects/nn/interpreter_fixture.h"

namespace partita::nn {
namespace {

using Numbers = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

class ReferenceArithTest : public InterpreterFixture {
 protected:
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

TEST_F(ReferenceArithTest, IntegerArithmeticWrapsAndKnowsSigns) {
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

TEST_F(ReferenceArithTest, WhatHasNoMeaningFails) {
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

TEST_F(ReferenceArithTest, TrueIsMinusOneToSignedArithmetic) {
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

TEST_F(ReferenceArithTest, FloatComparisons) {
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

TEST_F(ReferenceArithTest, FloatExtremesAndSelection) {
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

TEST_F(ReferenceArithTest, ConversionsSaturateAndRound) {
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

TEST_F(ReferenceArithTest, MathFunctions) {
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
