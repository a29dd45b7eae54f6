// Executes the inputs of this folder's lit tests. Each function must give the
// same numbers before and after the pass that its file tests.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "compiler/simplify/passes.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "tests/compiler/simplify/evaluate.h"

namespace partita::simplify {
namespace {

using mlir::func::FuncOp;

constexpr char kFolder[] = "tests/compiler/simplify";

// Files that test a pass's result, not its refusals.
std::vector<std::string> inputFiles() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() == ".mlir" &&
        !llvm::StringRef(name).ends_with("_invalid"))
      files.push_back(name);
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Adds the passes of the RUN line with their options.
void addPasses(llvm::StringRef text, mlir::OpPassManager& passes) {
  llvm::SmallVector<llvm::StringRef> words;
  text.take_until([](char c) { return c == '\n'; }).split(words, ' ');
  for (llvm::StringRef word : words) {
    if (!word.starts_with("--partita-")) continue;
    auto [name, options] = word.drop_front(2).split('=');
    const mlir::PassInfo* info = mlir::PassInfo::lookup(name);
    ASSERT_NE(info, nullptr) << word.str();
    const auto fail = [&](const llvm::Twine& message) {
      ADD_FAILURE() << message.str();
      return mlir::failure();
    };
    ASSERT_TRUE(
        succeeded(info->addToPipeline(passes, options.trim("\""), fail)));
  }
}

std::map<std::string, std::vector<nn::Tensor>> results(mlir::ModuleOp module) {
  std::map<std::string, std::vector<nn::Tensor>> results;
  if (module.lookupSymbol<FuncOp>("main")) {
    results["main"] = runMain(
        module, [](const std::string& name, mlir::RankedTensorType type) {
          return madeUp(type, name.size());
        });
    return results;
  }
  for (FuncOp function : module.getOps<FuncOp>())
    results[function.getName().str()] = runMadeUp(function);
  return results;
}

class LitInputsTest : public testing::TestWithParam<std::string> {};

TEST_P(LitInputsTest, PassKeepsResults) {
  auto file = llvm::MemoryBuffer::getFile(std::string(kFolder) + "/" +
                                          GetParam() + ".mlir");
  ASSERT_TRUE(static_cast<bool>(file));
  llvm::SmallVector<llvm::StringRef> parts;
  (*file)->getBuffer().split(parts, "// -----\n");
  int64_t functions = 0;
  for (llvm::StringRef part : parts) {
    mlir::MLIRContext context(testRegistry(),
                              mlir::MLIRContext::Threading::DISABLED);
    auto module = mlir::parseSourceString<mlir::ModuleOp>(part, &context);
    ASSERT_TRUE(module);
    const auto before = results(*module);
    mlir::PassManager passes(&context, "builtin.module",
                             mlir::OpPassManager::Nesting::Implicit);
    addPasses((*file)->getBuffer(), passes);
    ASSERT_GT(passes.size(), 0u);
    ASSERT_TRUE(succeeded(passes.run(*module)));
    auto after = results(*module);
    for (const auto& [name, expected] : before) {
      expectSame(after[name], expected, GetParam() + " @" + name);
      ++functions;
    }
  }
  EXPECT_GT(functions, 0);
}

INSTANTIATE_TEST_SUITE_P(Files, LitInputsTest, testing::ValuesIn(inputFiles()),
                         [](const auto& info) { return info.param; });

struct RegisterPasses {
  RegisterPasses() { registerSimplifyPasses(); }
} register_passes;

}  // namespace
}  // namespace partita::simplify
