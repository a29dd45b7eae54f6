// Runs the partitioner alone, without a plan or propagation.
#include "tests/compiler/partition/divided_fixture.h"

#include "compiler/partition/collective_report.h"
#include "compiler/partition/local_form.h"
#include "compiler/partition/passes.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "tests/compiler/partition/run_divided.h"
#include "tests/compiler/simplify/evaluate.h"

namespace partita::partition {
namespace {

mlir::DialectRegistry registry() {
  mlir::DialectRegistry registry = simplify::testRegistry();
  registry.insert<dist::DistDialect>();
  registerLocalForms(registry);
  return registry;
}

}  // namespace

DividedTest::DividedTest()
    : context_(registry(), mlir::MLIRContext::Threading::DISABLED) {}

void DividedTest::divide(const std::string& mesh, const std::string& function) {
  sent_.clear();
  const std::string text = "dist.mesh @mesh <[" + mesh + "]>\n" + function;
  auto whole = mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
  ASSERT_TRUE(whole);
  mlir::OwningOpRef<mlir::ModuleOp> divided(whole->clone());
  mlir::PassManager passes(&context_);
  passes.addPass(createPartitionPass());
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass());
  ASSERT_TRUE(succeeded(passes.run(*divided)));
  auto uses = listCollectives(*divided);
  ASSERT_TRUE(succeeded(uses));
  for (const CollectiveUse& use : *uses)
    sent_.push_back(use.kind + " over " + use.axes + ": " +
                    std::to_string(use.bytes));
  text_.clear();
  llvm::raw_string_ostream stream(text_);
  divided->print(stream);
  const auto input = [](const std::string&, mlir::RankedTensorType type) {
    return simplify::madeUp(type, type.getNumElements());
  };
  expectEqual(runDivided(*divided, input), simplify::runMain(*whole, input));
}

std::string argument(const std::string& name, const std::string& type,
                     const std::string& dims) {
  return "%" + name + ": tensor<" + type +
         "> {nn.kind = \"input\", nn.name = " + "\"" + name +
         "\", dist.sharding = #dist.sharding<[" + dims + "]>}";
}

std::string placed(const std::string& dims) {
  return "{dist.shardings = [#dist.sharding<[" + dims + "]>]}";
}

}  // namespace partita::partition
