// The artifact's memory table equals the compiler's, row by row.
#include "compiler/driver/memory_limit.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "runtime/program/types.h"

namespace partita::driver {
namespace {

TEST(MemoryLimitTest, ProgramsHaveEveryRow) {
  memory::MemoryTable table;
  for (int i = 0; i < memory::kMemoryClasses; ++i)
    table.at_peak[i] = int64_t{1} << i;
  table.gaps = 1 << 20;
  table.most_gradients = 3;
  table.host = 5;
  program::ProgramT sample;
  sample.entries.push_back(std::make_unique<program::EntryT>());
  sample.entries[0]->memory =
      std::make_unique<program::MemoryTableT>(toProgram(table));
  const std::string bytes = program::SerializeProgram(sample);
  const program::MemoryTable& row =
      *program::GetProgram(bytes.data())->entries()->Get(0)->memory();
  using memory::MemoryClass;
  EXPECT_EQ(row.parameters(), table.of(MemoryClass::kParameters));
  EXPECT_EQ(row.states(), table.of(MemoryClass::kStates));
  EXPECT_EQ(row.gradients(), table.of(MemoryClass::kGradients));
  EXPECT_EQ(row.activations(), table.of(MemoryClass::kActivations));
  EXPECT_EQ(row.communication(), table.of(MemoryClass::kCommunication));
  EXPECT_EQ(row.derived(), table.of(MemoryClass::kDerived));
  EXPECT_EQ(row.ports(), table.of(MemoryClass::kPorts));
  EXPECT_EQ(row.scratch(), table.of(MemoryClass::kScratch));
  EXPECT_EQ(row.gaps(), table.gaps);
  EXPECT_EQ(row.most_gradients(), 3);
  EXPECT_EQ(row.host(), 5);
  // The total includes every class.
  EXPECT_EQ(program::TotalOf(row), table.total());
}

}  // namespace
}  // namespace partita::driver
