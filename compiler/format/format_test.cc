// Every value of the terms and of the format has the counterpart of its name.
#include "compiler/format/format.h"

#include <gtest/gtest.h>

#include <iterator>

namespace partita::format {
namespace {

TEST(FormatTest, EveryCollectiveKind) {
  EXPECT_EQ(std::size(terms::kCollectiveKinds),
            std::size(program::EnumValuesCollectiveKind()));
  for (const terms::CollectiveKind kind : terms::kCollectiveKinds) {
    EXPECT_STREQ(program::EnumNameCollectiveKind(ToFormat(kind)),
                 terms::NameOf(kind));
    EXPECT_EQ(FromFormat(ToFormat(kind)), kind);
  }
  for (const program::CollectiveKind kind : program::EnumValuesCollectiveKind())
    EXPECT_EQ(ToFormat(FromFormat(kind)), kind);
}

TEST(FormatTest, EveryReduction) {
  EXPECT_EQ(std::size(terms::kReductions),
            std::size(program::EnumValuesReduction()));
  for (const terms::Reduction reduction : terms::kReductions) {
    EXPECT_STREQ(program::EnumNameReduction(ToFormat(reduction)),
                 terms::NameOf(reduction));
    EXPECT_EQ(FromFormat(ToFormat(reduction)), reduction);
  }
  for (const program::Reduction reduction : program::EnumValuesReduction())
    EXPECT_EQ(ToFormat(FromFormat(reduction)), reduction);
}

}  // namespace
}  // namespace partita::format
