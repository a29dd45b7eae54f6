// Products of ordered rows give what products by index give.
#include <gtest/gtest.h>

#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter_fixture.h"
#include "dialects/nn/ordered.h"

namespace partita::nn {
namespace {

using Numbers = std::vector<double>;

class ReferenceOrderedTest : public InterpreterFixture {
 protected:
  ReferenceOrderedTest() {
    mlir::DialectRegistry registry;
    registerOrderedOperations(registry);
    context_.appendDialectRegistry(registry);
  }
};

// Rows 1 and 3 have no matrix, and no row has matrix 1.
TEST_F(ReferenceOrderedTest, OrderRowsGivesPositionsAndRows) {
  EXPECT_EQ(
      evaluate("%r = nn.order_rows %a matrices = 3 : tensor<5xi64> -> "
               "tensor<10xi32>",
               "tensor<10xi32>", {tensor("tensor<5xi64>", {2, -1, 0, 3, 0})}),
      (Numbers{0, 2, 2, 3, 5, /*rows=*/2, 4, 0, 1, 3}));
}

TEST_F(ReferenceOrderedTest, ProductsEqualThoseByIndex) {
  const std::vector<Tensor> arguments = {
      random(typeFrom("tensor<6x4xf32>")),
      tensor("tensor<6xi64>", {2, 0, -1, 2, 3, 0}),
      random(typeFrom("tensor<3x5x4xf32>")),
      random(typeFrom("tensor<3x4x5xf32>")),
      random(typeFrom("tensor<6x5xf32>"))};
  const std::vector<Numbers> results = run(R"(
func.func @f(%x: tensor<6x4xf32>, %i: tensor<6xi64>, %w: tensor<3x5x4xf32>, %t: tensor<3x4x5xf32>, %g: tensor<6x5xf32>) -> (tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<3x5x4xf32>, tensor<3x5x4xf32>) {
  %o = nn.order_rows %i matrices = 3 : tensor<6xi64> -> tensor<11xi32>
  %0 = nn.grouped_dot %x[%i], %w : tensor<6x4xf32>, tensor<6xi64>, tensor<3x5x4xf32> -> tensor<6x5xf32>
  %1 = nn.ordered_dot %x[%o], %w : tensor<6x4xf32>, tensor<11xi32>, tensor<3x5x4xf32> -> tensor<6x5xf32>
  %2 = nn.grouped_dot %x[%i], %t transposed : tensor<6x4xf32>, tensor<6xi64>, tensor<3x4x5xf32> -> tensor<6x5xf32>
  %3 = nn.ordered_dot %x[%o], %t transposed : tensor<6x4xf32>, tensor<11xi32>, tensor<3x4x5xf32> -> tensor<6x5xf32>
  %4 = nn.grouped_dot_weight_grad %x[%i], %g : tensor<6x4xf32>, tensor<6xi64>, tensor<6x5xf32> -> tensor<3x5x4xf32>
  %5 = nn.ordered_dot_weight_grad %x[%o], %g : tensor<6x4xf32>, tensor<11xi32>, tensor<6x5xf32> -> tensor<3x5x4xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<3x5x4xf32>, tensor<3x5x4xf32>
})",
                                           arguments);
  ASSERT_EQ(results.size(), 6u);
  for (size_t i = 0; i < results.size(); i += 2)
    EXPECT_EQ(results[i], results[i + 1]) << i;
}

}  // namespace
}  // namespace partita::nn
