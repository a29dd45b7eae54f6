// A training step on a GPU updates all parameters in a few launches.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/driver/import_model.h"
#include "runtime/program/artifact.h"
#include "runtime/program/types.h"
#include "tests/e2e/compiled_model.h"

namespace partita::e2e {
namespace {

TEST(GpuUpdatesTest, AllParametersAreUpdatedInAFewLaunches) {
  CompilerContext context;
  driver::ImportOptions import;
  import.dims = {{"batch", 1}, {"seq", 1024}};
  import.training = true;
  auto module = driver::importModel("gpt2-medium", import, context.get());
  ASSERT_TRUE(module) << context.errors;
  driver::CompileOptions options;
  options.output = testing::TempDir() + "updates.partita";
  options.target = "cuda:sm_90";
  options.train.optimizer = "adamw";
  options.precision = plan::Precision::kBF16;
  ASSERT_TRUE(mlir::succeeded(driver::compileToFile(*module, options)))
      << context.errors;
  auto artifact = program::Artifact::Open(options.output);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  const program::Program& program = artifact->program();
  const program::Entry& entry = *program.entries()->Get(0);
  const program::Function& main =
      *program.functions()->Get(static_cast<unsigned>(entry.main()));
  // Places of the new values of parameters and states.
  const int64_t updates = program::SizeOrZero(entry.main_updates()),
                first = main.arguments() - updates;
  std::set<int64_t> written;
  int launches = 0;
  size_t pieces = 0;
  for (const auto* instruction : *main.body()) {
    const program::Launch* launch = instruction->operation_as_Launch();
    if (launch == nullptr) continue;
    const auto& operands = *instruction->operands();
    bool is_update = false;
    for (unsigned i =
             operands.size() - static_cast<unsigned>(instruction->outputs());
         i < operands.size(); ++i) {
      const program::Buffer& buffer = *operands.Get(i);
      if (buffer.space() != program::Space::argument || buffer.value() < first)
        continue;
      is_update = true;
      EXPECT_TRUE(written.insert(buffer.value()).second);
    }
    launches += is_update;
    if (is_update && launch->ranges() != nullptr)
      pieces += launch->ranges()->size();
  }
  EXPECT_EQ(written.size(), static_cast<size_t>(updates));
  // The tensors of 24 layers with 12 parameters each, two embeddings and the
  // last norm.
  EXPECT_GE(pieces, 24u * 12);
  EXPECT_LE(launches, 12);
}

}  // namespace
}  // namespace partita::e2e
