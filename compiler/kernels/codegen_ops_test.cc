// Compares every operation of arith and math, on every type it takes, with the
// interpreter.
#include <gtest/gtest.h>

#include "compiler/kernels/codegen_fixture.h"

namespace partita::kernels {
namespace {

struct Case {
  std::string op;
  std::string from, to;  // element types of operands and result
  int operands;
  bool names_both;  // the operation is written with both types
};

void PrintTo(const Case& test, std::ostream* out) {
  *out << test.op << " " << test.from;
}

double toleranceOf(const std::string& type) {
  if (type == "f64") return 1e-12;
  if (type == "f32") return 2e-6;
  return type == "f16" ? 2e-3 : 1e-2;
}

class EveryOp : public testing::TestWithParam<Case> {};

TEST_P(EveryOp, EqualsTheInterpreter) {
  const Case& test = GetParam();
  std::string from = "tensor<3x21x" + test.from + ">",
              to = "tensor<3x21x" + test.to + ">";
  std::string arguments, names;
  for (int i = 0; i < test.operands; ++i) {
    std::string name = "%a" + std::to_string(i);
    arguments += (i ? ", " : "") + name + ": " + from;
    names += (i ? ", " : "") + name;
  }
  std::string types = test.names_both ? from + " to " + to : from;
  std::string text = "func.func @k(" + arguments + ") -> " + to +
                     " { %r = " + test.op + " " + names + " : " + types +
                     " return %r : " + to + " }";
  SCOPED_TRACE(text);
  std::unique_ptr<CompiledKernel> kernel = CompiledKernel::fromText(text);
  ASSERT_NE(kernel, nullptr);
  double tolerance = std::max(toleranceOf(test.from), toleranceOf(test.to));
  EXPECT_EQ(kernel->difference(tolerance, tolerance), "");
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  for (std::string type : {"f32", "f64", "bf16", "f16"}) {
    for (std::string op :
         {"absf",  "acos",  "acosh", "asin",  "asinh",     "atan",
          "atanh", "cbrt",  "ceil",  "cos",   "cosh",      "erf",
          "erfc",  "exp",   "exp2",  "expm1", "floor",     "log",
          "log10", "log1p", "log2",  "round", "roundeven", "rsqrt",
          "sin",   "sinh",  "sqrt",  "tan",   "tanh",      "trunc"})
      cases.push_back({"math." + op, type, type, 1, false});
    for (std::string op : {"isfinite", "isinf", "isnan"})
      cases.push_back({"math." + op, type, "i1", 1, false});
    for (std::string op : {"atan2", "copysign", "powf"})
      cases.push_back({"math." + op, type, type, 2, false});
    cases.push_back({"math.fma", type, type, 3, false});
    cases.push_back({"arith.negf", type, type, 1, false});
    for (std::string op : {"addf", "subf", "mulf", "divf", "remf", "maximumf",
                           "minimumf", "maxnumf", "minnumf"})
      cases.push_back({"arith." + op, type, type, 2, false});
    for (std::string predicate : {"oeq", "ogt", "ole", "une", "uno", "ult"})
      cases.push_back({"arith.cmpf " + predicate + ",", type, "i1", 2, false});
    for (std::string integer : {"i8", "i32", "i64"}) {
      cases.push_back({"arith.sitofp", integer, type, 1, true});
      cases.push_back({"arith.uitofp", integer, type, 1, true});
      cases.push_back({"arith.fptosi", type, integer, 1, true});
    }
    cases.push_back({"arith.uitofp", "i1", type, 1, true});
  }
  for (std::string type : {"i1", "i8", "i16", "i32", "i64"}) {
    for (std::string op : {"addi", "subi", "muli", "andi", "ori", "xori",
                           "maxsi", "maxui", "minsi", "minui"})
      cases.push_back({"arith." + op, type, type, 2, false});
    for (std::string predicate : {"eq", "slt", "uge"})
      cases.push_back({"arith.cmpi " + predicate + ",", type, "i1", 2, false});
    if (type == "i1") continue;
    cases.push_back({"math.ipowi", type, type, 2, false});
    for (std::string op : {"ctlz", "cttz", "ctpop", "absi"})
      cases.push_back({"math." + op, type, type, 1, false});
    for (std::string op : {"shli", "shrui", "shrsi"}) {
      if (type != "i8") cases.push_back({"arith." + op, type, type, 2, false});
    }
  }
  const char* const kCasts[][3] = {
      {"arith.extf", "f32", "f64"},     {"arith.extf", "bf16", "f32"},
      {"arith.truncf", "f64", "f16"},   {"arith.truncf", "f32", "bf16"},
      {"arith.extsi", "i8", "i32"},     {"arith.extui", "i1", "i64"},
      {"arith.trunci", "i64", "i8"},    {"arith.bitcast", "f64", "i64"},
      {"arith.bitcast", "i16", "bf16"}, {"arith.fptoui", "f32", "i8"}};
  for (auto& cast : kCasts)
    cases.push_back({cast[0], cast[1], cast[2], 1, true});
  return cases;
}

TEST(Sincos, EqualsTheInterpreter) {
  for (const std::string type : {"f32", "f64", "bf16", "f16"}) {
    const std::string tensor = "tensor<3x21x" + type + ">";
    const std::string text =
        "func.func @k(%a: " + tensor + ") -> (" + tensor + ", " + tensor +
        ") { %s, %c = math.sincos %a : " + tensor +
        " return %s, %c : " + tensor + ", " + tensor + " }";
    std::unique_ptr<CompiledKernel> kernel = CompiledKernel::fromText(text);
    ASSERT_NE(kernel, nullptr) << type;
    EXPECT_EQ(kernel->difference(toleranceOf(type), toleranceOf(type)), "")
        << type;
  }
}

// Results are exact, also on processors without an instruction for it.
TEST(Rounding, ToBf16EqualsTheInterpreter) {
  const std::string text = R"(func.func @k(%a: tensor<3x77xf32>,
      %b: tensor<3x77xf64>, %c: tensor<3x77xbf16>, %i: tensor<3x77xi32>)
      -> (tensor<3x77xbf16>, tensor<3x77xbf16>, tensor<3x77xbf16>,
          tensor<3x77xbf16>) {
    %x = arith.truncf %a : tensor<3x77xf32> to tensor<3x77xbf16>
    %y = arith.truncf %b : tensor<3x77xf64> to tensor<3x77xbf16>
    %z = arith.mulf %c, %c : tensor<3x77xbf16>
    %w = arith.sitofp %i : tensor<3x77xi32> to tensor<3x77xbf16>
    return %x, %y, %z, %w : tensor<3x77xbf16>, tensor<3x77xbf16>,
        tensor<3x77xbf16>, tensor<3x77xbf16> })";
  std::vector<std::string> processors = {"host"};
#ifdef __x86_64__
  processors.push_back("x86-64-v3");
#endif
  for (const std::string& processor : processors) {
    ObjectOptions object;
    object.cpu = processor;
    std::unique_ptr<CompiledKernel> kernel = CompiledKernel::fromText(
        text, hostCodegenOptions(), /*flat=*/false, nullptr, object);
    ASSERT_NE(kernel, nullptr) << processor;
    EXPECT_EQ(kernel->difference(0, 0), "") << processor;
  }
}

std::string nameOf(const testing::TestParamInfo<Case>& info) {
  std::string name =
      info.param.op + "_" + info.param.from + "_" + info.param.to;
  for (char& c : name)
    if (!isalnum(c)) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(ArithAndMath, EveryOp, testing::ValuesIn(allCases()),
                         nameOf);

}  // namespace
}  // namespace partita::kernels
