// A fixed share of JAX's own tests of operations, programs at the edges of
// types, and programs that JAX divides over four devices: none may differ, and
// none of those that are equal today may be refused.
#include "tests/conformance/stablehlo_suite.h"

#include <iostream>

#include "gtest/gtest.h"
#include "tests/conformance/compiled_executor.h"

namespace partita::conformance {
namespace {

constexpr char kFolder[] = "tests/data/stablehlo-suite/";

// Numbers of equal and refused programs.
void ExpectCounts(const std::string& file, const Executor& executor, int equal,
                  int refused) {
  auto summary = runStablehloSuite(kFolder + file, executor);
  ASSERT_TRUE(summary.ok()) << summary.status();
  summary->print(std::cout);
  EXPECT_EQ(summary->failed, 0);
  EXPECT_EQ(summary->passed, equal);
  EXPECT_EQ(summary->skipped, refused);
}

TEST(StablehloSuiteTest, CompiledOperationsAreThoseOfJax) {
  const Executor compiled = compiledExecutor(testing::TempDir());
  ExpectCounts("operations_a_m.safetensors", compiled, 80, 19);
  ExpectCounts("operations_n_z.safetensors", compiled, 102, 10);
}

TEST(StablehloSuiteTest, ReferencesOfOperationsAreThoseOfJax) {
  ExpectCounts("operations_a_m.safetensors", interpreterExecutor(), 80, 19);
  ExpectCounts("operations_n_z.safetensors", interpreterExecutor(), 102, 10);
}

// Gamma and beta functions: loops until a series has converged.
TEST(StablehloSuiteTest, LoopsAreThoseOfJax) {
  ExpectCounts("loops.safetensors", compiledExecutor(testing::TempDir()), 17,
               0);
}

TEST(StablehloSuiteTest, EdgesAreThoseOfXlaAndNumpy) {
  ExpectCounts("edges.safetensors", compiledExecutor(testing::TempDir()), 66,
               0);
  ExpectCounts("edges.safetensors", interpreterExecutor(), 66, 0);
}

TEST(StablehloSuiteTest, DividedProgramsAreThoseOfJax) {
  ExpectCounts("shardy.safetensors", dividedExecutor(testing::TempDir()), 70,
               0);
}

TEST(StablehloSuiteTest, FilesThatCannotBeReadAreErrors) {
  EXPECT_FALSE(runStablehloSuite("none", interpreterExecutor()).ok());
}

}  // namespace
}  // namespace partita::conformance
