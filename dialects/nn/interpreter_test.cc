// Tests of the interpreter: calls, values with several uses, refusals.
#include "dialects/nn/interpreter.h"

#include <gtest/gtest.h>

#include "dialects/nn/interpreter_fixture.h"

namespace partita::nn {
namespace {

class InterpreterTest : public InterpreterFixture {
 protected:
  std::string errorOf(const std::string& text,
                      const std::vector<Tensor>& arguments) {
    auto module = parse(text);
    std::string message;
    mlir::ScopedDiagnosticHandler handler(
        &context_,
        [&](mlir::Diagnostic& diagnostic) { message += diagnostic.str(); });
    EXPECT_TRUE(
        mlir::failed(interpret(functionNamed(*module, "f"), arguments)));
    return message;
  }
};

TEST_F(InterpreterTest, FollowsCallsAndReturnsAnyValue) {
  EXPECT_EQ(run(R"(
    func.func @f(%x: tensor<2xf32>, %unused: tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
      %0 = call @double(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = call @double(%0) : (tensor<2xf32>) -> tensor<2xf32>
      return %1, %x, %1 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    }
    func.func private @double(%x: tensor<2xf32>) -> tensor<2xf32> {
      %dead = arith.mulf %x, %x : tensor<2xf32>
      %0 = arith.addf %x, %x : tensor<2xf32>
      return %0 : tensor<2xf32>
    })",
                {tensor("tensor<2xf32>", {1, 2}), tensor("tensor<f32>", {0})}),
            (std::vector<std::vector<double>>{{4, 8}, {1, 2}, {4, 8}}));
}

TEST_F(InterpreterTest, RefusesWhatItCannotRun) {
  const Tensor x = tensor("tensor<1xi8>", {1});
  const std::string head = "func.func @f(%x: tensor<1xi8>) -> tensor<1xi8> {\n",
                    tail = "\nreturn %r : tensor<1xi8>\n}\n";
  EXPECT_EQ(
      errorOf(head + "%r = call @g(%x) : (tensor<1xi8>) -> tensor<1xi8>" +
                  tail + "func.func private @g(tensor<1xi8>) -> tensor<1xi8>",
              {x}),
      "'func.call' op expected a callee with a body to interpret, found @g");
  EXPECT_EQ(
      errorOf(head +
                  "%c = func.constant @f : (tensor<1xi8>) -> tensor<1xi8>\n"
                  "%r = call_indirect %c(%x) : (tensor<1xi8>) -> tensor<1xi8>" +
                  tail,
              {x}),
      "'func.constant' op expected an operation with a reference "
      "implementation to interpret");
  EXPECT_EQ(
      errorOf(head + "%r = call @f(%x) : (tensor<1xi8>) -> tensor<1xi8>" + tail,
              {x}),
      "'func.func' op expected calls at most 1000 deep, found more: a "
      "recursion");
  EXPECT_EQ(errorOf("func.func @f(%x: tensor<1xi8>) { return }",
                    {tensor("tensor<2xi8>", {1, 2})}),
            "'func.func' op expected arguments of types ('tensor<1xi8>'), "
            "found ('tensor<2xi8>')");
}

}  // namespace
}  // namespace partita::nn
