// Every collective kind and reduction of the format maps to the communicator's.
#include "runtime/executor/collective_desc.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "runtime/comm/operation.h"
#include "runtime/program/program_generated.h"

namespace partita::executor {
namespace {

TEST(CollectiveDescTest, EveryKindIsTheCommunicatorsOfThatName) {
  for (const program::CollectiveKind kind : program::EnumValuesCollectiveKind())
    EXPECT_STREQ(comm::NameOf(ToKind(kind)),
                 program::EnumNameCollectiveKind(kind));
}

TEST(CollectiveDescTest, EveryReductionCombinesAsItsNameSays) {
  std::set<comm::Reduction> seen;
  for (const program::Reduction reduction : program::EnumValuesReduction())
    seen.insert(ToReduction(reduction));
  EXPECT_EQ(seen.size(), std::size(program::EnumValuesReduction()));
  EXPECT_EQ(ToReduction(program::Reduction::sum), comm::Reduction::kSum);
  EXPECT_EQ(ToReduction(program::Reduction::prod), comm::Reduction::kProd);
  EXPECT_EQ(ToReduction(program::Reduction::max), comm::Reduction::kMax);
  EXPECT_EQ(ToReduction(program::Reduction::min), comm::Reduction::kMin);
  EXPECT_EQ(ToReduction(program::Reduction::any), comm::Reduction::kAny);
  EXPECT_EQ(ToReduction(program::Reduction::all), comm::Reduction::kAll);
}

}  // namespace
}  // namespace partita::executor
