// Merges the programs of several ranks into entries of one module.
#include "compiler/pipeline/merge.h"

#include <gtest/gtest.h>

#include "dialects/exec/dialect.h"
#include "dialects/exec/entries.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

namespace partita::pipeline {
namespace {

using mlir::ModuleOp;
using mlir::func::FuncOp;

class MergeTest : public testing::Test {
 protected:
  MergeTest() {
    context_.loadDialect<exec::ExecDialect, mlir::func::FuncDialect>();
    context_.allowUnregisteredDialects();
  }

  // @main calls @layer, which launches @kernel.
  mlir::OwningOpRef<ModuleOp> Program(const std::string& kernel) {
    return mlir::parseSourceString<ModuleOp>(R"(
func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel} {
  %0 = ")" + kernel + R"("(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = exec.launch @kernel(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @layer(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = exec.launch @kernel(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
)",
                                             &context_);
  }

  mlir::OwningOpRef<ModuleOp> Merge(std::vector<std::string> kernels) {
    std::vector<mlir::OwningOpRef<ModuleOp>> programs;
    for (const std::string& kernel : kernels)
      programs.push_back(Program(kernel));
    mlir::OwningOpRef<ModuleOp> merged = mergePrograms(programs);
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*merged)));
    return merged;
  }

  static size_t CountFunctions(ModuleOp module) {
    return llvm::range_size(module.getOps<FuncOp>());
  }
  static std::string CalleeOf(FuncOp main) {
    return (*main.getOps<mlir::func::CallOp>().begin()).getCallee().str();
  }

  mlir::MLIRContext context_;
};

TEST_F(MergeTest, WhatIsEqualIsOne) {
  auto merged = Merge({"test.a", "test.a"});
  const auto entries = exec::entriesOf(*merged);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(CountFunctions(*merged), 4u);
  EXPECT_EQ(CalleeOf(entries[0].main), CalleeOf(entries[1].main));
}

TEST_F(MergeTest, WhatDiffersStaysApart) {
  auto merged = Merge({"test.a", "test.b", "test.a"});
  const auto entries = exec::entriesOf(*merged);
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(CountFunctions(*merged), 3u + 2u + 2u);
  // A layer that launches another kernel is a different layer.
  EXPECT_NE(CalleeOf(entries[0].main), CalleeOf(entries[1].main));
  EXPECT_EQ(CalleeOf(entries[0].main), CalleeOf(entries[2].main));
  for (const exec::Entry& entry : entries) EXPECT_FALSE(entry.init);
  // Names of kernels become names in PTX, which have no dots.
  for (FuncOp function : merged->getOps<FuncOp>())
    if (function.isPrivate()) EXPECT_FALSE(function.getSymName().contains('.'));
}

}  // namespace
}  // namespace partita::pipeline
