// Tests that names in IR, C++ enumerations and .td files agree on every value.
#include "dialects/terms/symbols.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

namespace partita::terms {
namespace {

// Returns e.g. "3 min" for each case of the enumeration in this file.
std::vector<std::string> CasesIn(const std::string& name) {
  std::ifstream file("dialects/terms/" + name);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::regex pattern("<\"k\\w+\", (\\d+), \"(\\w+)\">");
  std::vector<std::string> cases;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end;
       match != end; ++match)
    cases.push_back((*match)[1].str() + " " + (*match)[2].str());
  return cases;
}

template <typename Term>
std::string CaseOf(Term term) {
  return std::to_string(static_cast<int>(term)) + " " + NameOf(term);
}

TEST(SymbolsTest, ReductionsAreThoseOfTableGen) {
  std::vector<std::string> cases;
  for (const Reduction reduction : kReductions) {
    EXPECT_EQ(symbolizeReduction(stringifyReduction(reduction)), reduction);
    cases.push_back(CaseOf(reduction));
  }
  EXPECT_EQ(cases.size(), static_cast<size_t>(Reduction::kAll) + 1);
  EXPECT_EQ(cases, CasesIn("reduction.td"));
}

TEST(SymbolsTest, CollectivesAreThoseOfTableGen) {
  std::vector<std::string> cases;
  for (const CollectiveKind kind : kCollectiveKinds) {
    EXPECT_EQ(symbolizeCollectiveKind(stringifyCollectiveKind(kind)), kind);
    cases.push_back(CaseOf(kind));
  }
  EXPECT_EQ(cases.size(), static_cast<size_t>(CollectiveKind::kReturnRows) + 1);
  EXPECT_EQ(cases, CasesIn("collective_kind.td"));
}

TEST(SymbolsTest, ActivationsAreThoseOfTableGen) {
  std::vector<std::string> cases;
  for (const Activation activation : kActivations) {
    EXPECT_EQ(symbolizeActivation(stringifyActivation(activation)), activation);
    cases.push_back(CaseOf(activation));
  }
  EXPECT_EQ(cases.size(), static_cast<size_t>(Activation::kHardSwish) + 1);
  EXPECT_EQ(cases, CasesIn("activation.td"));
}

TEST(SymbolsTest, DirectionsAreThoseOfTableGen) {
  std::vector<std::string> cases;
  for (const ConvDirection direction : kConvDirections) {
    EXPECT_EQ(symbolizeConvDirection(stringifyConvDirection(direction)),
              direction);
    cases.push_back(CaseOf(direction));
  }
  EXPECT_EQ(cases.size(), static_cast<size_t>(ConvDirection::kWeightGrad) + 1);
  EXPECT_EQ(cases, CasesIn("conv_direction.td"));
}

TEST(SymbolsTest, OtherWordsAreNone) {
  EXPECT_EQ(symbolizeReduction("product"), std::nullopt);
  EXPECT_EQ(symbolizeReduction(""), std::nullopt);
  EXPECT_EQ(symbolizeCollectiveKind("transfer"), std::nullopt);
  EXPECT_EQ(symbolizeActivation("gelu"), std::nullopt);
  EXPECT_EQ(symbolizeConvDirection("backward"), std::nullopt);
}

}  // namespace
}  // namespace partita::terms
