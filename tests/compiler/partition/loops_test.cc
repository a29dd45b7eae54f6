// Divided loops: executed on all devices in step, they equal the undivided one,
// and all devices run the same number of iterations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/partition/spmd_interpreter.h"
#include "compiler/sharding/convert.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "tests/compiler/partition/divided_fixture.h"

namespace partita::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using LoopsTest = DividedTest;

// Halves x until its largest element is at most 0.01. The body holds x divided
// as `inside`.
std::string halving(int rows, const std::string& outside,
                    const std::string& inside) {
  const std::string x = "tensor<" + std::to_string(rows) + "x4xf32>";
  const std::string dims = "#dist.sharding<[" + inside + "]>";
  const std::string one = placed(inside);
  return R"(
func.func private @body(%go: tensor<i1>, %x: )" +
         x + " {dist.sharding = " + dims + "}) -> (tensor<i1>, " + x + R"() {
  %half = arith.constant )" +
         one + " dense<0.5> : " + x + R"(
  %y = arith.mulf %x, %half )" +
         one + " : " + x + R"(
  %z = math.absf %y )" +
         one + " : " + x + R"(
  %m = nn.reduce max %z dims = [0, 1] : )" +
         x + R"( -> tensor<f32>
  %limit = arith.constant dense<0.01> : tensor<f32>
  %again = arith.cmpf ogt, %m, %limit : tensor<f32>
  return %again, %y : tensor<i1>, )" +
         x + R"(
}
func.func @main()" +
         argument("x", std::to_string(rows) + "x4xf32", outside) + ") -> " + x +
         R"( {
  %go = arith.constant dense<true> : tensor<i1>
  %r:2 = nn.loop @body(%go, %x) {dist.shardings = [#dist.sharding<[]>, )" +
         dims + "]} : (tensor<i1>, " + x + ") -> (tensor<i1>, " + x + R"()
  return %r#1 : )" +
         x + "\n}";
}

TEST_F(LoopsTest, RowsStayDividedAndTheConditionIsReduced) {
  divide(R"("d"=2)", halving(8, R"({"d"}, {})", R"({"d"}, {})"));
  EXPECT_THAT(sent_, ElementsAre("all_reduce over d: 4"));
  EXPECT_THAT(text_, HasSubstr("(tensor<i1>, tensor<4x4xf32>)"));
}

TEST_F(LoopsTest, RowsBeyondTheEndDoNotCount) {
  divide(R"("d"=3)", halving(7, R"({"d"}, {})", R"({"d"}, {})"));
  EXPECT_THAT(sent_, ElementsAre("all_reduce over d: 6"));
}

TEST_F(LoopsTest, ALoopOfWholeValuesGathersThemOnce) {
  divide(R"("d"=2)", halving(8, R"({"d"}, {})", "{}, {}"));
  EXPECT_THAT(sent_, ElementsAre("all_gather over d: 64"));
  EXPECT_THAT(text_, HasSubstr("the loop @body takes this value so in every "
                               "iteration"));
}

TEST_F(LoopsTest, ALoopMayDivideWhatIsWholeOutside) {
  divide(R"("d"=2)", halving(8, "{}, {}", R"({}, {"d"})"));
  EXPECT_THAT(text_, HasSubstr("dist.all_slice"));
}

// The product sums over divided columns; its result is divided again.
TEST_F(LoopsTest, ProductsOfDividedColumns) {
  divide(R"("d"=2, "t"=2)", R"(
func.func private @body(%go: tensor<i1>, %i: tensor<i32>,
    %x: tensor<6x4xf32> {dist.sharding = #dist.sharding<[{"d"}, {"t"}]>},
    %w: tensor<4x4xf32> {dist.sharding = #dist.sharding<[{"t"}, {}]>})
    -> (tensor<i1>, tensor<i32>, tensor<6x4xf32>) {
  %y = nn.dot_general %x, %w contract = [1] x [0] {dist.shardings = [#dist.sharding<[{"d"}, {}]>]} : tensor<6x4xf32>, tensor<4x4xf32> -> tensor<6x4xf32>
  %z = math.tanh %y {dist.shardings = [#dist.sharding<[{"d"}, {}]>]} : tensor<6x4xf32>
  %one = arith.constant dense<1> : tensor<i32>
  %n = arith.addi %i, %one : tensor<i32>
  %last = arith.constant dense<4> : tensor<i32>
  %again = arith.cmpi slt, %n, %last : tensor<i32>
  return %again, %n, %z : tensor<i1>, tensor<i32>, tensor<6x4xf32>
}
func.func @main()" + argument("x", "6x4xf32", R"({"d"}, {"t"})") +
                                ", " +
                                argument("w", "4x4xf32", R"({"t"}, {})") +
                                R"() -> tensor<6x4xf32> {
  %go = arith.constant dense<true> : tensor<i1>
  %i = arith.constant dense<0> : tensor<i32>
  %r:3 = nn.loop @body(%go, %i, %x, %w) {dist.shardings = [#dist.sharding<[]>, #dist.sharding<[]>, #dist.sharding<[{"d"}, {"t"}]>]} : (tensor<i1>, tensor<i32>, tensor<6x4xf32>, tensor<4x4xf32>) -> (tensor<i1>, tensor<i32>, tensor<6x4xf32>)
  return %r#2 : tensor<6x4xf32>
})");
  EXPECT_THAT(text_, HasSubstr("dist.all_reduce"));
  EXPECT_THAT(text_, HasSubstr("dist.all_slice"));
}

// A program that no pass makes.
TEST_F(LoopsTest, DevicesMustAgreeOnAnotherIteration) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
dist.mesh @mesh <["d"=2]>
func.func private @body(%go: tensor<i1>) -> tensor<i1> {
  return %go : tensor<i1>
}
func.func @main() -> tensor<i1> {
  %i = dist.coordinate over ["d"] : tensor<i64>
  %zero = arith.constant dense<0> : tensor<i64>
  %first = arith.cmpi eq, %i, %zero : tensor<i64>
  %r = nn.loop @body(%first) : (tensor<i1>) -> tensor<i1>
  return %r : tensor<i1>
})",
                                                        &context_);
  ASSERT_TRUE(module);
  std::string error;
  mlir::ScopedDiagnosticHandler handler(&context_,
                                        [&](mlir::Diagnostic& found) {
                                          if (error.empty())
                                            error = found.str();
                                          return mlir::success();
                                        });
  EXPECT_TRUE(mlir::failed(
      interpretEverywhere(module->lookupSymbol<mlir::func::FuncOp>("main"),
                          *sharding::meshOf(*module), {})));
  EXPECT_THAT(error, HasSubstr("expected devices to agree on another "
                               "iteration, found that they do not"));
}

}  // namespace
}  // namespace partita::partition
