// Tests on programs small enough to count by hand.
#include "compiler/memory/memory_table.h"

#include "compiler/memory/passes.h"
#include "dialects/exec/dialect.h"
#include "gtest/gtest.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

namespace partita::memory {
namespace {

// Kernels, and a backward function whose frame has one buffer.
constexpr char kFunctions[] = R"(
func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} { return %x : tensor<16xf32> }
func.func private @two(%x: tensor<16xf32>, %y: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} { return %y : tensor<16xf32> }
func.func private @state(%x: tensor<16xf32>, %y: tensor<32xf32>) -> tensor<32xf32> attributes {exec.kernel} { return %y : tensor<32xf32> }
func.func private @backward(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = exec.launch @k(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = exec.launch @two(%x, %0) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %1 : tensor<16xf32>
}
)";

class MemoryTableTest : public testing::Test {
 protected:
  MemoryTableTest() {
    context_.loadDialect<mlir::func::FuncDialect, exec::ExecDialect>();
    context_.allowUnregisteredDialects();
  }

  MemoryTable Tabulate(const std::string& main, bool states_on_host = false,
                       bool finished = false, bool in_place = false) {
    auto module =
        mlir::parseSourceString<mlir::ModuleOp>(main + kFunctions, &context_);
    if (!module) return {};
    mlir::PassManager passes(&context_);
    PlanMemoryPassOptions plan;
    plan.inPlace = in_place;
    passes.addPass(createPlanMemoryPass(plan));
    if (finished) {
      passes.addPass(createJoinLaunchesPass());
      passes.addPass(createCopyReturnedPass());
    }
    EXPECT_TRUE(mlir::succeeded(passes.run(*module)));
    return tabulateMemory(*module, states_on_host).front();
  }

  mlir::MLIRContext context_;
};

TEST_F(MemoryTableTest, AResultInPlaceOfAnOperandIsCountedOnce) {
  const char* const main = R"(
func.func @main(%x: tensor<16xf32> {nn.kind = "input", nn.name = "x"})
    -> tensor<16xf32> {
  %0 = exec.launch @k(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = exec.launch @k(%0) : (tensor<16xf32>) -> tensor<16xf32>
  %2 = exec.launch @k(%1) : (tensor<16xf32>) -> tensor<16xf32>
  return %2 : tensor<16xf32>
}
)";
  for (const bool in_place : {false, true}) {
    const MemoryTable table = Tabulate(main, /*states_on_host=*/false,
                                       /*finished=*/false, in_place);
    EXPECT_EQ(table.of(MemoryClass::kActivations), in_place ? 64 : 128);
    EXPECT_EQ(table.gaps, 0);
  }
}

TEST_F(MemoryTableTest, AStepOfTraining) {
  const MemoryTable table = Tabulate(R"(
func.func @main(%x: tensor<16xf32> {nn.kind = "input", nn.name = "x"},
                %p: tensor<16xf32> {nn.kind = "parameter", nn.name = "p"},
                %m: tensor<32xf32> {nn.kind = "state", nn.name = "p/exp_avg"})
    -> (tensor<16xf32> {nn.updates = "p"}) {
  %0 = exec.launch @two(%x, %p) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %1 = func.call @backward(%0) : (tensor<16xf32>) -> tensor<16xf32>
  %2 = exec.collective all_reduce %1 axes = [0, 1, 2] : tensor<16xf32> -> tensor<16xf32>
  %3 = exec.launch @two(%p, %2) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %3 : tensor<16xf32>
}
)");
  EXPECT_EQ(table.of(MemoryClass::kParameters), 64);
  EXPECT_EQ(table.of(MemoryClass::kStates), 128);
  EXPECT_EQ(table.of(MemoryClass::kPorts), 64);
  // While the backward function runs: its input, its buffer and its result.
  EXPECT_EQ(table.of(MemoryClass::kActivations), 128);
  EXPECT_EQ(table.of(MemoryClass::kGradients), 64);
  EXPECT_EQ(table.most_gradients, 128);  // before and after the collective
  EXPECT_EQ(table.gaps, 0);
  EXPECT_EQ(table.total(), 64 + 128 + 64 + 128 + 64);
  ASSERT_FALSE(table.parts.empty());
  EXPECT_EQ(table.parts[0].name, "p/exp_avg");
  EXPECT_EQ(table.parts[0].bytes, 128);
}

TEST_F(MemoryTableTest, StatesOnTheHostAreNoPartOfTheDevices) {
  const MemoryTable table = Tabulate(R"(
func.func @main(%p: tensor<16xf32> {nn.kind = "parameter", nn.name = "p"},
                %m: tensor<32xf32> {nn.kind = "state", nn.name = "p/exp_avg"})
    -> (tensor<32xf32> {nn.updates = "p/exp_avg"}) {
  %0 = exec.launch @state(%p, %m) : (tensor<16xf32>, tensor<32xf32>) -> tensor<32xf32>
  return %0 : tensor<32xf32>
}
)",
                                     /*states_on_host=*/true);
  EXPECT_EQ(table.of(MemoryClass::kParameters), 64);
  EXPECT_EQ(table.of(MemoryClass::kStates), 0);
  EXPECT_EQ(table.host, 128);
  ASSERT_FALSE(table.parts.empty());
  EXPECT_EQ(table.parts[0].name, "p");
}

