#include "frontends/stablehlo/find_weights.h"

#include "dialects/nn/dialect.h"
#include "dialects/nn/weight_mark.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

namespace partita::stablehlo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The names of the inputs that markWeights marks, of a function with this text.
std::vector<std::string> WeightsOf(const std::string& arguments,
                                   const std::string& body) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<nn::NNDialect, mlir::arith::ArithDialect,
                      mlir::func::FuncDialect>();
  const mlir::OwningOpRef<mlir::ModuleOp> parsed =
      mlir::parseSourceString<mlir::ModuleOp>(
          "func.func @main(" + arguments + ") {\n" + body + "\nreturn\n}",
          &context);
  mlir::ModuleOp module = *parsed;
  EXPECT_TRUE(module);
  std::vector<std::string> names;
  if (!module) return names;
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  markWeights(main);
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    if (main.getArgAttr(i, nn::kWeightAttr))
      names.push_back(
          main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr).str());
  return names;
}

std::string Input(const std::string& name, const std::string& type) {
  return "%" + name + ": tensor<" + type + "> {nn.kind = \"input\", " +
         "nn.name = \"" + name + "\"}";
}

TEST(MarkWeightsTest, FirstDimensionsOfWeightsDiffer) {
  EXPECT_THAT(
      WeightsOf(Input("p.up", "8x16xf32") + ", " + Input("p.down", "16x8xf32") +
                    ", " + Input("p.scale", "f32") + ", " +
                    Input("batch.x", "4x8xf32") + ", " +
                    Input("batch.y", "4xf32"),
                ""),
      ElementsAre("p.up", "p.down"));
  // A pytree with integers is data.
  EXPECT_THAT(
      WeightsOf(
          Input("batch.x", "4x8xf32") + ", " + Input("batch.ids", "6xi32"), ""),
      IsEmpty());
}

constexpr char kProduct[] =
    "%0 = nn.dot_general %batch.x, %p.w contract = [1] x [0] : "
    "tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>";

TEST(MarkWeightsTest, ProductsSumOverTheFirstDimensionOfWeights) {
  const std::string inputs = Input("p.w", "8x8xf32") + ", " +
                             Input("p.b", "8xf32") + ", " +
                             Input("batch.x", "8x8xf32");
  EXPECT_THAT(WeightsOf(inputs, kProduct), ElementsAre("p.w", "p.b"));
  EXPECT_THAT(WeightsOf(inputs, ""), IsEmpty());
  // The gradient of a matrix sums over the batch of both.
  EXPECT_THAT(WeightsOf(inputs,
                        "%0 = nn.dot_general %batch.x, %p.w contract = [0] x "
                        "[0] : tensor<8x8xf32>, tensor<8x8xf32> -> "
                        "tensor<8x8xf32>"),
              IsEmpty());
  // So does x.T @ x, which transposes first.
  EXPECT_THAT(WeightsOf(Input("x", "8x8xf32"),
                        "%0 = nn.transpose %x perm = [1, 0] : tensor<8x8xf32> "
                        "-> tensor<8x8xf32>\n"
                        "%1 = nn.dot_general %0, %x contract = [1] x [0] : "
                        "tensor<8x8xf32>, tensor<8x8xf32> -> "
                        "tensor<8x8xf32>"),
              IsEmpty());
}

TEST(MarkWeightsTest, DataMovementIsFollowed) {
  const std::string inputs =
      Input("w", "8x3x4xf32") + ", " + Input("x", "8x8xf32");
  const std::string product =
      "%9 = nn.dot_general %x, %2 contract = [1] x [1] : tensor<8x8xf32>, "
      "tensor<12x8xf32> -> tensor<8x12xf32>";
  EXPECT_THAT(
      WeightsOf(inputs,
                "%1 = nn.reshape %w : tensor<8x3x4xf32> -> tensor<8x12xf32>\n"
                "%2 = nn.transpose %1 perm = [1, 0] : tensor<8x12xf32> -> "
                "tensor<12x8xf32>\n" +
                    product),
      ElementsAre("w"));
  // Rows that a reshape divides are no longer the first dimension.
  EXPECT_THAT(
      WeightsOf(inputs,
                "%1 = nn.reshape %w : tensor<8x3x4xf32> -> tensor<12x8xf32>\n"
                "%2 = nn.reshape %1 : tensor<12x8xf32> -> tensor<12x8xf32>\n" +
                    product),
      IsEmpty());
}

TEST(MarkWeightsTest, KernelsAreWeights) {
  EXPECT_THAT(
      WeightsOf(Input("kernel", "8x3x3x3xf32") + ", " +
                    Input("images", "8x3x9x9xf32"),
                "%0 = nn.conv %images, %kernel strides = [1, 1] dilations = "
                "[1, 1] low = [0, 0] high = [0, 0] groups = 1 : "
                "tensor<8x3x9x9xf32>, tensor<8x3x3x3xf32> -> "
                "tensor<8x8x7x7xf32>"),
      ElementsAre("kernel"));
}

}  // namespace
}  // namespace partita::stablehlo
