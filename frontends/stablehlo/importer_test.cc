// Files that are damaged, or not JAX's. tests/e2e/jax_test runs whole programs.
#include "frontends/stablehlo/importer.h"

#include <fstream>
#include <sstream>

#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::stablehlo {
namespace {

using testing::HasSubstr;

std::string Read(const std::string& name) {
  std::ifstream file("tests/data/jax-tiny/" + name, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  EXPECT_FALSE(bytes.str().empty()) << name;
  return bytes.str();
}

class ImporterTest : public testing::Test {
 protected:
  ImporterTest() : context_(mlir::MLIRContext::Threading::DISABLED) {
    mlir::DialectRegistry registry;
    nn::registerExternalModels(registry);
    context_.appendDialectRegistry(registry);
    context_.getDiagEngine().registerHandler(
        [this](mlir::Diagnostic& diagnostic) {
          llvm::raw_string_ostream(errors_) << diagnostic << "\n";
        });
  }

  mlir::OwningOpRef<mlir::ModuleOp> Import(const std::string& bytes) {
    errors_.clear();
    return importStablehloBytes(bytes, "file.mlirbc", {}, &context_);
  }

  mlir::MLIRContext context_;
  std::string errors_;
};

TEST_F(ImporterTest, NamesArePathsInPytrees) {
  auto module = Import(Read("gpt_step.mlirbc"));
  ASSERT_TRUE(module) << errors_;
  auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
  const auto text = [](mlir::Attribute attribute) {
    const auto name = llvm::dyn_cast_or_null<mlir::StringAttr>(attribute);
    return name ? name.str() : "";
  };
  std::vector<std::string> inputs, states, results, updates;
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    (text(main.getArgAttr(i, nn::kKindAttr)) == "state" ? states : inputs)
        .push_back(text(main.getArgAttr(i, nn::kNameAttr)));
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    if (main.getResultAttr(i, nn::kUpdatesAttr))
      updates.push_back(text(main.getResultAttr(i, nn::kUpdatesAttr)));
    else
      results.push_back(text(main.getResultAttr(i, nn::kNameAttr)));
  }
  EXPECT_THAT(inputs, testing::ElementsAre("ids", "targets"));
  EXPECT_THAT(results, testing::ElementsAre("result.4"));
  EXPECT_THAT(states, testing::IsSupersetOf(
                          {"count", "p.blocks.0.attention.qkv", "p.wte",
                           "m.blocks.1.down.b", "v.norm.scale"}));
  EXPECT_THAT(updates, testing::UnorderedElementsAreArray(states));
}

TEST_F(ImporterTest, OtherFilesAreRefused) {
  EXPECT_FALSE(Import("hello"));
  EXPECT_THAT(errors_, HasSubstr("expected MLIR bytecode, or a file of "
                                 "jax.export, found neither"));
  EXPECT_FALSE(Import(""));
  EXPECT_FALSE(Import("ML\xefR"));
  EXPECT_THAT(errors_, HasSubstr("expected the name of the bytecode's "
                                 "producer, found the end of the file"));
  std::string other;
  {
    mlir::OwningOpRef<mlir::ModuleOp> module =
        mlir::ModuleOp::create(mlir::UnknownLoc::get(&context_));
    llvm::raw_string_ostream stream(other);
    ASSERT_TRUE(mlir::succeeded(mlir::writeBytecodeToFile(*module, stream)));
  }
  EXPECT_FALSE(Import(other));
  EXPECT_THAT(errors_, HasSubstr("expected a portable artifact of StableHLO, "
                                 "found MLIR bytecode of 'MLIR"));
}

TEST_F(ImporterTest, EveryTruncationIsRefused) {
  for (const char* name : {"mlp.mlirbc", "gpt_2x2.mlirbc"}) {
    const std::string whole = Read(name);
    ASSERT_TRUE(Import(whole)) << errors_;
    for (size_t size = 0; size < whole.size(); size += 13) {
      EXPECT_FALSE(Import(whole.substr(0, size))) << name << " " << size;
      EXPECT_FALSE(errors_.empty()) << name << " " << size;
    }
  }
}

}  // namespace
}  // namespace partita::stablehlo