TEST_F(MemoryTableTest, BuffersOfCollectives) {
  const MemoryTable table = Tabulate(R"(
func.func @main(%x: tensor<16xf32> {nn.kind = "input", nn.name = "x"}) -> tensor<16xf32> {
  %0 = exec.launch @k(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = exec.collective all_reduce %0 axes = [0, 1, 2] : tensor<16xf32> -> tensor<16xf32>
  %2 = exec.launch @k(%1) : (tensor<16xf32>) -> tensor<16xf32>
  return %2 : tensor<16xf32>
}
)");
  EXPECT_EQ(table.of(MemoryClass::kCommunication), 128);
  EXPECT_EQ(table.of(MemoryClass::kActivations), 0);
  EXPECT_EQ(table.of(MemoryClass::kPorts), 128);
  EXPECT_EQ(table.most_gradients, 0);
}

// Merging two updates into one launch and copying a result do not change the
// classes of memory.
TEST_F(MemoryTableTest, OfAFinishedProgram) {
  const std::string main = R"(
func.func @main(%x: tensor<16xf32> {nn.kind = "input", nn.name = "x"},
                %p: tensor<16xf32> {nn.kind = "parameter", nn.name = "p"},
                %q: tensor<16xf32> {nn.kind = "parameter", nn.name = "q"})
    -> (tensor<16xf32>, tensor<16xf32> {nn.updates = "p"}, tensor<16xf32> {nn.updates = "q"}) {
  %0 = func.call @backward(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = func.call @backward(%0) : (tensor<16xf32>) -> tensor<16xf32>
  %2 = exec.collective all_reduce %0 axes = [0, 1, 2] : tensor<16xf32> -> tensor<16xf32>
  %3 = exec.collective all_reduce %1 axes = [0, 1, 2] : tensor<16xf32> -> tensor<16xf32>
  %4 = exec.launch @two(%p, %2) {range = 16 : i64, grain = 1 : i64, scratch = 0 : i64} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %5 = exec.launch @two(%q, %3) {range = 16 : i64, grain = 1 : i64, scratch = 0 : i64} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %x, %4, %5 : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
}
)";
  const MemoryTable planned = Tabulate(main),
                    finished = Tabulate(main, false, /*finished=*/true);
  EXPECT_GT(planned.of(MemoryClass::kGradients), 0);
  for (int i = 0; i < kMemoryClasses; ++i)
    EXPECT_EQ(planned.at_peak[i], finished.at_peak[i])
        << nameOf(static_cast<MemoryClass>(i));
  EXPECT_EQ(planned.most_gradients, finished.most_gradients);
  EXPECT_EQ(planned.gaps, finished.gaps);
}

// A launch with `into` has no memory of its own.
TEST_F(MemoryTableTest, LaunchesOfOneMemory) {
  const MemoryTable table = Tabulate(R"(
func.func @main(%x: tensor<16xf32> {nn.kind = "input", nn.name = "x"}) -> tensor<16xf32> {
  %0 = exec.launch @k(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = exec.launch @k(%x) into(%0 : tensor<16xf32>) : (tensor<16xf32>) -> tensor<16xf32>
  %2 = exec.collective all_reduce %1 axes = [0, 1, 2] : tensor<16xf32> -> tensor<16xf32>
  %3 = exec.launch @k(%2) : (tensor<16xf32>) -> tensor<16xf32>
  return %3 : tensor<16xf32>
}
)");
  EXPECT_EQ(table.of(MemoryClass::kCommunication), 128);
  EXPECT_EQ(table.of(MemoryClass::kActivations), 0);
  EXPECT_EQ(table.total(), 128 + 128);
}

}  // namespace
}  // namespace partita::memory
