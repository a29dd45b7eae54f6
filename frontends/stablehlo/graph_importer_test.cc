// Programs that no exporter writes, as text.
#include <string>

#include "dialects/nn/dialect.h"
#include "frontends/stablehlo/importer.h"
#include "frontends/stablehlo/portable_dialects.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Parser/Parser.h"

namespace partita::stablehlo {
namespace {

using testing::HasSubstr;

class GraphImporterTest : public testing::Test {
 protected:
  GraphImporterTest() : context_(mlir::MLIRContext::Threading::DISABLED) {
    mlir::DialectRegistry registry;
    nn::registerExternalModels(registry);
    context_.appendDialectRegistry(registry);
    loadPortableDialects(&context_);
    context_.getDiagEngine().registerHandler(
        [this](mlir::Diagnostic& diagnostic) {
          llvm::raw_string_ostream(errors_) << diagnostic << "\n";
        });
  }

  mlir::OwningOpRef<mlir::ModuleOp> Parse(const std::string& text) {
    auto program = mlir::parseSourceString<mlir::ModuleOp>(
        text, mlir::ParserConfig(&context_, /*verifyAfterParse=*/false));
    EXPECT_TRUE(program) << errors_;
    return program;
  }

  mlir::OwningOpRef<mlir::ModuleOp> Import(mlir::ModuleOp program,
                                           bool ignores_shardings = false) {
    errors_.clear();
    return importStablehloProgram(
        program, "test", mlir::UnknownLoc::get(&context_), {ignores_shardings});
  }

  // Imports a function with this block and these attributes.
  mlir::OwningOpRef<mlir::ModuleOp> ImportMain(
      const std::string& block, const std::string& attributes = "",
      bool ignores_shardings = false) {
    auto program =
        Parse("\"vhlo.func_v1\"() ({\n" + block + "}) {sym_name = \"main\"" +
              attributes + "} : () -> ()");
    return program ? Import(*program, ignores_shardings)
                   : mlir::OwningOpRef<mlir::ModuleOp>();
  }

  mlir::MLIRContext context_;
  std::string errors_;
};

constexpr char kSame[] = R"(
  ^bb0(%x: tensor<4xf32> loc("x")):
    "vhlo.return_v1"(%x) : (tensor<4xf32>) -> ()
)";

TEST_F(GraphImporterTest, EqualNamesBecomeDifferent) {
  auto module = ImportMain(R"(
    ^bb0(%a: tensor<4xf32> loc("x"), %b: tensor<4xf32> loc("x"),
         %c: tensor<4xf32> loc("x_1")):
      "vhlo.return_v1"(%a, %b, %c)
          : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> ()
  )");
  ASSERT_TRUE(module) << errors_;
  auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
  std::vector<std::string> names;
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    names.push_back(
        main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr).str());
  EXPECT_THAT(names, testing::ElementsAre("x", "x_1", "x_1_2"));
}

TEST_F(GraphImporterTest, DonatedArgumentsHaveTheirResultsTypes) {
  constexpr char kAlias[] = ", arg_attrs = [{tf.aliasing_output = 0 : i32}]";
  EXPECT_TRUE(ImportMain(kSame, kAlias)) << errors_;
  EXPECT_FALSE(ImportMain(R"(
    ^bb0(%x: tensor<4xf32> loc("x")):
      %y = "vhlo.reshape_v1"(%x) : (tensor<4xf32>) -> tensor<2x2xf32>
      "vhlo.return_v1"(%y) : (tensor<2x2xf32>) -> ()
  )",
                          kAlias));
  EXPECT_THAT(errors_, HasSubstr("expected donated argument 'x'"));
}

TEST_F(GraphImporterTest, OldShardingsAreRefused) {
  for (const char* list : {"arg_attrs", "res_attrs"}) {
    const std::string attributes =
        std::string(", ") + list + " = [{mhlo.sharding = \"{replicated}\"}]";
    EXPECT_FALSE(ImportMain(kSame, attributes)) << list;
    EXPECT_THAT(errors_, HasSubstr("found mhlo.sharding"));
    EXPECT_TRUE(ImportMain(kSame, attributes, /*ignores_shardings=*/true))
        << errors_;
  }
}

