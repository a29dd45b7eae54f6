#include "dialects/nn/signature.h"

#include "dialects/nn/dialect.h"
#include "gtest/gtest.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

namespace partita::nn {
namespace {

class SignatureTest : public testing::Test {
 protected:
  SignatureTest() {
    context_.loadDialect<mlir::func::FuncDialect, NNDialect>();
    module_ = mlir::parseSourceString<mlir::ModuleOp>(R"(
      func.func @main(%x: tensor<2xf32> {nn.name = "x"},
                      %w: tensor<3xf32> {nn.name = "w"})
          -> (tensor<2xf32> {nn.name = "a"}, tensor<3xf32>) {
        return %x, %w : tensor<2xf32>, tensor<3xf32>
      })",
                                                      &context_);
    main_ = module_->lookupSymbol<mlir::func::FuncOp>("main");
  }

  mlir::StringAttr text(llvm::StringRef value) {
    return mlir::StringAttr::get(&context_, value);
  }
  mlir::DictionaryAttr named(llvm::StringRef name) {
    mlir::Builder builder(&context_);
    return builder.getDictionaryAttr(
        builder.getNamedAttr(kNameAttr, text(name)));
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::func::FuncOp main_;
};

TEST_F(SignatureTest, ChangesAreSeenWhenWritten) {
  Signature signature(main_);
  signature.setArgument(0, kKindAttr, text("input"));
  signature.setArgument(1, kNameAttr, {});
  signature.setResult(1, kNameAttr, text("b"));
  EXPECT_FALSE(main_.getArgAttr(0, kKindAttr));
  signature.write();
  EXPECT_EQ(main_.getArgAttr(0, kKindAttr), text("input"));
  EXPECT_EQ(main_.getArgAttr(0, kNameAttr), text("x"));
  EXPECT_FALSE(main_.getArgAttr(1, kNameAttr));
  EXPECT_EQ(main_.getResultAttr(0, kNameAttr), text("a"));
  EXPECT_EQ(main_.getResultAttr(1, kNameAttr), text("b"));
}

TEST_F(SignatureTest, AddsArgumentsAndResults) {
  {
    Signature signature(main_);
    mlir::Value state = signature.addArgument(main_.getArgument(1).getType(),
                                              named("w/state"), main_.getLoc());
    signature.insertResult(1, state, named("between"));
    EXPECT_EQ(signature.numResults(), 3u);
    EXPECT_EQ(signature.resultAttr(1, kNameAttr), text("between"));
  }
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module_)));
  EXPECT_EQ(main_.getNumArguments(), 3u);
  EXPECT_EQ(main_.getArgAttr(2, kNameAttr), text("w/state"));
  EXPECT_EQ(main_.getResultAttr(1, kNameAttr), text("between"));
  EXPECT_EQ(main_.front().getTerminator()->getOperand(1), main_.getArgument(2));
}

TEST_F(SignatureTest, ErasesResults) {
  {
    Signature signature(main_);
    signature.eraseResult(0);
  }
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module_)));
  EXPECT_EQ(main_.getNumResults(), 1u);
  EXPECT_FALSE(main_.getResultAttr(0, kNameAttr));
}

TEST_F(SignatureTest, FindsArgumentsByName) {
  const llvm::StringMap<unsigned> found = argumentsByName(main_);
  EXPECT_EQ(found.size(), 2u);
  EXPECT_EQ(found.lookup("w"), 1u);
}

}  // namespace
}  // namespace partita::nn
