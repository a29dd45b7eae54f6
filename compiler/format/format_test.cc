// Every value of the terms and of the format has a counterpart of the same
// name.
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

TEST(FormatTest, EveryActivation) {
  EXPECT_EQ(std::size(terms::kActivations),
            std::size(program::EnumValuesActivation()));
  for (const terms::Activation activation : terms::kActivations) {
    EXPECT_STREQ(program::EnumNameActivation(ToFormat(activation)),
                 terms::NameOf(activation));
    EXPECT_EQ(FromFormat(ToFormat(activation)), activation);
  }
  for (const program::Activation activation : program::EnumValuesActivation())
    EXPECT_EQ(ToFormat(FromFormat(activation)), activation);
}

TEST(FormatTest, EveryConvDirection) {
  EXPECT_EQ(std::size(terms::kConvDirections),
            std::size(program::EnumValuesConvDirection()));
  for (const terms::ConvDirection direction : terms::kConvDirections) {
    EXPECT_STREQ(program::EnumNameConvDirection(ToFormat(direction)),
                 terms::NameOf(direction));
    EXPECT_EQ(FromFormat(ToFormat(direction)), direction);
  }
  for (const program::ConvDirection direction :
       program::EnumValuesConvDirection())
    EXPECT_EQ(ToFormat(FromFormat(direction)), direction);
}

}  // namespace
}  // namespace partita::format