TEST_F(GraphImporterTest, ShardingsNameAMeshOfTheProgram) {
  for (const char* mesh :
       {"@missing", "{axes = [{name = \"a\", size = 2 : i64}]}"}) {
    EXPECT_FALSE(ImportMain(
        kSame, std::string(", arg_attrs = [{sdy.sharding = {mesh = ") + mesh +
                   ", dims = [{axes = [], closed = true}]}}]"));
    EXPECT_THAT(errors_, HasSubstr("sharding of Shardy: expected"));
  }
}

TEST_F(GraphImporterTest, RoundingToAFormatWithSmallerFieldsIsNotSkipped) {
  const auto round = [&](const char* type, int exponent, int mantissa) {
    const std::string tensor = std::string("tensor<4x") + type + ">";
    return ImportMain("^bb0(%x: " + tensor +
                      "):\n%y = \"vhlo.reduce_precision_v1\"(%x) "
                      "{exponent_bits = " +
                      std::to_string(exponent) +
                      " : i32, mantissa_bits = " + std::to_string(mantissa) +
                      " : i32} : (" + tensor + ") -> " + tensor +
                      "\n\"vhlo.return_v1\"(%y) : (" + tensor + ") -> ()\n");
  };
  // True if the result is the argument.
  const auto isSkipped = [&](const char* type, int exponent, int mantissa) {
    auto module = round(type, exponent, mantissa);
    EXPECT_TRUE(module) << errors_;
    if (!module) return false;
    auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
    return mlir::isa<mlir::BlockArgument>(
        main.getBody().front().getTerminator()->getOperand(0));
  };
  EXPECT_TRUE(isSkipped("bf16", 8, 23));
  EXPECT_FALSE(isSkipped("f32", 8, 7));
  EXPECT_FALSE(isSkipped("f16", 8, 7));
  EXPECT_FALSE(isSkipped("bf16", 5, 10));
  EXPECT_FALSE(round("f32", 0, 23));
  EXPECT_THAT(errors_, HasSubstr("expected bits of an exponent"));
}

// The rounding follows the product.
TEST_F(GraphImporterTest, ProductsAreRoundedAfterTheSum) {
  auto module = ImportMain(R"(
    ^bb0(%a: tensor<4x4xf32>):
      %y = "vhlo.dot_v2"(%a, %a)
          : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xbf16>
      "vhlo.return_v1"(%y) : (tensor<4x4xbf16>) -> ()
  )");
  ASSERT_TRUE(module) << errors_;
  int products = 0;
  module->walk([&](nn::DotGeneralOp dot) {
    ++products;
    EXPECT_TRUE(mlir::getElementTypeOrSelf(dot.getType()).isF32());
  });
  EXPECT_EQ(products, 1);
}

TEST_F(GraphImporterTest, PaddingHasTwoBounds) {
  EXPECT_FALSE(ImportMain(R"(
    ^bb0(%x: tensor<4xf32>, %v: tensor<f32>):
      %y = "vhlo.pad_v1"(%x, %v) {
          edge_padding_low = array<i64: -9223372036854775808>,
          edge_padding_high = array<i64: 0>, interior_padding = array<i64: 0>}
          : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      "vhlo.return_v1"(%y) : (tensor<4xf32>) -> ()
  )"));
  EXPECT_THAT(errors_, HasSubstr("padding below 2^31"));
}

// Both parts of each level are the level below; and 100000 names in a row.
TEST_F(GraphImporterTest, LocationsMayNestWithoutEnd) {
  auto program = Parse(
      "\"vhlo.func_v1\"() ({\n^bb0(%x: tensor<4xf32>):\n"
      "%y = \"vhlo.abs_v1\"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
      "%z = \"vhlo.abs_v1\"(%y) : (tensor<4xf32>) -> tensor<4xf32>\n"
      "\"vhlo.return_v1\"(%z) : (tensor<4xf32>) -> ()\n"
      "}) {sym_name = \"main\"} : () -> ()");
  ASSERT_TRUE(program);
  mlir::Location twice = mlir::UnknownLoc::get(&context_), deep = twice;
  for (int i = 0; i < 60; ++i) twice = mlir::CallSiteLoc::get(twice, twice);
  for (int i = 0; i < 100'000; ++i)
    deep = mlir::NameLoc::get(mlir::StringAttr::get(&context_, "n"), deep);
  auto& block = program->getBody()->front().getRegion(0).front();
  block.front().setLoc(twice);
  block.front().getNextNode()->setLoc(deep);
  EXPECT_TRUE(Import(*program)) << errors_;
}

}  // namespace
}  // namespace partita::stablehlo
